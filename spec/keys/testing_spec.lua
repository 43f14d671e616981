-- lanegate.testing itself: what its users rely on, and what it says when they are wrong.
local t = require "lanegate.testing"

-- A folder of modules made for one spec.
local function with_module(name, text)
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir -p " .. path) == 0)
  local file = assert(io.open(path .. "/" .. name .. ".lua", "w"))
  file:write(text)
  file:close()
  finally(function()
    t.scripts(os.getenv "LANEGATE_SCRIPTS" or "lua")
    os.execute("rm -r " .. path)
  end)
  t.scripts(path)
end

local function message(run, ...)
  local good, text = pcall(run, ...)
  assert.is_false(good)
  return tostring(type(text) == "table" and text.message or text)
end

describe("lanegate.testing", function()
  it("resolves every form of key", function()
    local hook = t.hook { headers = { ["X-Shop"] = "7" }, json = { shop = { id = "42", number = 43 } } }
    assert.equal("7", t.key({ header = "x-shop" }, hook))
    assert.equal("42", t.key({ json = "shop.id" }, hook))
    assert.equal("43", t.key({ json = { "shop", "number" }, integers = true }, hook))
    assert.equal("7", t.key({ first = { { json = "no.where" }, { header = "X-SHOP" } } }, hook))
    assert.equal("eu:42", t.key({ lua = "keys.region", call = "by_shop", args = { "eu" } },
      t.hook { json = { shop = { id = "42", country = "FR" } } }))
  end)

  it("says why there is no key", function()
    assert.same({ nil, "no_header" }, { t.key({ header = "x" }, t.hook {}) })
    assert.same({ nil, "not_json" }, { t.key({ json = "a" }, t.hook { body = "{" }) })
    assert.same({ nil, "no_path" }, { t.key({ json = "a" }, t.hook { json = { b = "1" } }) })
    assert.same({ nil, "not_string" }, { t.key({ json = "a" }, t.hook { json = { a = t.null } }) })
    assert.same({ nil, "empty" }, { t.key({ header = "x" }, t.hook { headers = { x = "" } }) })
  end)

  it("gives a long key as it is stamped", function()
    local key = t.key({ header = "x" }, t.hook { headers = { x = ("k"):rep(129) } })
    assert.truthy(key:find "^sha256:%x+$")
    assert.equal(("k"):rep(128), (t.key({ header = "x" }, t.hook { headers = { x = ("k"):rep(128) } })))
  end)

  it("hands on what a script said when it failed", function()
    with_module("broken", "return { key = function(hook) return hook.nothing.there end }")
    local key, reason, said = t.key({ "broken", "key" }, t.hook {})
    assert.is_nil(key)
    assert.equal("script_error", reason)
    assert.truthy(said:find("broken.lua:1", 1, true), said)
  end)

  it("gives breaches their own reason, and what was used", function()
    with_module("endless", "return { key = function() while true do end end }")
    local _, reason = t.key({ "endless", "key" }, t.hook {})
    assert.equal("script_breach", reason)
    assert.equal("instructions", t.budget({ "endless", "key" }, t.hook {}).breach)
  end)

  it("refuses a function whose answer depends on what was called before", function()
    with_module("counter", "local n = 0 return { key = function() n = n + 1 return tostring(n) end }")
    assert.truthy(message(t.key, { "counter", "key" }, t.hook {}):find("nondeterministic", 1, true))
  end)

  it("names a module or a function that is not there, and a malformed key", function()
    assert.truthy(message(t.key, { "keys.nowhere", "key" }, t.hook {}):find("keys.nowhere", 1, true))
    assert.truthy(message(t.key, { "keys.region", "nothing" }, t.hook {}):find("nothing", 1, true))
    assert.truthy(message(t.key, { heder = "x" }, t.hook {}):find('did you mean "header"', 1, true))
    assert.truthy(message(t.key, "x-shop", t.hook {}):find("expected an ordering key", 1, true))
  end)

  it("shows every sink of a source, false for one that is unordered", function()
    local config = {
      sources = {
        shop = {
          store_headers = { "x-shop" },
          sinks = {
            { type = "log", name = "a", ordered = true, ordering_key = { header = "x-shop" } },
            { type = "log", name = "b" },
            { type = "log", name = "c", ordered = true, only = { header = "x-shop", match = { "8" } } },
            { type = "log", name = "d", ordered = true, on_missing_key = "unordered", ordering_key = { json = "a" } },
          },
        },
      },
    }
    local lanes = t.lanes(config, "shop", t.hook { source = "shop", headers = { ["X-Shop"] = "7" } })
    assert.equal("7", lanes[1].key)
    assert.equal("a", lanes[1].sink)
    assert.truthy(lanes[1].lane:find("^" .. ("%x"):rep(32) .. "$"))
    assert.is_false(lanes[2])
    assert.is_true(lanes[3].filtered)
    assert.is_nil(lanes[4].lane)
    assert.equal("not_json", lanes[4].reason)
    assert.truthy(message(t.lanes, config, "shpo", t.hook {}):find("shpo", 1, true))
  end)

  it("reads a configuration's file, its secrets unset", function()
    local lanes = t.lanes("config/config.lua", "demo", t.hook { headers = { ["X-Entity-Id"] = "anna" } })
    assert.equal("anna", lanes[1].key)
  end)

  it("has assertions that read well when they fail", function()
    local key = { header = "x" }
    local one, two = t.hook { headers = { x = "1" } }, t.hook { headers = { x = "2" } }
    assert.truthy(message(assert.lane, "2", key, one):find('expected the lane of key "2", got the lane of key "1"', 1, true))
    assert.truthy(message(assert.keyless, key, one):find("expected the keyless lane, got", 1, true))
    assert.truthy(message(assert.same_lane, one, two, key):find('got the lane of key "1" and the lane of key "2"', 1, true))
    assert.truthy(message(assert.other_lane, one, one, key):find("expected two lanes", 1, true))
    assert.truthy(message(assert.unordered, key, one):find("outside the lanes", 1, true))
    assert.same_lane(t.lane(key, one), t.lane(key, one))
    t.assert.lane("1", key, one)
  end)

  it("reads fixtures beside the spec, and says what is wrong with one", function()
    local hook = t.fixture("payloads/shopify_order_create.http", { source = "shop" })
    assert.equal("orders/create", t.key({ header = "x-shopify-topic" }, hook))
    assert.truthy(message(function() return t.fixture "payloads/nowhere.http" end):find("there is no file", 1, true))
    assert.truthy(message(function() return t.fixture "keys_spec_is_no_request.lua" end):find("there is no file", 1, true))
    assert.truthy(message(function() return t.fixture "testing_spec.lua" end):find("line 1", 1, true))
  end)

  it("refuses parts of a hook that there are not", function()
    assert.truthy(message(t.hook, { haeders = {} }):find("haeders", 1, true))
    assert.truthy(message(t.hook, { json = {}, body = "" }):find("either body or json", 1, true))
    assert.truthy(message(t.hook, { json = { a = print } }):find("function", 1, true))
    assert.truthy(message(t.hook, { id = "1" }):find("UUID", 1, true))
  end)
end)
