-- A receiver that is ill as a whole: it is left in peace, nothing is lost, and it comes back gently.
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("a breaker", function()
  local sink, gate

  after_each(function()
    if gate then gate:remove() end
    if sink then sink:remove() end
    gate, sink = nil, nil
  end)
  teardown(process.kill_all)

  local function start(breaker, ...)
    sink = receiver.start(...)
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url, "concurrency = 4"),
      retry = [[base_ms = 10, max_ms = 50 }, breaker = { ]] .. breaker } }
  end

  local function post(count, key_of)
    local requests = {}
    for i = 1, count do
      requests[i] = http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = key_of(i) }, tostring(i))
    end
    for _, answer in ipairs(http.many(gate.ingest, requests, 8)) do assert.equal(201, answer.status) end
  end

  local function shown() return gate:ask("/v1/sinks").json.sinks[1] end

  local function wait_breaker(state)
    return process.wait_for("the breaker to be " .. state, function()
      local now = shown()
      return now.breaker == state and now
    end)
  end

  local function in_order(taken)
    local last = {}
    for _, delivery in ipairs(taken) do
      assert.is_true(delivery.seq > (last[delivery.key] or 0), "out of order: " .. delivery.seq)
      last[delivery.key] = delivery.seq
    end
    return #taken
  end

  it("opens after a handful of attempts at a dead endpoint, and stays open over a restart", function()
    start([[failures = 5, open_ms = "1h", max_open_ms = "1h"]], "--fail", "*=500")
    post(200, function(i) return "k" .. i end)
    local now = wait_breaker "open"
    assert.equal("failures", now.breaker_cause)
    assert.is_true(now.breaker_since > 1.6e12)
    process.wait_for("what runs to end", function() return shown().running == 0 end)
    local attempts = #sink:deliveries()
    assert.is_true(attempts <= 5 + 4, attempts .. " attempts")
    assert.is_truthy(select(2, gate:cli "sinks"):find("open, probe in", 1, true))
    sink:tell "heal"
    gate:restart()
    post(1, function() return "new" end)
    wait_breaker "open"
    process.wait_for("the new one to be counted", function() return shown().pending == 201 end)
    assert.equal(attempts, #sink:deliveries())
    assert.equal(0, (gate:cli("sinks", "retry", "demo/receiver")))
    assert.equal(201, in_order(sink:wait_taken(201)))
    assert.equal("closed", wait_breaker("closed").breaker)
  end)

  it("a deploy that answers 404 for a while loses nothing and reorders nothing", function()
    start([[failures = 5, open_ms = 50, max_open_ms = 100]], "--fail", "*=404")
    post(300, function(i) return "k" .. i % 10 end)
    wait_breaker "open"
    assert.equal(0, gate:ask("/v1/dlq").json.total)
    sink:tell "heal"
    gate:wait_idle()
    assert.equal(300, in_order(sink:taken()))
    assert.equal(0, gate:ask("/v1/dlq").json.total)
  end)

  it("a storm of refusals stops before it empties a backlog", function()
    start([[failures = 5, open_ms = "1h", max_open_ms = "1h"]], "--fail", "*=422")
    post(300, function(i) return "k" .. i end)
    local now = wait_breaker "open"
    assert.equal("refused_storm", now.breaker_cause)
    process.wait_for("what runs to end", function()
      now = shown()
      return now.running == 0 and now.pending + now.dead == 300
    end)
    assert.is_true(now.dead >= 20 and now.dead < 20 + 4, now.dead .. " dead letters")
    sink:tell "heal"
    assert.equal(0, (gate:cli("sinks", "retry", "demo/receiver")))
    assert.equal(now.pending, in_order(sink:wait_taken(now.pending)))
  end)

  it("never opens for one poison hook, however often it fails", function()
    start([[failures = 3, open_ms = "1h", max_open_ms = "1h"]], "--fail", "poison=500")
    post(1, function() return "poison" end)
    process.wait_for("many attempts", function() return #sink:deliveries() >= 12 end)
    post(20, function(i) return "k" .. i end)
    assert.equal(20, in_order(sink:wait_taken(20)))
    assert.equal("closed", shown().breaker)
  end)
end)
