-- A file without faults comes out complete: every default filled in, every unit a number, every short form long.

local config = require "lanegate.config"
local fake_host = require "fake_host"
local tree = require "lanegate.tree"

local function load_good(source, host, resolve, file)
  local loaded, faults = config.load(source, file or "config.lua", host or fake_host.new(), resolve ~= false)
  assert.same(nil, faults)
  return loaded
end

local function root_of(...)
  return load_good(...).root
end

local SOURCES = "sources = { shop = { sinks = { { type = 'log' } } } }"

describe("defaults", function()
  it("are those of the contract", function()
    local root = root_of("return { " .. SOURCES .. " }")
    assert.same({
      data_dir = "data", sink_header_prefix = "lanegate", drain_timeout_ms = 25000, retire = {},
      log = { level = "info", format = "json" },
      http = { listen = { "0.0.0.0:4000" }, threads = 2, max_body_bytes = 26214400, max_buffered_bytes = 268435456,
        prefix = "/webhooks", routing = "path", header_timeout_ms = 10000, body_timeout_ms = 30000, idle_timeout_ms = 60000,
        max_connections = 10000, tls = {}, trusted_proxies = {} },
      addresses = { deny = {}, allow = {} },
      admin = { listen = "127.0.0.1:4002", tokens = {} },
      store = { type = "sqlite", max_batch = 1024, max_batch_bytes = 8388608, max_queue = 10000, max_queue_bytes = 268435456,
        commit_timeout_ms = 15000, retention_ms = 604800000, min_free_bytes = 1073741824,
        max_dedupe_keys = 20000000 },
      rate_limits = { tenants = {}, sources = {}, failed_signatures = { rate = 20, burst = 200 } },
      quarantine = { burst = 100, rate = 20, max_bytes = 1073741824, retention_ms = 604800000 },
      dispatch = { concurrency = 4096, sink_concurrency = 32, max_inflight_bytes = 134217728, max_pending_bytes = 2147483648,
        attempt_timeout_ms = 30000, breaker = { failures = 10, open_ms = 5000, max_open_ms = 60000 } },
      ordering = { max_body_bytes = 1048576 },
      scripts = { path = "lua", max_result_bytes = 4096, max_instructions = 100000, max_memory_bytes = 33554432,
        max_pattern_steps = 100000 },
      egress = { allow_private = {}, allow_http = false },
      sources = { shop = { tenant = "default", verify = { type = "none" }, on_verify_failure = "reject", respond = 201,
        store_headers = "all", trust_url_tenant = false, addresses = { deny = {}, allow = {} },
        dlq = { max_rows = 1000000, max_bytes = 10737418240 },
        sinks = { { type = "log", name = "log", ordered = false, concurrency = 32,
          retry = { base_ms = 100, max_ms = 300000, give_up_after_ms = 259200000, jitter = true } } } } },
    }, root)
  end)

  it("of an ordered http sink are those of the contract", function()
    local root = root_of("return { sources = { shop = { sinks = { { type = 'http', url = 'https://a.b', ordered = true } } } } }")
    assert.same({ type = "http", name = "http", url = "https://a.b", method = "POST", headers = {}, tls = {}, timeout_ms = 5000,
      refused = { 400, 410, 413, 422 }, ordered = true, on_missing_key = "keyless",
      on_dead = { refused = "skip", exhausted = "hold" }, concurrency = 32,
      retry = { base_ms = 100, max_ms = 60000, give_up_after_ms = 259200000, jitter = true } }, root.sources.shop.sinks[1])
  end)

  it("of the log follow the terminal", function()
    local host = fake_host.new()
    host.terminal = true
    assert.equal("text", root_of("return { " .. SOURCES .. " }", host).log.format)
    assert.equal("json", root_of("return { log = { format = 'json' }, " .. SOURCES .. " }", host).log.format)
  end)
end)

describe("bounds of dead letters", function()
  it("go key by key from the gateway's to the source's", function()
    local root = root_of([[return { dispatch = { dlq = { max_rows = 5, retention_ms = "30d" } }, sources = {
      a = { dlq = { max_rows = 7, max_bytes = "1KiB" }, sinks = { { type = 'log' } } },
      b = { sinks = { { type = 'log' } } } } }]])
    assert.same({ max_rows = 7, max_bytes = 1024, retention_ms = 2592000000 }, root.sources.a.dlq)
    assert.same({ max_rows = 5, max_bytes = 10737418240, retention_ms = 2592000000 }, root.sources.b.dlq)
  end)
end)

