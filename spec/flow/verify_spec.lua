-- lanegate verify: why does my signature fail?
local process = require "support.process"
local json = require "dkjson"

local SECRET, OTHER = "It's a Secret to Everybody", "another secret of ours"
-- Of docs.github.com, "Validating webhook deliveries".
local GOOD = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

local config = ([[return {
  sources = {
    github = { verify = { type = "github", secret = { "an old one", %q } }, sinks = { { type = "log" } } },
    other = { verify = { type = "github", secret = %q }, sinks = { { type = "log" } } },
    slack = { verify = { type = "slack", secret = "8f742231b10e8888abcd99yyyzzz85a5" }, sinks = { { type = "log" } } },
    generic = { verify = { type = "hmac", secret = "a2V5", header = "x-sig" }, sinks = { { type = "log" } } },
  } }]]):format(SECRET, OTHER)

local function hmac(secret, text)
  local _, out = process.run({ "openssl", "dgst", "-sha256", "-hmac", secret }, text)
  return assert(out:match("(%x+)%s*$"))
end

describe("lanegate verify", function()
  local dir

  setup(function()
    dir = process.temp_dir()
    process.write_file(dir .. "/config.lua", config)
  end)
  teardown(function() process.remove(dir) end)

  local function verify(source, headers, body, more)
    local lines = { "POST /webhooks/" .. source .. " HTTP/1.1" }
    for name, value in pairs(headers) do lines[#lines + 1] = name .. ": " .. value end
    process.write_file(dir .. "/request", table.concat(lines, "\r\n") .. "\r\n\r\n" .. body)
    local words = { process.binary(), "verify", "--config", dir .. "/config.lua", "--source", source, dir .. "/request" }
    for _, word in ipairs(more or {}) do words[#words + 1] = word end
    local code, plain = process.run(words)
    words[#words + 1] = "--json"
    local _, out = process.run(words)
    for _, secret in ipairs { SECRET, OTHER, "8f742231", "a2V5" } do
      assert.is_nil(plain:find(secret, 1, true))
      assert.is_nil(out:find(secret, 1, true))
    end
    return json.decode(out), plain, code
  end

  local function causes(found)
    local codes = {}
    for i, cause in ipairs(found.causes) do codes[i] = cause.code end
    return codes
  end

  it("accepts what the gateway would accept, and says which secret fits", function()
    local found, plain, code = verify("github", { ["X-Hub-Signature-256"] = GOOD }, "Hello, World!")
    assert.is_true(found.accepted)
    assert.equal(2, found.secret)
    assert.is_truthy(plain:find("accepted by source github", 1, true))
    assert.equal(0, code)
  end)

  it("tells a signature that is missing from one that is wrong", function()
    local found, plain, code = verify("github", {}, "x")
    assert.equal("missing_header", found.reason)
    assert.is_truthy(plain:find("x-hub-signature-256: not there", 1, true))
    assert.equal(1, code)
    found = verify("github", { ["X-Hub-Signature-256"] = GOOD }, "Hello, Mars!")
    assert.equal("bad_signature", found.reason)
    assert.same({}, causes(found))
  end)

  it("finds a body that was parsed and written anew", function()
    local good = { ["X-Hub-Signature-256"] = "sha256=" .. hmac(SECRET, '{"a":[1,{"b":"c d"}]}') }
    local found = verify("github", good, '{ "a": [ 1, { "b": "c d" } ] }')
    assert.same({ "body_reserialised" }, causes(found))
    good = { ["X-Hub-Signature-256"] = "sha256=" .. hmac(SECRET, '{"a": 1, "b": "x/y"}') }
    assert.same({ "body_reserialised" }, causes(verify("github", good, '{"a":1,"b":"x\\/y"}')))
  end)

  it("finds a line feed that an editor added", function()
    assert.same({ "body_line_feed" }, causes(verify("github", { ["X-Hub-Signature-256"] = GOOD }, "Hello, World!\n")))
  end)

  it("finds hex in upper case, and a prefix that is missing", function()
    local found = verify("github", { ["X-Hub-Signature-256"] = "sha256=" .. GOOD:sub(8):upper() }, "Hello, World!")
    assert.same({ "hex_case" }, causes(found))
    found = verify("github", { ["X-Hub-Signature-256"] = GOOD:sub(8) }, "Hello, World!")
    assert.same({ "prefix_missing" }, causes(found))
  end)

  it("finds a secret that must be decoded first, and another algorithm", function()
    assert.same({ "secret_is_base64" }, causes(verify("generic", { ["X-Sig"] = hmac("key", "body") }, "body")))
    local _, sha1 = process.run({ "openssl", "dgst", "-sha1", "-hmac", "a2V5" }, "body")
    assert.same({ "other_option" }, causes(verify("generic", { ["X-Sig"] = sha1:match("(%x+)%s*$") }, "body")))
  end)

  it("finds the source whose secret it is", function()
    local found, plain = verify("github", { ["X-Hub-Signature-256"] = "sha256=" .. hmac(OTHER, "x") }, "x")
    assert.same({ "other" }, found.accepted_by)
    assert.is_truthy(plain:find("source other would accept it", 1, true))
  end)

  it("tells the clock from the signature", function()
    local body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J"
    local headers = { ["X-Slack-Request-Timestamp"] = "1531420618",
                      ["X-Slack-Signature"] = "v0=" .. hmac("8f742231b10e8888abcd99yyyzzz85a5", "v0:1531420618:" .. body) }
    local found = verify("slack", headers, body)
    assert.equal("timestamp", found.reason)
    assert.same({ "clock" }, causes(found))
    assert.is_true(verify("slack", headers, body, { "--at", "1531420600" }).accepted)
  end)

  it("says whose hook it is when the header is another provider's", function()
    local found = verify("github", { ["X-Shopify-Hmac-Sha256"] = "x" }, "x")
    assert.same({ "other_scheme" }, causes(found))
  end)

  it("does not read for ever what has no end", function()
    local code, out, err = process.run { process.binary(), "verify", "--config", dir .. "/config.lua", "--source", "github",
      "/dev/zero" }
    assert.same({ 2, "" }, { code, out })
    assert.truthy(err:find("can't read /dev/zero: it is larger than 64 MiB", 1, true), err)
  end)

  it("asks for what it needs", function()
    local code, _, err = process.run { process.binary(), "verify", "--config", dir .. "/config.lua", "--source", "nobody", "-" }
    assert.equal(2, code)
    assert.is_truthy(err:find("no source \"nobody\"", 1, true))
  end)
end)
