-- Replay jobs: stored hooks are sent again, at a pace, while new ones come; over a kill, a pause and a bad receiver.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("a replay", function()
  local sink, gate

  before_each(function() sink, gate = nil, nil end)
  after_each(function()
    if gate then gate:remove() end
    if sink then sink:remove() end
  end)
  teardown(process.kill_all)

  local function start(receive, more, dispatch)
    sink = receiver.start(unpack(receive or {}))
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url, more),
      retry = "base_ms = 10, max_ms = 50 }" .. (dispatch or ", breaker = { failures = 10") } }
  end

  local posted = 0
  local function post_many(count, keys)
    local requests = {}
    for i = 1, count do
      posted = posted + 1
      requests[i] = http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = "k" .. i % keys }, tostring(posted))
    end
    for _, answer in ipairs(http.many(gate.ingest, requests, 8)) do assert.equal(201, answer.status) end
  end

  local function begin(query, status)
    local answer = gate:ask("/v1/replays?" .. (query or "source=demo"), "POST")
    assert.equal(status or 201, answer.status, answer.body)
    return answer.json
  end

  local function look(job)
    return gate:ask("/v1/replays/" .. job.id).json
  end

  local function wait_state(job, state)
    process.wait_for("the replay to be " .. state, function() return look(job).state == state end, 60)
    return look(job)
  end

  local function replayed(job)
    local found = {}
    for _, delivery in ipairs(sink:taken()) do
      if delivery.replay_id == job.id then found[#found + 1] = delivery end
    end
    return found
  end

  local function verify()
    local code, out, err = process.run { process.binary(), "verify-order", sink.log_path, "--against", "http://" .. gate.admin }
    assert.equal(0, code, out .. err)
  end

  it("sends what was delivered once more, in order, and says so", function()
    start()
    post_many(60, 3)
    local first = sink:wait_taken(60)
    gate:wait_idle()
    local count = gate:ask("/v1/replays?source=demo&dry_run=true", "POST").json
    assert.same({ 60, true, 60, 3 }, { count.hooks, count.complete, count.sinks[1].rows, count.sinks[1].lanes })
    local job = begin "source=demo&rate=1000&reason=bad+deploy"
    local done = wait_state(job, "done")
    assert.same({ 60, 60, 60, 0, 0, 0, 1 },
      { done.hooks, done.made, done.done, done.dead, done.outstanding, done.lanes_rewound, done.progress })
    local again = replayed(job)
    assert.equal(60, #again)
    local ids = {}
    for _, delivery in ipairs(first) do ids[delivery.id] = delivery.seq end
    for _, delivery in ipairs(again) do assert.equal(ids[delivery.id], delivery.seq) end
    verify()
    local line = gate:ask("/v1/audit?what=replay.start").json.lines[1]
    assert.equal("bad deploy", line.reason)
    assert.is_truthy(line.target:find(job.id, 1, true))
  end)

  it("lets newer hooks of its lanes wait until its rows of them are done", function()
    start { "--delay", "*=20ms" }
    post_many(40, 2)
    sink:wait_taken(40)
    gate:wait_idle()
    local job = begin "source=demo&rate=200"
    process.wait_for("a delivery of it in each lane", function() -- a lane is rewound from its first row on
      local keys = {}
      for _, delivery in ipairs(replayed(job)) do keys[delivery.key] = true end
      return keys.k0 and keys.k1
    end)
    post_many(20, 2)
    wait_state(job, "done")
    gate:wait_idle()
    local last = {} -- behind a newer hook, a lane gets nothing of the job any more
    for _, delivery in ipairs(sink:taken()) do
      if delivery.seq > job.last_seq then last[delivery.key] = true end
      if delivery.replay_id == job.id then assert.is_nil(last[delivery.key], "a newer hook of its lane went first") end
    end
    assert.equal(40, #replayed(job))
    assert.equal(100, #sink:taken())
    verify()
  end)

  it("goes on where it was when the gateway is killed, under traffic", function()
    start { "--delay", "*=2ms" }
    post_many(300, 5)
    sink:wait_taken(300)
    gate:wait_idle()
    local job = begin "source=demo&rate=150"
    for kill = 1, 3 do
      process.wait_for("some of it", function() return #replayed(job) >= 50 * kill end)
      post_many(10, 5)
      gate:kill9()
      gate:launch()
    end
    post_many(10, 5)
    local done = wait_state(job, "done")
    gate:wait_idle()
    assert.same({ 300, 300, 300 }, { done.hooks, done.made, done.done })
    local seen, rows = {}, 0
    for _, delivery in ipairs(replayed(job)) do
      if not seen[delivery.seq] then rows = rows + 1 end
      seen[delivery.seq] = true
    end
    assert.equal(300, rows)
    verify()
  end)

  it("is paused, resumed, hurried and cancelled", function()
    start()
    post_many(200, 2)
    sink:wait_taken(200)
    gate:wait_idle()
    local job = begin "source=demo&rate=20"
    local same = begin("source=demo&rate=20", 200)
    assert.equal(job.id, same.id)
    local other = begin("source=demo&sink=receiver", 409)
    assert.same({ "replay_running", job.id }, { other.error, other.id })
    process.wait_for("a part of it", function() return #replayed(job) > 5 end)
    assert.equal(200, gate:ask("/v1/replays/" .. job.id .. "?state=paused", "PATCH").status)
    process.wait_for("all it made", function() return look(job).outstanding == 0 end)
    local made = look(job).made
    assert.is_true(made < 200)
    gate:restart()
    assert.same({ "paused", made }, { look(job).state, look(job).made })
    gate:post("demo", { ["X-Entity-Id"] = "k1" }, "new") -- its lane stays rewound
    gate:post("demo", { ["X-Entity-Id"] = "other" }, "new")
    process.wait_for("the lane that is not rewound", function() return #sink:taken "other" == 1 end)
    process.wait_for("its ok to be written", function() return gate:metric "queue_pending" == 1 end)
    assert.equal(200, gate:ask("/v1/replays/" .. job.id .. "?state=running&rate=2000", "PATCH").status)
    wait_state(job, "done")
    gate:wait_idle()
    assert.equal(200, #replayed(job))
    assert.equal(409, gate:ask("/v1/replays/" .. job.id .. "?state=paused", "PATCH").status)

    local second = begin "source=demo&rate=20"
    process.wait_for("a part of it", function() return #replayed(second) > 2 end)
    assert.equal(200, gate:ask("/v1/replays/" .. second.id .. "?state=cancelled", "PATCH").status)
    gate:post("demo", { ["X-Entity-Id"] = "k1" }, "newer")
    gate:wait_idle()
    assert.equal("cancelled", look(second).state)
    assert.is_true(#replayed(second) < 200)
    verify()
  end)

  it("takes back what has not begun when it is cancelled, also over a kill", function()
    start({ "--fail", "dead=400", "--delay", "*=100ms" }, 'on_dead = "hold"')
    post_many(60, 2)
    for i = 1, 3 do gate:post("demo", { ["X-Entity-Id"] = "dead" }, tostring(i)) end
    process.wait_for("all of it", function() return #sink:taken() == 60 end)
    process.wait_for("a held lane", function() return gate:ask("/v1/dlq").json.total == 1 end)
    for kill = 1, 2 do
      sink:tell("fail", { key = "dead", status = 503 })
      local job = begin "source=demo&rate=1000"
      process.wait_for("all of it to be made", function() return look(job).progress == 1 and look(job).outstanding > 20 end)
      local before = #replayed(job)
      assert.equal(200, gate:ask("/v1/replays/" .. job.id .. "?state=cancelled", "PATCH").status)
      if kill == 2 then
        gate:kill9()
        gate:launch()
      end
      process.wait_for("nothing of it to be owed", function() return look(job).outstanding == 0 end)
      local over = look(job)
      assert.equal("cancelled", over.state)
      assert.equal(over.made, over.done + over.dead + over.discarded)
      assert.is_true(over.discarded > 20 and #replayed(job) < before + 20, #replayed(job) .. " " .. before)
      -- What was a dead letter before is one again, and holds its lane again.
      assert.equal(1, gate:ask("/v1/dlq").json.total)
      assert.equal("held", gate:ask("/v1/lanes?key=dead").json.lanes[1].state)
      sink:tell("fail", { key = "dead", status = 400 })
    end
    local taken = #sink:taken()
    post_many(4, 2) -- and its lanes are free
    process.wait_for("new ones", function() return #sink:taken() >= taken + 4 end)
    verify()
  end)

  it("pauses itself when what it sends dies again, and takes dead letters with it", function()
    start({ "--fail", "*=500" }, 'retry = { max_attempts = 1 }, on_dead = "skip"',
      ", breaker = { failures = 1000")
    post_many(40, 40)
    process.wait_for("dead letters", function() return gate:ask("/v1/dlq").json.total == 40 end)
    local job = begin "source=demo&rate=50"
    local paused = wait_state(job, "paused")
    assert.is_truthy(paused.why:find("died", 1, true), paused.why)
    assert.is_true(paused.made < 40)
    assert.equal(1, #gate:events "replay_paused")
    sink:tell "heal"
    gate:ask("/v1/replays/" .. job.id .. "?state=running", "PATCH")
    wait_state(job, "done")
    assert.equal(look(job).dead, gate:ask("/v1/dlq").json.total)
    assert.equal(40 - look(job).dead, #replayed(job))
  end)

  it("reaches a sink that is new, with the keys of the running configuration", function()
    sink = receiver.start()
    gate = gateway.start { config = configs.demo { sinks = configs.plain_sink(sink.url, "old") } }
    post_many(20, 2)
    sink:wait_taken(20)
    gate:wait_idle()
    gate:restart(configs.demo { sinks = configs.plain_sink(sink.url, "old") .. configs.ordered_sink(sink.url) })
    local job = begin "source=demo&sink=receiver&rate=1000"
    local done = wait_state(job, "done")
    assert.same({ 20, 20 }, { done.made, done.done })
    local last = {}
    for _, delivery in ipairs(replayed(job)) do
      assert.is_true(delivery.seq > (last[delivery.key] or 0))
      last[delivery.key] = delivery.seq
    end
    assert.is_truthy(last.k0 and last.k1)
  end)

  it("does not make twice what is still owed, and waits for a sink that is behind", function()
    start({ "--fail", "*=503" }, 'retry = { base_ms = 50, max_ms = 100 }')
    post_many(20, 20)
    local job = begin "source=demo&rate=1000"
    process.wait_for("all of it looked at", function() return look(job).hooks == 20 end)
    assert.same({ 0, 20 }, { look(job).made, look(job).owed_already })
    wait_state(job, "done")
    sink:tell "heal"
    gate:wait_idle()
    assert.equal(20, #sink:taken())

    sink:tell("fail", { key = "k0", status = 503 })
    gate:post("demo", { ["X-Entity-Id"] = "k0" }, "stuck")
    process.wait_for("it to be behind", function()
      return (gate:metric "dispatch_oldest_pending_seconds") > 0.2
    end)
    local slow = begin "source=demo&rate=1000&max_lag=100ms"
    process.wait_for("it to wait", function() return look(slow).waits == "lag" end)
    assert.equal(0, look(slow).made)
    sink:tell "heal"
    wait_state(slow, "done")
    assert.equal(21, #replayed(slow))
  end)

  it("is driven from the command line", function()
    start()
    post_many(30, 3)
    sink:wait_taken(30)
    gate:wait_idle()
    local code, _, err = gate:cli("replay", "start", "demo/receiver", "--since", "1h")
    assert.equal(2, code)
    assert.is_truthy(err:find("30 to demo/receiver (3 lanes rewound", 1, true), err)
    local out
    code, out = gate:cli("replay", "start", "demo/receiver", "--since", "1h", "--dry-run")
    assert.equal(0, code)
    assert.is_truthy(out:find("would send 30 stored hooks again", 1, true), out)
    code, out, err = gate:cli("replay", "start", "demo/receiver", "--since", "1h", "--rate", "500", "--yes", "--follow")
    assert.equal(0, code, err)
    local id = out:match "replay (%S+) is running"
    assert.is_truthy(err:find("100%", 1, true), err)
    code, out = gate:cli("replay", "list")
    assert.equal(0, code)
    assert.is_truthy(out:find(id, 1, true) and out:find("done", 1, true), out)
    code, out = gate:cli("replay", "show", id, "--json")
    assert.same({ 0, 30 }, { code, json.decode(out).done })
    code, out = gate:cli("replay", "show", id)
    assert.is_truthy(code == 0 and out:find("done           30", 1, true), out)
    code, _, err = gate:cli("replay", "cancel", id)
    assert.equal(1, code)
    assert.is_truthy(err:find("done or cancelled", 1, true), err)
    assert.equal(2, (gate:cli("replay", "start")))
    code, _, err = gate:cli("replay", "start", "nobody", "--yes")
    assert.equal(2, code)
    assert.is_truthy(err:find("source must be one that there is: demo", 1, true), err)
    code, _, err = gate:cli("replay", "start", "demo", "--until", "2020-01-01T00:00:00Z", "--yes")
    assert.equal(0, code)
    assert.is_truthy(err:find("no stored hook matches", 1, true), err)
    assert.equal(400, gate:ask("/v1/replays", "POST").status)
    assert.equal(400, gate:ask("/v1/replays?source=demo&rate=0", "POST").status)
    assert.equal(400, gate:ask("/v1/replays?source=nobody", "POST").status)
    assert.equal(404, gate:ask("/v1/replays/nothing").status)
    assert.equal(400, gate:ask("/v1/replays/" .. id .. "?state=done", "PATCH").status)
  end)
end)
