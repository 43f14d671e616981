-- A key before it goes live: tried on one hook, judged over what is stored, tested by its specs.
local configs = require "support.configs"
local dkjson = require "dkjson"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"

local function lanegate(...) return process.run { process.binary(), ... } end
local function in_folder(dir, ...)
  local words = {}
  for i, word in ipairs { process.binary(), ... } do words[i] = process.quote(word) end
  return process.run { "sh", "-c", "cd " .. process.quote(dir) .. " && " .. table.concat(words, " ") }
end

local by_entity = [[{ type = "log", name = "app", ordered = true, ordering_key = { header = "x-entity-id" } },]]
local module = [[
local M = {}
function M.by_a(hook) return hook:get "a" end
function M.broken(hook) return hook.nothing.there end
function M.endless() while true do end end
local n = 0
function M.counting() n = n + 1 return tostring(n) end
return M
]]

describe("lanegate key", function()
  local gate
  after_each(function()
    if gate then gate:remove() end
    gate = nil
  end)
  teardown(process.kill_all)

  local function start()
    gate = gateway.start { config = configs.demo { sinks = by_entity } }
    assert(os.execute("mkdir -p " .. gate.dir .. "/lua/keys") == 0)
    process.write_file(gate.dir .. "/lua/keys/a.lua", module)
    process.write_file(gate.dir .. "/hook.http", "POST /webhooks/demo HTTP/1.1\nX-Entity-Id: anna b\n\n{\"a\":\"7\"}")
  end

  local function key(...)
    local code, out, err = lanegate("key", "--source", "demo", "--config", gate.config_path, "--admin", gate.admin, "--json", ...)
    return code, dkjson.decode(out), err
  end

  it("shows the lane of a request in a file, of one that is piped, and of one that is stored", function()
    start()
    local code, shown = key("--hook", gate.dir .. "/hook.http")
    assert.equal(0, code)
    assert.equal("anna b", shown.key)
    local answer = gate:post("demo", { ["X-Entity-Id"] = "anna b" }, '{"a":"7"}')
    local id = dkjson.decode(answer.body).id
    local _, stored = key("--hook", id)
    assert.same({ "anna b", shown.lane }, { stored.key, stored.lane })
    local _, out = process.run({ process.binary(), "key", "--source", "demo", "--config", gate.config_path },
      process.read_file(gate.dir .. "/hook.http"))
    assert.truthy(out:find(shown.lane, 1, true), out)
    local hook = select(2, lanegate("hooks", "show", id, "--json", "--admin", gate.admin))
    assert.equal(shown.lane, dkjson.decode(hook).rows[1].lane)
  end)

  it("tries a proposed key, and says what it used, or what went wrong", function()
    start()
    local _, shown = key("--hook", gate.dir .. "/hook.http", "--key", '{ "keys.a", "by_a" }')
    assert.equal("7", shown.key)
    assert.is_true(shown.cost.instructions > 0)
    local code, broken = key("--hook", gate.dir .. "/hook.http", "--key", '{ "keys.a", "broken" }')
    assert.same({ 1, "script_error" }, { code, broken.reason })
    assert.truthy(broken.error:find("keys/a.lua:3", 1, true), broken.error)
    local breached
    code, breached = key("--hook", gate.dir .. "/hook.http", "--key", '{ "keys.a", "endless" }')
    assert.same({ 1, "script_breach", "instructions" }, { code, breached.reason, breached.breach })
    local counting
    code, counting = key("--hook", gate.dir .. "/hook.http", "--key", '{ "keys.a", "counting" }')
    assert.same({ 1, true }, { code, counting.nondeterministic })
  end)

  it("is tried over the API too", function()
    start()
    local id = dkjson.decode(gate:post("demo", { ["X-Entity-Id"] = "anna" }, "{}").body).id
    local stored = gate:ask("/v1/keys/test?source=demo&sink=app&hook=" .. id, "POST")
    assert.same({ 200, "anna" }, { stored.status, stored.json.key })
    local function try(members)
      members.source, members.sink = members.source or "demo", "app"
      local answer = http.once(gate.admin, "POST", "/v1/keys/test", { ["Content-Type"] = "application/json" },
        dkjson.encode(members))
      return answer.status, dkjson.decode(answer.body)
    end
    local status, shown = try { raw = "POST /webhooks/demo HTTP/1.1\nX-Entity-Id: anna\n\n{}" }
    assert.same({ 200, stored.json.lane }, { status, shown.lane })
    status, shown = try { raw = "POST /webhooks/demo HTTP/1.1\n\n{}" }
    assert.same({ 200, "no_header" }, { status, shown.reason })
    assert.equal(400, (try { raw = "no request" }))
    assert.equal(400, (try {}))
    assert.equal(400, (try { hook = id, raw = "x" }))
    status, shown = try { source = "nowhere", hook = id }
    assert.same({ 400, "source" }, { status, shown.filter })
    assert.equal(404, (try { hook = "01890a5d-ac96-774b-bcce-b302099a8057" }))
  end)

  it("is found nondeterministic by check, over what is stored", function()
    start()
    local proposed = process.read_file(gate.config_path):gsub('{ header = "x%-entity%-id" }', '{ "keys.a", "counting" }', 1)
    process.write_file(gate.dir .. "/proposed.lua", proposed)
    assert.equal(0, (lanegate("check", "--admin", gate.admin, gate.dir .. "/proposed.lua"))) -- nothing is stored yet
    assert.equal(201, gate:post("demo", {}, "{}").status)
    local code, out, err = lanegate("check", "--admin", gate.admin, gate.dir .. "/proposed.lua")
    assert.equal(78, code, out)
    assert.truthy(err:find("sources.demo.sinks.app.ordering_key: nondeterministic: hook", 1, true), err)
    process.write_file(gate.dir .. "/proposed.lua", (proposed:gsub("counting", "by_a", 1)))
    code, out = lanegate("check", "--admin", gate.admin, gate.dir .. "/proposed.lua")
    assert.equal(0, code)
    assert.truthy(out:find("tried on 1 stored hooks", 1, true), out)
  end)

  it("refuses what it can't make sense of, with what to do", function()
    start()
    local function says(text, ...)
      local code, _, err = lanegate("key", "--config", gate.config_path, ...)
      assert.is_true(code == 2 or code == 78 or code == 1, code)
      assert.truthy(err:find(text, 1, true), err)
    end
    says("--source NAME")
    says("it has demo", "--source", "dmeo")
    says('has no sink "nope"', "--source", "demo", "--sink", "nope")
    says("can't read", "--source", "demo", "--hook", gate.dir .. "/nowhere")
    says('did you mean "json"', "--source", "demo", "--key", "{ jsn = 'a' }")
    says("has no function nothing", "--source", "demo", "--key", "{ 'keys.a', 'nothing' }")
    says("missing>1%", "--source", "demo", "--history", "7d", "--fail-if", "misssing>1%")
    says("line 1: expected", "--source", "demo", "--hook", gate.config_path)
  end)

  it("judges a key by what is stored, and is a gate", function()
    start()
    for i = 1, 10 do
      local body = i <= 6 and '{"a":"busy"}' or i <= 9 and ('{"a":"%d"}'):format(i) or "no JSON"
      assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "anna" }, body).status)
    end
    local code, now = key("--history", "1h", "--fail-if", "changed>0")
    assert.same({ 0, 10, 1, 0, 10 }, { code, now.hooks, now.lanes, now.changed, now.compared })
    local proposed
    code, proposed = key("--history", "1h", "--key", '{ "keys.a", "by_a" }')
    assert.same({ 0, 10, 5, 10 }, { code, proposed.hooks, proposed.lanes, proposed.changed })
    assert.same({ key = "busy", hooks = 6, share = 0.6 }, proposed.largest[1])
    assert.equal(1, proposed.missing.script_type)
    assert.is_true(proposed.time_ns.p50 > 0 and proposed.time_ns.p99 >= proposed.time_ns.p50)
    code, proposed = key("--history", "1h", "--key", '{ json = "a" }', "--fail-if", "missing>50% or largest>55%")
    assert.equal(1, code)
    assert.equal("largest>55% (found 60%)", proposed.failed)
    code = key("--history", "1h", "--key", '{ "keys.a", "counting" }')
    assert.equal(1, code)
  end)
