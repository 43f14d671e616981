-- sink_header_prefix = "ankusa": a consumer written for that gateway takes our deliveries unchanged. Every header of its
-- contract, at a receiver that writes down the bytes: there always, there when set, and not there.
local gateway = require "support.gateway"
local json = require "dkjson"
local process = require "support.process"
local raw_receiver = require "support.raw_receiver"
local sign = require "support.sign"

local function github(body, key)
  local name, signature = sign.github("hush", body)
  return { [name] = signature, ["X-GitHub-Delivery"] = key, ["Content-Type"] = "application/json" }
end

describe("deliveries under the prefix ankusa", function()
  local sink, gate

  setup(function()
    sink = raw_receiver.start()
    local function answers(status)
      return sink:url("keep", ("HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n"):format(status))
    end
    local urls = { OK = answers "200 OK", FAILS = answers "503 No" }
    gate = gateway.start { config = ([[
local github = { type = "github", secret = "hush" }
local plain = { type = "http", name = "plain", url = "OK" }
return {
  http = { listen = "127.0.0.1:0" }, admin = { listen = "127.0.0.1:0" }, log = { format = "json" },
  store = { min_free_bytes = "16MiB" }, egress = { allow_private = { "127.0.0.1/32" }, allow_http = true },
  dispatch = { retry = { base_ms = 10, max_ms = 50 } },
  sink_header_prefix = "ankusa",
  sources = {
    full = { tenant = "acme", verify = github, dedupe = "github", sinks = { plain } },
    bare = { sinks = { plain } },
    flagged = { tenant = "acme", verify = github, dedupe = "github", on_verify_failure = "accept_flag", sinks = { plain } },
    failing = { sinks = { { type = "http", name = "plain", url = "FAILS" } } },
    lanes = { sinks = { { type = "http", name = "plain", url = "OK", ordered = true, ordering_key = { header = "x-key" } } } },
  },
}]]):gsub("%u+", urls) }
  end)
  teardown(function()
    gate:remove()
    sink:remove()
    process.kill_all()
  end)

  local function post(source, headers, body)
    local answer = gate:post(source, headers, body)
    assert.equal(201, answer.status, answer.body)
    return json.decode(answer.body).id
  end

  -- The n-th delivery of a hook, as { [name behind x-ankusa-] = value }. No header comes twice, and none under our own name.
  local function delivery(id, n)
    local found
    process.wait_for("delivery of " .. id, function()
      found = {}
      for _, request in ipairs(sink:kept()) do
        if (request.headers["x-ankusa-id"] or {})[1] == id then found[#found + 1] = request end
      end
      return #found >= (n or 1)
    end)
    local request = found[n or 1]
    local ours = {}
    for name, values in pairs(request.headers) do
      assert.is_nil(name:match "^x%-lanegate", name)
      local short = name:match "^x%-ankusa%-(.+)"
      if short then
        assert.equal(1, #values, name)
        ours[short] = values[1]
      end
    end
    return ours, request
  end

  -- What all of them have, and that nothing else is there but `more`.
  local function is_whole(ours, id, source, body, more)
    local received = gate:ask("/v1/hooks/" .. id).json.received_at
    assert.truthy(ours["received-at"]:find "^%d%d%d%d%d%d%d%d%d%d%d%d%d$", ours["received-at"])
    local expected = { id = id, source = source, ["received-at"] = ("%.0f"):format(received), ["body-sha256"] = sign.sha256(body),
      attempt = "1" }
    for name, value in pairs(more) do expected[name] = value end
    assert.same(expected, ours)
  end

  it("say all that there is to say of a hook with a tenant and a dedupe key", function()
    local body = '{"action":"opened","n":"\195\169"}'
    local id = post("full", github(body, "72d3162e-cc78 1"), body)
    local ours, request = delivery(id)
    is_whole(ours, id, "full", body, { tenant = "acme", verification = "ok", ["dedupe-key"] = "72d3162e-cc78 1",
      ["idempotency-key"] = "acme:full:72d3162e-cc78 1" })
    assert.equal(body, request.body)
    assert.same({ "application/json" }, request.headers["content-type"])
    assert.same({ "72d3162e-cc78 1" }, request.headers["x-github-delivery"])
  end)

  it("leave out what is not set: the hook's id is its idempotency key then", function()
    local id = post("bare", {}, "")
    is_whole(delivery(id), id, "bare", "", { verification = "skipped", ["idempotency-key"] = id })
  end)

  it("flag what failed verification, and believe nothing that it says of itself", function()
    local id = post("flagged", { ["X-Hub-Signature-256"] = "sha256=" .. ("0"):rep(64), ["X-GitHub-Delivery"] = "forged",
      ["X-Ankusa-Verification"] = "ok", ["X-Ankusa-Dedupe-Key"] = "forged", ["X-Ankusa-Replay-Id"] = "forged",
      ["X-Lanegate-Id"] = "forged" }, "{}")
    is_whole(delivery(id), id, "flagged", "{}", { tenant = "acme", verification = "failed", ["verification-flagged"] = "true",
      ["idempotency-key"] = id })
    local body = '{"n":1}'
    local good = post("flagged", github(body, "true one"), body)
    is_whole(delivery(good), good, "flagged", body, { tenant = "acme", verification = "ok", ["dedupe-key"] = "true one",
      ["idempotency-key"] = "acme:flagged:true one" })
  end)

  it("say the same at every attempt, but for its number", function()
    local id = post("failing", {}, "again")
    local first, second = delivery(id, 1), delivery(id, 2)
    assert.equal("2", second.attempt)
    second.attempt = "1"
    assert.same(first, second)
  end)

  it("name the replay they belong to, and keep the hook's id, key and time", function()
    local body = '{"n":2}'
    local id = post("full", github(body, "replayed"), body)
    local first = delivery(id)
    process.wait_for("its ok to be written", function()
      return gate:ask("/v1/hooks/" .. id).json.rows[1].state == "done"
    end)
    local job = gate:ask("/v1/replays?source=full", "POST")
    assert.equal(201, job.status, job.body)
    local second = delivery(id, 2)
    assert.equal(job.json.id, second["replay-id"])
    assert.is_nil(first["replay-id"])
    second["replay-id"], second.attempt = nil, first.attempt
    assert.same(first, second)
  end)

  it("carry what orders a lane beside, on ordered sinks only", function()
    local id = post("lanes", { ["X-Key"] = "cus_1" }, "1")
    local ours = delivery(id)
    local hook = gate:ask("/v1/hooks/" .. id).json
    assert.equal("cus_1", ours["ordering-key"])
    assert.equal(("%.0f"):format(hook.seq), ours.seq)
    assert.equal(hook.rows[1].lane, ours.lane)
    assert.truthy(ours.epoch:find "^%x+%-%x+%-7")
    assert.equal(id, ours["idempotency-key"])
  end)
end)
