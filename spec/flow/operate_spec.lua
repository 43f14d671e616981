-- Who is paged at three in the morning, with nothing but the command line.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("an operator", function()
  local sink, gate

  local function start(more, ...)
    sink = receiver.start(...)
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url, more or ""),
      retry = [[base_ms = 3600000, max_ms = 3600000]] } }
  end

  after_each(function()
    if gate then gate:remove() end
    if sink then sink:remove() end
    gate, sink = nil, nil
  end)
  teardown(process.kill_all)

  local function post(key, count)
    for i = 1, count or 1 do
      assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = key }, key .. i).status)
    end
  end

  local function run(...)
    local code, out, err = gate:cli(...)
    assert.equal(0, code, table.concat({ ... }, " ") .. ": " .. err)
    return out
  end

  local function refused(code, sentence, ...)
    local got, _, err = gate:cli(...)
    assert.equal(code, got, err)
    assert.is_truthy(err:find(sentence, 1, true), err)
  end

  local function lane(key)
    return json.decode(run("lanes", "demo/receiver/" .. key, "--json")).lanes[1]
  end

  -- Lists may be a second old, and the scheduler has a hook a moment after its 201.
  local function wait_lane(key, state, depth)
    return process.wait_for("lane " .. key .. " to be " .. state, function()
      local found = lane(key)
      return found and found.state == state and (not depth or found.depth == depth) and found
    end)
  end

  it("finds the customer, since when, the last answer and how many wait in one command, and unblocks in a second", function()
    start(nil, "--fail", "cus_7=503")
    post("cus_7", 3)
    post("cus_8", 2)
    local found = wait_lane("cus_7", "retrying", 3)
    local list = run("lanes", "--state", "retrying")
    local title, row = list:match "([^\n]+)\n([^\n]+)"
    for _, word in ipairs { "LANE", "STATE", "DEPTH", "BLOCKED FOR", "ATTEMPTS", "NEXT IN", "LAST ANSWER" } do
      assert.is_truthy(title:find(word, 1, true), title)
    end
    for _, word in ipairs { "demo/receiver/cus_7", "retrying", "503" } do
      assert.is_truthy(row:find(word, 1, true), row)
    end
    assert.is_true(found.blocked_since > 1.6e12)
    assert.equal(503, found.head.http_status)
    assert.equal(1, found.head.attempts)

    sink:tell "heal"
    assert.equal("retrying demo/receiver/cus_7", run("lanes", "retry", "demo/receiver/cus_7"):match "^[^:\n]+")
    assert.equal(3, #sink:wait_taken(3, 20, "cus_7"))
  end)

  it("sees the next hooks of a lane, and skips the first with a reason that is kept", function()
    start(nil, "--fail", "a=503")
    post("a", 25)
    wait_lane("a", "retrying", 25)
    local shown = json.decode(run("lanes", "show", "demo/receiver/a", "--json"))
    assert.equal(25, shown.depth)
    assert.equal(20, #shown.rows)
    assert.equal(shown.head.id, shown.rows[1].id)
    assert.is_true(shown.rows[1].seq < shown.rows[2].seq)
    assert.is_truthy(run("lanes", "show", "demo/receiver/a"):find(shown.rows[20].id, 1, true))

    sink:tell "heal"
    refused(2, "needs --yes", "lanes", "skip", "demo/receiver/a")
    refused(1, "another head", "lanes", "skip", "demo/receiver/a", "--yes", "--expect-head", shown.rows[2].id)
    assert.equal(25, lane("a").depth)
    run("lanes", "skip", "demo/receiver/a", "--yes", "--expect-head", shown.rows[1].id, "--reason", "poison, OPS-12")
    assert.equal(24, #sink:wait_taken(24, 20, "a"))
    local dead = gate:ask("/v1/dlq").json.entries
    assert.equal(1, #dead)
    assert.equal("skipped", dead[1].class)
    assert.equal(shown.rows[1].id, dead[1].id)
    local line = gate:ask("/v1/audit?what=lane.skip").json.lines[1]
    assert.equal("poison, OPS-12", line.reason)
    assert.equal("local", line.who)
    assert.is_truthy(line.target:find("demo/receiver/a", 1, true))
    assert.is_truthy(line.target:find(shown.rows[1].id, 1, true))
  end)

  it("pauses a lane, over a restart too, and nothing but that lane", function()
    start("timeout_ms = 30000", "--hang", "a") -- it runs for as long as all of this takes
    post("a")
    wait_lane("a", "running")
    run("lanes", "pause", "demo/receiver/a", "--reason", "their release")
    refused(1, "running", "lanes", "skip", "demo/receiver/a", "--yes")
    sink:tell "heal" -- its attempt ends without an answer: the lane stays paused
    wait_lane("a", "paused")
    post("a", 2)
    post "b"
    assert.equal(1, #sink:wait_taken(1, 20, "b"))
    gate:restart()
    post "b"
    assert.equal(2, #sink:wait_taken(2, 20, "b"))
    wait_lane("a", "paused", 3)
    assert.equal(0, #sink:taken "a")
    assert.is_truthy(run("lanes", "pause", "demo/receiver/a"):find("nothing to do", 1, true))
    run("lanes", "resume", "demo/receiver/a")
    assert.equal(3, #sink:wait_taken(3, 20, "a"))
  end)

  it("pauses a sink for a while, over a restart too, and sees until when", function()
    start()
    run("sinks", "pause", "demo/receiver", "--for", "12h", "--reason", "upgrade")
    post("a", 3)
    local function shown() return json.decode(run("sinks", "--json")).sinks[1] end
    process.wait_for("the pause to be seen", function() return shown().paused and shown().pending == 3 end)
    assert.is_truthy(run("sinks"):find "paused for 1[12] h")
    local before = shown().paused_until
    gate:kill9()
    gate:launch()
    process.wait_for("the pause to be seen", function() return shown().paused and shown().pending == 3 end)
    assert.equal(before, shown().paused_until)
    assert.equal(0, #sink:deliveries())
    run("sinks", "resume", "demo/receiver")
    assert.equal(3, #sink:wait_taken(3))
    assert.equal("demo/receiver for 43200 s", gate:ask("/v1/audit?what=sink.pause").json.lines[1].target)
  end)

  it("is told what is wrong with an act", function()
    start()
    refused(2, "source/sink/key", "lanes", "retry")
    refused(2, "source/sink/key", "lanes", "retry", "demo")
    refused(1, "no such lane", "lanes", "retry", "demo/receiver/nobody")
    refused(1, "no such sink; name one that there is: demo/receiver", "sinks", "pause", "demo/nobody")
    refused(2, "sink must be one that there is: receiver", "lanes", "pause", "demo/nobody/a")
    for _, list in ipairs { "lanes", "hooks", "dlq", "quarantine" } do
      refused(2, "source must be one that there is: demo", list, "list", "--source", "dmeo")
    end
    refused(2, "source must be one that there is: demo", "tail", "--source", "dmeo")
    refused(2, "--for is for pause", "sinks", "resume", "demo/receiver", "--for", "1h")
    local function act(path, body)
      return http.once(gate.admin, "POST", path, {}, body)
    end
    local unknown = act("/v1/sinks/demo/receiver/pause", [[{"untill":"5m"}]])
    assert.equal(400, unknown.status)
    assert.equal("untill", json.decode(unknown.body).member)
    local bad = act("/v1/sinks/demo/receiver/pause", [[{"for":"soon"}]])
    assert.equal(400, bad.status)
    assert.equal("for", json.decode(bad.body).member)
    assert.equal(200, act("/v1/sinks/demo/receiver/pause", [[{"for":"5m","reason":"by hand"}]]).status)
    assert.equal("by hand", gate:ask("/v1/audit").json.lines[1].reason)
  end)

  it("gives what waits the lanes of a new key, in the old order", function()
    start(nil, "--fail", "*=503")
    for i = 1, 6 do
      assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "a", ["X-Region"] = i % 2 == 0 and "eu" or "us" },
        tostring(i)).status)
    end
    wait_lane("a", "retrying")
    local config = process.read_file(gate.config_path):gsub('header = "x%-entity%-id"', 'header = "x-region"')
    gate:restart(config)
    wait_lane("a", "retrying", 6)
    assert.is_truthy(run("lanes", "rekey", "demo/receiver", "--dry-run"):find("6 of 6", 1, true))
    wait_lane("a", "retrying", 6)
    refused(2, "needs --yes", "lanes", "rekey", "demo/receiver")
    run("lanes", "rekey", "demo/receiver", "--yes", "--reason", "regions")
    process.wait_for("the old lane to be empty", function() return not lane "a" end) -- lists may be a second old
    gate:kill9()
    gate:launch()
    sink:tell "heal"
    run("sinks", "retry", "demo/receiver")
    local taken = sink:wait_taken(6)
    local seqs = { eu = {}, us = {} }
    for _, delivery in ipairs(taken) do
      assert.is_true(delivery.late) -- nobody knows what was delivered under the new key before
      table.insert(seqs[delivery.key], delivery.seq)
    end
    for _, list in pairs(seqs) do
      assert.equal(3, #list)
      assert.is_true(list[1] < list[2] and list[2] < list[3])
    end
    local line = gate:ask("/v1/audit?what=sink.rekey").json.lines[1]
    assert.equal(6, line.matched)
    assert.equal(6, line.done)
    gate:restart() -- and it is so on the disk
    assert.equal(0, gate:metric "queue_pending")
  end)
end)
