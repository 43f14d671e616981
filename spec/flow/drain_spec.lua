-- SIGTERM: nothing accepted is lost, running attempts end, the exit is clean.
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("a SIGTERM", function()
  local sink, gate

  before_each(function() sink = receiver.start() end)
  after_each(function()
    if gate then gate:remove() end
    sink:remove()
  end)
  teardown(process.kill_all)

  it("in the middle of traffic loses no accepted hook", function()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    local accepted, sent = {}, 0
    local connections = {}
    for i = 1, 8 do connections[i] = http.connect(gate.ingest) end
    local open = #connections
    while open > 0 do
      for i, connection in pairs(connections) do
        sent = sent + 1
        local body = "n" .. sent
        local answer = connection:send(http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = "k" .. i }, body))
          and connection:receive()
        if answer and answer.status == 201 then
          accepted[#accepted + 1] = body
        else
          assert.is_true(not answer or answer.status == 503, answer and answer.status)
          connections[i], open = nil, open - 1
        end
      end
      if sent == 400 then process.signal(gate.pid, "TERM") end
    end
    process.wait_for("the end", function() return not process.alive(gate.pid) end)
    assert.equal(1, #gate:events "stopped")
    assert.is_true(#accepted >= 400)
    gate:launch()
    gate:wait_idle()
    assert.equal(#accepted, #sink:taken())
  end)

  it("lets a running attempt finish, and does not repeat it", function()
    sink:tell("delay", { key = "slow", ms = 700 })
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "slow" }, "x").status)
    process.wait_for("the attempt to run", function() return gate:metric "queue_inflight" == 1 end)
    gate:stop()
    assert.equal(1, #sink:taken())
    gate:launch()
    gate:wait_idle()
    assert.equal(1, #sink:taken())
  end)

  it("does not wait longer than drain_timeout for a receiver that hangs", function()
    sink:tell("hang", { key = "stuck" })
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url, "timeout_ms = 30000"),
      top = "drain_timeout_ms = 300," } }
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "stuck" }, "x").status)
    process.wait_for("the attempt to run", function() return gate:metric "queue_inflight" == 1 end)
    gate:stop(10)
    sink:tell "heal"
    gate:launch()
    sink:wait_taken(1)
  end)

  it("given twice ends the process at once", function()
    sink:tell("hang", { key = "stuck" })
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url, "timeout_ms = 30000") } }
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "stuck" }, "x").status)
    process.wait_for("the attempt to run", function() return gate:metric "queue_inflight" == 1 end)
    process.signal(gate.pid, "TERM")
    process.wait_for("the drain", function() return #gate:events "draining" == 1 end)
    process.signal(gate.pid, "TERM")
    process.wait_for("the end", function() return not process.alive(gate.pid) end, 5)
    assert.equal(0, #gate:events "stopped")
  end)

  it("shows on /ready while it drains", function()
    sink:tell("hang", { key = "stuck" })
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url, "timeout_ms = 30000") } }
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "stuck" }, "x").status)
    process.wait_for("the attempt to run", function() return gate:metric "queue_inflight" == 1 end)
    process.signal(gate.pid, "TERM")
    process.wait_for("the drain", function() return #gate:events "draining" == 1 end)
    local answer = gate:ask "/ready"
    assert.equal(503, answer.status)
    assert.same({ "draining" }, answer.json.reasons)
  end)
end)
