-- What lanes promise: order inside one, and nothing of it outside.
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

local function ascending(deliveries)
  local last, seen = {}, 0
  for _, delivery in ipairs(deliveries) do
    local before = last[delivery.key] or 0
    assert.is_true(delivery.seq > before,
      ("key %s: seq %d was delivered after %d"):format(delivery.key, delivery.seq, before))
    last[delivery.key] = delivery.seq
    seen = seen + 1
  end
  return seen
end

local function posts(count, key_of, body_of)
  local requests = {}
  for i = 1, count do
    requests[i] = http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = key_of(i) },
      body_of and body_of(i) or tostring(i))
  end
  return requests
end

local function all_accepted(answers)
  for _, answer in ipairs(answers) do assert.equal(201, answer.status) end
end

describe("lanes", function()
  local sinks, gate

  local function receive(...)
    sinks[#sinks + 1] = receiver.start(...)
    return sinks[#sinks]
  end

  before_each(function() sinks, gate = {}, nil end)
  after_each(function()
    if gate then gate:remove() end
    for _, sink in ipairs(sinks) do sink:remove() end
  end)
  teardown(process.kill_all)

  it("keep the order of a key while the receiver fails at random", function()
    local sink = receive("--fail-rate", "30", "--seed", "7")
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    all_accepted(http.many(gate.ingest, posts(600, function(i) return "k" .. i % 10 end), 8))
    gate:wait_idle()
    assert.equal(600, ascending(sink:taken()))
    assert.is_true(#sink:deliveries() > 600, "the receiver never failed")
  end)

  it("bring 10,000 hooks over 100 keys complete and in order", function()
    local sink = receive()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    all_accepted(http.many(gate.ingest, posts(10000, function(i) return "k" .. i % 100 end), 32))
    gate:wait_idle(120)
    local taken = sink:taken()
    assert.equal(10000, #taken)
    assert.equal(10000, ascending(taken))
  end)

  it("one stuck lane does not delay a thousand others", function()
    local sink = receive("--hang", "stuck")
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url, "timeout_ms = 20000") } }
    all_accepted(http.many(gate.ingest, posts(5, function() return "stuck" end), 1))
    all_accepted(http.many(gate.ingest, posts(1000, function(i) return "k" .. i end), 16))
    local taken = sink:wait_taken(1000)
    assert.equal(1000, ascending(taken))
    local stuck = gate:ask("/v1/lanes?source=demo&sink=receiver&key=stuck").json.lanes[1]
    assert.equal("running", stuck.state)
    assert.equal(5, stuck.depth)
  end)

  it("a lane that keeps failing waits whole while the other goes on, then catches up in order", function()
    local sink = receive("--fail", "bad=503")
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    all_accepted(http.many(gate.ingest, posts(20, function(i) return i % 2 == 0 and "bad" or "good" end), 1))
    assert.equal(10, #sink:wait_taken(10, 20, "good"))
    assert.equal(0, #sink:taken "bad")
    sink:tell("heal", { key = "bad" })
    sink:wait_taken(10, 20, "bad")
    assert.equal(20, ascending(sink:taken()))
  end)

  it("an unordered sink is not slowed by an ordered one beside it", function()
    local slow, quick = receive("--hang", "*"), receive()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(slow.url, "timeout_ms = 20000")
      .. configs.plain_sink(quick.url, "quick") } }
    all_accepted(http.many(gate.ingest, posts(500, function(i) return "k" .. i % 5 end), 8))
    assert.equal(500, #quick:wait_taken(500))
    assert.equal(0, #slow:taken())
  end)

  it("hooks without the header share the keyless lane, and are counted", function()
    local sink = receive()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    for i = 1, 5 do assert.equal(201, gate:post("demo", {}, tostring(i)).status) end
    gate:wait_idle()
    local taken = sink:taken()
    assert.equal(5, ascending(taken))
    for _, delivery in ipairs(taken) do assert.equal("default/demo", delivery.key) end
    assert.equal(5, gate:metric("dispatch_lane_key_missing_total", { reason = "no_header" }))
  end)

  it("a JSON key is read from the body at ingest", function()
    local sink = receive()
    gate = gateway.start { config = configs.demo { sinks = ([[{ type = "http", name = "json", url = "%s",
      ordered = true, ordering_key = { first = { { json = "data.object.customer" }, { json = "id", integers = true } } } },]])
      :format(sink.url) } }
    assert.equal(201, gate:post("demo", {}, [[{"id":7,"data":{"object":{"customer":"cus_1"}}}]]).status)
    assert.equal(201, gate:post("demo", {}, [[{"id":12345678901234567890}]]).status)
    gate:wait_idle()
    local keys = {}
    for _, delivery in ipairs(sink:taken()) do keys[#keys + 1] = delivery.key end
    table.sort(keys)
    assert.same({ "12345678901234567890", "cus_1" }, keys)
  end)

  it("a refused head leaves its lane as a dead letter, and the next one goes", function()
    local sink = receive("--fail", "a=422")
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "a" }, "1").status)
    local dead
    process.wait_for("the dead letter", function()
      dead = gate:ask("/v1/dlq").json
      return dead.total == 1
    end)
    assert.equal("refused", dead.entries[1].class)
    sink:tell "heal"
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "a" }, "2").status)
    assert.equal(1, sink:wait_taken(1)[1].skipped)
  end)

  it("an exhausted head holds its lane", function()
    local sink = receive("--fail", "a=503")
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url),
      retry = [[base_ms = 1, max_ms = 5, max_attempts = 3]] } }
    for i = 1, 3 do assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "a" }, tostring(i)).status) end
    local lane
    process.wait_for("the lane to be held", function()
      lane = gate:ask("/v1/lanes?key=a").json.lanes[1]
      return lane and lane.state == "held"
    end)
    local dead
    process.wait_for("the dead letter to be written", function()
      dead = gate:ask("/v1/dlq").json
      return dead.total == 1
    end)
    assert.equal("exhausted", dead.entries[1].class)
    assert.equal(3, #sink:deliveries())
    gate:restart() -- a hold is not forgotten
    process.wait_for("the held lane", function()
      lane = gate:ask("/v1/lanes?key=a").json.lanes[1]
      return lane and lane.state == "held"
    end)
    assert.equal(3, #sink:deliveries())
  end)
end)