describe("forms", function()
  local function sink(text)
    return root_of("return { sources = { shop = { sinks = { { type = 'log', ordered = true, " .. text .. " } } } } }")
      .sources.shop.sinks[1]
  end

  it("of keys become one", function()
    assert.same({ kind = "header", header = "X-Shop" }, sink("ordering_key = { header = 'X-Shop' }").ordering_key)
    assert.same({ kind = "json", path = { "a", "0", "b" }, integers = false },
      sink("ordering_key = { json = 'a.0.b' }").ordering_key)
    assert.same({ kind = "json", path = { "a.b", "c" }, integers = true },
      sink("ordering_key = { json = { 'a.b', 'c' }, integers = true }").ordering_key)
    assert.same({ kind = "first", items = { { kind = "header", header = "a" },
        { kind = "first", items = { { kind = "json", path = { "b" }, integers = false } } } } },
      sink("ordering_key = { first = { { header = 'a' }, { first = { { json = 'b' } } } } }").ordering_key)
  end)

  it("of filters become one", function()
    assert.same({ path = { "type" }, match = { "a.*" } }, sink("only = { json = 'type', match = { 'a.*' } }").only)
    assert.same({ header = "x-type", match = { "a", "b" } }, sink("only = { header = 'x-type', match = { 'a', 'b' } }").only)
  end)

  it("of dedupe become a key with a time", function()
    local function dedupe(text)
      return root_of("return { sources = { shop = { sinks = { { type = 'log' } }, dedupe = " .. text .. " } } }")
        .sources.shop.dedupe
    end
    local week = 7 * 24 * 3600 * 1000
    local id = { kind = "json", path = { "id" }, integers = true }
    assert.same({ key = id, ttl_ms = week }, dedupe "'stripe'")
    assert.same({ key = id, ttl_ms = 72 * 3600 * 1000 }, dedupe "{ preset = 'stripe', ttl_ms = '72h' }")
    assert.same({ key = id, ttl_ms = week }, dedupe "{ json = 'id' }")
    assert.same({ key = { kind = "headers", headers = { "x-shopify-topic", "x-shopify-event-id" } }, ttl_ms = week },
      dedupe "'shopify'")
    assert.same({ key = { kind = "headers", headers = { "a", "b" } }, ttl_ms = 1000 },
      dedupe "{ headers = { 'a', 'b' }, ttl_ms = '1s' }")
    assert.same({ key = { kind = "first", items = { { kind = "header", header = "x-a" }, id } }, ttl_ms = week },
      dedupe "{ first = { { header = 'x-a' }, { json = 'id' } } }")
  end)

  it("of stored headers stay what they are", function()
    local source = root_of("return { sources = { shop = { store_headers = { 'X-Shop' }, sinks = { { type = 'log' } } } } }")
      .sources.shop
    assert.same({ "X-Shop" }, source.store_headers)
    assert.is_true(tree.is_list(source.store_headers))
  end)

  it("of on_dead become one", function()
    assert.same({ refused = "hold", exhausted = "hold" }, sink("on_dead = 'hold'").on_dead)
    assert.same({ refused = "skip", exhausted = "skip" }, sink("on_dead = { exhausted = 'skip' }").on_dead)
  end)

  it("of retry are merged, the nearest last", function()
    local function retry(dispatch, source, own)
      local file = "return { dispatch = { retry = %s }, "
        .. "sources = { shop = { retry = %s, sinks = { { type = 'log', retry = %s } } } } }"
      return root_of(file:format(dispatch, source, own)).sources.shop.sinks[1].retry
    end
    local rest = { give_up_after_ms = 259200000, jitter = true }
    local function with(more)
      for key, value in pairs(rest) do if more[key] == nil then more[key] = value end end
      return more
    end
    assert.same(with { base_ms = 1, max_ms = 2, max_attempts = 3 },
      retry("{ base_ms = 9, max_attempts = 3 }", "{ max_ms = 2 }", "{ base_ms = 1 }"))
    assert.same(with { schedule_ms = { 5000, 300000 } }, retry("{ base_ms = 9 }", "{ '5s', '5m' }", "{}"))
    assert.same(with { schedule_ms = { 5000 }, jitter = false }, retry("{ '5s' }", "{}", "{ jitter = false }"))
    assert.same(with { base_ms = 7, max_ms = 300000 }, retry("{ '5s' }", "{}", "{ base_ms = 7 }"))
  end)

  it("of units are numbers", function()
    local root = root_of("return { drain_timeout_ms = '2m', "
      .. "http = { idle_timeout_ms = 5, max_body_bytes = '64KiB' }, " .. SOURCES .. " }")
    assert.equal(120000, root.drain_timeout_ms)
    assert.equal(5, root.http.idle_timeout_ms)
    assert.equal(65536, root.http.max_body_bytes)
  end)

  it("of paths are relative to the file", function()
    local function data_dir(file, text)
      return root_of("return { data_dir = '" .. text .. "', " .. SOURCES .. " }", nil, true, file).data_dir
    end
    assert.equal("data", data_dir("config.lua", "data"))
    assert.equal("/etc/lanegate/data", data_dir("/etc/lanegate/config.lua", "data"))
    assert.equal("config/../x", data_dir("config/config.lua", "../x"))
    assert.equal("/var/x", data_dir("config/config.lua", "/var/x"))
  end)

  it("of lists are marked as lists, even empty ones", function()
    local root = root_of("return { " .. SOURCES .. " }")
    assert.is_true(tree.is_list(root.egress.allow_private))
    assert.is_true(tree.is_list(root.sources.shop.sinks))
    assert.is_false(tree.is_list(root.sources))
  end)
end)

