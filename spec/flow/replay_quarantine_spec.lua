-- Replay jobs over the quarantine: verified again, at a pace, each let go once and none lost, whatever dies in between.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("a replay of the quarantine", function()
  local sink, gate

  before_each(function() sink, gate = nil, nil end)
  after_each(function()
    if gate then gate:remove() end
    if sink then sink:remove() end
  end)
  teardown(process.kill_all)

  local function config(token, more)
    more = more or {}
    return configs.demo {
      sinks = (more.sinks or configs.ordered_sink(sink.url)) .. configs.plain_sink(sink.url, "copy"),
      source = ([[verify = { type = "bearer", secret = "%s" }, on_verify_failure = "quarantine", %s]]):format(token,
        more.source or ""),
      top = 'quarantine = { rate = 100000, burst = 100000, ' .. (more.quarantine or "") .. ' },', retry = more.retry }
  end

  local function start(more, receive)
    sink = receiver.start(unpack(receive or {}))
    gate = gateway.start { config = config("old-secret", more) }
  end

  local posted = 0
  local function post_many(count, token, keys)
    local requests = {}
    for i = 1, count do
      posted = posted + 1
      requests[i] = http.request("POST", "/webhooks/demo",
        { ["X-Entity-Id"] = "k" .. i % (keys or 3), Authorization = "Bearer " .. token }, "body " .. posted)
    end
    local statuses = {}
    for _, answer in ipairs(http.many(gate.ingest, requests, 8)) do
      statuses[answer.status] = (statuses[answer.status] or 0) + 1
    end
    return statuses
  end

  local function begin(query, status)
    local answer = gate:ask("/v1/replays?from=quarantine&" .. (query or "source=demo"), "POST")
    assert.equal(status or 201, answer.status, answer.body)
    return answer.json
  end

  local function look(job) return gate:ask("/v1/replays/" .. job.id).json end

  local function set(job, query)
    local answer = gate:ask("/v1/replays/" .. job.id .. "?" .. query, "PATCH")
    assert.equal(200, answer.status, answer.body)
    return answer.json
  end

  local function wait_state(job, state)
    local ok, problem = pcall(process.wait_for, "the replay to be " .. state, function() return look(job).state == state end, 30)
    if not ok then error(tostring(problem) .. ": " .. gate:ask("/v1/replays/" .. job.id).body, 0) end
    return look(job)
  end

  local function penned(filters) return gate:ask("/v1/quarantine?limit=1000" .. (filters or "")).json.entries end

  local function bodies()
    local list, seen = {}, {}
    for _, delivery in ipairs(sink:taken()) do
      if delivery.key and not seen[delivery.id] then
        seen[delivery.id] = true
        list[#list + 1] = delivery
      end
    end
    return list
  end

  it("lets go what today's secrets accept, as new hooks in order, and counts what stays", function()
    start()
    assert.same({ [202] = 30 }, post_many(30, "new-secret"))
    assert.same({ [202] = 12 }, post_many(12, "forged"))
    gate:restart(config "new-secret")
    assert.same({ [201] = 6 }, post_many(6, "new-secret"))
    gate:wait_idle()
    local plan = gate:ask("/v1/replays?from=quarantine&source=demo&dry_run=true", "POST").json
    assert.same({ 42, 30, 12, true, "quarantine" }, { plan.hooks, plan.verified, plan.failed, plan.complete, plan.from })
    assert.equal(42, #penned())
    local job = begin "source=demo&rate=1000&reason=rotated"
    local done = wait_state(job, "done")
    assert.same({ 42, 42, 30, 0, 12, 0, 1 },
      { done.planned, done.hooks, done.released, done.duplicates, done.failed, done.gone, done.progress })
    assert.same({ 60, 60, 0, 0 }, { done.made, done.done, done.dead, done.outstanding })
    assert.equal(12, #penned "&failure=bad_signature")
    local last, copies = {}, 0
    for _, delivery in ipairs(sink:taken()) do
      if delivery.key then
        assert.is_true(delivery.seq > (last[delivery.key] or 0), "a seq that is not new")
        last[delivery.key] = delivery.seq
      else
        copies = copies + 1
      end
    end
    assert.same({ 36, 36 }, { #bodies(), copies })
    for i = 7, 36 do assert.equal(job.id, bodies()[i].replay_id) end
    assert.equal("ok", gate:ask("/v1/hooks/" .. bodies()[36].id).json.verification)
    local line = gate:ask("/v1/audit?what=replay.start").json.lines[1]
    assert.equal("rotated", line.reason)
    assert.is_truthy(line.target:find("from=quarantine source=demo", 1, true), line.target)
    assert.equal(30, gate:metric "quarantine_released_total")
  end)

  it("releases each once and loses none when the gateway is killed again and again", function()
    start(nil, { "--delay", "*=1ms" })
    local expected = {}
    for i = 1, 30 do -- good and forged ones mixed
      post_many(8, "new-secret", 5)
      for k = 0, 7 do expected["body " .. posted - k] = true end
      if i % 3 == 0 then post_many(2, "forged") end
    end
    gate:restart(config "new-secret")
    local job = begin "source=demo&rate=150"
    for kill = 1, 4 do
      process.wait_for("some of it", function() return look(job).released >= 40 * kill end)
      post_many(3, "new-secret", 5)
      for k = 0, 2 do expected["body " .. posted - k] = true end
      gate:kill9()
      gate:launch()
    end
    local done = wait_state(job, "done")
    gate:wait_idle()
    assert.same({ 260, 260, 240, 20, 0 }, { done.planned, done.hooks, done.released, done.failed, done.gone })
    assert.same({ 480, 480 }, { done.made, done.done })
    assert.equal(20, #penned())
    -- Every hook is stored once, and delivered under one seq.
    local seqs = {}
    for _, delivery in ipairs(bodies()) do seqs[delivery.seq] = (seqs[delivery.seq] or 0) + 1 end
    for _, count in pairs(seqs) do assert.equal(1, count) end
    local stored, cursor = 0, nil
    repeat
      local page = gate:ask("/v1/hooks?limit=1000" .. (cursor and "&cursor=" .. cursor or "")).json
      for _, hook in ipairs(page.hooks) do
        local body = gate:ask("/v1/hooks/" .. hook.id .. "/body").body
        assert.is_true(expected[body], "stored twice, or never sent: " .. body)
        expected[body] = nil
        stored = stored + 1
      end
      cursor = page.next_cursor
    until not cursor
    assert.same({ 252, nil }, { stored, next(expected) })
    local code, out, err = process.run { process.binary(), "verify-order", sink.log_path }
    assert.equal(0, code, out .. err)
  end)

  it("is one job however often it is asked for, and takes turns with no other one", function()
    start()
    post_many(20, "new-secret")
    gate:restart(config "new-secret")
    local job = begin "source=demo&since=2h&rate=1"
    local same = begin("source=demo&since=2h&rate=1", 200) -- "2h" is another moment by now
    assert.same({ job.id, true }, { same.id, same.existing })
    assert.same({ "replay_running", job.id }, { begin("source=demo&since=1h", 409).error, begin("all=true", 409).id })
    local hooks = gate:ask("/v1/replays?source=demo&rate=100", "POST") -- stored ones are another matter
    assert.equal(201, hooks.status, hooks.body)
    assert.equal("hooks", hooks.json.from)
    set(job, "state=paused")
    local at = look(job).released
    assert.is_true(at < 20)
    -- What others take out meanwhile is not there any more, and the job says so.
    local rest = penned()
    gate:ask("/v1/quarantine/discard?hook=" .. rest[1].id, "POST")
    gate:ask("/v1/quarantine/release?hook=" .. rest[2].id, "POST")
    set(job, "state=running&rate=1000")
    local done = wait_state(job, "done")
    assert.same({ 18, 2 }, { done.released, done.gone })
    assert.is_truthy(done.why:find("2 of its 20 hooks were gone", 1, true), done.why)
    assert.equal(0, #penned())
  end)

  it("pauses itself when what it releases dies, and waits while the source has too many dead letters", function()
    local more = { source = "dlq = { max_rows = 30 },", retry = "base_ms = 10, max_attempts = 1 }, breaker = { failures = 1000" }
    sink = receiver.start("--fail", "*=500")
    more.sinks = configs.ordered_sink(sink.url, 'on_dead = "skip"')
    gate = gateway.start { config = config("old-secret", more) }
    post_many(60, "new-secret", 60)
    gate:restart(config("new-secret", more))
    local job = begin "source=demo&rate=30"
    local paused = wait_state(job, "paused")
    assert.is_truthy(paused.why:find("died", 1, true), paused.why)
    assert.equal(1, #gate:events "replay_paused")
    assert.is_true(paused.dead >= 10 and paused.released < 60)
    while look(job).waits ~= "dlq_full" do
      process.wait_for("it to stop", function()
        local now = look(job)
        return now.state == "paused" or now.waits == "dlq_full"
      end)
      if look(job).state == "paused" then set(job, "state=running") end
    end
    local stuck = look(job)
    assert.is_true(stuck.dead >= 30 and stuck.released < 60)
    assert.equal(60 - stuck.released, #penned())
    sink:tell "heal"
    gate:ask("/v1/dlq/discard?source=demo", "POST")
    local done = wait_state(job, "done")
    assert.same({ 60, 0, 0 }, { done.released, done.failed, #penned() })
    assert.same({ 120, 0 }, { done.done + done.dead + done.discarded, done.outstanding })
  end)

  it("says what it can't do", function()
    start()
    for query, filter in pairs { [""] = "all", ["source=demo&sink=receiver"] = "sink" } do
      local refused = begin(query, 400)
      assert.same({ "bad_filter", filter }, { refused.error, refused.filter })
    end
    local refused = gate:ask("/v1/replays?source=demo&failure=bad_signature", "POST")
    assert.same({ 400, "failure" }, { refused.status, refused.json.filter })
    assert.equal(400, gate:ask("/v1/replays?from=moon&source=demo", "POST").status)
    local unknown = begin("source=nobody", 400)
    assert.same({ "source", "one that there is: demo" }, { unknown.filter, unknown.expected })
    for _, act in ipairs {
      { "replay", "start", "--quarantine", "nobody", "--yes" }, { "quarantine", "list", "--source", "nobody" },
    } do
      local code, _, err = gate:cli(unpack(act))
      assert.equal(2, code)
      assert.is_truthy(err:find("source must be one that there is: demo", 1, true), err)
    end
    local done = wait_state(begin "source=demo", "done")
    assert.same({ 0, 0, 0 }, { done.hooks, done.released, done.made })
  end)

  it("is driven from the command line", function()
    start()
    post_many(10, "new-secret")
    post_many(4, "forged")
    gate:restart(config "new-secret")
    local code, out, err = gate:cli("replay", "start", "--quarantine", "demo", "--since", "1h", "--dry-run")
    assert.equal(0, code, err)
    assert.is_truthy(out:find("would verify 14 hooks of the quarantine again", 1, true)
      and out:find("10 now, as new hooks with new seqs; 4 would stay", 1, true), out)
    code = gate:cli("replay", "start", "--quarantine", "demo")
    assert.equal(2, code)
    code, out, err = gate:cli("replay", "start", "--quarantine", "--source", "demo", "--failure", "bad_signature", "--yes",
      "--follow")
    assert.equal(0, code, err)
    assert.is_truthy(err:find("10 released, 4 failed again; 20 delivered", 1, true), err)
    local id = out:match "replay (%S+) is running"
    code, out = gate:cli("replay", "show", id)
    assert.is_truthy(code == 0 and out:find("released       10", 1, true) and out:find("from           quarantine", 1, true), out)
    code, out = gate:cli("replay", "list", "--json")
    assert.same({ 0, "bad_signature" }, { code, json.decode(out).replays[1].failure })
    assert.equal(2, (gate:cli("replay", "start", "--quarantine", "demo/receiver", "--yes")))
    assert.equal(2, (gate:cli("replay", "start", "demo", "--failure", "bad_signature", "--yes")))
    code, out, err = gate:cli("replay", "start", "--quarantine", "demo", "--since", "soon", "--yes")
    assert.equal("", out)
    assert.equal(2, code)
    assert.is_truthy(err:find("an age like 2h", 1, true), err)
  end)
end)
