-- So many hooks a second and no more: of a tenant, a source, an address; of bad signatures; and of the queue. Rates are so
-- low that nothing comes back while a test runs, unless it waits for that.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"

local SLOW = "rate = 0.001"

-- Standard Webhooks with the secret "secret!!" four times, by openssl.
local SECRET = ("secret!!"):rep(4)
local function signed(id, body)
  local at = tostring(os.time())
  local code, out = process.run { "sh", "-c", ("printf %%s '%s.%s.%s' | openssl dgst -sha256 -mac HMAC -macopt key:%s "
    .. "-binary | base64 -w0"):format(id, at, body, SECRET) }
  assert.equal(0, code)
  return { ["webhook-id"] = id, ["webhook-timestamp"] = at, ["webhook-signature"] = "v1," .. out }
end
local VERIFY = [[verify = { type = "standard_webhooks", secret = "whsec_c2VjcmV0ISFzZWNyZXQhIXNlY3JldCEhc2VjcmV0ISE=" },]]

describe("hooks a second", function()
  local gate

  before_each(function() gate = nil end)
  after_each(function() if gate then gate:remove() end end)
  teardown(process.kill_all)

  -- Tenants by URL; a client's address by X-Forwarded-For.
  local function config(limits, more)
    more = more or {}
    return ([[return { data_dir = "data", log = { level = "info", format = "json" },
      http = { listen = "127.0.0.1:0", threads = 2, routing = "tenant_path", trusted_proxies = { "127.0.0.1/32" } },
      admin = { listen = "127.0.0.1:0" }, store = { min_free_bytes = "16MiB", %s },
      rate_limits = { %s }, %s
      sources = {
        shop = { trust_url_tenant = true, %s sinks = { { type = "log" } } },
        news = { trust_url_tenant = true, %s sinks = { { type = "log" } } } } }
    ]]):format(more.store or "", limits, more.top or "", more.shop or "", more.news or "")
  end

  local function start(limits, more) gate = gateway.start { config = config(limits, more) } end

  local function post(path, from, headers, body)
    headers = headers or {}
    headers["X-Forwarded-For"] = from
    return gate:post(path, headers, body or "x")
  end

  local function expect(status, path, from, ...)
    local answer = post(path, from, ...)
    assert.equal(status, answer.status, answer.body)
    return answer
  end

  local function limited(path, from, ...)
    local answer = expect(429, path, from, ...)
    assert.same({ error = "rate_limited" }, json.decode(answer.body))
    local after = tonumber(answer.headers["retry-after"])
    assert.is_true(after >= 1 and after <= 1000)
    return after
  end

  local function by(limit) return gate:metric("ingest_rate_limited_total", { limit = limit }) end

  local function limit_of(tenant, method, body)
    local path = "/v1/tenants/" .. tenant .. "/rate-limit"
    local answer = http.once(gate.admin, method or "GET", path, {}, body)
    return json.decode(answer.body), answer.status
  end

  local function reload(limits, more)
    process.write_file(gate.config_path, config(limits, more))
    assert.equal(200, gate:ask("/v1/reload", "POST").status)
  end

  it("are those of the tenant, of the source and of the address, and a refused one takes nothing", function()
    start(([[default = { %s, burst = 4 }, tenants = { big = { %s, burst = 9 } }, sources = { news = { %s, burst = 2 } },
      address = { %s, burst = 5 }]]):format(SLOW, SLOW, SLOW, SLOW))
    for _ = 1, 2 do expect(201, "acme/news", "192.0.2.1") end
    assert.equal(1000, limited("acme/news", "192.0.2.1")) -- the source
    expect(429, "big/news", "192.0.2.9")
    for _ = 1, 2 do expect(201, "acme/shop", "192.0.2.1") end -- the tenant's other two
    limited("acme/shop", "192.0.2.2")
    expect(201, "big/shop", "192.0.2.1") -- the address' fifth: of what was refused above nothing was taken
    limited("big/shop", "192.0.2.1")
    for i = 2, 9 do expect(201, "big/shop", "192.0.2." .. i) end
    limited("big/shop", "192.0.2.100")
    assert.same({ 2, 2, 1 }, { by "tenant", by "source", by "address" })
    assert.equal(5, gate:metric("ingest_requests_total", { outcome = "rate_limited" }))
    assert.equal(13, #gate:ask("/v1/hooks").json.hooks)
    -- A line a minute and kind, whatever comes.
    assert.same({ 1, 1, 1 }, (function()
      local of = { tenant = 0, source = 0, address = 0 }
      for _, line in ipairs(gate:events "rate_limited") do of[line.limit] = of[line.limit] + 1 end
      return { of.tenant, of.source, of.address }
    end)())
  end)

  it("of an IPv6 address are those of its /64, and of a mapped one those of the v4", function()
    start(("address = { %s, burst = 1 }"):format(SLOW))
    expect(201, "acme/shop", "2001:db8:1:2::1")
    limited("acme/shop", "2001:db8:1:2:ffff::7")
    expect(201, "acme/shop", "2001:db8:1:3::1")
    expect(201, "acme/shop", "192.0.2.1")
    limited("acme/shop", "::ffff:192.0.2.1")
  end)

  it("come back as time goes, and Retry-After says when", function()
    start "default = { rate = 2, burst = 1 }"
    expect(201, "acme/shop", "192.0.2.1")
    process.wait_for("a refusal", function() return post("acme/shop", "192.0.2.1").status == 429 end)
    assert.equal(1, tonumber(process.wait_for("another refusal", function()
      local answer = post("acme/shop", "192.0.2.1")
      return answer.status == 429 and answer.headers["retry-after"]
    end)))
    process.wait_for("the next one", function() return post("acme/shop", "192.0.2.1").status == 201 end)
  end)

  it("count a duplicate as a hook, and what goes into quarantine as none", function()
    start(("default = { %s, burst = 3 }"):format(SLOW),
      { shop = VERIFY .. [[dedupe = "standard_webhooks", on_verify_failure = "quarantine",]] })
    for _ = 1, 3 do expect(202, "acme/shop", "192.0.2.1") end
    local first = signed("msg_1", "x")
    for _ = 1, 3 do expect(201, "acme/shop", "192.0.2.1", first) end
    limited("acme/shop", "192.0.2.1", first)
    expect(202, "acme/shop", "192.0.2.1")
    assert.equal(2, gate:metric("ingest_requests_total", { outcome = "duplicate" }))
  end)

  describe("set by the API", function()
    it("go over the file, over restarts and reloads, until they are deleted", function()
      start(("default = { %s, burst = 1 }, tenants = { acme = { %s, burst = 2 } }"):format(SLOW, SLOW))
      assert.same({ { tenant = "acme", rate = 0.001, burst = 2, from = "file", available = 2,
        without_api = { rate = 0.001, burst = 2 } }, 200 }, { limit_of "acme" })
      local put, status = limit_of("acme", "PUT", [[{"rate": 0.002, "burst": 4, "reason": "big day"}]])
      assert.same({ 200, "done", 0.002, 4, "api", 2 },
        { status, put.status, put.rate, put.burst, put.from, put.without_api.burst })
      expect(201, "acme/shop", "192.0.2.1")
      assert.equal(3, limit_of("acme").available)
      assert.equal("default", limit_of("other").from)

      reload(("tenants = { acme = { %s, burst = 1 } }"):format(SLOW))
      assert.same({ "api", 3, 1 }, { limit_of("acme").from, limit_of("acme").available, limit_of("acme").without_api.burst })
      for _ = 1, 3 do expect(201, "acme/shop", "192.0.2.1") end
      limited("acme/shop", "192.0.2.1")
      for _ = 1, 5 do expect(201, "other/shop", "192.0.2.1") end

      gate:kill9()
      gate:restart()
      assert.same({ "api", 0.002, 4 }, { limit_of("acme").from, limit_of("acme").rate, limit_of("acme").burst })
      for _ = 1, 4 do expect(201, "acme/shop", "192.0.2.1") end -- buckets are memory
      limited("acme/shop", "192.0.2.1")

      assert.same({ "done", "file", 1 }, (function()
        local gone = limit_of("acme", "DELETE", [[{"reason": "over"}]])
        return { gone.status, gone.from, gone.burst }
      end)())
      assert.equal("unchanged", limit_of("acme", "DELETE").status)
      gate:restart()
      assert.equal("file", limit_of("acme").from)
      local lines = {}
      for _, line in ipairs(gate:ask("/v1/audit").json.lines) do
        if line.what:find "^rate_limit" then lines[#lines + 1] = { line.who, line.what, line.target, line.reason } end
      end
      assert.same({ { "local", "rate_limit.delete", "acme", "over" },
        { "local", "rate_limit.set", "acme rate=0.002 burst=4", "big day" } }, lines)
    end)

    it("are for any tenant, and refused when they make no sense", function()
      start ""
      assert.same({ { tenant = "new", without_api = {} }, 200 }, { limit_of "new" })
      local put = limit_of("new", "PUT", [[{"rate": 2.5}]])
      assert.same({ 2.5, 3, 3 }, { put.rate, put.burst, put.available }) -- a second's worth at once
      for body, member in pairs {
        ["{}"] = "rate", [ [[{"rate": 0}]] ] = "rate", [ [[{"rate": -1}]] ] = "rate", [ [[{"rate": 1e9}]] ] = "rate",
        [ [[{"rate": "many"}]] ] = "rate", [ [[{"rate": null}]] ] = "rate", [ [[{"rate": 1, "burst": 0}]] ] = "burst",
        [ [[{"rate": 1, "burst": 1.5}]] ] = "burst", [ [[{"rate": 1, "brst": 1}]] ] = "brst",
      } do
        local refused, status = limit_of("new", "PUT", body)
        assert.same({ 400, member }, { status, refused.member }, body)
      end
      assert.equal(400, select(2, limit_of("new", "PUT", "rate=5")))
      assert.equal(404, select(2, limit_of("n.w", "PUT", [[{"rate": 1}]])))
      assert.same({ 405, "GET, PUT, DELETE" }, (function()
        local answer = gate:ask("/v1/tenants/new/rate-limit", "POST")
        return { answer.status, answer.headers.allow }
      end)())
      assert.same({ 2.5, 3 }, { limit_of("new").rate, limit_of("new").burst })
      assert.equal(1, limit_of("max", "PUT", [[{"rate": 0.001}]]).burst)
      assert.equal(1000000, limit_of("max", "PUT", [[{"rate": 1000000}]]).burst)
    end)
  end)

  it("go on where they were at a reload", function()
    local limits = [[default = { rate = 0.001, burst = 3 }, sources = { news = { rate = 0.001, burst = %d } }]]
    local pen = VERIFY .. [[on_verify_failure = "quarantine", respond = %d,]]
    local top = "quarantine = { burst = 2, rate = 1 },"
    start(limits:format(9), { shop = pen:format(201), top = top })
    for _ = 1, 2 do expect(201, "acme/news", "192.0.2.1") end
    reload(limits:format(9), { shop = pen:format(200), top = top })
    assert.equal(1, limit_of("acme").available)
    expect(201, "acme/news", "192.0.2.1")
    limited("acme/news", "192.0.2.1")
    -- A limit that is lower now: the bucket is as empty as it was, and nobody owes anything.
    for _ = 1, 3 do expect(201, "other/news", "192.0.2.1") end
    reload(limits:format(4), { shop = pen:format(201), top = top })
    limited("third/news", "192.0.2.1")
  end)

  it("of the quarantine stay over a reload too", function()
    local top = "quarantine = { burst = 40, rate = 1 },"
    start("", { shop = VERIFY .. [[on_verify_failure = "quarantine",]], top = top })
    for _ = 1, 40 do expect(202, "acme/shop", "192.0.2.1") end
    reload("", { shop = VERIFY .. [[on_verify_failure = "quarantine", respond = 200,]], top = top })
    local refused = 0
    for _ = 1, 40 do refused = refused + (post("acme/shop", "192.0.2.1").status == 429 and 1 or 0) end
    assert.is_true(refused >= 20) -- a few come back as the seconds go
  end)

  describe("of bad signatures", function()
    local LIMITS = ("failed_signatures = { %s, burst = 3 }"):format(SLOW)

    it("end before the next one is verified, for that address and that source alone", function()
      start(LIMITS, { shop = VERIFY, news = VERIFY })
      for _ = 1, 3 do expect(401, "acme/shop", "192.0.2.66") end
      for _ = 1, 5 do limited("acme/shop", "192.0.2.66") end
      limited("acme/shop", "192.0.2.66", signed("msg_1", "x")) -- nobody looks any more
      assert.equal(3, gate:metric("verify_failures_total", { source = "shop" }))
      assert.equal(6, by "failed_signatures")
      expect(201, "acme/shop", "192.0.2.1", signed("msg_2", "x"))
      expect(401, "acme/news", "192.0.2.66")
      expect(201, "acme/news", "192.0.2.66", signed("msg_3", "x"))
      assert.equal("failed_signatures", gate:events("rate_limited")[1].limit)
    end)

    -- A proxy that nobody named, or a provider's own machines: a forger behind the same address must not shut him out.
    it("shut nobody out from where a good one came", function()
      start(LIMITS, { shop = VERIFY })
      expect(201, "acme/shop", "192.0.2.1", signed("msg_1", "x"))
      for _ = 1, 10 do expect(401, "acme/shop", "192.0.2.1") end
      expect(201, "acme/shop", "192.0.2.1", signed("msg_2", "x"))
      assert.equal(0, by "failed_signatures")
    end)

    it("are not counted where what failed is kept, nor where that is said", function()
      start(LIMITS, { shop = VERIFY .. [[on_verify_failure = "accept_flag",]],
        news = VERIFY .. [[on_verify_failure = "quarantine",]] })
      for _ = 1, 9 do expect(201, "acme/shop", "192.0.2.1") end
      for _ = 1, 9 do expect(202, "acme/news", "192.0.2.1") end
      reload("failed_signatures = false", { news = VERIFY })
      for _ = 1, 9 do expect(401, "acme/news", "192.0.2.1") end
    end)

    it("have a limit when the file says nothing", function()
      start("", { shop = VERIFY })
      local many = {}
      for i = 1, 300 do many[i] = http.request("POST", "/webhooks/acme/shop", { ["X-Forwarded-For"] = "192.0.2.66" }, "x") end
      local of = {}
      for _, answer in ipairs(http.many(gate.ingest, many, 20)) do of[answer.status] = (of[answer.status] or 0) + 1 end
      assert.is_true(of[401] >= 200 and of[429] ~= nil)
    end)
  end)

  describe("in the queue while the disk does not come back", function()
    local dir, waiting

    before_each(function()
      dir, waiting = process.temp_dir(), {}
    end)
    after_each(function()
      for _, one in ipairs(waiting) do one.connection:close() end
      process.remove(dir)
    end)

    local function start_on_disk(text)
      gate = gateway.start { config = text, env = { LANEGATE_SPEC_DISK_STOPS = dir .. "/stops",
        ASAN_OPTIONS = "verify_asan_link_order=0", LD_PRELOAD = assert(os.getenv "LANEGATE_SPEC_DISK",
          "set LANEGATE_SPEC_DISK to the library of support/disk.c") } }
    end

    -- Posts, without waiting for answers.
    local function send(path, count)
      for _ = 1, count do
        local connection = http.connect(gate.ingest)
        connection:send(http.request("POST", "/webhooks/" .. path, {}, "x"))
        waiting[#waiting + 1] = { path = path, connection = connection }
      end
    end

    local function outcome(word) return gate:metric("ingest_requests_total", { outcome = word }) end
    local function queued() return gate:metric "store_queue_hooks" end

    -- The first hook is in a sync that does not end.
    local function stop_disk(path)
      process.write_file(dir .. "/stops", "")
      send(path, 1)
      process.wait_for("the hook to be in a sync", function() return process.read_file(dir .. "/stops.waits") end)
      process.wait_for("the queue to be empty", function() return queued() == 0 end)
    end

    -- All answers, once the disk is back: how many of each status and error, by path.
    local function answers()
      os.remove(dir .. "/stops")
      local of = {}
      for _, one in ipairs(waiting) do
        local answer = assert(one.connection:receive())
        local word = one.path .. " " .. answer.status .. " " .. (json.decode(answer.body).error or "")
        of[word] = (of[word] or 0) + 1
        if answer.status == 429 then assert.equal("1", answer.headers["retry-after"]) end
      end
      return of
    end

    it("leave as much room to other tenants as one takes", function()
      start_on_disk(config("", { store = [[max_queue = 20, commit_timeout_ms = "10m"]] }))
      stop_disk "first/shop"
      send("loud/shop", 40)
      process.wait_for("the flood to be refused", function() return outcome "tenant_overload" + queued() == 40 end)
      assert.equal(10, queued())
      send("quiet/shop", 3)
      send("calm/news", 2)
      process.wait_for("the others to wait", function() return queued() == 15 end)
      assert.same({ ["first/shop 201 "] = 1, ["loud/shop 201 "] = 10, ["loud/shop 429 tenant_overload"] = 30,
        ["quiet/shop 201 "] = 3, ["calm/news 201 "] = 2 }, answers())
      assert.equal(1, #gate:events "tenant_overload")
      assert.equal("loud", gate:events("tenant_overload")[1].tenant)
      assert.equal(201, post("loud/shop", "192.0.2.1").status)
    end)

    it("have all of it where there is one tenant", function()
      start_on_disk(configs.demo { sinks = [[{ type = "log" }]], store = [[max_queue = 20, commit_timeout_ms = "10m"]] })
      stop_disk "demo"
      send("demo", 40)
      process.wait_for("the flood to be refused", function() return outcome "overload" + queued() == 40 end)
      assert.same({ ["demo 201 "] = 21, ["demo 503 overload"] = 20 }, answers())
    end)

    it("count in no rate when they are refused", function()
      start_on_disk(config("tenants = { loud = { rate = 0.001, burst = 12 } }",
        { store = [[max_queue = 20, commit_timeout_ms = "10m"]] }))
      stop_disk "first/shop"
      send("loud/shop", 40)
      process.wait_for("the flood to be refused", function() return outcome "tenant_overload" + queued() == 40 end)
      assert.equal(2, limit_of("loud").available)
      assert.same({ 10, 30 }, (function()
        local of = answers()
        return { of["loud/shop 201 "], of["loud/shop 429 tenant_overload"] }
      end)())
      for _ = 1, 2 do expect(201, "loud/shop", "192.0.2.1") end
      limited("loud/shop", "192.0.2.1")
    end)
  end)
end)