describe("values from outside", function()
  it("come from the environment and from files", function()
    local host = fake_host.new { env = { DIR = "from-env", EMPTY = "" },
      files = { ["/run/prefix"] = "from-file\n", ["/run/two"] = "x\n\n" } }
    local root = root_of("return { data_dir = env 'DIR', sink_header_prefix = file '/run/prefix', "
      .. "log = { level = env('LEVEL', 'warn') }, " .. SOURCES .. " }", host)
    assert.equal("from-env", root.data_dir)
    assert.equal("from-file", root.sink_header_prefix)
    assert.equal("warn", root.log.level)
    root_of("assert(file '/run/two' == 'x\\n') assert(env 'EMPTY' == '') return { " .. SOURCES .. " }", host)
  end)

  it("are not wanted by those who have no use for secrets", function()
    local loaded = load_good([[
      local port = env "PORT"
      return { data_dir = env "DIR", http = { threads = tonumber(env "THREADS"), listen = "127.0.0.1:" .. port },
        egress = env "EGRESS",
        log = { level = env("LEVEL", "warn") },
        sources = { shop = { verify = { type = "standard_webhooks", secret = env "SECRET" },
          sinks = { { type = "http", url = "https://" .. env("HOST"):lower() .. "/x", secret = { "a", env "OTHER" },
            timeout_ms = env "T" },
            { type = "log", ordered = true, ordering_key = { json = env "PATH" },
              only = { json = { "a", env "SEGMENT" }, match = { env "GLOB" } } } } } } }
    ]], fake_host.new { env = { DIR = "not read" } }, false)
    local root = loaded.root
    assert.equal("(env DIR)", root.data_dir)
    assert.equal(2, root.http.threads)
    assert.same({ "(env PORT)" }, root.http.listen)
    assert.equal("warn", root.log.level)
    assert.is_false(root.egress.allow_http)
    assert.same({ "(env PATH)" }, root.sources.shop.sinks[2].ordering_key.path)
    assert.same({ "a", "(env SEGMENT)" }, root.sources.shop.sinks[2].only.path)
    assert.same({ "(env GLOB)" }, root.sources.shop.sinks[2].only.match)
    assert.equal("(env HOST)", root.sources.shop.sinks[1].url)
    assert.equal(5000, root.sources.shop.sinks[1].timeout_ms)
  end)
end)

describe("stored headers from outside", function()
  it("are not known, so that no key is refused for them", function()
    load_good([[return { retire = { env "GONE" }, sources = {
      shop = { store_headers = { "x-a", env "HEADER" }, forward_headers = { "x-b" },
        sinks = { { type = "log", was = env "WAS", ordered = true, ordering_key = { header = "x-b" } } } },
      other = { store_headers = { "x-a" }, forward_headers = { env "HEADER" }, sinks = { { type = "log", ordered = true,
        ordering_key = { header = env "HEADER" } } } } } }]], fake_host.new(), false)
  end)
end)

