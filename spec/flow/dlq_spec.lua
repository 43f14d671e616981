-- Dead letters: found, understood, and brought back or given up in two commands.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("dead letters", function()
  local sink, gate

  before_each(function() sink, gate = nil, nil end)
  after_each(function()
    if gate then gate:remove() end
    if sink then sink:remove() end
  end)
  teardown(process.kill_all)

  local function start(receive, sink_text, config)
    sink = receiver.start(unpack(receive))
    config = config or {}
    config.sinks = configs.ordered_sink(sink.url, sink_text)
    gate = gateway.start { config = configs.demo(config) }
  end

  local function post(key, body)
    local answer = gate:post("demo", { ["X-Entity-Id"] = key }, body or "x")
    assert.equal(201, answer.status, answer.body)
    return json.decode(answer.body).id
  end

  local function post_many(count, keys)
    local requests = {}
    for i = 1, count do
      requests[i] = http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = "k" .. i % keys }, tostring(i))
    end
    for _, answer in ipairs(http.many(gate.ingest, requests, 16)) do assert.equal(201, answer.status) end
  end

  local function dead(filters)
    return gate:ask("/v1/dlq" .. (filters or "")).json
  end

  local function wait_dead(count, filters)
    process.wait_for(count .. " dead letters", function() return dead(filters).total == count end, 60)
  end

  local function state_of(id)
    return gate:ask("/v1/hooks/" .. id).json.rows[1].state
  end

  local function wait_state(id, state)
    process.wait_for("hook " .. id .. " to be " .. state, function() return state_of(id) == state end)
  end

  local function wait_metric(name, value) -- gauges follow within some milliseconds
    process.wait_for(name .. " " .. value, function() return gate:metric(name) == value end)
  end

  local function act(path)
    local answer = gate:ask("/v1/dlq/" .. path, "POST")
    return answer.json, answer.status
  end

  -- Keys' seqs ascend but where a delivery says that it is late.
  local function in_order()
    local last = {}
    for _, delivery in ipairs(sink:taken()) do
      if not delivery.late then
        assert.is_true(delivery.seq > (last[delivery.key] or 0), "out of order: " .. json.encode(delivery))
        last[delivery.key] = delivery.seq
      end
    end
  end

  it("tell who, why, and what the receiver said", function()
    start({ "--fail", "bad=410" })
    local id = post("bad")
    wait_dead(1)
    local entry = dead "?class=refused&source=demo&sink=receiver&key=bad".entries[1]
    assert.same({ id, "dead", "refused", "HTTP 410", 1, "bad" },
      { entry.id, entry.state, entry.class, entry.reason, entry.attempts, entry.key })
    assert.equal(0, dead "?class=exhausted".total)
    assert.equal(1, dead("?hook=" .. id).total)
    local attempts = gate:ask("/v1/hooks/" .. id .. "/attempts").json.attempts
    assert.equal(1, #attempts)
    assert.same({ 1, "refused", 410, "receiver" },
      { attempts[1].attempt, attempts[1].class, attempts[1].http_status, attempts[1].sink })
    local code, out = gate:cli("dlq", "show", id)
    assert.equal(0, code)
    assert.is_truthy(out:find("demo/receiver/bad", 1, true) and out:find("HTTP 410", 1, true), out)
    code, out = gate:cli("hooks", "show", id)
    assert.equal(0, code)
    assert.is_truthy(out:find("last failures", 1, true), out)
  end)

  it("are replayed late with a warning, and say so to the receiver", function()
    start({ "--fail", "a=410" })
    local id = post "a"
    wait_dead(1)
    sink:tell("heal", { key = "a" })
    for _ = 1, 3 do post "a" end
    sink:wait_taken(3)
    process.wait_for("the mark", function() return dead().entries[1].late end)
    local sum = act("replay?hook=" .. id .. "&dry_run=true")
    assert.same({ 1, 0, 1, 3 }, { sum.matched, sum.done, sum.late, sum.delivered_after })

    local code, _, err = gate:cli("dlq", "replay", id)
    assert.equal(2, code)
    assert.is_truthy(err:find("1 of them late: 3 later hooks of their lanes were delivered already", 1, true), err)
    assert.equal(1, dead().total)
    local out
    code, out = gate:cli("dlq", "replay", id, "--dry-run")
    assert.equal(0, code)
    assert.is_truthy(out:find("would replay 1 dead letter, 1 of them late", 1, true), out)
    code, out = gate:cli("dlq", "replay", id, "--yes", "--reason", "the receiver is well again")
    assert.same({ 0, "replayed 1 of 1 dead letters\n" }, { code, out })
    local taken = sink:wait_taken(4)
    assert.same({ id, true }, { taken[4].id, taken[4].late })
    wait_state(id, "done")
    assert.equal(0, dead().total)

    local line = gate:ask("/v1/audit?what=dlq.replay").json.lines[1]
    assert.same({ "local", "hook=" .. id, "the receiver is well again", 1, 1 },
      { line.who, line.target, line.reason, line.matched, line.done })
  end)

  it("that hold a lane free it when they are replayed, or discarded", function()
    start({ "--fail", "a=500", "--fail", "b=500" }, 'retry = { max_attempts = 2 }, on_dead = "hold"')
    local heads = { a = post "a", b = post "b" }
    for _ = 1, 3 do post "a" post "b" end
    wait_state(heads.a, "held")
    wait_state(heads.b, "held")
    assert.equal(0, #sink:taken())
    sink:tell "heal"
    assert.same({ 1, 1 }, { act("replay?source=demo&sink=receiver&key=a").matched, act("discard?hook=" .. heads.b).done })
    sink:wait_taken(4, 20, "a")
    sink:wait_taken(3, 20, "b")
    in_order()
    wait_state(heads.a, "done") -- its ok is written some milliseconds after the receiver had it
    wait_state(heads.b, "discarded")
    assert.equal(heads.a, sink:taken("a")[1].id)
    wait_metric("queue_dead", 0)
  end)

  it("of an unordered sink come back too", function()
    sink = receiver.start("--fail", "*=410")
    gate = gateway.start { config = configs.demo { sinks = configs.plain_sink(sink.url, "plain") } }
    local id, other = post "a", post "b"
    wait_dead(2)
    sink:tell "heal"
    assert.equal(1, act("replay?hook=" .. id).done)
    assert.equal(1, #sink:wait_taken(1))
    assert.equal(1, act("discard?source=demo&sink=plain").done)
    wait_state(id, "done")
    wait_state(other, "discarded")
    wait_metric("queue_dead", 0)
  end)

  it("are asked for by filters that are judged", function()
    start({ "--fail", "a=410" })
    post "a"
    wait_dead(1)
    local refused, status = act "discard"
    assert.same({ 400, "bad_filter", "all" }, { status, refused.error, refused.filter })
    refused, status = act "replay?sourc=demo"
    assert.same({ 400, "unknown_filter", "sourc" }, { status, refused.error, refused.filter })
    refused, status = act "discard?class=refuse"
    assert.same({ 400, "bad_filter", "class" }, { status, refused.error, refused.filter })
    assert.truthy(refused.expected:find("refused exhausted", 1, true))
    refused, status = act "replay?class=refused&dry_run=perhaps"
    assert.same({ 400, "bad_filter", "dry_run" }, { status, refused.error, refused.filter })
    assert.equal(405, gate:ask("/v1/dlq/replay?all=true").status)
    local now = os.time() * 1000
    assert.equal(0, act(("discard?until=%d"):format(now - 60000)).matched)
    refused, status = act "discard?source=other"
    assert.same({ 400, "bad_filter", "source" }, { status, refused.error, refused.filter })
    assert.equal(0, act "discard?tenant=acme".matched)
    assert.equal(1, dead().total)
    assert.equal(2, (gate:cli("dlq", "discard", "--yes")))
    assert.equal(1, act(("discard?since=%d&class=refused&tenant=default"):format(now - 60000)).done)
    assert.equal(0, dead().total)
    assert.equal(403, gate:ask("/v1/dlq/discard?all=true", "POST", { Origin = "http://evil.example" }).status)
  end)

  -- A backlog of 10,000 that was given up whole: the sink was taken out of the file, and is back.
  local function give_up(count)
    local sinks = configs.ordered_sink(sink.url)
    assert.equal(200, gate:ask("/v1/sinks/demo/receiver/pause", "POST").status)
    post_many(count, 100)
    gate:restart(configs.demo { sinks = "{ type = 'log' }", top = 'retire = { "demo/receiver" },' })
    assert.equal(count, dead().total)
    gate:restart(configs.demo { sinks = sinks })
    assert.equal(count, dead "?class=sink_gone".total)
  end

  it("come back by the thousand, each before what came after it, while hooks come in", function()
    start {}
    give_up(10000)
    assert.equal(200, gate:ask("/v1/sinks/demo/receiver/pause", "POST").status)
    local out = process.temp_dir()
    local replay = process.spawn({ process.binary(), "dlq", "replay", "demo/receiver", "--yes", "--admin",
      "http://" .. gate.admin }, out .. "/out", out .. "/err")
    for _ = 1, 10 do post_many(100, 100) end
    process.wait_for("the replay to end", function() return not process.alive(replay) end, 60)
    assert.equal("replayed 10000 of 10000 dead letters\n", process.read_file(out .. "/out"))
    process.remove(out)
    assert.equal(200, gate:ask("/v1/sinks/demo/receiver/resume", "POST").status)
    gate:wait_idle(120)
    assert.equal(11000, #sink:taken())
    in_order()
    local code, said = process.run { process.binary(), "verify-order", sink.log_path, "--against",
      "http://" .. gate.admin }
    assert.equal(0, code, said)
    assert.equal(0, dead().total)
  end)

  it("that were being replayed when it was killed are replayed by the next command", function()
    start {}
    give_up(10000)
    local replay = process.spawn({ process.binary(), "dlq", "replay", "--all", "--yes", "--admin",
      "http://" .. gate.admin }, "/dev/null", "/dev/null")
    process.wait_for("some of them to be owed", function() return gate:metric "queue_pending" > 0 end)
    gate:kill9()
    process.wait_for("the command to give up", function() return not process.alive(replay) end)
    gate:restart()
    local code, out = gate:cli("dlq", "replay", "--all", "--yes")
    assert.equal(0, code, out)
    assert.equal(200, gate:ask("/v1/sinks/demo/receiver/resume", "POST").status)
    gate:wait_idle(120)
    assert.equal(0, dead().total)
    local ids, count = {}, 0
    for _, delivery in ipairs(sink:taken()) do
      count = count + (ids[delivery.id] and 0 or 1)
      ids[delivery.id] = true
    end
    assert.equal(10000, count)
    in_order()
  end)

  it("fill their source, and no other one", function()
    sink = receiver.start("--fail", "*=410")
    local function config(rows)
      return ([[return { data_dir = "data", http = { listen = "127.0.0.1:0", threads = 1 }, admin = { listen = "127.0.0.1:0" },
        store = { min_free_bytes = "16MiB" }, egress = { allow_private = { "127.0.0.1/32" }, allow_http = true },
        sources = { full = { dlq = { max_rows = %d }, sinks = { %s } }, free = { sinks = { %s } } } }]]):format(
        rows, configs.plain_sink(sink.url, "one"), configs.plain_sink(sink.url, "one"))
    end
    gate = gateway.start { config = config(2) }
    for i = 1, 2 do
      assert.equal(201, gate:post("full", {}, "x").status)
      wait_dead(i, "?source=full")
    end
    local answer
    process.wait_for("dlq_full", function()
      answer = gate:post("full", {}, "x")
      return answer.status == 503
    end)
    assert.same({ "dlq_full", "30" }, { json.decode(answer.body).error, answer.headers["retry-after"] })
    assert.equal(201, gate:post("free", {}, "x").status)
    assert.equal("full", gate:events("dlq_full")[1].source)
    assert.is_true(gate:metric("ingest_requests_total", { source = "full", outcome = "dlq_full" }) >= 1)
    gate:restart()
    assert.equal(503, gate:post("full", {}, "x").status)
    local total = dead "?source=full".total
    assert.equal(total, act "discard?source=full".done)
    assert.equal(201, gate:post("full", {}, "x").status)
    assert.equal(1, #gate:events "dlq_open")
  end)

  it("go by age where the file says so, but never one that holds its lane", function()
    start({ "--fail", "held=500", "--fail", "dead=410" }, "retry = { max_attempts = 1 }",
      { source = 'dlq = { retention_ms = "400ms" },' })
    local held, gone = post "held", post "dead"
    wait_state(held, "held")
    wait_state(gone, "discarded")
    assert.equal("held", state_of(held))
    wait_metric("queue_dead", 1)
    local line = process.wait_for("the log line", function() return gate:events("dead_letters_expired")[1] end)
    assert.same({ "demo", "receiver", 1, 400 }, { line.source, line.sink, line.count, line.retention_ms })
  end)

  it("of a sink that is gone can be discarded, and wait for it to be replayed", function()
    start {}
    give_up(20)
    gate:restart(configs.demo { sinks = "{ type = 'log' }", top = 'retire = { "demo/receiver" },' })
    local done = act "replay?all=true"
    assert.same({ 20, 0, 20 }, { done.matched, done.done, done.sink_gone })
    local code, _, err = gate:cli("dlq", "replay", "--all", "--yes")
    assert.equal(1, code)
    assert.truthy(err:find("put the sink back", 1, true), err)
    assert.equal(20, act "discard?sink=receiver".done)
    assert.equal(0, dead().total)
  end)
end)
