-- Somebody else's trouble is not mine.
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("isolation", function()
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

  local function post(count, path, headers_of, body)
    local requests = {}
    for i = 1, count do
      requests[i] = http.request("POST", path, headers_of and headers_of(i) or {}, body or tostring(i))
    end
    for _, answer in ipairs(http.many(gate.ingest, requests, 16)) do assert.equal(201, answer.status) end
  end

  -- Ten sources whose sinks hang behind one receiver, and one that is well.
  local function eleven_sources(hanging, well, dispatch)
    local sources = {}
    for i = 1, 10 do
      sources[i] = ([[bad%d = { sinks = { %s } },]]):format(i,
        configs.plain_sink(hanging.url, "hangs", [[timeout_ms = "60s"]]))
    end
    return configs.demo { sinks = configs.plain_sink(well.url, "well"), retry = [[base_ms = 10, max_ms = 50 }, ]]
      .. (dispatch or [[attempt_timeout_ms = "60s"]]) .. ", breaker = { failures = 1000000" }
      :gsub("sources = {", "sources = { " .. table.concat(sources, "\n") .. "\n", 1)
  end

  it("ten receivers that hang, with 500 hooks each, don't delay a healthy one", function()
    local hanging, well = receive("--hang", "*"), receive()
    gate = gateway.start { config = eleven_sources(hanging, well,
      [[attempt_timeout_ms = "60s"]]) }
    for i = 1, 10 do post(500, "/webhooks/bad" .. i) end
    process.wait_for("the slots of all ten to be taken", function()
      return gate:metric("queue_inflight") >= 80
    end)
    post(100, "/webhooks/demo")
    local taken = well:wait_taken(100)
    local first, last = math.huge, 0
    for _, delivery in ipairs(taken) do
      first = math.min(first, delivery.started_ms)
      last = math.max(last, delivery.finished_ms)
    end
    assert.is_true(last - first < 1000, ("a hundred hooks took %d ms"):format(last - first))
    assert.equal(0, #hanging:taken())
  end)

  -- Four thousand slots, and each hanging receiver may take 32 of them before a second has shown that it hangs.
  it("two hundred receivers that hang from the first moment don't take all slots", function()
    local hanging, well = receive("--hang", "*"), receive()
    local sources = {}
    for i = 1, 200 do
      sources[i] = ([[bad%d = { sinks = { %s } },]]):format(i,
        configs.plain_sink(hanging.url, "hangs", [[timeout_ms = "60s"]]))
    end
    local config = configs.demo { sinks = configs.plain_sink(well.url, "well"), retry = [[base_ms = 10 }, ]]
      .. [[attempt_timeout_ms = "60s", concurrency = 256, breaker = { failures = 1000000]] }
      :gsub("sources = {", "sources = { " .. table.concat(sources, "\n") .. "\n", 1)
    gate = gateway.start { config = config }
    for i = 1, 200 do post(4, "/webhooks/bad" .. i) end
    process.wait_for("the slots to be taken", function() return gate:metric("queue_inflight") == 255 end)
    post(100, "/webhooks/demo")
    local taken = well:wait_taken(100)
    local first, last = math.huge, 0
    for _, delivery in ipairs(taken) do
      first = math.min(first, delivery.started_ms)
      last = math.max(last, delivery.finished_ms)
    end
    assert.is_true(last - first < 1000, ("a hundred hooks took %d ms"):format(last - first))
    assert.equal(0, #hanging:taken())
  end)

  it("a receiver that hangs with large bodies leaves memory to the others", function()
    local hanging, well = receive("--hang", "*"), receive()
    gate = gateway.start { config = eleven_sources(hanging, well,
      [[max_inflight_bytes = "4MiB", attempt_timeout_ms = "60s"]]) }
    post(20, "/webhooks/bad1", nil, ("x"):rep(1000000))
    process.wait_for("its share to be taken", function() return gate:metric("queue_inflight") >= 2 end)
    post(20, "/webhooks/demo", nil, ("x"):rep(1000000))
    well:wait_taken(20)
    process.wait_for("only the one that hangs to be left, with its share", function()
      return gate:metric "queue_inflight" <= 4
    end)
  end)

  it("one lane that fails for ever does not slow the thousand others of its sink", function()
    local sink = receive("--fail", "poison=500")
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    post(20, "/webhooks/demo", function() return { ["X-Entity-Id"] = "poison" } end)
    post(3000, "/webhooks/demo", function(i) return { ["X-Entity-Id"] = "k" .. i % 1000 } end)
    local taken, last = sink:wait_taken(3000), {}
    for _, delivery in ipairs(taken) do
      assert.is_true(delivery.seq > (last[delivery.key] or 0))
      last[delivery.key] = delivery.seq
    end
    assert.equal(0, #sink:taken "poison")
    assert.equal("closed", gate:ask("/v1/sinks").json.sinks[1].breaker)
    sink:tell "heal"
    sink:wait_taken(20, 20, "poison")
  end)

  it("a tenant with many pending adds one turn to a tenant with one", function()
    local sink = receive()
    local config = configs.demo { http = [[routing = "tenant_path"]], source = "trust_url_tenant = true,",
      sinks = configs.plain_sink(sink.url, "receiver", "concurrency = 1") }
    gate = gateway.start { config = config }
    assert.equal(0, (gate:cli("sinks", "pause", "demo/receiver")))
    post(500, "/webhooks/big/demo")
    post(1, "/webhooks/small/demo")
    process.wait_for("all to wait", function() return gate:metric "queue_pending" == 501 end)
    assert.equal(0, (gate:cli("sinks", "resume", "demo/receiver")))
    local taken, place = sink:wait_taken(501), nil
    for i, delivery in ipairs(taken) do
      if delivery.tenant == "small" then place = i end
    end
    assert.is_true(place <= 3, "the small tenant came " .. place .. "th")
  end)

  it("a rate is kept", function()
    local sink = receive()
    gate = gateway.start { config = configs.demo { sinks = configs.plain_sink(sink.url, "receiver", "rate = 20") } }
    post(40, "/webhooks/demo")
    local taken = sink:wait_taken(40)
    local first, last = math.huge, 0
    for _, delivery in ipairs(taken) do
      first = math.min(first, delivery.started_ms)
      last = math.max(last, delivery.started_ms)
    end
    -- a second's worth may go at once, the other twenty take a second
    assert.is_true(last - first > 900, ("forty at twenty a second took %d ms"):format(last - first))
  end)
end)