end)

describe("lanegate spec", function()
  it("runs specs, and fails when they do", function()
    local dir = process.temp_dir()
    finally(function() process.remove(dir) end)
    assert(os.execute("mkdir -p " .. dir .. "/spec") == 0)
    process.write_file(dir .. "/spec/a_spec.lua", [[
local t = require "lanegate.testing"
it("has a key", function() assert.lane("7", { header = "x" }, t.hook { headers = { X = "7" } }) end)
]])
    local code, out, err = in_folder(dir, "spec")
    assert.equal(0, code, out .. err)
    process.write_file(dir .. "/spec/b_spec.lua", [[
local t = require "lanegate.testing"
it("has another", function() assert.lane("8", { header = "x" }, t.hook { headers = { X = "7" } }) end)
]])
    code, out = in_folder(dir, "spec")
    assert.equal(1, code)
    assert.truthy(out:find('expected the lane of key "8", got the lane of key "7"', 1, true), out)
    local refused, _, said = lanegate("spec", dir .. "/nowhere")
    assert.equal(2, refused)
    assert.truthy(said:find("nowhere", 1, true))
  end)

  it("says what to do under another Lua", function()
    local _, paths = lanegate("spec", "--paths")
    local code, _, err = process.run { "sh", "-c", paths .. "lua5.1 -e 'require \"lanegate.testing\"'" }
    if code == 127 then pending "no lua5.1 here" return end
    assert.equal(1, code)
    assert.truthy(err:find("needs LuaJIT", 1, true), err)
  end)
end)
