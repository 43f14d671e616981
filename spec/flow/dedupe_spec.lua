-- What a provider sends twice is one hook: however it repeats itself, and whatever dies in between.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("a hook that is sent again", function()
  local sink, gate

  before_each(function() sink, gate = nil, nil end)
  after_each(function()
    if gate then gate:remove() end
    if sink then sink:remove() end
  end)
  teardown(process.kill_all)

  local function start(dedupe, receive, options)
    sink = receiver.start(unpack(receive or {}))
    options = options or {}
    options.source = (options.source or "") .. " dedupe = " .. dedupe .. ","
    options.sinks = options.sinks and options.sinks(sink.url) or configs.ordered_sink(sink.url)
    gate = gateway.start { config = configs.demo(options) }
  end

  local function post(headers, body)
    local answer = gate:post("demo", headers, body)
    assert.equal(201, answer.status, answer.body)
    return json.decode(answer.body)
  end

  local function assert_twin(first, second)
    assert.same({ id = first.id, status = "accepted", duplicate = true }, second)
  end

  local function counted(outcome)
    return gate:metric("ingest_requests_total", { source = "demo", outcome = outcome })
  end

  it("is answered with the first one's id, and delivered once", function()
    start('{ header = "x-event-id" }')
    local first = post({ ["x-event-id"] = "evt 1" }, "one")
    assert.is_nil(first.duplicate)
    assert_twin(first, post({ ["X-Event-Id"] = "evt 1" }, "another body"))
    local second = post({ ["x-event-id"] = "evt 2" }, "two")
    assert.is_nil(second.duplicate)
    gate:wait_idle()
    local taken = sink:wait_taken(2)
    assert.same({ first.id, second.id }, { taken[1].id, taken[2].id })
    assert.same({ 2, 1 }, { counted "accepted", counted "duplicate" })

    local listed = gate:ask("/v1/hooks?dedupe_key=evt%201").json.hooks
    assert.same({ 1, first.id }, { #listed, listed[1].id })
    assert.equal("evt 1", gate:ask("/v1/hooks/" .. first.id).json.dedupe_key)
    assert.equal(400, gate:ask("/v1/hooks?dedupe_key=").status)
    local code, out = gate:cli("hooks", "list", "--dedupe-key", "evt 1")
    assert.equal(0, code)
    assert.is_truthy(out:find(first.id, 1, true) and not out:find(second.id, 1, true), out)
  end)

  it("carries its key to the receiver, who may be the second to forget", function()
    start('{ header = "x-event-id" }')
    local plain = post({}, "no key")
    local long = ("k"):rep(201)
    local keyed, hashed = post { ["x-event-id"] = "evt 1%" }, post { ["x-event-id"] = long }
    assert_twin(hashed, post { ["x-event-id"] = long })
    assert.is_nil(post({ ["x-event-id"] = long .. "k" }).duplicate)
    local headers = {}
    for _, delivery in ipairs(sink:wait_taken(4)) do headers[delivery.id] = delivery end
    assert.equal(plain.id, headers[plain.id].idempotency_key)
    assert.equal("default:demo:evt 1%25", headers[keyed.id].idempotency_key)
    assert.is_truthy(headers[hashed.id].idempotency_key:find "^default:demo:sha256:%x+$")
  end)

  it("is known by what each provider says of it", function()
    local cases = {
      { "github", { ["X-GitHub-Delivery"] = "72d3162e-cc78-11e3-81ab-4c9367dc0958" }, "{}" },
      { "standard_webhooks", { ["webhook-id"] = "msg_1" }, "{}" },
      { "svix", { ["svix-id"] = "msg_1" }, "{}" },
      { "shopify", { ["X-Shopify-Topic"] = "orders/create", ["X-Shopify-Event-Id"] = "98880550" }, "{}" },
      { "stripe", {}, '{"id":"evt_1","object":"event"}' },
      { "slack", {}, '{"type":"event_callback","event_id":"Ev08MFMKH6"}' },
    }
    for _, case in ipairs(cases) do
      start('"' .. case[1] .. '"')
      local first = post(case[2], case[3])
      assert.is_nil(first.duplicate, case[1])
      assert_twin(first, post(case[2], case[3]))
      assert.is_nil(post({}, "[]").duplicate)
      assert.is_nil(post({}, "[]").duplicate, "nothing to know it by")
      gate:remove()
      sink:remove()
    end
    gate, sink = nil, nil
  end)

  it("is another one where one part of its key is", function()
    start('{ headers = { "x-topic", "x-event" } }')
    local first = post { ["x-topic"] = "a:b", ["x-event"] = "c" }
    assert.is_nil(post({ ["x-topic"] = "a", ["x-event"] = "b:c" }).duplicate)
    assert.is_nil(post({ ["x-topic"] = "a:b", ["x-event"] = "d" }).duplicate)
    assert_twin(first, post { ["x-topic"] = "a:b", ["x-event"] = "c" })
    for _ = 1, 2 do -- half a key is none
      assert.is_nil(post({ ["x-topic"] = "a:b" }).duplicate)
      assert.is_nil(post({ ["x-topic"] = "", ["x-event"] = "c" }).duplicate)
    end
  end)

  it("has its integers taken by their digits", function()
    start('{ json = "id" }')
    local first = post({}, '{"id":9007199254740993}')
    assert_twin(first, post({}, '{"id":9007199254740993}'))
    assert.is_nil(post({}, '{"id":9007199254740992}').duplicate)
    assert_twin(first, post({}, '{"id":"9007199254740993"}'))
  end)

  it("is a hook of its own when its time is over, and keys are swept", function()
    start('{ header = "x-event-id", ttl_ms = "1s" }')
    local first = post { ["x-event-id"] = "e" }
    local again
    process.wait_for("the key to be free", function()
      again = post { ["x-event-id"] = "e" }
      return not again.duplicate
    end)
    assert.are_not.equal(first.id, again.id)
  end)

  it("has no say for others: another source, another tenant", function()
    sink = receiver.start()
    gate = gateway.start { config = ([[
      return { data_dir = "data", http = { listen = "127.0.0.1:0", threads = 1, routing = "tenant_path" },
        admin = { listen = "127.0.0.1:0" }, store = { min_free_bytes = "16MiB" },
        egress = { allow_private = { "127.0.0.1/32" }, allow_http = true }, sources = {
          one = { dedupe = "stripe", trust_url_tenant = true, sinks = { %s } },
          two = { dedupe = "stripe", trust_url_tenant = true, sinks = { %s } } } }
    ]]):format(configs.plain_sink(sink.url, "s"), configs.plain_sink(sink.url, "s")) }
    local function at(path)
      local answer = http.once(gate.ingest, "POST", "/webhooks/" .. path, {}, '{"id":"evt"}')
      assert.equal(201, answer.status)
      return json.decode(answer.body)
    end
    local first = at "a/one"
    assert.is_nil(at("a/two").duplicate)
    assert.is_nil(at("b/one").duplicate)
    assert_twin(first, at "a/one")
  end)

  it("is not answered for by a stranger: what failed verification claims nothing", function()
    start('{ header = "x-event-id" }', {}, { source = [[on_verify_failure = "accept_flag",
      verify = { type = "standard_webhooks", secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },]] })
    for _ = 1, 2 do
      local flagged = post({ ["x-event-id"] = "evt" }, "forged")
      assert.is_nil(flagged.duplicate)
      assert.is_nil(gate:ask("/v1/hooks/" .. flagged.id).json.dedupe_key)
    end
    for _, delivery in ipairs(sink:wait_taken(2)) do assert.equal(delivery.id, delivery.idempotency_key) end
  end)

  it("brings back what had died, in its old place", function()
    start('{ header = "x-event-id" }', { "--fail", "a=410" })
    local function send(event) return post({ ["x-event-id"] = event, ["x-entity-id"] = "a" }, event) end
    local first = send "evt"
    process.wait_for("a dead letter", function() return gate:ask("/v1/dlq").json.total == 1 end)
    sink:tell("heal", { key = "a" })
    assert.same({ id = first.id, status = "accepted", duplicate = true, revived = true }, send "evt")
    assert.equal(first.id, sink:wait_taken(1)[1].id)
    process.wait_for("no dead letter", function() return gate:metric "queue_dead" == 0 end)
    process.wait_for("the row to be done", function()
      return gate:ask("/v1/hooks/" .. first.id).json.rows[1].state == "done"
    end)
    assert_twin(first, send "evt")
    assert.equal(1, counted "revived")
    assert.equal(1, #sink:taken())
  end)

  it("is revived once by many who ask at once", function()
    start('{ header = "x-event-id" }', { "--fail", "*=410" })
    local first = post { ["x-event-id"] = "evt", ["x-entity-id"] = "a" }
    process.wait_for("a dead letter", function() return gate:ask("/v1/dlq").json.total == 1 end)
    sink:tell "heal"
    local requests, revived = {}, 0
    for i = 1, 50 do
      requests[i] = http.request("POST", "/webhooks/demo", { ["x-event-id"] = "evt", ["x-entity-id"] = "a" }, "x")
    end
    for _, answer in ipairs(http.many(gate.ingest, requests, 50)) do
      assert.equal(201, answer.status, answer.body)
      local body = json.decode(answer.body)
      assert.same({ first.id, true }, { body.id, body.duplicate })
      revived = revived + (body.revived and 1 or 0)
    end
    assert.is_true(revived >= 1)
    gate:wait_idle()
    assert.equal(1, #sink:taken())
  end)

  it("is taken anew once its dead letter was discarded with --forget", function()
    start('{ header = "x-event-id" }', { "--fail", "*=410" })
    local headers = { ["x-event-id"] = "evt" }
    local first = post(headers)
    process.wait_for("a dead letter", function() return gate:ask("/v1/dlq").json.total == 1 end)
    assert.equal(2, (gate:cli("dlq", "replay", first.id, "--forget", "--yes")))
    local code, out = gate:cli("dlq", "discard", first.id, "--forget", "--yes")
    assert.same({ 0, "discarded 1 of 1 dead letters\n" }, { code, out })
    assert.equal("hook=" .. first.id .. " forget", gate:ask("/v1/audit?what=dlq.discard").json.lines[1].target)
    sink:tell "heal"
    local second = post(headers)
    assert.is_nil(second.duplicate)
    assert.are_not.equal(first.id, second.id)
    assert.equal(second.id, sink:wait_taken(1)[1].id)
  end)

  it("keeps its answer after a discard, and after it was erased", function()
    start('{ header = "x-event-id" }', { "--fail", "*=410" })
    local headers = { ["x-event-id"] = "evt" }
    local first = post(headers)
    process.wait_for("a dead letter", function() return gate:ask("/v1/dlq").json.total == 1 end)
    assert.equal(0, (gate:cli("dlq", "discard", first.id, "--yes")))
    assert_twin(first, post(headers))
    assert.equal(200, gate:ask("/v1/hooks/" .. first.id, "DELETE").status)
    assert_twin(first, post(headers))
    gate:restart()
    assert_twin(first, post(headers))
    assert.equal(404, gate:ask("/v1/hooks/" .. first.id).status)
  end)

  it("is one hook although a hundred clients send it, over a kill -9", function()
    start('{ header = "x-event-id" }')
    local function requests(event)
      local out = {}
      for i = 1, 100 do
        out[i] = http.request("POST", "/webhooks/demo", { ["x-event-id"] = event, ["x-entity-id"] = "k" }, "x")
      end
      return out
    end
    local function send(event)
      local ids, firsts = {}, 0
      for _, answer in ipairs(http.many(gate.ingest, requests(event), 100)) do
        assert.equal(201, answer.status, answer.body)
        local body = json.decode(answer.body)
        ids[body.id] = true
        firsts = firsts + (body.duplicate and 0 or 1)
      end
      local id = next(ids)
      assert.is_nil(next(ids, id), "one id for all")
      return id, firsts
    end
    local one, firsts = send "evt-1"
    assert.equal(1, firsts)
    gate:kill9()
    gate:restart()
    assert.same({ one, 0 }, { send "evt-1" })
    local _, others = send "evt-2"
    assert.equal(1, others)
    gate:wait_idle()
    local ids = {}
    for _, delivery in ipairs(sink:taken()) do ids[delivery.id] = true end
    local count = 0
    for _ in pairs(ids) do count = count + 1 end
    assert.equal(2, count)
  end)
end)