describe("egress from outside", function()
  it("does not refuse a sink that it may open", function()
    local seen = {}
    local host = fake_host.new { judges = { judge_url = function(_, _, ranges, http) seen = { ranges, http } end } }
    load_good([[return { egress = { allow_private = { "10.0.0.0/8", env "RANGE" }, allow_http = env "HTTP" },
      sources = { shop = { sinks = { { type = "http", url = "http://10.0.0.1" } } } } }]], host, false)
    assert.same({ { "0.0.0.0/0", "::/0" }, true }, seen)
    load_good([[return { egress = { allow_private = { "10.0.0.0/8" } },
      sources = { shop = { sinks = { { type = "http", url = "http://10.0.0.1" } } } } }]], host, false)
    assert.same({ { "10.0.0.0/8" }, false }, seen)
    load_good([[return { egress = { allow_private = file "/etc/inside" },
      sources = { shop = { sinks = { { type = "http", url = "http://10.0.0.1" } } } } }]], host, false)
    assert.same({ "0.0.0.0/0", "::/0" }, seen[1])
  end)
end)

describe("ranges of addresses", function()
  it("are a list, or a text with anything blank between them", function()
    local host = fake_host.new { files = { ["/etc/ranges"] = "192.0.2.0/24\r\n2001:db8::/32\n\n198.51.100.0/24\n" } }
    local root = root_of([[return { http = { trusted_proxies = "127.0.0.1/32, ::1/128" },
      addresses = { allow = file "/etc/ranges", deny = { "192.0.2.1/32" } },
      sources = { shop = { addresses = { allow = "10.0.0.0/8" }, sinks = { { type = "log" } } } } }]], host)
    assert.same({ "127.0.0.1/32", "::1/128" }, root.http.trusted_proxies)
    assert.same({ "192.0.2.0/24", "2001:db8::/32", "198.51.100.0/24" }, root.addresses.allow)
    assert.same({ "192.0.2.1/32" }, root.addresses.deny)
    assert.same({ allow = { "10.0.0.0/8" }, deny = {} }, root.sources.shop.addresses)
  end)
end)

describe("the file's world", function()
  it("has what computing needs", function()
    local root = root_of([[
      local names = {}
      for _, name in ipairs { "b", "a" } do table.insert(names, name:upper()) end
      table.sort(names, function(x, y) return x < y end)
      local text = ("x-y"):gsub("%-", function() return "" end)
      assert(select("#", pcall(error, "x")) == 2 and tostring(5) == "5" and tonumber("5") == 5 and math.max(1, 2) == 2)
      return { data_dir = table.concat(names) .. text, sources = { shop = { sinks = { { type = "log" } } } } }
    ]])
    assert.equal("ABxy", root.data_dir)
  end)

  it("has nothing that reaches the machine, other code, or us", function()
    local absent = "io os ffi jit debug package require module load loadstring loadfile dofile print collectgarbage newproxy "
      .. "xpcall coroutine getfenv setfenv getmetatable setmetatable rawget rawset rawequal _G bit"
    for name in absent:gmatch("%S+") do
      root_of("assert(" .. name .. " == nil) return { " .. SOURCES .. " }")
    end
    root_of("assert(string.dump == nil and string.rep and math.random == nil) return { " .. SOURCES .. " }")
    root_of("assert((''):rep(3) == '' and not (('').dump)) return { " .. SOURCES .. " }")
  end)

  it("can't change what others use", function()
    root_of("string.format, table.concat, string.gsub = nil, nil, nil return { " .. SOURCES .. " }")
    assert.equal("x", ("%s"):format("x"))
    assert.equal("b", ("a"):gsub("a", "b"))
  end)

  it("does not nest callbacks of the C library", function()
    local _, faults = config.load("local f\nf = function() local t = { 2, 1 } table.sort(t, f) return false end\nf()",
      "config.lua", fake_host.new(), true)
    assert.same({ "config.lua:2: table.sort can't be called inside its own callback here" }, faults)
  end)
end)
