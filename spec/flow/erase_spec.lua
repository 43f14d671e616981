-- A hook that was erased is nowhere any more.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local process = require "support.process"
local receiver = require "support.receiver"

local SECRET = "the-lady-vanishes-4711"

describe("an erased hook", function()
  local sink, gate

  before_each(function() sink, gate = nil, nil end)
  after_each(function()
    if gate then gate:remove() end
    if sink then sink:remove() end
  end)
  teardown(process.kill_all)

  local function start(receive, sink_text)
    sink = receiver.start(unpack(receive))
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url, sink_text) } }
  end

  local function post(key, body)
    local answer = gate:post("demo", { ["X-Entity-Id"] = key, ["X-Note"] = body }, body .. ("."):rep(20000) .. body)
    assert.equal(201, answer.status, answer.body)
    return json.decode(answer.body).id
  end

  local function erase(id)
    local answer = gate:ask("/v1/hooks/" .. id .. "?reason=law", "DELETE")
    return answer.status, answer.json
  end

  local function in_files()
    local _, out = process.run { "grep", "-rlF", SECRET, gate.dir .. "/data" }
    return out
  end

  it("leaves nothing in the files, and a line in the audit table", function()
    start {}
    post("b", "other")
    local id = post("a", SECRET)
    gate:wait_idle()
    assert.not_equal("", in_files())
    local status, said = erase(id)
    assert.same({ 200, "erased", 1, true }, { status, said.status, said.rows, said.log_emptied })
    assert.equal("", in_files())
    for _, path in ipairs { "", "/body", "/attempts" } do assert.equal(404, gate:ask("/v1/hooks/" .. id .. path).status) end
    assert.equal(404, (erase(id)))
    local line = gate:ask("/v1/audit").json.lines[1]
    assert.same({ "local", "hook.erase", id, "law" }, { line.who, line.what, line.target, line.reason })
    post("c", "later")
    gate:restart()
    assert.equal("", in_files())
    assert.equal(404, gate:ask("/v1/hooks/" .. id).status)
    assert.equal(2, #gate:ask("/v1/hooks").json.hooks)
  end)

  it("leaves its lane, which goes on with the next", function()
    start({ "--fail", "a=500" }, 'retry = { max_attempts = 1 }, on_dead = "hold"')
    local head = post("a", SECRET)
    local second, third = post("a", "2"), post("a", "3")
    process.wait_for("the hold", function() return gate:ask("/v1/hooks/" .. head).json.rows[1].state == "held" end)
    assert.equal(200, (erase(second))) -- one that waits
    sink:tell "heal"
    local code, _, err = gate:cli("hooks", "erase", head)
    assert.equal(2, code)
    assert.is_truthy(err:find("needs --yes", 1, true), err)
    local out
    code, out = gate:cli("hooks", "erase", head, "--yes", "--reason", "asked for")
    assert.equal(0, code, out)
    local taken = sink:wait_taken(1)
    assert.equal(third, taken[1].id)
    gate:wait_idle()
    assert.equal(1, #sink:taken())
    assert.equal("", in_files())
    assert.equal(0, gate:ask("/v1/dlq").json.total)
    process.wait_for("the gauge", function() return gate:metric "queue_dead" == 0 end)
    gate:restart()
    gate:wait_idle()
    assert.equal(1, #sink:taken())
  end)

  it("is one that no attempt is bringing out", function()
    start({ "--hang", "a" }, "timeout_ms = 20000")
    local running, behind = post("a", "1"), post("a", "2")
    process.wait_for("the attempt", function() return gate:metric "queue_inflight" == 1 end)
    local status, said = erase(running)
    assert.same({ 409, "in_flight" }, { status, said.error })
    assert.equal(1, (gate:cli("hooks", "erase", running, "--yes")))
    assert.equal(200, gate:ask("/v1/hooks/" .. running).status)
    assert.equal(200, (erase(behind)))
    assert.equal(1, gate:metric "queue_inflight")
  end)

  it("is named by a token that may operate", function()
    sink = receiver.start()
    local function sha256(text)
      local _, out = process.run({ "sha256sum" }, text)
      return out:match "^%x+"
    end
    gate = gateway.start { config = (configs.demo { sinks = configs.ordered_sink(sink.url) }):gsub(
      'admin = { listen = "127.0.0.1:0" }', ([[admin = { listen = "127.0.0.1:0", tokens = {
        { hash = "%s", scopes = { "read" }, name = "ana" }, { hash = "%s", scopes = { "read", "operate" }, name = "ben" } } }]])
        :format(sha256 "look", sha256 "act")) }
    local id = post("a", SECRET)
    local function as(token, path, method)
      return gate:ask(path, method, { Authorization = "Bearer " .. token })
    end
    assert.same({ 403, "operate" }, { as("look", "/v1/hooks/" .. id, "DELETE").status,
      as("look", "/v1/dlq/discard?all=true", "POST").json.scope })
    process.wait_for("the erasure", function() return as("act", "/v1/hooks/" .. id, "DELETE").status == 200 end)
    assert.equal("ben", as("look", "/v1/audit").json.lines[1].who)
  end)
end)
