-- A replay goes on while the configuration changes under it: other keys, a sink that goes, one with a new name.
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("a replay under another configuration", function()
  local sink, gate

  before_each(function() sink, gate = receiver.start("--delay", "*=1ms"), nil end)
  after_each(function()
    if gate then gate:remove() end
    sink:remove()
  end)
  teardown(process.kill_all)

  local LOG = '{ type = "log", name = "log" },'

  local function ordered(more, key)
    return ([[{ type = "http", url = "%s", ordered = true, ordering_key = { header = "%s" }, %s },]]):format(sink.url,
      key or "x-entity-id", more or [[name = "receiver"]])
  end

  local function start(sinks)
    gate = gateway.start { config = configs.demo { sinks = sinks } }
  end

  local posted = 0
  local function post_many(count)
    local requests = {}
    for i = 1, count do
      posted = posted + 1
      requests[i] = http.request("POST", "/webhooks/demo",
        { ["X-Entity-Id"] = "k" .. i % 4, ["X-Other"] = "o" .. i % 3 }, tostring(posted))
    end
    for _, answer in ipairs(http.many(gate.ingest, requests, 8)) do assert.equal(201, answer.status) end
  end

  local function reload(options)
    process.write_file(gate.config_path, configs.demo(options))
    local answer = gate:ask("/v1/reload", "POST")
    assert.equal(200, answer.status, answer.body)
  end

  local function begin(query)
    local answer = gate:ask("/v1/replays?" .. query, "POST")
    assert.equal(201, answer.status, answer.body)
    return answer.json
  end

  local function look(job) return gate:ask("/v1/replays/" .. job.id).json end

  local function set(job, query)
    local answer = gate:ask("/v1/replays/" .. job.id .. "?" .. query, "PATCH")
    assert.equal(200, answer.status, answer.body)
  end

  local function wait_state(job, state)
    local now
    local ok, problem = pcall(process.wait_for, "the replay to be " .. state, function()
      now = look(job)
      return now.state == state
    end, 30)
    if not ok then error(tostring(problem) .. ": " .. gate:ask("/v1/replays/" .. job.id).body, 0) end
    return now
  end

  local function replayed(job)
    local found, seen = {}, {}
    for _, delivery in ipairs(sink:taken()) do
      if delivery.replay_id == job.id and not seen[delivery.seq] then
        seen[delivery.seq] = true
        found[#found + 1] = delivery
      end
    end
    return found
  end

  local function verify()
    local code, out, err = process.run { process.binary(), "verify-order", sink.log_path }
    assert.equal(0, code, out .. err)
  end

  -- From a lane's first row of the job to its last, nothing newer of it goes.
  local function rewound_all_the_way(job)
    local last, first = {}, {}
    for i, delivery in ipairs(sink:taken()) do
      if delivery.replay_id == job.id then
        last[delivery.key] = i
        first[delivery.key] = first[delivery.key] or i
      end
    end
    for i, delivery in ipairs(sink:taken()) do
      local newer = delivery.key and delivery.seq > job.last_seq and first[delivery.key]
      if newer and i > newer then assert.is_true(i > last[delivery.key], "a newer hook went between: " .. delivery.key) end
    end
  end

  it("takes the new keys for what is still to come, in order", function()
    start(ordered())
    post_many(120)
    gate:wait_idle()
    local job = begin "source=demo&rate=100"
    process.wait_for("a part of it", function() return #replayed(job) > 20 end)
    reload { sinks = ordered(nil, "x-other") }
    local moved, highest_old, lowest_new = {}, 0, math.huge
    post_many(12)
    local done = wait_state(job, "done")
    gate:wait_idle()
    assert.same({ 120, 120, 120, 0 }, { done.hooks, done.made, done.done, done.lanes_rewound })
    for _, delivery in ipairs(replayed(job)) do
      if delivery.key:match "^o" then
        moved[delivery.key] = true
        lowest_new = math.min(lowest_new, delivery.seq)
      else
        highest_old = math.max(highest_old, delivery.seq)
      end
    end
    assert.is_true(highest_old < lowest_new, "an old key behind a new one")
    assert.is_truthy(moved.o0 and moved.o1 and moved.o2)
    assert.equal(132, #sink:taken() - 120)
    verify()
  end)

  it("pauses when its sink is gone, and holds nothing back for ever", function()
    start(ordered() .. LOG)
    post_many(100)
    gate:wait_idle()
    local job = begin "source=demo&sink=receiver&rate=50"
    process.wait_for("a part of it", function() return #replayed(job) > 5 end)
    reload { sinks = LOG, top = 'retire = { "demo/receiver" },' }
    local paused = wait_state(job, "paused")
    assert.is_truthy(paused.why:find("no configured sink is its any more", 1, true) or paused.why:find("died", 1, true),
      paused.why)
    assert.is_true(paused.made < 100)
    set(job, "state=cancelled")
    process.wait_for("nothing to be on its way", function() return look(job).outstanding == 0 end)
    reload { sinks = ordered() .. LOG }
    local before = #sink:taken()
    post_many(8)
    gate:wait_idle()
    assert.equal(8, #sink:taken() - before)
    verify()
  end)

  it("goes on when the sink is back", function()
    start(ordered() .. LOG)
    post_many(60)
    gate:wait_idle()
    local job = begin "source=demo&sink=receiver&rate=20"
    process.wait_for("a part of it", function() return #replayed(job) > 5 end)
    set(job, "state=paused")
    process.wait_for("what it made", function() return look(job).outstanding == 0 end)
    reload { sinks = LOG }
    set(job, "state=running")
    local paused = wait_state(job, "paused")
    assert.equal("no configured sink is its any more; mend that, or cancel it", paused.why)
    reload { sinks = ordered() .. LOG }
    set(job, "state=running&rate=1000")
    local done = wait_state(job, "done")
    assert.same({ 60, 60 }, { done.made, done.done })
    assert.equal(60, #replayed(job))
    verify()
  end)

  it("follows its sink to another name over a restart, and its lanes stay rewound", function()
    start(ordered())
    post_many(60)
    gate:wait_idle()
    sink:tell("fail", { key = "*", status = 503 })
    local job = begin "source=demo&sink=receiver&rate=40"
    process.wait_for("some of it to be owed", function() return look(job).outstanding > 8 end)
    sink:tell "heal"
    process.wait_for("some of it", function() return #replayed(job) > 4 end)
    gate:kill9()
    process.write_file(gate.config_path, configs.demo { sinks = ordered [[name = "billing", was = "receiver"]] })
    gate:launch()
    post_many(12)
    local done = wait_state(job, "done")
    gate:wait_idle()
    assert.same({ "billing", 60, 60 }, { done.sink, done.made, done.done })
    assert.equal(60, #replayed(job))
    local live, seen = 0, {}
    for _, delivery in ipairs(sink:taken()) do
      if not delivery.replay_id and not seen[delivery.seq] then live = live + 1 end
      seen[delivery.seq] = true
    end
    assert.equal(72, live)
    rewound_all_the_way(job)
  end)

  it("counts what a start retires, and pauses", function()
    start(ordered() .. LOG)
    post_many(40)
    gate:wait_idle()
    sink:tell("fail", { key = "*", status = 503 })
    local job = begin "source=demo&sink=receiver&rate=40"
    process.wait_for("some of it to be owed", function() return look(job).outstanding > 4 end)
    gate:kill9()
    process.write_file(gate.config_path, configs.demo { sinks = LOG, top = 'retire = { "demo/receiver" },' })
    gate:launch()
    local paused = wait_state(job, "paused")
    assert.same({ 0, paused.made }, { paused.outstanding, paused.dead })
    assert.is_true(paused.dead > 4)
  end)

  it("leaves the quarantine's hooks where they are when their source is gone", function()
    local other = [[log2 = { sinks = { { type = "log" } } },]]
    local function config(source)
      return configs.demo { sinks = LOG }:gsub("sources = {", "sources = { " .. other .. (source or ""), 1)
    end
    local penned = [[pen = { verify = { type = "bearer", secret = "%s" }, on_verify_failure = "quarantine",
      sinks = { { type = "log" } } },]]
    gate = gateway.start { config = config(penned:format "old-secret") }
    for i = 1, 30 do
      assert.equal(202, gate:post("pen", { authorization = "Bearer new-secret" }, tostring(i)).status)
    end
    process.write_file(gate.config_path, config(penned:format "new-secret"))
    assert.equal(200, gate:ask("/v1/reload", "POST").status)
    local job = begin "from=quarantine&source=pen&rate=10"
    process.wait_for("a part of it", function() return look(job).released > 2 end)
    process.write_file(gate.config_path, config())
    assert.equal(200, gate:ask("/v1/reload", "POST").status)
    local paused = wait_state(job, "paused")
    assert.equal("no configured source is it any more; mend that, or cancel it", paused.why)
    assert.equal(paused.hooks, paused.released + paused.failed)
    process.write_file(gate.config_path, config(penned:format "new-secret"))
    assert.equal(200, gate:ask("/v1/reload", "POST").status)
    set(job, "state=running&rate=1000")
    local done = wait_state(job, "done")
    assert.equal(30, done.released + done.failed)
    assert.equal(done.failed, gate:metric("quarantine_hooks", { source = "pen" }))
  end)
end)
