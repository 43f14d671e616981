-- What providers ask before they send anything, and the signatures that hooks come with: the gateway answers, and keeps
-- nothing of the questions.
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local json = require "dkjson"

local sinks = [[sinks = { { type = "log" } }]]
local SECRET = "zoom-secret-token"

local function hmac(secret, text)
  local _, out = process.run({ "openssl", "dgst", "-sha256", "-hmac", secret }, text)
  return assert(out:match("(%x+)%s*$"))
end

describe("a source with a handshake", function()
  local gate

  setup(function()
    gate = gateway.start { config = [[
return {
  http = { listen = "127.0.0.1:0" },
  admin = { listen = "127.0.0.1:0" },
  log = { format = "json" },
  store = { min_free_bytes = "16MiB" },
  sources = {
    slack = { handshake = "slack", verify = { type = "slack", secret = "]] .. SECRET .. [[" }, ]] .. sinks .. [[ },
    zoom = { handshake = "zoom", verify = { type = "zoom", secret = { "new", "]] .. SECRET .. [[" } },
      on_verify_failure = "accept_flag", ]] .. sinks .. [[ },
    meta = { handshake = { type = "meta", verify_token = { "tok-1", "tok-2" } },
      verify = { type = "github", secret = "app" }, ]] .. sinks .. [[ },
    graph = { handshake = "graph", ]] .. sinks .. [[ },
    plain = { ]] .. sinks .. [[ },
  },
}]] }
  end)
  teardown(function()
    gate:remove()
    process.kill_all()
  end)

  local function signed(brand, secret, body)
    local ts = tostring(os.time())
    local names = { slack = { "X-Slack-Signature", "X-Slack-Request-Timestamp" },
                    zoom = { "x-zm-signature", "x-zm-request-timestamp" } }
    return { [names[brand][1]] = "v0=" .. hmac(secret, "v0:" .. ts .. ":" .. body), [names[brand][2]] = ts,
             ["Content-Type"] = "application/json" }
  end

  local function ask(method, target, headers, body)
    return http.once(gate.ingest, method, target, headers or {}, body)
  end

  -- No browser may take the echo of a stranger's text for a page.
  local function is_plain(answer, text)
    assert.equal(200, answer.status)
    assert.equal("text/plain; charset=utf-8", answer.headers["content-type"])
    assert.equal("nosniff", answer.headers["x-content-type-options"])
    assert.equal(text, answer.body)
  end

  local function is_refused(answer, status, code)
    assert.equal(status, answer.status)
    assert.equal(code, json.decode(answer.body).error)
  end

  it("answers Slack's challenge when it is signed, and only then", function()
    local body = json.encode { type = "url_verification", token = "old", challenge = "3eZbrw1aB<script>" }
    is_plain(ask("POST", "/webhooks/slack", signed("slack", SECRET, body), body), "3eZbrw1aB<script>")
    is_refused(ask("POST", "/webhooks/slack", signed("slack", "other", body), body), 401, "verification_failed")
    is_refused(ask("POST", "/webhooks/slack", {}, body), 401, "verification_failed")
    local hook = json.encode { type = "event_callback", challenge = "x" }
    assert.equal(201, ask("POST", "/webhooks/slack", signed("slack", SECRET, hook), hook).status)
  end)

  it("proves to Zoom that it knows the secret that the question was signed with", function()
    local body = json.encode { event = "endpoint.url_validation", payload = { plainToken = "qgg8vlvZRS6UYooatFL8Aw" } }
    local answer = ask("POST", "/webhooks/zoom", signed("zoom", SECRET, body), body)
    assert.equal(200, answer.status)
    assert.same({ plainToken = "qgg8vlvZRS6UYooatFL8Aw", encryptedToken = hmac(SECRET, "qgg8vlvZRS6UYooatFL8Aw") },
      json.decode(answer.body))
  end)

  it("signs nothing for a stranger, nor a text that could pass for a hook", function()
    local body = json.encode { event = "endpoint.url_validation", payload = { plainToken = "abc" } }
    local answer = ask("POST", "/webhooks/zoom", {}, body) -- flagged, as that source says: a hook like any other
    assert.equal(201, answer.status)
    assert.is_nil(answer.body:find("encryptedToken", 1, true))
    local forged = json.encode { event = "endpoint.url_validation", payload = { plainToken = "v0:1700000000:{}" } }
    is_refused(ask("POST", "/webhooks/zoom", signed("zoom", SECRET, forged), forged), 400, "bad_request")
  end)

  it("answers Meta's challenge for a token that it knows", function()
    local query = "/webhooks/meta?hub.mode=subscribe&hub.challenge=11582%2B01444&hub.verify_token="
    is_plain(ask("GET", query .. "tok-2"), "11582+01444")
    is_plain(ask("GET", query .. "tok%2D1"), "11582+01444")
    is_refused(ask("GET", query .. "tok"), 401, "verification_failed")
    is_refused(ask("GET", "/webhooks/meta?hub.mode=subscribe&hub.challenge=1"), 400, "bad_request")
    is_refused(ask("POST", query .. "tok-1", {}, "{}"), 401, "verification_failed") -- a hook, unsigned
  end)

  it("answers Graph's token as it is decoded, and never a long or odd one", function()
    is_plain(ask("POST", "/webhooks/graph?validationToken=Validation%3a+Testing+%26+id", {}, ""), "Validation: Testing & id")
    is_plain(ask("GET", "/webhooks/graph?validationtoken=x"), "x")
    is_refused(ask("POST", "/webhooks/graph?validationToken=a%0d%0ab", {}, ""), 400, "bad_request")
    is_refused(ask("POST", "/webhooks/graph?validationToken=" .. ("x"):rep(2049), {}, ""), 400, "bad_request")
    assert.equal(201, ask("POST", "/webhooks/graph?validationToken=x", {}, "a hook").status)
  end)

  it("takes GET on no other source", function()
    is_refused(ask("GET", "/webhooks/plain?validationToken=x"), 405, "method_not_allowed")
    is_refused(ask("GET", "/webhooks/slack"), 400, "bad_request")
  end)

  it("keeps nothing of the questions", function()
    local before = http.once(gate.admin, "GET", "/v1/hooks?limit=1000", {})
    local count = #json.decode(before.body).hooks
    ask("GET", "/webhooks/meta?hub.mode=subscribe&hub.challenge=1&hub.verify_token=tok-1")
    ask("POST", "/webhooks/graph?validationToken=x", {}, "")
    local after = http.once(gate.admin, "GET", "/v1/hooks?limit=1000", {})
    assert.equal(count, #json.decode(after.body).hooks)
    local metrics = http.once(gate.admin, "GET", "/metrics", {}).body
    assert.is_truthy(metrics:find('lanegate_ingest_requests_total{source="meta",outcome="handshake"} 3', 1, true))
  end)
end)
