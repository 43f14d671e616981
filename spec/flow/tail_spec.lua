-- What happens, as it happens: GET /v1/events and lanegate tail.
local configs = require "support.configs"
local dkjson = require "dkjson"
local gateway = require "support.gateway"
local process = require "support.process"
local receiver = require "support.receiver"

describe("lanegate tail", function()
  local gate, sink, tails

  before_each(function()
    sink = receiver.start()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    tails = 0
  end)
  after_each(function()
    gate:remove()
    sink:remove()
  end)
  teardown(process.kill_all)

  -- Follows events into a file; gives a function that reads what came so far.
  local function tail(...)
    tails = tails + 1
    local out = ("%s/tail%d"):format(gate.dir, tails)
    process.spawn({ process.binary(), "tail", "--json", "--admin", gate.admin, ... }, out, out .. ".err")
    return function()
      local events = {}
      for line in (process.read_file(out) or ""):gmatch "[^\n]+" do events[#events + 1] = dkjson.decode(line) end
      return events
    end, out .. ".err"
  end

  local function wait_events(read, wanted)
    local kinds = {}
    process.wait_for(wanted, function()
      kinds = {}
      for i, event in ipairs(read()) do kinds[i] = event.event end
      return table.concat(kinds, " "):find(wanted, 1, true)
    end)
    return read()
  end

  local function post(key) return dkjson.decode(gate:post("demo", { ["X-Entity-Id"] = key }, "x").body).id end

  it("shows what becomes of a hook, in order", function()
    local id = post "anna"
    local events = wait_events(tail("--after", "0"), "delivered")
    local attempt, delivered
    for _, event in ipairs(events) do
      attempt = event.event == "attempt" and event or attempt
      delivered = event.event == "delivered" and event or delivered
    end
    assert.same({ id, "demo", "anna", "ok", 200 },
      { attempt.id, attempt.source, attempt.key, attempt.outcome, attempt.status })
    assert.equal(id, delivered.id)
    assert.is_true(delivered.event_id > attempt.event_id)
  end)

  it("shows only what is asked for", function()
    local bert = tail("--key", "bert", "--event", "attempt,delivered")
    sink:tell("fail", { key = "anna", status = "503" })
    process.wait_for("the stream", function() post "anna" post "bert" return #bert() > 0 end)
    for _, event in ipairs(bert()) do
      assert.equal("bert", event.key)
      assert.is_true(event.event == "attempt" or event.event == "delivered")
    end
  end)

  it("tells of a dead letter with its class and what the receiver said", function()
    sink:tell("fail", { key = "anna", status = "410" })
    local id = post "anna"
    local events = wait_events(tail("--after", "0", "--event", "dead"), "dead")
    assert.same({ id, "refused", 410 }, { events[1].id, events[1].outcome, events[1].status })
  end)

  it("goes on where it was, over a restart", function()
    local read = tail()
    process.wait_for("the stream", function() post "anna" return #read() > 0 end)
    gate:restart((process.read_file(gate.config_path):gsub('(admin = {[^}]-listen = )"[^"]+"', ('%%1%q'):format(gate.admin))))
    local before = #read()
    process.wait_for("events of the new process", function() post "bert" return #read() > before end, 60)
    local last = 0
    for _, event in ipairs(read()) do
      assert.is_true(event.event_id > last)
      last = event.event_id
    end
  end)

  it("refuses filters that there are not", function()
    local refused = gate:ask("/v1/events?event=nonsense")
    assert.same({ 400, "event" }, { refused.status, refused.json.filter })
    assert.equal(400, gate:ask("/v1/events?colour=red").status)
    assert.equal(400, gate:ask("/v1/events?after=yesterday").status)
    local code, _, err = process.run { process.binary(), "tail", "--admin", gate.admin, "--event", "nonsense" }
    assert.equal(2, code)
    assert.truthy(err:find("lane_blocked", 1, true), err)
    gate:stop()
    code = process.run { process.binary(), "tail", "--admin", gate.admin }
    assert.equal(69, code)
  end)

  it("does not keep the gateway from going down", function()
    local read = tail()
    process.wait_for("the stream", function() post "anna" return #read() > 0 end)
    gate:stop()
    assert.equal(1, #gate:events "stopped")
  end)
end)
