-- Ordering keys written in Lua, from the file to the receiver.
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

local SHOP = [[
local M = {}

function M.by_region(hook, region)
  local shop = hook:get("shop.id")
  if not shop then return lanegate.unordered end
  return region .. ":" .. shop
end

function M.spins(hook)
  if hook:header("x-spin") then while true do pcall(function() while true do end end) end end
  return hook:get("shop.id")
end

function M.fails(hook)
  error("secret " .. hook.body)
end

function M.by_secret(hook)
  return hook:header("x-secret") or "none"
end

return M
]]

local function sink(url, key, more)
  return ([[{ type = "http", name = "receiver", url = "%s", ordered = true, ordering_key = %s, %s },]]):format(url, key,
    more or "")
end

local function body(shop, n)
  return ('{"shop":{"id":"%s"},"n":%d}'):format(shop, n)
end

describe("Lua keys", function()
  local to, gate

  before_each(function() to = receiver.start() end)
  after_each(function()
    if gate then gate:remove() end
    to:remove()
    gate = nil
  end)
  teardown(process.kill_all)

  local function start(key, options)
    options = options or {}
    options.sinks = sink(to.url, key)
    gate = gateway.start { config = configs.demo(options), files = { ["lua/keys/shop.lua"] = SHOP } }
  end

  it("make lanes, in order inside each", function()
    start [[{ "keys.shop", "by_region", { "eu" } }]]
    local requests = {}
    for i = 1, 300 do requests[i] = http.request("POST", "/webhooks/demo", {}, body("s" .. i % 7, i)) end
    for _, answer in ipairs(http.many(gate.ingest, requests, 8)) do assert.equal(201, answer.status) end
    gate:wait_idle()
    local last, keys = {}, {}
    for _, delivery in ipairs(to:taken()) do
      assert.truthy(delivery.key:match "^eu:s%d$")
      keys[delivery.key] = true
      assert.is_true(delivery.seq > (last[delivery.key] or 0))
      last[delivery.key] = delivery.seq
    end
    local count = 0
    for _ in pairs(keys) do count = count + 1 end
    assert.equal(7, count)
    assert.equal(300, #to:taken())
    assert.equal(300, gate:metric("script_duration_seconds_count", { module = "keys.shop", ["function"] = "by_region" }))
  end)

  it("put a hook outside the lanes by lanegate.unordered, which is counted and sent without ordering headers", function()
    start [[{ lua = "keys.shop", call = "by_region", args = { "eu" } }]]
    assert.equal(201, gate:post("demo", {}, "{}").status)
    gate:wait_idle()
    local taken = to:wait_taken(1)
    assert.is_nil(taken[1].key)
    assert.is_nil(taken[1].lane)
    assert.equal(1, gate:metric("dispatch_unordered_total", { sink = "receiver" }))
    assert.equal(0, gate:metric("dispatch_lane_key_missing_total", {}))
  end)

  it("over their budget join the keyless lane, are counted and logged once, and the next hook has its key", function()
    start [[{ "keys.shop", "spins" }]]
    for _ = 1, 3 do assert.equal(201, gate:post("demo", { ["X-Spin"] = "1" }, body("s", 1)).status) end
    assert.equal(201, gate:post("demo", {}, body("s", 2)).status)
    gate:wait_idle()
    local taken = to:wait_taken(4)
    local keys = {}
    for _, delivery in ipairs(taken) do keys[#keys + 1] = delivery.key end
    table.sort(keys)
    assert.same({ "default/demo", "default/demo", "default/demo", "s" }, keys)
    assert.equal(3, gate:metric("dispatch_lane_key_missing_total", { reason = "script_breach" }))
    assert.equal(3, gate:metric("script_breaches_total", { module = "keys.shop", kind = "instructions" }))
    local events = gate:events "script_failed"
    assert.equal(1, #events)
    assert.equal("instructions", events[1].budget)
    assert.truthy(events[1].error:find("keys/shop.lua:10", 1, true))
  end)

  it("that raise are logged with where, and without a word of theirs", function()
    start [[{ "keys.shop", "fails" }]]
    assert.equal(201, gate:post("demo", {}, body("hidden", 1)).status)
    gate:wait_idle()
    assert.equal(1, gate:metric("dispatch_lane_key_missing_total", { reason = "script_error" }))
    local events = gate:events "script_failed"
    assert.equal(1, #events)
    assert.truthy(events[1].error:find("keys/shop.lua:15", 1, true))
    assert.is_nil(process.read_file(gate.log_path):find("hidden", 1, true))
  end)

  it("see only the headers that the source stores", function()
    start([[{ "keys.shop", "by_secret" }]], { source = [[store_headers = { "x-other" },]] })
    assert.equal(201, gate:post("demo", { ["X-Secret"] = "s" }, "{}").status)
    gate:wait_idle()
    assert.equal("none", to:wait_taken(1)[1].key)
  end)

  it("are read anew by a reload; a script that can't work refuses it, and what ran goes on", function()
    start [[{ "keys.shop", "by_region", { "eu" } }]]
    local path = gate.dir .. "/lua/keys/shop.lua"
    local function key_of(n)
      assert.equal(201, gate:post("demo", {}, body("7", n)).status)
      return to:wait_taken(n)[n].key
    end
    assert.equal("eu:7", key_of(1))
    process.write_file(path, (SHOP:gsub('region .. ":" .. shop', 'region .. "/" .. shop')))
    assert.equal("eu:7", key_of(2)) -- nothing looks at the file by itself
    assert.equal(200, gate:ask("/v1/reload", "POST").status)
    assert.equal("eu/7", key_of(3))
    process.write_file(path, SHOP .. "\nthis is not Lua")
    local answer = gate:ask("/v1/reload", "POST")
    assert.equal(400, answer.status, answer.body)
    assert.truthy(answer.body:find("shop.lua:", 1, true), answer.body)
    assert.equal("eu/7", key_of(4))
  end)

  it("that can't work are refused by check, with the line of the file and of the script", function()
    local dir = process.temp_dir()
    os.execute("mkdir -p " .. process.quote(dir .. "/lua/keys"))
    process.write_file(dir .. "/lua/keys/shop.lua", SHOP)
    process.write_file(dir .. "/lua/keys/bad.lua", "local M = {}\nfunction M.key(\nreturn M\n")
    local function check(key)
      process.write_file(dir .. "/config.lua", configs.demo { sinks = sink("http://127.0.0.1:9/", key) })
      local code, _, err = process.run { process.binary(), "check", "--config", dir .. "/config.lua" }
      return code, (err:gsub(dir:gsub("%p", "%%%0"), "DIR"))
    end
    assert.equal(0, (check [[{ "keys.shop", "by_region", { "eu" } }]]))
    local code, err = check [[{ "keys.shop", "by_regoin" }]]
    assert.equal(78, code)
    assert.truthy(err:match "^DIR/config.lua:%d+: sources.demo.sinks.receiver.ordering_key: DIR/lua/keys/shop.lua: has no ")
    code, err = check [[{ first = { { header = "x" }, { "keys.none", "key" } } }]]
    assert.equal(78, code)
    assert.truthy(err:find("there is no module keys.none: expected a file DIR/lua/keys/none.lua", 1, true))
    code, err = check [[{ "keys.bad", "key" }]]
    assert.equal(78, code)
    assert.truthy(err:find("bad.lua:3: ", 1, true))
    process.remove(dir)
  end)
end)
