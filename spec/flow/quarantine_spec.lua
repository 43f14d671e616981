-- What failed verification waits for a person: kept whole, bounded, and let go only when its signature is good.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local process = require "support.process"
local receiver = require "support.receiver"

local OLD, NEW = ("old!"):rep(8), ("new!"):rep(8) -- secrets

local function hex(text) return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end

local function base64(text)
  local code, out = process.run { "sh", "-c", "printf %s '" .. text .. "' | base64 -w0" }
  assert.equal(0, code)
  return out
end

-- Standard Webhooks, by openssl.
local function signed(secret, id, body)
  local at = tostring(os.time())
  local code, out = process.run { "sh", "-c", ("printf %%s '%s.%s.%s' | openssl dgst -sha256 -mac HMAC -macopt hexkey:%s "
    .. "-binary | base64 -w0"):format(id, at, body, hex(secret)) }
  assert.equal(0, code)
  return { ["webhook-id"] = id, ["webhook-timestamp"] = at, ["webhook-signature"] = "v1," .. out, ["x-entity-id"] = "k" }
end

describe("the quarantine", function()
  local sink, gate

  before_each(function() sink, gate = nil, nil end)
  after_each(function()
    if gate then gate:remove() end
    if sink then sink:remove() end
  end)
  teardown(process.kill_all)

  local function config(secret, quarantine, more)
    return configs.demo { sinks = configs.ordered_sink(sink.url), top = "quarantine = { " .. (quarantine or "") .. " },",
      source = ([[verify = { type = "standard_webhooks", secret = "whsec_%s" }, on_verify_failure = "quarantine",
        dedupe = "standard_webhooks", %s]]):format(base64(secret), more or "") }
  end

  local function start(quarantine, more)
    sink = receiver.start()
    gate = gateway.start { config = config(OLD, quarantine, more) }
  end

  local function pen(headers, body)
    local answer = gate:post("demo", headers, body or "x")
    assert.equal(202, answer.status, answer.body)
    return json.decode(answer.body)
  end

  local function entries(filters) return gate:ask("/v1/quarantine" .. (filters or "")).json.entries end

  local function act(path)
    local answer = gate:ask("/v1/quarantine/" .. path, "POST")
    return answer.json, answer.status
  end

  it("keeps what failed as it came, over a kill -9, and delivers nothing of it", function()
    start()
    assert.same({ status = "quarantined", reason = "missing_header" }, pen({ ["x-odd"] = "1" }, "body 1"))
    assert.same({ status = "quarantined", reason = "bad_signature" }, pen(signed(NEW, "msg_1", "body 2"), "body 2"))
    gate:kill9()
    gate:restart()
    local both = entries()
    assert.same({ 2, "missing_header", "bad_signature", "demo", "default" },
      { #both, both[1].reason, both[2].reason, both[1].source, both[1].tenant })
    assert.equal(1, #entries "?failure=bad_signature&source=demo&tenant=default")
    assert.equal(1, #entries("?hook=" .. both[1].id))
    local page = gate:ask("/v1/quarantine?limit=1").json
    assert.equal(2, page.total)
    assert.equal(1, gate:ask("/v1/quarantine?failure=bad_signature").json.total)
    assert.equal("one that there is: demo", gate:ask("/v1/quarantine?source=other").json.expected)
    assert.equal(2, gate:ask("/v1/quarantine?source=demo&limit=1&cursor=" .. page.next_cursor).json.total)
    local refused = gate:ask "/v1/quarantine?failure=bad_signatur"
    assert.same({ 400, "failure" }, { refused.status, refused.json.filter })
    assert.truthy(refused.json.expected:find("bad_signature", 1, true))
    assert.equal(both[2].id, entries("?cursor=" .. page.next_cursor)[1].id)
    assert.equal("body 1", gate:ask("/v1/quarantine/" .. both[1].id .. "/body").body)
    assert.equal(404, gate:ask("/v1/hooks/" .. both[1].id).status)
    assert.equal(0, #gate:ask("/v1/hooks").json.hooks)
    assert.equal(0, #sink:deliveries())
    assert.equal(2, gate:metric("quarantine_hooks", { source = "demo" }))
    local code, out = gate:cli("quarantine", "list")
    assert.equal(0, code)
    assert.is_truthy(out:find(both[2].id, 1, true) and out:find("bad_signature", 1, true), out)
    code, out = gate:cli("quarantine", "show", both[2].id, "--raw")
    assert.equal(0, code)
    assert.is_truthy(out:find("webhook-signature: v1,", 1, true) and out:find "\r\n\r\nbody 2$", out)
    assert.equal(1, (gate:cli("quarantine", "show", "01890a5d-ac96-774b-bcce-b302099a8057")))
  end)

  it("lets go what today's secrets accept, as new hooks, and keeps the rest with its reason", function()
    start()
    local late = signed(NEW, "msg_1", "a")
    pen(late, "a")
    pen(signed(NEW, "msg_2", "b"), "b")
    pen(signed(NEW, "msg_3", "c"), "forged")
    pen({}, "d")
    gate:restart(config(NEW))
    assert.equal(201, gate:post("demo", signed(NEW, "msg_4", "e"), "e").status)
    local plan = act "release?source=demo&dry_run=true"
    assert.same({ 4, 0, 2, 2 }, { plan.matched, plan.done, plan.verified, plan.failed })
    assert.equal(4, #entries())
    local code, _, err = gate:cli("quarantine", "release", "--source", "demo")
    assert.equal(2, code, err)
    local out
    code, out = gate:cli("quarantine", "release", "--source", "demo", "--yes", "--reason", "rotated")
    assert.equal(0, code)
    assert.is_truthy(out:find("released 2 of 4 hooks", 1, true), out)
    local taken = sink:wait_taken(3)
    assert.is_true(taken[3].seq > taken[2].seq and taken[2].seq > taken[1].seq)
    assert.same({ "k", "default:demo:msg_1", "default:demo:msg_2" },
      { taken[2].key, taken[2].idempotency_key, taken[3].idempotency_key })
    assert.equal("ok", gate:ask("/v1/hooks/" .. taken[2].id).json.verification)
    local rest = entries()
    assert.same({ 2, "bad_signature", "missing_header" }, { #rest, rest[1].reason, rest[2].reason })
    local line = gate:ask("/v1/audit?what=quarantine.release").json.lines[1]
    assert.same({ "source=demo", "rotated", 4, 2 }, { line.target, line.reason, line.matched, line.done })
    -- The provider sends the first one again: it is known by now.
    assert.is_true(json.decode(gate:post("demo", late, "a").body).duplicate)
    assert.equal(2, gate:metric "quarantine_released_total")
    assert.equal(1, (gate:cli("quarantine", "release", rest[1].id)))
  end)

  it("lets a duplicate go without delivering it twice", function()
    start()
    local headers = signed(NEW, "msg_1", "a")
    pen(headers, "a")
    gate:restart(config(NEW))
    assert.equal(201, gate:post("demo", headers, "a").status)
    local done = act "release?all=true"
    assert.same({ 1, 1, 1, 0 }, { done.matched, done.done, done.duplicates, done.failed })
    gate:wait_idle()
    assert.same({ 0, 1 }, { #entries(), #sink:taken() })
  end)

  it("gives up what a person discards, and what is erased", function()
    start()
    for i = 1, 3 do pen({}, "secret body " .. i) end
    local all = entries()
    local refused, status = act "discard"
    assert.same({ 400, "bad_filter" }, { status, refused.error })
    refused, status = act "discard?sink=x"
    assert.same({ 400, "unknown_filter" }, { status, refused.error })
    assert.equal(1, act("discard?hook=" .. all[1].id).done)
    local erased = gate:ask("/v1/hooks/" .. all[2].id, "DELETE")
    assert.same({ 200, true, true }, { erased.status, erased.json.quarantined, erased.json.log_emptied })
    for _, name in ipairs { "/data/store.db", "/data/store.db-wal" } do
      assert.is_nil((process.read_file(gate.dir .. name) or ""):find("secret body 2", 1, true), name)
    end
    assert.equal(1, #entries())
    local code, out = gate:cli("quarantine", "discard", "--all", "--yes")
    assert.same({ 0, "discarded 1 of 1 hooks\n" }, { code, out })
    assert.equal(0, gate:metric "quarantine_bytes")
  end)

  it("takes a burst, and then so many a second", function()
    start "burst = 3, rate = 1"
    for _ = 1, 3 do pen({}, "x") end
    local answer = gate:post("demo", {}, "x")
    assert.same({ 429, "quarantine_rate_limited", "1" },
      { answer.status, json.decode(answer.body).error, answer.headers["retry-after"] })
    assert.equal(201, gate:post("demo", signed(OLD, "msg_1", "x"), "x").status) -- the good ones go on
    process.wait_for("another token", function() return gate:post("demo", {}, "x").status == 202 end)
  end)

  it("is full for the source that fills it, and for no other", function()
    sink = receiver.start()
    local source = ([[{ verify = { type = "standard_webhooks", secret = "whsec_%s" }, on_verify_failure = "quarantine",
      sinks = { %s } }]]):format(base64(OLD), configs.plain_sink(sink.url, "s"))
    gate = gateway.start { config = ([[return { data_dir = "data", http = { listen = "127.0.0.1:0", threads = 1 },
      admin = { listen = "127.0.0.1:0" }, store = { min_free_bytes = "16MiB" },
      egress = { allow_private = { "127.0.0.1/32" }, allow_http = true },
      quarantine = { max_bytes = "8KiB", burst = 4, rate = 1 },
      sources = { full = %s, free = %s } }]]):format(source, source) }
    local body = ("x"):rep(1500)
    local function fill()
      local statuses = {}
      for i = 1, 4 do statuses[i] = gate:post("full", {}, body).status end
      return statuses
    end
    assert.same({ 202, 202, 503, 503 }, fill())
    -- What was refused for want of room was nothing of its rate: it is not told so, however often it tries.
    for _ = 1, 8 do assert.equal("quarantine_full", json.decode(gate:post("full", {}, body).body).error) end
    assert.equal(202, gate:post("free", {}, body).status)
    gate:restart()
    assert.equal(503, gate:post("full", {}, body).status)
    assert.equal(2, act "discard?source=full".done)
    assert.equal(202, gate:post("full", {}, body).status)
  end)

  it("forgets by age", function()
    start 'retention_ms = "1s"'
    pen({}, "x")
    process.wait_for("it to be gone", function() return #entries() == 0 end)
    assert.equal(1, #gate:events "quarantine_expired")
    assert.equal(0, gate:metric "quarantine_hooks")
  end)
end)
