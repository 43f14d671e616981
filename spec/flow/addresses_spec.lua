-- From where hooks may come: the address of a hook, who is let in, and what strangers write about themselves.
local gateway = require "support.gateway"
local http = require "support.http"
local json = require "dkjson"
local process = require "support.process"

local FORWARDED = "X-Forwarded-For"

local function config(options)
  return ([[
return {
  http = { listen = "127.0.0.1:0", %s },
  admin = { listen = "127.0.0.1:0" },
  log = { format = "json" },
  store = { min_free_bytes = "16MiB" },
  addresses = { %s },
  sources = {
    open = { sinks = { { type = "log", ordered = true, ordering_key = { lua = "by_address", call = "key" } } } },
    narrow = { addresses = { %s }, sinks = { { type = "log" } } },
    signed = { verify = { type = "github", secret = "hush" }, on_verify_failure = "quarantine",
      addresses = { allow = { "192.0.2.0/24" } }, sinks = { { type = "log" } } },
    asks = { handshake = "graph", addresses = { allow = { "192.0.2.0/24" } }, sinks = { { type = "log" } } },
  },
}]]):format(options.http or "", options.all or "", options.narrow or "")
end

local script = [[
local M = {}
function M.key(hook) return hook.remote_ip end
return M
]]

local function start(options)
  return gateway.start { config = config(options), files = { ["lua/by_address.lua"] = script } }
end

