-- Nothing that the process prints, answers or counts holds a secret; and a client's certificate is part of the hook.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local process = require "support.process"
local receiver = require "support.receiver"

local function sh(command, ...)
  local code, out, err = process.run { "sh", "-c", command:format(...) }
  assert.equal(0, code, err)
  return out
end

-- A key and a certificate of its own; gives the fingerprint.
local function certificate(dir, name)
  sh("cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout %s.key -out %s.pem "
    .. "-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -days 2 2>&1", dir, name, name)
  return sh("openssl x509 -in %s/%s.pem -noout -fingerprint -sha256", dir, name):match "=(%S+)"
end

describe("over TLS", function()
  local dir, sink, gate, prints

  setup(function()
    dir, prints = process.temp_dir(), {}
    for _, name in ipairs { "server", "old", "new" } do prints[name] = certificate(dir, name) end
  end)
  after_each(function()
    if gate then gate:remove() end
    if sink then sink:remove() end
    gate, sink = nil, nil
  end)
  teardown(function()
    process.kill_all()
    process.remove(dir)
  end)

  local function tls() return ([[tls = { cert = "%s/server.pem", key = "%s/server.key" }]]):format(dir, dir) end

  -- By curl, with the client's certificate of that name, if any.
  local function post(source, body, client, headers)
    local words = { "curl", "-sS", "--cacert", dir .. "/server.pem", "-X", "POST", "--data-binary", body, "-w", "\n%{http_code}" }
    if client then
      for _, word in ipairs { "--cert", dir .. "/" .. client .. ".pem", "--key", dir .. "/" .. client .. ".key" } do
        words[#words + 1] = word
      end
    end
    for _, header in ipairs(headers or {}) do
      words[#words + 1] = "-H"
      words[#words + 1] = header
    end
    words[#words + 1] = "https://" .. gate.ingest .. "/webhooks/" .. source
    local code, out, err = process.run(words)
    assert.equal(0, code, err)
    local answer, status = out:match "^(.*)\n(%d+)$"
    return tonumber(status), answer
  end

  it("a reload takes the certificate that lies there now", function()
    local config = configs.demo { sinks = [[{ type = "log" }]], http = tls() }
    gate = gateway.start { config = config }
    assert.equal(201, (post("demo", "a")))
    local function shown()
      return sh("openssl s_client -connect %s </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256",
        gate.ingest):match "=(%S+)"
    end
    assert.equal(prints.server, shown())
    local renewed = certificate(dir, "server") -- as a renewal does: the same names, other bytes
    assert.not_equal(prints.server, renewed)
    assert.equal(prints.server, shown())
    local answer = gate:ask("/v1/reload", "POST")
    assert.equal(200, answer.status, answer.body)
    assert.equal(renewed, shown())
    assert.equal(201, (post("demo", "b")))
    sh("echo spoilt > %s/server.pem", dir)
    answer = gate:ask("/v1/reload", "POST")
    assert.is_true(answer.status >= 400, answer.body)
    assert.truthy(answer.body:find("server.pem", 1, true), answer.body)
    assert.equal(renewed, shown())
    prints.server = certificate(dir, "server")
  end)

  it("a quarantined hook keeps the fingerprint of its client, and is verified again by it", function()
    sink = receiver.start()
    local function config(list)
      return configs.demo { sinks = configs.ordered_sink(sink.url), http = tls(),
        source = ([[verify = { type = "mtls", fingerprint = { %s } }, on_verify_failure = "quarantine",]]):format(list) }
    end
    local old, both = ("%q"):format(prints.old), ("%q, %q"):format(prints.old, prints.new)
    gate = gateway.start { config = config(old) }
    assert.equal(201, (post("demo", "a", "old")))
    local status, answer = post("demo", "b", "new")
    assert.same({ 202, "bad_signature" }, { status, json.decode(answer).reason })
    status, answer = post("demo", "c")
    assert.same({ 202, "no_certificate" }, { status, json.decode(answer).reason })
    local done = gate:ask("/v1/quarantine/release?all=true", "POST").json
    assert.same({ 2, 0, 2 }, { done.matched, done.done, done.failed })
    gate:kill9()
    gate:restart(config(both))
    done = gate:ask("/v1/quarantine/release?all=true", "POST").json
    assert.same({ 2, 1, 1 }, { done.matched, done.done, done.failed })
    local taken = sink:wait_taken(2)
    assert.equal("ok", gate:ask("/v1/hooks/" .. taken[2].id).json.verification)
    assert.equal("no_certificate", gate:ask("/v1/quarantine").json.entries[1].reason)
  end)

  it("no secret is ever printed, answered or counted", function()
    local planted = { -- what it is = what must not be seen
      ["hmac"] = "planted-hmac-secret-1", ["hmac, old"] = "planted-hmac-secret-2", ["bearer"] = "planted-bearer-token",
      ["basic"] = "planted-basic-password", ["lua"] = "planted-lua-argument", ["sink"] = "planted-sink-secret",
      ["sink header"] = "planted-sink-header", ["sink url"] = "planted-url-part", ["meta"] = "planted-meta-token",
      ["admin"] = "lgt_planted-admin-token", ["tls key"] = sh("sed -n 2p %s/server.key", dir):match "%S+",
    }
    planted["standard webhooks"] = sh("printf planted-whsec-secret-of-mine | base64"):match "%S+"
    planted["decoded"] = "planted-whsec-secret-of-mine"
    local texts = {}
    local function saw(what, ...)
      for _, text in ipairs { ... } do texts[#texts + 1] = { what = what, text = tostring(text) } end
    end

    sink = receiver.start("--fail", "bad=410")
    local hash = sh("printf %%s '%s' | sha256sum", planted.admin):match "%x+"
    local sources = ([[
      hmac = { verify = { type = "hmac", secret = { "%s", "%s" }, header = "x-sig" }, sinks = { SINK } },
      bearer = { verify = { type = "bearer", secret = "%s" }, sinks = { SINK } },
      basic = { verify = { type = "basic", username = "u", secret = "%s" }, sinks = { SINK },
        on_verify_failure = "quarantine" },
      whsec = { verify = { type = "svix", secret = "whsec_%s" }, sinks = { SINK } },
      lua = { verify = { type = "lua", lua = "v", call = "check", args = { "%s" } }, sinks = { SINK } },
      meta = { handshake = { type = "meta", verify_token = "%s" }, sinks = { SINK } },
    ]]):format(planted.hmac, planted["hmac, old"], planted.bearer, planted.basic, planted["standard webhooks"], planted.lua,
      planted.meta):gsub("SINK", function()
        return ([[{ type = "http", name = "out", url = "%s/%s", secret = "%s", ordered = true,
          ordering_key = { header = "x-entity-id" }, headers = { authorization = "Bearer %s" } }]]):format(
          sink.url, planted["sink url"], planted.sink, planted["sink header"])
      end)
    local function config(more)
      return ([[return { data_dir = "data", log = { level = "debug", format = "json" }, http = { listen = "127.0.0.1:0", %s },
        admin = { listen = "127.0.0.1:0", tokens = { { hash = "%s", name = "ops", scopes = { "read", "payload", "operate",
          "config" } } } }, store = { min_free_bytes = "16MiB" },
        egress = { allow_private = { "127.0.0.1/32" }, allow_http = true }, %s
        sources = { %s } }]]):format(tls(), hash, more or "", sources)
    end
    gate = gateway.start { config = config(), env = { LANEGATE_TOKEN = planted.admin }, files = {
      ["lua/v.lua"] = "return { check = function(hook, secret) if hook:header 'x-raise' then error(secret) end "
        .. "return hook:header 'x-sig' == lanegate.hex(lanegate.sha256(secret)), 'no' end }" } }

    -- Taken, refused, quarantined, broken.
    local keyed = { "x-entity-id: bad" }
    local function sent(source, ...)
      local status, answer = post(source, "{}", nil, { ... })
      saw("answer of " .. source, answer)
      return status
    end
    assert.equal(201, sent("bearer", "authorization: Bearer " .. planted.bearer, keyed[1]))
    assert.equal(401, sent("bearer", "authorization: Bearer wrong"))
    assert.equal(401, sent("hmac", "x-sig: 00"))
    assert.equal(202, sent("basic", "authorization: Basic wrong"))
    assert.equal(401, sent("whsec"))
    assert.equal(201, sent("lua", "x-sig: " .. sh("printf %%s '%s' | sha256sum", planted.lua):match "%x+"))
    assert.equal(401, sent("lua", "x-raise: 1"))
    assert.equal(201, sent("meta"))
    local _, challenge = process.run { "curl", "-sS", "--cacert", dir .. "/server.pem", "https://" .. gate.ingest
      .. "/webhooks/meta?hub.mode=subscribe&hub.verify_token=wrong&hub.challenge=1" }
    saw("handshake", challenge)

    local authorized = { authorization = "Bearer " .. planted.admin }
    process.wait_for("what is delivered or dead", function()
      local dead = gate:ask("/v1/dlq", "GET", authorized).body:find("bearer", 1, true)
      return dead and #sink:taken() >= 2
    end)
    for _, path in ipairs { "/health", "/ready", "/metrics", "/v1/config", "/v1/sinks", "/v1/lanes", "/v1/hooks", "/v1/dlq",
                            "/v1/quarantine", "/v1/audit", "/v1/nothing" } do
      local answer = gate:ask(path, "GET", authorized)
      assert.is_true(answer.status < 500, path)
      saw(path, answer.body)
      saw(path .. " without a token", gate:ask(path).body, gate:ask(path, "GET", { authorization = "Bearer wrong" }).body)
    end
    for _, hook in ipairs(gate:ask("/v1/hooks", "GET", authorized).json.hooks) do
      for _, rest in ipairs { "", "/attempts" } do
        saw("/v1/hooks/{id}" .. rest, gate:ask("/v1/hooks/" .. hook.id .. rest, "GET", authorized).body)
      end
    end

    local function verb(...)
      local words = { "env", "LANEGATE_TOKEN=" .. planted.admin, process.binary(), ... }
      local code, out, err = process.run(words)
      saw("lanegate " .. table.concat({ ... }, " "), out, err)
      return code
    end
    local admin = "http://" .. gate.admin
    for _, words in ipairs { { "sinks" }, { "lanes" }, { "hooks", "list" }, { "dlq", "list" }, { "quarantine", "list" },
                             { "sinks", "pause", "bearer/out" }, { "dlq", "replay", "--source", "bearer", "--yes" } } do
      words[#words + 1] = "--admin"
      words[#words + 1] = admin
      assert.equal(0, verb(unpack(words)), table.concat(words, " "))
      words[#words + 1] = "--json"
      verb(unpack(words))
    end
    process.write_file(dir .. "/request", "POST /x HTTP/1.1\r\nX-Sig: 00\r\nAuthorization: Bearer x\r\n\r\n{}")
    for _, file in ipairs { gate.config_path, gate.dir .. "/wrong.lua" } do
      process.write_file(gate.dir .. "/wrong.lua", config("nonsense = 1, quarantine = 7,") .. " }")
      verb("check", "--config", file)
      verb("check", "--config", file, "--json")
      verb("config", "--config", file)
    end
    for _, source in ipairs { "hmac", "bearer", "basic", "whsec", "lua" } do
      verb("verify", "--config", gate.config_path, "--source", source, dir .. "/request")
      verb("verify", "--config", gate.config_path, "--source", source, "--json", dir .. "/request")
    end
    gate:stop()
    saw("the log", process.read_file(gate.log_path))
    saw("its output", process.read_file(gate.dir .. "/out"))

    assert.is_true(#texts > 80)
    for what, secret in pairs(planted) do
      for _, each in ipairs(texts) do
        assert.is_nil(each.text:find(secret, 1, true), what .. " in " .. each.what .. ":\n" .. each.text)
      end
    end
  end)
end)
