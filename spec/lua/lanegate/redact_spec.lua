-- Only what the schema marks as public is shown. The walk over a whole file of secrets is in spec/unit/config.

local redact = require "lanegate.redact"
local schema = require "lanegate.schema"
local tree = require "lanegate.tree"

local function sink(values)
  values.type = values.type or "http"
  return redact.run({ sources = { a = { sinks = tree.list { values } } } }).sources.a.sinks[1]
end

describe("redaction", function()
  it("shows of a URL where it leads, and no more", function()
    for url, shown in pairs {
      ["https://example.com"] = "https://example.com/",
      ["https://example.com/"] = "https://example.com/",
      ["https://example.com:8443/a/b"] = "https://example.com:8443/(set)",
      ["https://example.com?token=x"] = "https://example.com/(set)",
      ["http://[::1]:4100/hooks"] = "http://[::1]:4100/(set)",
      ["(env URL)"] = "(set)",
    } do
      assert.equal(shown, sink({ url = url }).url)
    end
  end)

  it("shows the names of headers", function()
    assert.same({ authorization = "(set)" }, sink({ headers = { authorization = "Bearer x" } }).headers)
  end)

  it("shows keys, but not the arguments of functions", function()
    local key = { kind = "first", items = tree.list {
      { kind = "script", module = "keys.shop", call = "f", args = tree.list { "hush" } },
      { kind = "header", header = "x-id" } } }
    local shown = sink({ ordering_key = key }).ordering_key
    assert.equal("(set)", shown.items[1].args)
    assert.equal("keys.shop", shown.items[1].module)
    assert.equal("x-id", shown.items[2].header)
    assert.equal("hush", key.items[1].args[1]) -- what runs is as it was
  end)

  it("shows false as false", function()
    assert.is_false(sink({ ordered = false }).ordered)
    assert.is_false(redact.run({ egress = { allow_http = false } }).egress.allow_http)
  end)

  it("shows limits", function()
    local limits = { tenants = { acme = { rate = 1, burst = 2 } }, sources = {}, failed_signatures = false }
    assert.same(limits, redact.run({ rate_limits = limits }).rate_limits)
  end)

  it("hides an option that nobody marked", function()
    table.insert(schema.sink, { name = "novel", type = "text" })
    local shown = sink({ novel = "hush" })
    table.remove(schema.sink)
    assert.equal("(set)", shown.novel)
    assert.is_nil(sink({ novel = "hush" }).novel) -- and what no row knows is not there at all
  end)
end)
