-- Every answer of the ingest port that is built (contract, section 3), in one table where a table will do.
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local json = require "dkjson"

local log_sink = [[{ type = "log", ordered = true, ordering_key = { header = "x-entity-id" } },]]

describe("the ingest port", function()
  local gate

  setup(function()
    gate = gateway.start { config = [[
return {
  http = { listen = "127.0.0.1:0", max_body_bytes = 1000 },
  admin = { listen = "127.0.0.1:0" },
  log = { format = "json" },
  store = { min_free_bytes = "16MiB" },
  sources = {
    demo = { sinks = { ]] .. log_sink .. [[ } },
    quiet = { respond = 204, sinks = { { type = "log" } } },
    signed = { verify = { type = "standard_webhooks", secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
      sinks = { { type = "log" } } },
    flagged = { verify = { type = "standard_webhooks", secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" },
      on_verify_failure = "accept_flag", sinks = { { type = "log" } } },
  },
}]] }
  end)
  teardown(function()
    gate:remove()
    process.kill_all()
  end)

  local function chunked(body)
    return ("POST /webhooks/demo HTTP/1.1\r\nHost: gateway\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n")
      :format(#body, body)
  end

  local cases = {
    { "takes a hook", http.request("POST", "/webhooks/demo", {}, "x"), 201 },
    { "takes an empty hook", http.request("POST", "/webhooks/demo", {}, ""), 201 },
    { "takes a chunked hook", chunked "hello", 201 },
    { "answers as the source says", http.request("POST", "/webhooks/quiet", {}, "x"), 204 },
    { "takes a body of exactly the limit", http.request("POST", "/webhooks/demo", {}, ("x"):rep(1000)), 201 },
    { "takes a chunked body of exactly the limit", chunked(("x"):rep(1000)), 201 },
    { "takes a flagged hook", http.request("POST", "/webhooks/flagged", {}, "x"), 201 },
    { "refuses a body over the limit", http.request("POST", "/webhooks/demo", {}, ("x"):rep(1001)), 413,
      "payload_too_large" },
    { "refuses a chunked body over the limit", chunked(("x"):rep(1001)), 413, "payload_too_large" },
    { "does not know other sources", http.request("POST", "/webhooks/other", {}, "x"), 404, "unknown_source" },
    { "does not know other paths", http.request("POST", "/other", {}, "x"), 404, "not_found" },
    { "does not decode a path", http.request("POST", "/webhooks/%64emo", {}, "x"), 404, "unknown_source" },
    { "does not resolve dot segments", http.request("POST", "/webhooks/x/../demo", {}, "x"), 404, "not_found" },
    { "does not take absolute targets", http.request("POST", "http://gateway/webhooks/demo", {}, "x"), 404, "not_found" },
    { "takes hooks by POST only", http.request("GET", "/webhooks/demo", {}), 405, "method_not_allowed" },
    { "refuses what does not verify", http.request("POST", "/webhooks/signed", {}, "x"), 401, "verification_failed" },
    { "refuses a header it could not forward", http.request("POST", "/webhooks/demo", { ["X-A"] = "caf\233" }, "x"), 400,
      "invalid_header" },
    { "does not know a source, before it looks at headers",
      http.request("POST", "/webhooks/other", { ["X-A"] = "caf\233" }, "x"), 404, "unknown_source" },
    { "refuses two lengths", "POST /webhooks/demo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
      400, "bad_request" },
    { "is healthy", http.request("GET", "/health", {}), 200 },
    { "is ready", http.request("GET", "/ready", {}), 200 },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local connection = http.connect(gate.ingest)
      connection:send(case[2])
      local answer = assert(connection:receive())
      connection:close()
      assert.equal(case[3], answer.status)
      if case[3] == 204 then
        assert.equal("", answer.body)
      else
        assert.equal("application/json", answer.headers["content-type"])
        local body = assert(json.decode(answer.body))
        assert.equal(case[4], body.error)
        if case[3] == 201 then
          assert.equal("accepted", body.status)
          assert.truthy(body.id:match "^%x+%-%x+%-7%x+%-[89ab]%x+%-%x+$")
        end
      end
    end)
  end

  it("says what was wrong where it can", function()
    local answer = gate:post("signed", {}, "x")
    assert.equal("missing_header", json.decode(answer.body).reason)
    answer = gate:post("demo", {}, ("x"):rep(1001))
    assert.equal(1000, json.decode(answer.body).limit)
    answer = gate:post("demo", { ["X-A"] = "caf\233" }, "x")
    assert.equal("x-a", json.decode(answer.body).header:lower())
    answer = http.once(gate.ingest, "GET", "/webhooks/demo")
    assert.equal("POST", answer.headers.allow)
  end)

  it("serves the next request of a connection after an answer of any kind", function()
    local connection = http.connect(gate.ingest)
    assert.equal(201, connection:ask("POST", "/webhooks/demo", {}, "1").status)
    assert.equal(404, connection:ask("POST", "/webhooks/nobody", {}, "2").status)
    assert.equal(401, connection:ask("POST", "/webhooks/signed", {}, "3").status)
    assert.equal(201, connection:ask("POST", "/webhooks/demo", {}, "4").status)
    connection:close()
  end)

  it("stores nothing of what it refused", function()
    local before = #gate:ask("/v1/hooks?limit=1000").json.hooks
    gate:post("signed", {}, "x")
    gate:post("other", {}, "x")
    gate:post("demo", {}, ("x"):rep(1001))
    assert.equal(before, #gate:ask("/v1/hooks?limit=1000").json.hooks)
  end)

  it("keeps the tenants apart in the path", function()
    local many = gateway.start { config = [[
return {
  http = { listen = "127.0.0.1:0", routing = "tenant_path", prefix = "/in" },
  admin = { listen = "127.0.0.1:0" },
  log = { format = "json" },
  store = { min_free_bytes = "16MiB" },
  sources = {
    open = { trust_url_tenant = true, sinks = { { type = "log" } } },
    acme = { tenant = "acme", sinks = { { type = "log" } } },
  },
}]] }
    finally(function() many:remove() end)
    local function post(path) return http.once(many.ingest, "POST", path, {}, "x").status end
    assert.equal(201, post "/in/anyone/open")
    assert.equal(201, post "/in/acme/acme")
    assert.equal(404, post "/in/other/acme")
    assert.equal(404, post "/in/not%20a%20name/open")
    assert.equal(404, post "/in/open")
    local tenants = {}
    for _, hook in ipairs(many:ask("/v1/hooks").json.hooks) do tenants[hook.tenant .. "/" .. hook.source] = true end
    assert.same({ ["anyone/open"] = true, ["acme/acme"] = true }, tenants)
  end)
end)
