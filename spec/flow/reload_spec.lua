-- Another configuration while hooks come and go: no connection, no hook and no order is lost by it.
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local json = require "dkjson"
local process = require "support.process"
local receiver = require "support.receiver"

local NEVER = [[base_ms = 3600000, max_ms = 3600000]]

describe("a reload", function()
  local sink, gate, other

  before_each(function() sink = receiver.start() end)
  after_each(function()
    if gate then gate:remove() end
    if other then other:remove() end
    gate, other = nil, nil
    sink:remove()
  end)
  teardown(process.kill_all)

  local function start(options)
    options.sinks = options.sinks or configs.ordered_sink(sink.url)
    gate = gateway.start { config = configs.demo(options), env = options.env, files = options.files }
  end

  local function write(options)
    if type(options) == "table" then
      options.sinks = options.sinks or configs.ordered_sink(sink.url)
      options = configs.demo(options)
    end
    process.write_file(gate.config_path, options)
  end

  local function post(key, body, source)
    local answer = gate:post(source or "demo", { ["X-Entity-Id"] = key }, body or "")
    assert.equal(201, answer.status)
    return json.decode(answer.body).id
  end

  -- Writes the configuration if there is one, and reloads; the answer's JSON, which must be a success.
  local function reload(options)
    if options then write(options) end
    local answer = gate:ask("/v1/reload", "POST")
    assert.equal(200, answer.status, answer.body)
    assert.is_true(answer.json.reloaded)
    return answer.json
  end

  local function refused(status, code, options)
    if options then write(options) end
    local before = gate:ask "/v1/config".body
    local answer = gate:ask("/v1/reload", "POST")
    assert.equal(status, answer.status, answer.body)
    assert.equal(code, answer.json.error)
    assert.equal(before, gate:ask "/v1/config".body)
    return answer.json, table.concat(answer.json.faults, "\n")
  end

  local function says(text, part)
    assert.truthy(text:find(part, 1, true), text)
  end

  local function wait_event(name, count)
    return process.wait_for(name, function()
      local events = gate:events(name)
      return #events >= (count or 1) and events
    end)
  end

  local function wait_pending(count)
    process.wait_for(count .. " pending", function() return gate:metric "queue_pending" == count end)
  end

  local function ordered(name, url, more)
    return ([[{ type = "http", name = "%s", url = "%s", ordered = true, ordering_key = { header = "x-entity-id" }, %s },]])
      :format(name, url, more or "")
  end

  it("under load loses no connection, no hook and no order, fifty times", function()
    start {}
    local width, sent, connections = 16, 0, {}
    for i = 1, width do connections[i] = http.connect(gate.ingest) end
    local function round()
      for i = 1, width do
        sent = sent + 1
        local headers = { ["X-Entity-Id"] = "k" .. sent % 7, ["X-Other-Id"] = "o" .. sent % 5 }
        assert(connections[i]:send(http.request("POST", "/webhooks/demo", headers, tostring(sent))))
      end
      for i = 1, width do
        local answer = assert(connections[i]:receive())
        assert.equal(201, answer.status, answer.body)
      end
    end
    for n = 1, 50 do
      local more = { [0] = "", [1] = [[concurrency = 3]], [2] = [[retry = { base_ms = 5, max_ms = 50 }]] }
      write { sinks = ordered("receiver", sink.url, more[n % 3]), source = n % 2 == 0 and [[respond = 201,]] or "" }
      if n % 2 == 0 then
        process.signal(gate.pid, "HUP")
        for _ = 1, 4 do round() end
        wait_event("reloaded", n)
      else
        local admin = http.connect(gate.admin)
        assert(admin:send(http.request("POST", "/v1/reload", { Connection = "close" }, "")))
        for _ = 1, 4 do round() end
        assert.equal(200, assert(admin:receive()).status)
        admin:close()
      end
    end
    for i = 1, width do connections[i]:close() end
    gate:wait_idle()
    assert.equal(51, gate:metric "config_generation")
    assert.equal(50, gate:metric("config_reloads_total", { result = "ok" }))
    local code, out = process.run { process.binary(), "verify-order", sink.log_path, "--against",
      "http://" .. gate.admin, "--json" }
    local said = json.decode(out)
    assert.equal(0, code, out)
    assert.is_true(said.in_order and said.against.complete)
    assert.equal(sent, said.against.delivered)
    assert.same({}, gate:events "reload_refused")
  end)

  it("says what it found, and shows what runs", function()
    start {}
    assert.equal(1, gate:metric "config_generation")
    local answer = reload {}
    assert.equal(2, answer.generation)
    assert.same({}, answer.changed)
    answer = reload { sinks = configs.ordered_sink(sink.url, [[concurrency = 5, timeout_ms = "2s"]]),
      top = [[drain_timeout_ms = "9s",]] }
    assert.equal(3, answer.generation)
    assert.same({ "drain_timeout_ms", "sources.demo.sinks.receiver.concurrency",
      "sources.demo.sinks.receiver.timeout_ms" }, answer.changed)
    assert.equal(5, gate:ask("/v1/sinks").json.sinks[1].concurrency)
    assert.equal(9000, gate:ask("/v1/config").json.drain_timeout_ms)
    local logged = gate:events "reloaded"[2]
    assert.equal(3, logged.generation)
    says(logged.changed, "sources.demo.sinks.receiver.timeout_ms")
    local line = gate:ask("/v1/audit").json.lines[1]
    assert.equal("config.reload", line.what)
  end)

  it("of a bad file changes nothing and says all that is wrong with it", function()
    start {}
    local _, faults = refused(400, "bad_config", [[return { http = { listen = 5, max_body_bites = 1 } }]])
    says(faults, "http.listen")
    says(faults, "max_body_bites")
    refused(400, "bad_config", "return {")
    process.signal(gate.pid, "HUP")
    wait_event("reload_refused", 3)
    assert.equal("bad_config", gate:events "reload_refused"[3].error)
    os.remove(gate.config_path)
    _, faults = refused(400, "bad_config")
    says(faults, "there is no such file")
    post "a"
    assert.equal("a", sink:wait_taken(1)[1].key)
    assert.equal(1, gate:metric "config_generation")
    assert.equal(4, gate:metric("config_reloads_total", { result = "refused" }))
  end)

  it("that needs a restart is refused, with everything that does", function()
    start {}
    local config = configs.demo { sinks = configs.ordered_sink(sink.url), store = [[max_batch = 7, retention_ms = "1d",]] }
    config = config:gsub('data_dir = "data"', 'data_dir = "elsewhere"'):gsub("threads = 2", "threads = 3")
      :gsub('http = { listen = "127.0.0.1:0"', 'http = { listen = "127.0.0.1:1"')
      :gsub('admin = { listen = "127.0.0.1:0"', 'admin = { listen = "127.0.0.1:2"')
    local answer, faults = refused(409, "needs_restart", config)
    assert.same({ "admin.listen", "data_dir", "http.listen", "http.threads", "store.max_batch", "store.retention_ms" },
      answer.needs_restart)
    says(faults, "http.threads: has changed, and that needs a restart")
    local code, out, err = gate:cli "reload"
    assert.equal(1, code)
    assert.equal("", out)
    says(err, "data_dir: has changed, and that needs a restart")
    says(err, "refused: it needs a restart")
    post "a"
    sink:wait_taken(1)
  end)

  it("is a verb, whose exit code says how it went", function()
    start {}
    local code, out = gate:cli("reload", "--reason", "just so")
    assert.equal(0, code)
    says(out, "generation 2, nothing in the configuration has changed")
    assert.equal("just so", gate:ask("/v1/audit").json.lines[1].reason)
    write { sinks = configs.ordered_sink(sink.url, "concurrency = 2") }
    code, out = gate:cli("reload", "--json")
    assert.equal(0, code)
    assert.same({ "sources.demo.sinks.receiver.concurrency" }, json.decode(out).changed)
    write "return { sauces = {} }"
    local err
    code, out, err = gate:cli "reload"
    assert.equal(78, code)
    assert.equal("", out)
    says(err, "sauces")
    says(err, "what ran before runs on")
    code, out = gate:cli("reload", "--json")
    assert.equal(78, code)
    assert.equal("bad_config", json.decode(out).error)
    gate:stop()
    assert.equal(69, (gate:cli "reload"))
  end)

  it("sends a backlog to the new address at once, in order", function()
    sink:tell("fail", { key = "*", status = 503 })
    start { retry = NEVER }
    for i = 1, 30 do post("k" .. i % 3, tostring(i)) end
    process.wait_for("the first attempts", function() return #sink:deliveries() == 3 end)
    other = receiver.start()
    reload { sinks = configs.ordered_sink(other.url), retry = NEVER }
    local last = {}
    for _, delivery in ipairs(other:wait_taken(30)) do
      assert.is_true(delivery.seq > (last[delivery.key] or 0))
      last[delivery.key] = delivery.seq
    end
    gate:wait_idle()
    assert.equal(0, #sink:taken())
  end)

  it("lets an attempt under way end at the old address", function()
    sink:tell("hang", { key = "a" })
    start { sinks = ordered("receiver", sink.url, [[timeout_ms = "20s"]]) }
    post("a", "1")
    post("a", "2")
    process.wait_for("the attempt", function() return gate:metric "queue_inflight" == 1 end)
    other = receiver.start()
    reload { sinks = ordered("receiver", other.url, [[timeout_ms = "20s"]]) }
    assert.equal(1, gate:metric "queue_inflight")
    sink:tell "heal" -- what hung is cut off there, and tried again at the new one
    assert.equal(2, #other:wait_taken(2, 20, "a"))
  end)

  it("of a key leaves rows in their lanes", function()
    sink:tell("fail", { key = "*", status = 503 })
    start { retry = NEVER }
    for i = 1, 2 do
      assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "old", ["X-Region"] = "eu" }, tostring(i)).status)
    end
    local config = configs.demo({ sinks = configs.ordered_sink(sink.url), retry = NEVER })
      :gsub('header = "x%-entity%-id"', 'header = "x-region"')
    assert.same({ "sources.demo.sinks.receiver.ordering_key.header" }, reload(config).changed)
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "old", ["X-Region"] = "eu" }, "3").status)
    wait_pending(3)
    process.wait_for("both lanes", function()
      local lanes, depths = gate:ask("/v1/lanes").json.lanes, {}
      for _, lane in ipairs(lanes) do depths[lane.key] = lane.depth end
      return depths.old == 2 and depths.eu == 1
    end)
  end)

  it("adds sources and sinks, which count from 0", function()
    start {}
    other = receiver.start()
    local both = configs.demo { sinks = configs.ordered_sink(sink.url) .. configs.plain_sink(other.url, "copy") }
    both = both:gsub("sources = {", ('sources = { news = { sinks = { %s } },'):format(configs.plain_sink(other.url, "mail")))
    assert.same({ "sources.demo.sinks.copy", "sources.news" }, reload(both).changed)
    local metrics = gate:ask("/metrics").body
    says(metrics, [[lanegate_ingest_requests_total{source="news",outcome="accepted"} 0]])
    says(metrics, [[lanegate_dispatch_deliveries_total{source="news",sink="mail",result="ok"} 0]])
    says(metrics, [[lanegate_dispatch_lanes{source="demo",sink="copy",state="ready"} 0]])
    post("a", "1")
    post("a", "2", "news")
    assert.equal(2, #other:wait_taken(2))
    assert.equal(1, #sink:wait_taken(1))
    gate:restart()
    assert.equal(3, #gate:ask("/v1/sinks").json.sinks)
  end)

  it("takes away a source that is owed nothing", function()
    start { top = "" }
    local two = configs.demo({ sinks = configs.ordered_sink(sink.url) })
      :gsub("sources = {", ('sources = { news = { sinks = { %s } },'):format(configs.plain_sink(sink.url, "mail")))
    reload(two)
    post("a", "1", "news")
    gate:wait_idle()
    reload {}
    assert.equal("mail", wait_event "sink_gone"[1].sink)
    assert.equal(404, gate:post("news", {}, "").status)
    assert.equal(1, #gate:ask("/v1/sinks").json.sinks)
    assert.equal(1, gate:metric("dispatch_deliveries_total", { source = "news", result = "ok" })) -- what was, was
    reload(two)
    post("a", "2", "news")
    gate:wait_idle()
    assert.equal(2, gate:metric("dispatch_deliveries_total", { source = "news", result = "ok" }))
    reload {}
    gate:restart()
  end)

  it("does not take away what is owed, unless it is retired", function()
    sink:tell("fail", { key = "*", status = 503 })
    start { sinks = ordered("billing", sink.url), retry = NEVER }
    for i = 1, 3 do post("a", tostring(i)) end
    wait_pending(3)
    local rest = { sinks = ordered("other", sink.url), retry = NEVER }
    local _, faults = refused(409, "hooks_owed", rest)
    says(faults, [[sources.demo: hooks are owed to a sink "billing" that is gone (3 pending, 0 held): add was = "billing"]])
    _, faults = refused(409, "hooks_owed", (configs.demo(rest):gsub("demo = {", "news = {", 1)))
    says(faults, [[sources.demo: is gone, and hooks are owed to its sink "billing" (3 pending, 0 held): bring it back]])
    assert.equal(78, (gate:cli "reload"))
    assert.equal(3, gate:metric "queue_pending")

    rest.top = [[retire = { "demo/billing" },]]
    reload(rest)
    assert.equal(3, wait_event "sink_retired"[1].hooks)
    wait_event "sink_gone"
    wait_pending(0)
    process.wait_for("the dead letters", function() return #gate:ask("/v1/dlq").json.entries == 3 end)
    for _, entry in ipairs(gate:ask("/v1/dlq").json.entries) do assert.equal("sink_gone", entry.class) end
    sink:tell "heal"
    post("a", "4")
    assert.equal("4", sink:wait_taken(1)[1].body or "4")
    gate:restart()
  end)

  it("names a rename of a backlog as what needs a restart, which then does it", function()
    sink:tell("fail", { key = "*", status = 503 })
    start { sinks = ordered("billing", sink.url), retry = NEVER }
    for i = 1, 3 do post("a", tostring(i)) end
    wait_pending(3)
    local renamed = { sinks = ordered("invoices", sink.url, [[was = "billing"]]), retry = NEVER }
    local _, faults = refused(409, "needs_restart", renamed)
    says(faults, [[sources.demo.sinks.invoices.was: hooks are owed to "billing" (3 pending, 0 held)]])
    sink:tell "heal"
    gate:restart()
    assert.equal(3, #sink:wait_taken(3))
  end)

  it("renames a sink that is owed nothing", function()
    start { sinks = ordered("billing", sink.url) }
    post("a", "1")
    gate:wait_idle()
    reload { sinks = ordered("invoices", sink.url, [[was = "billing"]]) }
    post("a", "2")
    assert.equal(2, #sink:wait_taken(2))
    gate:restart()
  end)

  it("brings a sink back with its dead letters and its pause", function()
    sink:tell("fail", { key = "a", status = 410 })
    start { sinks = ordered("billing", sink.url) .. ordered("other", sink.url, [[only = { header = "x-no", match = { "x" } }]]) }
    post("a", "1")
    process.wait_for("the dead letter", function() return #gate:ask("/v1/dlq").json.entries == 1 end)
    assert.equal(200, gate:ask("/v1/sinks/demo/billing/pause", "POST").status)
    local rest = { sinks = ordered("other", sink.url, [[only = { header = "x-no", match = { "x" } }]]) }
    gate:restart(configs.demo(rest)) -- from here on it is a stranger
    local both = { sinks = ordered("billing", sink.url) .. rest.sinks }
    sink:tell "heal"
    reload(both)
    post("a", "2")
    wait_pending(1)
    assert.is_true(gate:ask("/v1/sinks").json.sinks[1].paused)
    assert.equal(1, gate:metric "queue_dead")
    assert.equal(200, gate:ask("/v1/sinks/demo/billing/resume", "POST").status)
    assert.equal(1, #sink:wait_taken(1))
    assert.equal(200, gate:ask("/v1/dlq/replay?source=demo&sink=billing", "POST").status)
    assert.equal(2, #sink:wait_taken(2))
  end)

  it("takes filters, what a source stores, and egress at their word", function()
    start { sinks = configs.plain_sink(sink.url, "receiver") }
    reload { sinks = configs.plain_sink(sink.url, "receiver", [[only = { header = "x-kind", match = { "a*" } }]]) }
    assert.equal(201, gate:post("demo", { ["X-Kind"] = "b" }, "").status)
    assert.equal(201, gate:post("demo", { ["X-Kind"] = "ab" }, "").status)
    sink:wait_taken(1)
    gate:wait_idle()
    assert.equal(1, #sink:taken())
    assert.equal(1, gate:metric "dispatch_filtered_total")

    local closed = configs.demo({ sinks = configs.plain_sink((sink.url:gsub("127%.0%.0%.1", "localhost")), "receiver") })
    closed = closed:gsub('"127%.0%.0%.1/32"', '"10.0.0.0/8"')
    process.write_file(gate.config_path, closed)
    local answer = gate:ask("/v1/reload", "POST")
    assert.equal(400, answer.status) -- a name known to be local is seen at load
    says(answer.body, "allow_private")
  end)

  it("rotates secrets and tokens", function()
    local old, new = "whsec_" .. ("b2xk"):rep(8), "whsec_" .. ("bmV3"):rep(8)
    local function verified(secret)
      return { source = ([[verify = { type = "standard_webhooks", secret = "%s" },]]):format(secret) }
    end
    start(verified(old))
    local function sign(secret)
      local id, at = "msg_1", tostring(os.time())
      local command = ("printf %%s '%s.%s.hello' | openssl dgst -sha256 -mac HMAC -macopt hexkey:%s -binary | base64"):format(
        id, at, ((secret == old and "6f6c64" or "6e6577"):rep(8)))
      local pipe = io.popen(command)
      local signature = pipe:read "*l"
      pipe:close()
      return { ["webhook-id"] = id, ["webhook-timestamp"] = at, ["webhook-signature"] = "v1," .. signature,
        ["X-Entity-Id"] = "a" }
    end
    assert.equal(201, gate:post("demo", sign(old), "hello").status)
    assert.equal(401, gate:post("demo", sign(new), "hello").status)
    local answer = reload(verified(new))
    assert.same({ "sources.demo.verify.secret" }, answer.changed)
    assert.equal(401, gate:post("demo", sign(old), "hello").status)
    assert.equal(201, gate:post("demo", sign(new), "hello").status)

    local hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" -- of "test"
    local options = verified(new)
    options.sinks = configs.ordered_sink(sink.url)
    local config = configs.demo(options):gsub('admin = { listen = "127.0.0.1:0"',
      ('admin = { listen = "127.0.0.1:0", tokens = { { hash = "%s", scopes = { "read" } } }'):format(hash))
    write(config)
    reload()
    assert.equal(401, gate:ask("/v1/sinks").status)
    assert.equal(200, gate:ask("/v1/sinks", "GET", { Authorization = "Bearer test" }).status)
    local denied = gate:ask("/v1/reload", "POST", { Authorization = "Bearer test" })
    assert.equal(403, denied.status)
    assert.equal("config", denied.json.scope)
    for _, line in ipairs(gate:events "reloaded") do assert.falsy(line.changed:find("whsec", 1, true)) end
  end)

  -- One signal on the heels of the other: whichever comes while nobody waits for it must not end the process.
  it("asked for many times at once ends nothing, and waits for nobody when the process goes down", function()
    start {}
    local hangups = ("kill -HUP %d; "):format(gate.pid):rep(30)
    os.execute(hangups)
    wait_event "reloaded"
    assert.is_true(process.alive(gate.pid))
    os.execute(hangups .. ("kill -TERM %d"):format(gate.pid))
    process.wait_for("its end", function() return not process.alive(gate.pid) end)
    assert.equal(1, #gate:events "stopped", process.read_file(gate.log_path))
  end)
end)
