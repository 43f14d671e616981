-- Verifiers that people write in Lua: the providers that no scheme covers, and everything that can go wrong in one.
local json = require "dkjson"
local gateway = require "support.gateway"
local process = require "support.process"

local HUBSPOT, MAILGUN = "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy", "key-test"

local module = [[
local M = {}
-- HubSpot's version 1: no HMAC. v2 signs the method and the public URL too.
function M.hubspot(hook, secret, url)
  local given = hook:header "x-hubspot-signature"
  if not given then return false, "no_signature" end
  local text = hook:header "x-hubspot-signature-version" == "v2" and secret .. hook.method .. url or secret
  return given == lanegate.hex(lanegate.sha256(text .. hook.body)), "other_digest"
end
-- Mailgun signs a time and a token, and puts all of it into the body.
function M.mailgun(hook, secret)
  local at, token = hook:get "signature.timestamp", hook:get "signature.token"
  if not at or not token or not at:find "^%d+$" then return false, "malformed" end
  if math.abs(tonumber(at) * 1000 - hook.received_at) > 300000 then return false, "timestamp" end
  return hook:get "signature.signature" == lanegate.hex(lanegate.hmac_sha256(secret, at .. token)), "other_digest"
end
function M.odd(hook)
  local how = hook:header "x-how"
  if how == "raises" then error("a word of the hook: " .. hook.body) end
  if how == "spins" then while true do end end
  if how == "truthy" then return "yes" end
  if how == "talks" then return false, "Not A Word\n" end
  return how == "good"
end
return M
]]

local sources = [[
  hubspot = { verify = { type = "lua", lua = "verify.ours", call = "hubspot",
      args = { env "HUBSPOT_SECRET", "https://www.example.com/webhook_uri" } }, sinks = { { type = "log" } } },
  mailgun = { verify = { type = "lua", lua = "verify.ours", call = "mailgun", args = { "key-test" } },
    sinks = { { type = "log" } } },
  odd = { verify = { type = "lua", lua = "verify.ours", call = "odd" }, sinks = { { type = "log" } } },
]]

local function config(text)
  return ([[return { data_dir = "data", http = { listen = "127.0.0.1:0" }, admin = { listen = "127.0.0.1:0" },
    store = { min_free_bytes = "16MiB" }, log = { level = "info", format = "json" },
    scripts = { path = "lua" }, sources = { %s } }]]):format(text)
end

-- Published by HubSpot (hubspot-api-nodejs, test/unit/signature.spec.ts).
local V1_BODY = '[{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1564113600000,'
  .. '"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123,"changeSource":"CRM","changeFlag":"NEW",'
  .. '"appId":54321}]'
local V1 = { ["X-HubSpot-Signature"] = "232db2615f3d666fe21a8ec971ac7b5402d33b9a925784df3ca654d05f4817de",
             ["X-HubSpot-Signature-Version"] = "v1" }
local V2_BODY = '{"example_field":"example_value"}'
local V2 = { ["X-HubSpot-Signature"] = "9569219f8ba981ffa6f6f16aa0f48637d35d728c7e4d93d0d52efaa512af7900",
             ["X-HubSpot-Signature-Version"] = "v2" }

-- The form that documentation.mailgun.com shows, with a key of ours.
local function mailgun(at, signature)
  return ('{"signature":{"timestamp":"%s","token":"e0b5477167110d68991efc6b9f89f0a11066af27834600e123","signature":"%s"},'
    .. '"event-data":{"event":"opened","id":"x1"}}'):format(at, signature)
end
local MAILGUN_AT = 1770920772
local MAILGUN_BODY = mailgun(MAILGUN_AT, "097ff1603ce0947833a030fe6b23a46d9597fc9835f074f252b2e662274fb61c")