local function post(gate, source, forwarded)
  local headers = {}
  for _, line in ipairs(type(forwarded) == "table" and forwarded or { forwarded }) do
    headers[#headers + 1] = { FORWARDED, line }
  end
  local answer = assert(http.once(gate.ingest, "POST", "/webhooks/" .. source, headers, "{}"))
  answer.json = json.decode(answer.body)
  return answer
end

local function is_denied(answer, reason)
  assert.equal(403, answer.status)
  assert.same({ error = "ip_denied", reason = reason }, answer.json)
end

-- What the stored hook says, and what its key function saw.
local function address_of(gate, forwarded)
  local answer = post(gate, "open", forwarded)
  assert.equal(201, answer.status)
  local hook = gate:ask("/v1/hooks/" .. answer.json.id).json
  assert.equal(hook.remote_ip, hook.rows[1].key)
  return hook.remote_ip
end

local function stored(gate)
  return #gate:ask("/v1/hooks?limit=1000").json.hooks
end

describe("without proxies that are trusted", function()
  local gate
  setup(function() gate = start { all = 'deny = { "192.0.2.0/24" }', narrow = 'allow = { "192.0.2.1" }' } end)
  teardown(function() gate:remove() end)

  it("a hook's address is that of its connection, whatever it says", function()
    for _, said in ipairs { "192.0.2.1", "8.8.8.8, 192.0.2.1", "nonsense", "127.0.0.1" } do
      assert.equal("127.0.0.1", address_of(gate, said))
    end
  end)

  it("nobody gets in, or is shut out, by what they write", function()
    assert.equal(201, post(gate, "open", "192.0.2.1").status)
    is_denied(post(gate, "narrow", "192.0.2.1"), "not_allowed")
  end)
end)

describe("behind a proxy that is trusted", function()
  local gate
  setup(function()
    gate = start { http = 'trusted_proxies = { "127.0.0.0/8", "10.0.0.0/8" }', all = 'deny = { "203.0.113.0/24" }',
      narrow = 'allow = "192.0.2.0/24 2001:db8::/32", deny = { "192.0.2.66" }' }
  end)
  teardown(function()
    gate:remove()
    process.kill_all()
  end)

  it("a hook's address is what the proxies wrote, and nothing left of it counts", function()
    assert.equal("192.0.2.7", address_of(gate, "192.0.2.7"))
    assert.equal("192.0.2.7", address_of(gate, "8.8.8.8, 192.0.2.7"))
    assert.equal("192.0.2.7", address_of(gate, "8.8.8.8, 192.0.2.7:5678, 10.0.0.2, 10.0.0.1:80"))
    assert.equal("192.0.2.7", address_of(gate, { "8.8.8.8, 192.0.2.7", "10.0.0.2", "10.0.0.1" }))
    assert.equal("192.0.2.7", address_of(gate, "unknown, ::ffff:192.0.2.7, ::ffff:10.0.0.1"))
    assert.equal("2001:db8::7", address_of(gate, "[2001:DB8:0::7]:443, 10.0.0.1"))
  end)

  it("it is the proxy furthest away when there are only proxies, and the nearest when it says nothing", function()
    assert.equal("10.0.0.2", address_of(gate, "10.0.0.2, 10.0.0.1"))
    assert.equal("127.0.0.1", address_of(gate, nil))
    assert.equal("127.0.0.1", address_of(gate, ""))
  end)

  it("an entry that nobody can read is shut out, where the walk comes to it", function()
    local before = stored(gate)
    for _, said in ipairs { "unknown", "192.0.2.7, unknown", "192.0.2.7, x, 10.0.0.1", "192.0.2.7:x", "[192.0.2.7]",
                            "caf\233" } do
      is_denied(post(gate, "open", said), "unreadable_address")
    end
    assert.equal(before, stored(gate))
  end)

  it("the gate of all shuts out of every source, and tells nobody which sources there are", function()
    local before = gate:metric("ingest_refused_total", { reason = "ip_denied" })
    is_denied(post(gate, "open", "203.0.113.5"), "denied")
    is_denied(post(gate, "narrow", "203.0.113.5"), "denied")
    is_denied(post(gate, "nobody", "203.0.113.5"), "denied")
    assert.equal(404, post(gate, "nobody", "192.0.2.5").status)
    assert.equal(before + 3, gate:metric("ingest_refused_total", { reason = "ip_denied" }))
  end)

  it("a source's own gate narrows: deny wins over allow, and other sources are open", function()
    assert.equal(201, post(gate, "narrow", "192.0.2.5").status)
    assert.equal(201, post(gate, "narrow", "2001:db8:5::1").status)
    is_denied(post(gate, "narrow", "192.0.2.66"), "denied")
    is_denied(post(gate, "narrow", "198.51.100.1"), "not_allowed")
    is_denied(post(gate, "narrow", nil), "not_allowed")
    assert.equal(201, post(gate, "open", "192.0.2.66").status)
    assert.equal(3, gate:metric("ingest_requests_total", { source = "narrow", outcome = "ip_denied" }))
  end)

  it("who is shut out is neither verified nor kept, not even in quarantine", function()
    is_denied(post(gate, "signed", "198.51.100.1"), "not_allowed")
    assert.equal(0, gate:metric("verify_failures_total", { source = "signed" }))
    assert.equal(0, #gate:ask("/v1/quarantine").json.entries)
    assert.equal(202, post(gate, "signed", "192.0.2.5").status)
    local kept = gate:ask("/v1/quarantine").json.entries
    assert.equal(1, #kept)
  end)

  it("a handshake is under the same rules", function()
    local path = "/webhooks/asks?validationToken=hello"
    local denied = http.once(gate.ingest, "POST", path, { [FORWARDED] = "198.51.100.1" }, "")
    assert.equal(403, denied.status)
    local answer = http.once(gate.ingest, "POST", path, { [FORWARDED] = "192.0.2.5" }, "")
    assert.equal(200, answer.status)
    assert.equal("hello", answer.body)
  end)

  it("probes are for everybody", function()
    for _, path in ipairs { "/health", "/ready" } do
      assert.equal(200, http.once(gate.ingest, "GET", path, { [FORWARDED] = "203.0.113.5" }).status)
      assert.equal(200, http.once(gate.ingest, "GET", path, { [FORWARDED] = "unknown" }).status)
    end
  end)

  it("the log tells now and then which address it was", function()
    local lines = gate:events "ip_denied"
    assert.is_true(#lines >= 1)
    assert.equal("unreadable_address", lines[1].reason)
    assert.equal("127.0.0.1", lines[1].address)
  end)

  it("a reload changes who gets in, at once and on open connections", function()
    local connection = http.connect(gate.ingest)
    assert.equal(201, connection:ask("POST", "/webhooks/open", { [FORWARDED] = "192.0.2.5" }, "1").status)
    process.write_file(gate.config_path, config { http = 'trusted_proxies = { "127.0.0.1" }', all = 'allow = { "10.0.0.1" }' })
    local code, _, err = gate:cli("reload")
    assert.equal(0, code, err)
    assert.equal(403, connection:ask("POST", "/webhooks/open", { [FORWARDED] = "192.0.2.5" }, "2").status)
    local answer = connection:ask("POST", "/webhooks/open", { [FORWARDED] = "192.0.2.5, 10.0.0.1" }, "3")
    assert.equal(201, answer.status)
    assert.equal("10.0.0.1", gate:ask("/v1/hooks/" .. json.decode(answer.body).id).json.remote_ip)
    connection:close()
  end)
end)

describe("a list of addresses", function()
  local function check(options)
    local dir = process.temp_dir()
    process.write_file(dir .. "/config.lua", config(options))
    os.execute("mkdir " .. dir .. "/lua")
    process.write_file(dir .. "/lua/by_address.lua", script)
    local code, out, err = process.run { process.binary(), "check", "--config", dir .. "/config.lua" }
    process.remove(dir)
    return code, out .. err
  end

  it("may come from a file, as providers publish theirs", function()
    local dir = process.temp_dir()
    process.write_file(dir .. "/ranges", "192.0.2.0/24\n2001:db8::/32\r\n198.51.100.7\n\n")
    local code, said = check { all = ('allow = file "%s/ranges"'):format(dir) }
    assert.equal(0, code, said)
    process.write_file(dir .. "/ranges", "192.0.2.0/24\n<html>\n")
    code, said = check { all = ('allow = file "%s/ranges"'):format(dir) }
    process.remove(dir)
    assert.equal(78, code)
    assert.truthy(said:find("addresses.allow[2]", 1, true), said)
  end)

  it("is refused with the right form", function()
    local code, said = check { http = 'trusted_proxies = { "10.0.0.1/8" }', all = 'deny = { "192.0.2.300" }',
      narrow = 'allow = "", dney = {}' }
    assert.equal(78, code)
    for _, expected in ipairs { 'http.trusted_proxies[1]: must be a range without bits set behind its length, got "10.0.0.1/8": '
      .. 'write "10.0.0.0/8"', "addresses.deny[1]: must be an address range", "sources.narrow.addresses.allow: must be a list",
      'sources.narrow.addresses.dney: is not an option here (did you mean "deny"?)' } do
      assert.truthy(said:find(expected, 1, true), said)
    end
  end)
end)
