-- Accepted means durable: whatever was answered 201 is delivered, whatever happens to the process.
local configs = require "support.configs"
local gateway = require "support.gateway"
local process = require "support.process"
local receiver = require "support.receiver"
local json = require "dkjson"

describe("an accepted hook", function()
  local sink, gate

  before_each(function() sink = receiver.start() end)
  after_each(function()
    if gate then gate:remove() end
    sink:remove()
  end)
  teardown(process.kill_all)

  it("is delivered after a kill -9 right behind the answer", function()
    sink:tell("fail", { key = "*", status = 503 }) -- nothing is delivered before the kill
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    local ids = {}
    for i = 1, 20 do
      local answer = gate:post("demo", { ["X-Entity-Id"] = "k" .. i % 3 }, "body " .. i)
      assert.equal(201, answer.status)
      ids[#ids + 1] = json.decode(answer.body).id
    end
    gate:kill9()
    sink:tell "heal"
    gate:restart()
    local taken, seen = sink:wait_taken(20), {}
    for _, delivery in ipairs(taken) do seen[delivery.id] = true end
    for _, id in ipairs(ids) do assert.is_true(seen[id], id) end
  end)

  it("keeps its lane's order over kills in the middle of delivery", function()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    local sent = 0
    for _ = 1, 5 do
      for _ = 1, 40 do
        sent = sent + 1
        assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "only" }, tostring(sent)).status)
      end
      gate:kill9()
      gate:restart()
    end
    gate:wait_idle()
    -- First deliveries ascend; a repeat is what a kill may cost (contract, section 4, rule 13).
    local seen, highest, count = {}, 0, 0
    for _, delivery in ipairs(sink:taken()) do
      if not seen[delivery.seq] then
        assert.is_true(delivery.seq > highest, "seq " .. delivery.seq .. " came after " .. highest)
        seen[delivery.seq], highest, count = true, delivery.seq, count + 1
      end
    end
    assert.equal(sent, count)
  end)

  it("never gets a seq a second time, not even after everything was delivered and removed", function()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url),
      store = [[retention_ms = 1]] } }
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "a" }, "1").status)
    local first = sink:wait_taken(1)[1].seq
    process.wait_for("the hook to be removed", function()
      return #gate:ask("/v1/hooks").json.hooks == 0
    end)
    gate:restart()
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "a" }, "2").status)
    assert.is_true(sink:wait_taken(2)[2].seq > first)
  end)
end)