describe("a verifier in Lua", function()
  local gate

  local function files(dir, text)
    assert(os.execute("mkdir -p " .. dir .. "/lua/verify") == 0)
    process.write_file(dir .. "/lua/verify/ours.lua", module)
    process.write_file(dir .. "/config.lua", text)
  end

  local function secrets_out_of(text)
    for _, secret in ipairs { HUBSPOT, MAILGUN } do assert.is_nil(text:find(secret, 1, true), text) end
  end

  after_each(function()
    if gate then gate:remove() end
    gate = nil
  end)
  teardown(process.kill_all)

  local function start()
    gate = gateway.start { config = config(sources), env = { HUBSPOT_SECRET = HUBSPOT },
                           files = { ["lua/verify/ours.lua"] = module } }
  end

  it("takes what it calls genuine and refuses the rest", function()
    start()
    assert.equal(201, gate:post("hubspot", V1, V1_BODY).status)
    assert.equal(201, gate:post("hubspot", V2, V2_BODY).status)
    local now = os.time()
    local _, digest = process.run({ "openssl", "dgst", "-sha256", "-hmac", MAILGUN },
      now .. "e0b5477167110d68991efc6b9f89f0a11066af27834600e123")
    assert.equal(201, gate:post("mailgun", {}, mailgun(now, digest:match "(%x+)%s*$")).status)
    local refused = { { "hubspot", V1, V1_BODY .. " " }, { "hubspot", V2, V1_BODY }, { "hubspot", {}, V1_BODY },
                      { "mailgun", {}, MAILGUN_BODY }, { "mailgun", {}, "no JSON" } }
    for _, case in ipairs(refused) do
      local answer = gate:post(case[1], case[2], case[3])
      assert.equal(401, answer.status, answer.body)
      assert.equal("script_refused", json.decode(answer.body).reason)
    end
    assert.equal(3, gate:metric("ingest_requests_total", { outcome = "accepted" }))
    local shown = gate:ask("/v1/config").body
    secrets_out_of(shown)
    assert.same({ type = "lua", lua = "verify.ours", call = "hubspot", args = "(set)" },
      json.decode(shown).sources.hubspot.verify)
  end)

  it("refuses when the function breaks, and the next hook is judged as ever", function()
    start()
    for _, how in ipairs { "raises", "spins", "truthy" } do
      local answer = gate:post("odd", { ["x-how"] = how }, "planted")
      assert.equal(401, answer.status, answer.body)
      assert.equal("script_error", json.decode(answer.body).reason)
      assert.is_nil(answer.body:find("planted", 1, true))
      assert.equal(201, gate:post("odd", { ["x-how"] = "good" }, "x").status)
    end
    assert.equal("script_refused", json.decode(gate:post("odd", { ["x-how"] = "talks" }, "x").body).reason)
    assert.equal(1, gate:metric("script_breaches_total", { ["function"] = "odd", kind = "instructions" }))
  end)

  it("is asked by lanegate verify too, at the time that is named", function()
    local dir = process.temp_dir()
    files(dir, config(sources:gsub('env "HUBSPOT_SECRET"', '"' .. HUBSPOT .. '"')))
    local function verify(source, headers, body, ...)
      local lines = { "POST /webhooks/" .. source .. " HTTP/1.1" }
      for name, value in pairs(headers) do lines[#lines + 1] = name .. ": " .. value end
      process.write_file(dir .. "/request", table.concat(lines, "\r\n") .. "\r\n\r\n" .. body)
      local code, out, err = process.run { process.binary(), "verify", "--config", dir .. "/config.lua", "--source", source,
                                           dir .. "/request", "--json", ... }
      secrets_out_of(out .. err)
      return json.decode(out), code
    end
    assert.is_true(verify("hubspot", V1, V1_BODY).accepted)
    assert.is_true(verify("hubspot", V2, V2_BODY).accepted)
    assert.is_true(verify("mailgun", {}, MAILGUN_BODY, "--at", tostring(MAILGUN_AT + 300)).accepted)
    local late, code = verify("mailgun", {}, MAILGUN_BODY, "--at", tostring(MAILGUN_AT + 301))
    assert.same({ 1, "script_refused", "timestamp" }, { code, late.reason, late.said })
    assert.equal("no_signature", verify("hubspot", {}, V1_BODY).said)
    assert.equal("failed", verify("odd", { ["x-how"] = "talks" }, "x").said)
    process.remove(dir)
  end)

  it("must be there when the configuration is loaded", function()
    local dir = process.temp_dir()
    local function check(options, ...)
      files(dir, config(('x = { verify = { type = "lua", %s }, sinks = { { type = "log" } } }'):format(options)))
      local code, out, err = process.run { process.binary(), "check", "--config", dir .. "/config.lua", ... }
      return code, out .. err
    end
    assert.equal(0, (check 'lua = "verify.ours", call = "hubspot", args = { "s", { 1, true } }'))
    assert.equal(0, (check('lua = "verify.ours", call = "hubspot", args = { env "NOWHERE" }', "--offline")))
    local wrong = {
      { 'lua = "verify.gone", call = "hubspot"', "sources.x.verify: " },
      { 'lua = "verify.ours", call = "gone"', "sources.x.verify: " },
      { 'lua = "verify.ours"', "sources.x.verify.call: must be the name of a function" },
      { 'call = "hubspot"', "sources.x.verify.lua: must be the name of a module" },
      { 'lua = "verify.ours", call = "hubspot", args = "s3cret"', "sources.x.verify.args: must be a list of arguments" },
      { 'lua = "verify.ours", call = "hubspot", args = { "s3cret", " " }', "sources.x.verify.args: must be a list" },
      { 'lua = "verify.ours", call = "hubspot", args = { env "NOWHERE" }', 'env "NOWHERE" is not set' },
      { 'lua = "verify.ours", call = "hubspot", secret = "s3cret"', "sources.x.verify.secret: is not an option here" },
    }
    for _, case in ipairs(wrong) do
      local code, text = check(case[1])
      assert.equal(78, code, text)
      assert.truthy(text:find(case[2], 1, true), text)
      assert.is_nil(text:find("s3cret", 1, true), text)
    end
    local code, text = check('lua = "verify.gone", call = "hubspot"', "--offline")
    assert.equal(78, code, text)
    process.remove(dir)
  end)
end)
