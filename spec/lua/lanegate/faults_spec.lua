-- What is wrong with a file is said all at once, a line each. Every case is a whole file and exactly what is said of it.

local config = require "lanegate.config"
local fake_host = require "fake_host"

local function faults_of(source, host)
  local loaded, faults = config.load(source, "config.lua", host or fake_host.new(), true)
  assert.is_true(loaded == nil or faults == nil)
  return faults or {}
end

local function says(title, source, expected)
  it(title, function()
    for i, line in ipairs(expected) do expected[i] = "config.lua:" .. line end
    assert.same(expected, faults_of(source))
  end)
end

-- The one sink of a file whose other lines are good; the sink is on line 2.
local function sink(text)
  return "return { sources = { shop = { sinks = {\n" .. text .. "\n} } } }"
end

local SOURCES = "sources = { shop = { sinks = { { type = 'log' } } } }"

describe("the control", function()
  it("is a file without a fault", function()
    assert.same({}, faults_of("return { " .. SOURCES .. " }"))
    assert.same({}, faults_of(sink "{ type = 'log' }"))
  end)
end)

describe("the file itself", function()
  says("has a syntax error", "return {\n  data_dir = 'x'\n  http = {} }",
    { "3: '}' expected (to close '{' at line 1) near 'http'" })
  says("fails", "local t\n\nreturn t.x", { "3: attempt to index local 't' (a nil value)" })
  says("raises something odd", "error({})", { " raised a table instead of a message" })
  says("raises a message", "\nerror('no region')", { "2: no region" })
  says("returns nothing", "local x = 1", { " must return one table, as in return { sources = { ... } }, but returned nothing" })
  says("returns a text", "return 'x'", { " must return one table, as in return { sources = { ... } }, but returned a string" })
  says("reaches for the machine", "\nos.exit(0)", { "2: attempt to index global 'os' (a nil value)" })
  says("reaches for other code", "require 'ffi'", { "1: attempt to call global 'require' (a nil value)" })
  says("has no sources", "return {}", { "1: sources: must be a table of sources by name, at least one, got nothing" })
  says("has an empty list of sources", "return {\n sources = {} }",
    { "2: sources: must be a table of sources by name, at least one, got an empty table" })
  says("has odd keys", "return { 5, [true] = 1, " .. SOURCES .. " }",
    { "1: [1]: is not an option here", "1: [true]: is not an option here" })
end)

describe("an unknown key", function()
  says("has a near one", "return {\n  http = {\n    lissten = '127.0.0.1:1' },\n  dataDir = 'x', " .. SOURCES .. " }",
    { '3: http.lissten: is not an option here (did you mean "listen"?)',
      '4: dataDir: is not an option here (did you mean "data_dir"?)' })
  says("left out its unit", "return { http = { idle_timeout = 5 }, store = { max_queue_byte = 1 }, " .. SOURCES .. " }",
    { '1: http.idle_timeout: is not an option here (did you mean "idle_timeout_ms"?)',
      '1: store.max_queue_byte: is not an option here (did you mean "max_queue_bytes"?)' })
  says("is like none", "return { colour = 'red', " .. SOURCES .. " }", { "1: colour: is not an option here" })
  says("is told which sink it is for", sink "{ type = 'log', url = 'https://example.com' }",
    { "2: sources.shop.sinks.log.url: is an option of http sinks, not of log sinks" })
end)

describe("a key of a later version", function()
  says("is refused by its name", [[return {
      scripts = {},
      sources = { shop = {
        verify = { type = 'stripe', secret = 'x' },
        sinks = { { type = 'log' }, { type = 'google_pubsub' } } } },
      store = { type = 'none' } }]], {
    '5: sources.shop.sinks.google_pubsub.type: "google_pubsub" is not built yet in this version',
    '6: store.type: "none" is not built yet in this version',
  })
  says("has its reason where an ordered sink needs a store",
    "return { store = { type = 'none' },\nsources = { shop = { sinks = { { type = 'log', ordered = true } } } } }",
    { '1: store.type: "none" is not built yet in this version',
      '1: store.type: "none" keeps no lanes: an ordered sink needs a store' })
end)

describe("a rate limit", function()
  says("has a rate and a burst", [[return { rate_limits = {
      default = 50,
      tenants = { acme = { burst = 5 }, ["a b"] = { rate = 1 } },
      sources = { shop = { rate = 0, burst = 1.5 }, shp = { rate = 1 } },
      address = { 50, 100 },
      failed_signatures = true,
      adress = false },
    ]] .. SOURCES .. " }", {
    "2: rate_limits.default: must be a limit such as { rate = 50, burst = 200 }, got 50",
    '3: rate_limits.tenants["a b"]: must be a name of 1 to 64 letters, digits, _ and -',
    "3: rate_limits.tenants.acme.rate: must be a number from 0.001 to 1000000, got nothing",
    "4: rate_limits.sources.shop.rate: must be a number from 0.001 to 1000000, got 0",
    "4: rate_limits.sources.shop.burst: must be a whole number from 1 to 1000000, got 1.5",
    '4: rate_limits.sources.shp: is no source of this file (did you mean "shop"?)',
    "5: rate_limits.address: must be a limit such as { rate = 50, burst = 200 }, got a list",
    "6: rate_limits.failed_signatures: must be a limit such as { rate = 50, burst = 200 }, or false, got true",
    '7: rate_limits.adress: is not an option here (did you mean "address"?)',
  })
  says("is a table of them by name", "return { rate_limits = { tenants = 5, sources = 'shop' }, " .. SOURCES .. " }", {
    "1: rate_limits.tenants: must be a table of limits by name, got 5",
    '1: rate_limits.sources: must be a table of limits by name, got "shop"',
  })
  says("is false in one place alone", "return { rate_limits = { address = false }, " .. SOURCES .. " }",
    { "1: rate_limits.address: must be a limit such as { rate = 50, burst = 200 }, got false" })
end)

describe("dedupe", function()
  local function dedupe(text)
    return "return { sources = { shop = { sinks = { { type = 'log' } },\ndedupe = " .. text .. " } } }"
  end
  local AT = "2: sources.shop.dedupe"
  says("is a preset that exists", dedupe "'strip'", { AT .. ': must be "github", "shopify", "slack", "standard_webhooks", '
    .. '"stripe" or "svix", got "strip" (did you mean "stripe"?)' })
  says("names a preset once", dedupe "{ preset = 'stripe', json = 'id' }", { AT .. ".json: is not an option beside preset" })
  says("is a key", dedupe "7", { AT .. ': must be the name of a preset, { header = "name" }, { headers = { "name", "name" } } '
    .. 'or { json = "path" }, got 7' })
  says("is more than a time", dedupe "{ ttl_ms = '1d' }", { AT .. ': must be the name of a preset, { header = "name" }, '
    .. '{ headers = { "name", "name" } } or { json = "path" }, got a table' })
  says("has a time within bounds", dedupe "{ json = 'id', ttl_ms = 10 }",
    { AT .. '.ttl_ms: must be milliseconds from 1000 to 31622400000, or a text such as "30s", got 10' })
  says("has headers in a list", dedupe "{ headers = {} }",
    { AT .. '.headers: must be a list of 1 to 16 header names such as { "x-topic", "x-event-id" }, got an empty table' })
  says("has names of headers", dedupe "{ headers = { 'x a' } }", { AT .. '.headers[1]: must be a header name, got "x a"' })
  says("reads what is stored", dedupe "'shopify', store_headers = { 'x-shopify-topic' }",
    { AT .. ': reads the header "x-shopify-event-id", which store_headers does not keep' })
  says("needs one of several ways only", dedupe "'svix', store_headers = { 'webhook-id' }", {})
end)

describe("a bound of dead letters", function()
  says("is judged where it stands", [[return { dispatch = { dlq = { max_row = 5 } },
      sources = { shop = { dlq = { max_rows = 0, retention_ms = 'soon' }, sinks = { { type = 'log' } } } } }]], {
    '1: dispatch.dlq.max_row: is not an option here (did you mean "max_rows"?)',
    "2: sources.shop.dlq.max_rows: must be a whole number from 1 to 1000000000, got 0",
    '2: sources.shop.dlq.retention_ms: must be milliseconds from 1 to 3162240000000, or a text such as "30s", got "soon"',
  })
  says("is no word", "return { dispatch = { dlq = 'none' }, " .. SOURCES .. " }",
    { '1: dispatch.dlq: must be a table, got "none"' })
end)

describe("the API's address", function()
  says("is not the providers' one", "return { http = { listen = '127.0.0.1:4000' }, admin = { listen = '127.0.0.1:4000' }, "
    .. SOURCES .. " }",
    { '1: admin.listen: "127.0.0.1:4000" is taken by http.listen ("127.0.0.1:4000"): must be another port' })
  says("is not part of all addresses", "return { http = { listen = { '[::1]:5000', '0.0.0.0:4002' } }, " .. SOURCES .. " }",
    { '1: admin.listen: "127.0.0.1:4002" is taken by http.listen ("0.0.0.0:4002"): must be another port' })
end)

-- A secret may stand in any variable, and any option may be given the wrong one.
describe("what came from outside", function()
  it("is named by where it came from, and never shown", function()
    local host = fake_host.new { env = { TOKEN = "hunter2-s3cret", SHORT = "7x" },
      files = { ["/run/key"] = "-----BEGIN KEY-----\nMIIEhunter2\n" } }
    local faults = faults_of([[return {
      data_dir = { env "TOKEN" },
      http = { listen = env "TOKEN", threads = env "SHORT", prefix = "/hooks?" .. env "TOKEN",
        trusted_proxies = { "10.0.0.0/8", env "TOKEN" } },
      addresses = { allow = file "/run/key", deny = { file "/run/key" } },
      log = { level = env "TOKEN" },
      egress = { [env "TOKEN"] = true },
      sources = { shop = { tenant = env "TOKEN" .. "!", dedupe = env "TOKEN",
        sinks = { { type = env "TOKEN", name = "7x!" } } } },
    }]], host)
    local said = table.concat(faults, "\n")
    assert.is_nil(said:find("hunter2", 1, true), said)
    assert.is_nil(said:find("BEGIN", 1, true), said)
    for _, expected in ipairs {
      'http.listen: must be an address and a port, such as "127.0.0.1:4000" or "[::1]:4000", '
        .. 'got the text of env "TOKEN"',
      'http.threads: must be a whole number from 1 to 256, got the text of env "SHORT"',
      'http.trusted_proxies[2]: must be a range such as "10.0.0.0/8", got the text of env "TOKEN"',
      'addresses.allow[2]: must be a range such as "10.0.0.0/8", got number 2 of file "/run/key"',
      'addresses.deny[1]: must be a range such as "10.0.0.0/8", got the text of file "/run/key"',
      'egress[the text of env "TOKEN"]: is not an option here',
      'digits, _ and -, got "7x!"', -- two bytes are part of other texts by chance
    } do
      assert.truthy(said:find(expected, 1, true), expected .. "\n\n" .. said)
    end
  end)
end)

describe("a value", function()
  says("is of the wrong type", [[return {
      data_dir = 5,
      drain_timeout_ms = {},
      log = 'debug',
      egress = { allow_http = 'yes', allow_private = 8 },
      http = { threads = '4', listen = 4000 },
      sources = { shop = 5, two = { sinks = {} }, three = { sinks = 'x', verify = 'none' } } }]], {
    "2: data_dir: must be a path, got 5",
    '3: drain_timeout_ms: must be milliseconds from 0 to 86400000, or a text such as "30s", got an empty table',
    '4: log: must be a table, got "debug"',
    '5: egress.allow_private: must be a list of ranges such as { "10.0.0.0/8" }, got 8',
    '5: egress.allow_http: must be true or false, got "yes"',
    '6: http.listen: must be an address and a port, such as "127.0.0.1:4000" or "[::1]:4000", or a list of them, got 4000',
    '6: http.threads: must be a whole number from 1 to 256, got "4"',
    "7: sources.shop: must be a table, got 5",
    '7: sources.three.verify: must be a table such as { type = "none" }, got "none"',
    '7: sources.three.sinks: must be a list of sinks, at least one, got "x"',
    "7: sources.two.sinks: must be a list of sinks, at least one, got an empty table",
  })
  says("is an address to listen on that another one has", [[return {
      http = { listen = { "127.0.0.1:4000", "[::]:4000", "0.0.0.0:4000", "0.0.0.0:0", "0.0.0.0:0", "[::1]:4000" } },
      admin = { listen = "127.0.0.1:4000" }, ]] .. SOURCES .. " }", {
    '2: http.listen[3]: "0.0.0.0:4000" is taken by "127.0.0.1:4000" of the same list: must be another port',
    '2: http.listen[6]: "[::1]:4000" is taken by "[::]:4000" of the same list: must be another port',
    '3: admin.listen: "127.0.0.1:4000" is taken by http.listen ("127.0.0.1:4000"): must be another port',
    '3: admin.listen: "127.0.0.1:4000" is taken by http.listen ("0.0.0.0:4000"): must be another port',
  })
  says("is a list of addresses without any, or with too many", [[return {
      http = { trusted_proxies = " \n" },
      addresses = { allow = ("192.0.2.1 "):rep(4097), deny = { one = "192.0.2.1" } }, ]] .. SOURCES .. " }", {
    '2: http.trusted_proxies: must be a list of ranges such as { "10.0.0.0/8" }, got " \\10"',
    '3: addresses.deny: must be a list of ranges such as { "10.0.0.0/8" }, got a table',
    "3: addresses.allow: must have at most 4096 ranges, got 4097",
  })
  says("is out of bounds, and never clamped", [[return {
      http = { threads = 0, max_connections = 1.5, max_body_bytes = '2TiB' },
      dispatch = { concurrency = -1 }, store = { max_batch = 1e9 }, ]] .. SOURCES .. " }", {
    "2: http.threads: must be a whole number from 1 to 256, got 0",
    '2: http.max_body_bytes: must be bytes from 1 to 1073741824, or a text such as "8MiB", got "2TiB"',
    "2: http.max_connections: must be a whole number from 1 to 1000000, got 1.5",
    "3: store.max_batch: must be a whole number from 1 to 65536, got 1000000000",
    "3: dispatch.concurrency: must be a whole number from 1 to 1000000, got -1",
  })
  says("has a unit nobody knows", "return { drain_timeout_ms = '5 s', http = { max_body_bytes = '8MB' }, " .. SOURCES .. " }", {
    '1: drain_timeout_ms: must be milliseconds from 0 to 86400000, or a text such as "30s", got "5 s"',
    '1: http.max_body_bytes: must be bytes from 1 to 1073741824, or a text such as "8MiB", got "8MB"',
  })
  says("is none of its choices", "return { log = { level = 'wran' }, http = { routing = 'host' }, " .. SOURCES .. " }", {
    '1: log.level: must be "debug", "info", "warn" or "error", got "wran" (did you mean "warn"?)',
    '1: http.routing: must be "path" or "tenant_path", got "host"',
  })
  says("is too small beside another", [[return {
      http = { max_body_bytes = '20MiB', max_buffered_bytes = '2MiB' },
      store = { max_queue_bytes = '1MiB' },
      dispatch = { breaker = { open_ms = 5, max_open_ms = 4 } }, ]] .. SOURCES .. " }", {
    "2: http.max_buffered_bytes: must be at least http.max_body_bytes (20971520), got 2097152",
    "3: store.max_queue_bytes: must be at least http.max_body_bytes (20971520), got 1048576",
    "4: dispatch.breaker.max_open_ms: must be at least open_ms (5), got 4",
  })
  says("is a path or prefix that can't be", "return { sink_header_prefix = 'X_', data_dir = '',\nhttp = { prefix = '/a/' }, "
    .. SOURCES .. " }", {
    '1: data_dir: must be a path, got ""',
    '1: sink_header_prefix: must be 1 to 32 lower-case letters, digits and -, got "X_"',
    '2: http.prefix: must be a path such as "/webhooks", without a slash at its end, got "/a/"',
  })
end)

describe("an address to listen on", function()
  for _, listen in ipairs { "4000", "localhost:4000", "127.0.0.1", "127.0.0.1:65536", "127.0.0.01:1", "256.0.0.1:1", "::1:4000",
                            "[::1]", "[::1::]:1", "[12345::]:1", "[1:2:3:4:5:6:7]:1", "[1::2::3]:1",
                            "127.0.0.1:4000 ", "[::1%lo]:1" } do
    says(listen, ("return { http = { listen = %q }, %s }"):format(listen, SOURCES), {
      ('1: http.listen: must be an address and a port, such as "127.0.0.1:4000" or "[::1]:4000", got "%s"'):format(listen),
    })
  end
  for _, listen in ipairs { "0.0.0.0:0", "[::]:4000", "[2001:db8::1]:65535", "[::ffff:127.0.0.1]:1", "[1:2:3:4:5:6:7:8]:1" } do
    says(listen, ("return { http = { listen = %q }, %s }"):format(listen, SOURCES), {})
  end
end)

describe("the admin port", function()
  local OUTSIDE = 'is reached from outside this machine: it needs tokens, or auth = "none" when something in front asks for them'
  local TOKENS = "tokens = { { hash = ('ab'):rep(32), scopes = { 'read' } } }"
  says("is closed beyond loopback without tokens", "return { admin = { listen = '0.0.0.0:1' }, " .. SOURCES .. " }",
    { '1: admin.listen: "0.0.0.0:1" ' .. OUTSIDE })
  says("is closed beyond loopback on IPv6 too", "return { admin = { listen = '[::]:1' }, " .. SOURCES .. " }",
    { '1: admin.listen: "[::]:1" ' .. OUTSIDE })
  for _, admin in ipairs { "listen = '127.9.9.9:1'", "listen = '[::1]:1'", "listen = '0.0.0.0:1', auth = 'none'",
                           "listen = '0.0.0.0:1', " .. TOKENS } do
    says("opens with " .. admin, "return { admin = { " .. admin .. " }, " .. SOURCES .. " }", {})
  end
  says("is not open and closed at once", "return { admin = { auth = 'none', " .. TOKENS .. " }, " .. SOURCES .. " }",
    { '1: admin.auth: "none" contradicts tokens: must be one or the other' })
  says("has tokens that say what they may do", [[return { admin = { tokens = {
      { hash = 'secret', scopes = { 'raed' } },
      { hash = ('ab'):rep(32), scopes = {} },
      { scopes = 'read', extra = 1 } } }, ]] .. SOURCES .. " }", {
    "2: admin.tokens[1].hash: must be the SHA-256 of the token as 64 hex digits, got a text of 6 bytes",
    '2: admin.tokens[1].scopes[1]: must be "read", "payload", "operate" or "config", got "raed" (did you mean "read"?)',
    '3: admin.tokens[2].scopes: must be a list out of "read", "payload", "operate" or "config", got an empty table',
    "4: admin.tokens[3].extra: is not an option here",
    "4: admin.tokens[3].hash: must be the SHA-256 of the token as 64 hex digits, got nothing",
    '4: admin.tokens[3].scopes: must be a list out of "read", "payload", "operate" or "config", got "read"',
  })
  says("has no two tokens of one name",
    "return { admin = { tokens = {\n{ name = 'ci', hash = ('ab'):rep(32), scopes = { 'read' } },\n"
    .. "{ name = 'ci', hash = ('cd'):rep(32), scopes = { 'read' } } } }, " .. SOURCES .. " }",
    { '3: admin.tokens[2]: has the name "ci", like another one' })
end)

describe("a source", function()
  local NAME = "must be a name of 1 to 64 letters, digits, _ and -"
  says("has a name that fits into a URL", "return { sources = { ['a b'] = {}, [5] = {} } }",
    { "1: sources[5]: " .. NAME, '1: sources["a b"]: ' .. NAME })
  says("has a tenant of the same kind", "return { sources = { a = { tenant = ('x'):rep(65), sinks = { { type = 'log' } } } } }",
    { "1: sources.a.tenant: " .. NAME .. ', got "' .. ("x"):rep(60) .. '"...' })
  says("answers a success", "return { sources = { a = { respond = 301, sinks = { { type = 'log' } } } } }",
    { "1: sources.a.respond: must be 200, 201, 202 or 204, got 301" })
  says("forwards headers that can be",
    "return { sources = { a = { forward_headers = { 'x-a', 'x b', 5 },\nsinks = { { type = 'log' } } } } }",
    { '1: sources.a.forward_headers[2]: must be a header name, got "x b"',
      "1: sources.a.forward_headers[3]: must be a header name, got 5" })
  says("stores headers that can be",
    "return { sources = { a = { store_headers = 'some', sinks = { { type = 'log' } } },\n"
    .. "b = { store_headers = { 'x a' }, sinks = { { type = 'log' } } } } }",
    { '1: sources.a.store_headers: must be "all", or a list of header names such as { "x-shop" }, got "some"',
      '2: sources.b.store_headers[1]: must be a header name, got "x a"' })
  local REPLAY = ", which store_headers does not keep: a replay could not find it again"
  says("stores the headers that its keys and filters read", [[return { sources = { shop = {
      store_headers = { "X-Shop", "x-kind" }, forward_headers = { "x-kind", "X-Else", "content-type" }, sinks = {
      { type = "log", ordered = true, ordering_key = { header = "x-SHOP" }, only = { header = "X-Kind", match = { "a" } } },
      { type = "log", name = "b", only = { header = "x-else", match = { "a" } } },
      { type = "log", name = "c", ordered = true,
        ordering_key = { first = { { json = "id" }, { first = { { header = "x-shop" }, { header = "x-deep" } } } } } },
      { type = "log", name = "d", ordered = true, ordering_key = { header = "content-type" } } } } } }]], {
    '2: sources.shop.forward_headers[2]: is "X-Else", which store_headers does not keep',
    '4: sources.shop.sinks.b.only: reads the header "x-else"' .. REPLAY,
    '6: sources.shop.sinks.c.ordering_key: reads the header "x-deep"' .. REPLAY,
    '7: sources.shop.sinks.d.ordering_key: reads the header "content-type"' .. REPLAY,
  })
  says("may store no header at all", "return { sources = { a = { store_headers = {}, sinks = { { type = 'log' } } } } }", {})
  local SCHEMES = 'must be "basic", "bearer", "discord", "ecdsa", "ed25519", "github", "gitlab", "hmac", "linear", "lua", '
    .. '"mtls", "none", "paddle", "rsa", "sendgrid", "shopify", "slack", "square", "standard_webhooks", "stripe", "svix", '
    .. '"twilio" or "zoom"'
  says("names a scheme of verification",
    "return { sources = { a = { verify = { type = 'strpe' }, sinks = { { type = 'log' } } },\n"
    .. "b = { verify = { secret = 'x' }, sinks = { { type = 'log' } } },\n"
    .. "c = { verify = { type = 'standard_webhooks', secrt = 'x', secret = '  ' }, sinks = { { type = 'log' } } } } }",
    { "1: sources.a.verify.type: " .. SCHEMES .. ', got "strpe" (did you mean "stripe"?)',
      "2: sources.b.verify.type: " .. SCHEMES .. ", got nothing",
      '3: sources.c.verify.secrt: is not an option here (did you mean "secret"?)',
      "3: sources.c.verify.secret: must be a secret that is not blank, got a blank text" })
  says("gives each scheme what it needs", [[local sinks = { { type = "log" } }
    return { sources = {
      a = { verify = { type = "twilio", secret = "x" }, sinks = sinks },
      b = { verify = { type = "square", secret = "x" }, url = "hooks.example.com", sinks = sinks },
      c = { verify = { type = "svix" }, sinks = sinks },
      d = { verify = { type = "mtls", fingerprint = ("0"):rep(64) }, sinks = sinks },
      e = { verify = { type = "hmac", secret = "x", header = "x-sig", template = "{url}{body}" }, sinks = sinks },
      f = { verify = { type = "hmac", secret = "x", header = "x sig", encoding = "hexa", ts_field = "t=" }, sinks = sinks },
      g = { verify = { type = "discord", public_key = { "x", " " } }, sinks = sinks },
    } }]], {
    '3: sources.a.url: must be the address that the provider posts to: verify = { type = "twilio" } signs it, and a proxy may '
      .. "have changed what arrives here",
    '4: sources.b.url: must be the address that the provider posts to, such as "https://hooks.example.com/webhooks/shop", '
      .. 'without a query, got "hooks.example.com"',
    "5: sources.c.verify: must have secret or public_key",
    '6: sources.d.verify: "mtls" sees the client\'s certificate under TLS only: it needs http.tls',
    '7: sources.e.url: must be the address that the provider posts to: verify = { type = "hmac" } signs it, and a proxy may '
      .. "have changed what arrives here",
    '8: sources.f.verify.header: must be a header name, got "x sig"',
    '8: sources.f.verify.encoding: must be "hex" or "base64", got "hexa" (did you mean "hex"?)',
    '8: sources.f.verify.ts_field: must be a name such as "t", got "t="',
    "9: sources.g.verify.public_key[2]: must be a public key, got a blank text",
  })
  says("asks for a proof in a handshake", [[local sinks = { { type = "log" } }
    return { sources = {
      a = { handshake = "meta", sinks = sinks },
      b = { handshake = { type = "meta", verify_token = " " }, sinks = sinks },
      c = { handshake = "zoom", sinks = sinks },
      d = { handshake = "twitter", sinks = sinks },
      e = { handshake = { type = "slack", verify_token = "x" }, sinks = sinks },
    } }]], {
    '3: sources.a.handshake: must be { type = "meta", verify_token = ... }: the token is what Meta sends to prove that it is '
      .. "them",
    "4: sources.b.handshake.verify_token: must be a secret that is not blank, got a blank text",
    '5: sources.c.handshake: needs verify = { type = "zoom", ... }: Zoom asks whether its receiver knows the secret',
    '6: sources.d.handshake: must be "slack", "zoom", "graph" or "meta", got "twitter"',
    '7: sources.e.handshake: takes a verify_token only with type = "meta"',
  })
  says("does not pretend to reject what it never checks",
    "return { sources = { a = { on_verify_failure = 'reject', sinks = { { type = 'log' } } } } }",
    { '1: sources.a.on_verify_failure: has no meaning with verify = { type = "none" }, which never fails' })
  says("trusts a tenant in the URL only by word",
    "return { http = { routing = 'tenant_path' }, sources = { a = { sinks = { { type = 'log' } } },\n"
    .. "b = { trust_url_tenant = true, sinks = { { type = 'log' } } }, c = { tenant = 't', sinks = { { type = 'log' } } } } }",
    { "1: sources.a: takes its tenant from the URL and verifies nothing, so that anybody can post as anybody: "
      .. "give it a verify, a tenant, or trust_url_tenant = true" })
end)

describe("a sink", function()
  says("has a type", sink "{ name = 'x' }, { type = 'htpp' }, 5", {
    '2: sources.shop.sinks.x.type: must be "http" or "log", got nothing',
    '2: sources.shop.sinks.htpp.type: must be "http" or "log", got "htpp" (did you mean "http"?)',
    "2: sources.shop.sinks[3]: must be a table, got 5",
  })
  says("has a name of its own",
    sink "{ type = 'log' },\n{ type = 'log' },\n{ type = 'http', name = 'log', url = 'https://a.b' }", {
    "3: sources.shop.sinks.log: is the name of two sinks of this source (the other is number 1): give one a name of its own",
    "4: sources.shop.sinks.log: is the name of two sinks of this source (the other is number 1): give one a name of its own",
  })
  says("has all its faults found, whatever its neighbours have",
    "return { sources = { a = { sinks = {\n{ type = 'http' },\n{ type = 'log', concurrency = 0 } } },\nb = { sinks = {\n"
    .. "{ type = 'http', url = 'https://refused', method = 'GET' } } } } }", {
    "2: sources.a.sinks.http.url: must be a URL that begins with https:// or http://, got nothing",
    "3: sources.a.sinks.log.concurrency: must be a whole number from 1 to 100000, got 0",
    '5: sources.b.sinks.http.method: must be "POST", "PUT" or "PATCH", got "GET"',
    "5: sources.b.sinks.http.url: is refused",
  })
  says("has a rate that is one",
    sink "{ type = 'log', rate = 0 },\n{ type = 'log', name = 'b', rate = 1e7 },\n{ type = 'log', name = 'c', rate = '5' }", {
    "2: sources.shop.sinks.log.rate: must be a number from 0.001 to 1000000, got 0",
    "3: sources.shop.sinks.b.rate: must be a number from 0.001 to 1000000, got 10000000",
    '4: sources.shop.sinks.c.rate: must be a number from 0.001 to 1000000, got "5"',
  })
  says("may have a rate below one", sink "{ type = 'log', rate = 0.5 }", {})
  says("refuses with statuses that are refusals",
    sink "{ type = 'http', url = 'https://a.b', refused = { 400, 429, 503, '410' } }", {
    "2: sources.shop.sinks.http.refused[2]: must be a status from 400 to 499, but neither 408 nor 429, which ask for another "
      .. "attempt, got 429",
    "2: sources.shop.sinks.http.refused[3]: must be a status from 400 to 499, but neither 408 nor 429, which ask for another "
      .. "attempt, got 503",
    "2: sources.shop.sinks.http.refused[4]: must be a status from 400 to 499, but neither 408 nor 429, which ask for another "
      .. 'attempt, got "410"',
  })
  says("sets headers that are its own",
    sink("{ type = 'http', url = 'https://a.b', secret = 'x', headers = {\n['x y'] = 'a', ['Content-Length'] = '1',\n"
      .. "['X-Lanegate-Id'] = '1', ['webhook-id'] = '1', a = 'x', A = 'y',\nb = 'x\\n', c = 5, d = ' x' } }"), {
    "3: sources.shop.sinks.http.headers.Content-Length: is set by the gateway itself",
    '3: sources.shop.sinks.http.headers["x y"]: is not a header name',
    "4: sources.shop.sinks.http.headers.a: is there twice, in another case",
    "5: sources.shop.sinks.http.headers.b: must be a header value (printable ASCII, no blank at its ends), got a text of 2 bytes",
    "5: sources.shop.sinks.http.headers.c: must be a header value (printable ASCII, no blank at its ends), got a number",
    "5: sources.shop.sinks.http.headers.d: must be a header value (printable ASCII, no blank at its ends), got a text of 2 bytes",
  })
  says("leaves to the gateway what receivers trust",
    sink("{ type = 'http', url = 'https://a.b', secret = 'x',\n"
      .. "headers = { ['X-Lanegate-Id'] = '1', ['webhook-id'] = '1', ok = '1' } }"), {
    "3: sources.shop.sinks.http.headers.X-Lanegate-Id: is set by the gateway itself",
    "3: sources.shop.sinks.http.headers.webhook-id: is set by the gateway itself",
  })
  says("has a client certificate with its key", sink "{ type = 'http', url = 'https://a.b', tls = { cert = '/none.pem' } }", {
    '2: sources.shop.sinks.http.tls.cert: must be a file that can be read, got "/none.pem": No such file or directory',
  })
  says("stays within the outer time-out",
    "return { dispatch = { attempt_timeout_ms = '1s' }, sources = { shop = { sinks = {\n{ type = 'http', url = 'https://a.b', "
      .. "timeout_ms = 1001 },\n{ type = 'http', name = 'default', url = 'https://a.b' } } } } }",
    { "2: sources.shop.sinks.http.timeout_ms: must be at most dispatch.attempt_timeout_ms (1000), got 1001" })
end)

describe("a sink with a past", function()
  says("was something that is free now", sink [[{ type = "log", name = "a", was = "b" },
{ type = "log", name = "b" },
{ type = "log", name = "c", was = "c" },
{ type = "log", name = "d", was = "old" },
{ type = "log", name = "e", was = "old" },
{ type = "log", name = "f", was = "a b" }]], {
    '2: sources.shop.sinks.a.was: "b" is the name of a sink of this source now, and keeps its backlog',
    '4: sources.shop.sinks.c.was: "c" is the name of a sink of this source now, and keeps its backlog',
    '6: sources.shop.sinks.e.was: "old" is what sink "d" was, too: a backlog moves to one sink',
    '7: sources.shop.sinks.f.was: must be a name of 1 to 64 letters, digits, _ and -, got "a b"',
  })
  says("is retired by its whole name", "return { retire = { 'shop', 'shop/a/b', '/a', 5, 'gone/x' }, " .. SOURCES .. " }", {
    '1: retire[1]: must be a sink as "source/sink", got "shop"',
    '1: retire[2]: must be a sink as "source/sink", got "shop/a/b"',
    '1: retire[3]: must be a sink as "source/sink", got "/a"',
    '1: retire[4]: must be a sink as "source/sink", got 5',
  })
  says("is retired in a list", "return { retire = 'shop/old', " .. SOURCES .. " }",
    { '1: retire: must be a list of sinks such as { "shop/billing" }, got "shop/old"' })
  says("is retired only when it is gone for good", [[return {
      retire = { "shop/log",
        "shop/old", "shop/older", "other/log" },
      sources = { shop = { sinks = { { type = "log", was = "old" } } } } }]], {
    '2: retire[1]: "shop/log" is a sink of this file: only one that is gone can be retired',
    '3: retire[2]: "shop/old" is what sink "log" was: its backlog moves there, or is retired, but not both',
  })
end)

describe("retry", function()
  says("has numbers that make sense",
    sink "{ type = 'log', retry = { base_ms = '2s', max_ms = 1000, max_attempts = 0, jiter = true } }", {
    '2: sources.shop.sinks.log.retry.jiter: is not an option here (did you mean "jitter"?)',
    "2: sources.shop.sinks.log.retry.max_attempts: must be a whole number from 1 to 1000000, got 0",
    "2: sources.shop.sinks.log.retry: base_ms (2000) must be at most max_ms (1000)",
  })
  says("is judged after levels are merged",
    "return { dispatch = { retry = { base_ms = '2m' } }, sources = { shop = { sinks = {\n"
      .. "{ type = 'log', ordered = true } } } } }",
    { "2: sources.shop.sinks.log.retry: base_ms (120000) must be at most max_ms (60000)" })
  says("is a list or a table",
    sink "{ type = 'log', retry = { '5s', max_ms = 1 } }, { type = 'log', name = 'b', retry = { '5s', 'soon' } }", {
    "2: sources.shop.sinks.log.retry: is a list of waits and has named options too: it must be one or the other",
    '2: sources.shop.sinks.b.retry[2]: must be milliseconds from 1 to 31622400000, or a text such as "30s", got "soon"',
  })
end)

describe("ordering", function()
  local function key(text)
    return sink("{ type = 'log', ordered = true,\nordering_key = " .. text .. " }")
  end
  local KEY = "3: sources.shop.sinks.log.ordering_key"
  local FORMS = '{ header = "name" }, { json = "path" }, { lua = "module", call = "function" } or { first = { key, key } }'

  says("is a boolean", sink "{ type = 'log', ordered = 'yes' }",
    { '2: sources.shop.sinks.log.ordered: must be true or false, got "yes"' })
  says("is asked for before its options",
    sink "{ type = 'log',\nordering_key = { header = 'a' },\non_missing_key = 'keyless',\non_dead = 'hold' }", {
    "3: sources.shop.sinks.log.ordering_key: is only for ordered sinks: it needs ordered = true",
    "4: sources.shop.sinks.log.on_missing_key: is only for ordered sinks: it needs ordered = true",
    "5: sources.shop.sinks.log.on_dead: is only for ordered sinks: it needs ordered = true",
  })
  says("knows what a dead head means",
    sink "{ type = 'log', ordered = true, on_dead = { refused = 'skp', exausted = 'hold' } }", {
    '2: sources.shop.sinks.log.on_dead.exausted: is not an option here (did you mean "exhausted"?)',
    '2: sources.shop.sinks.log.on_dead.refused: must be "skip" or "hold", got "skp" (did you mean "skip"?)',
  })
  says("knows where keyless hooks go", sink "{ type = 'log', ordered = true, on_missing_key = 'drop' }",
    { '2: sources.shop.sinks.log.on_missing_key: must be "keyless" or "unordered", got "drop"' })

  says("has a key that is a table", key "'x-id'", { KEY .. ": must be a key such as " .. FORMS .. ', got "x-id"' })
  says("has a key that is not empty", key "{}", { KEY .. ": must be a key such as " .. FORMS .. ", got an empty table" })
  says("has a known kind of key", key "{ haeder = 'x' }",
    { KEY .. ': has an unknown kind of key, "haeder": must be ' .. FORMS .. ' (did you mean "header"?)' })
  says("has one kind of key", key "{ header = 'x', json = 'y' }",
    { KEY .. ": has two kinds at once, header and json: a key is of one kind; first = { key, key } tries several" })
  says("has no options of another kind", key "{ header = 'x', integers = true }",
    { KEY .. ".integers: is not an option of a header key" })
  says("has a header name", key "{ header = '' }", { KEY .. ".header: is an empty header name" })
  says("has a legal header name", key "{ header = 'x id' }", { KEY .. '.header: must be a header name, got "x id"' })
  says("has a path", key "{ json = '' }", { KEY .. ".json: is an empty path" })
  says("has a list of segments that is not empty", key "{ json = {} }", { KEY .. ".json: is an empty path" })
  says("has no empty segment", key "{ json = 'a..b' }", { KEY .. '.json: has an empty segment in "a..b"' })
  says("has no empty segment in a list", key "{ json = { 'a', '' } }", { KEY .. ".json: has an empty segment in a list" })
  says("has segments that are texts", key "{ json = { 'a', 0 } }",
    { KEY .. ".json[2]: must be the name of a member or the number of an element, as a text, got 0" })
  says("has a path of a bounded length", key "{ json = ('a.'):rep(64) .. 'a' }",
    { KEY .. ".json: has 65 segments, at most 64 are allowed" })
  says("says integers with a boolean", key "{ json = 'a', integers = 1 }",
    { KEY .. ".integers: must be true or false, got 1" })
  says("has something first", key "{ first = {} }", { KEY .. ".first: is empty: it needs at least one key" })
  says("has a list first", key "{ first = { header = 'x' } }", { KEY .. ".first: must be a list of keys, got a table" })
  says("judges every key of first", key "{ first = { { header = '' }, { json = '.' }, 'x' } }", {
    KEY .. ".first[1].header: is an empty header name",
    KEY .. '.first[2].json: has an empty segment in "."',
    KEY .. '.first[3]: must be a key such as ' .. FORMS .. ', got "x"',
  })
  says("has arguments in a list", key "{ lua = 'keys.shop', call = 'by region', args = 'eu' }", {
    KEY .. '.call: must be the name of a function of the module, got "by region"',
    KEY .. '.args: must be a list of arguments, got "eu"',
  })

  says("filters by one thing", sink "{ type = 'log', only = { json = 'a', header = 'b', match = { 'x' } } }",
    { "2: sources.shop.sinks.log.only: must be { json = PATH, match = { globs } } or { header = NAME, match = { globs } }, "
      .. "got a table" })
  says("filters with globs", sink "{ type = 'log', only = { json = 'a.', match = { 'x', 5 }, mach = 1 } }", {
    '2: sources.shop.sinks.log.only.mach: is not an option of a filter (did you mean "match"?)',
    '2: sources.shop.sinks.log.only.json: has an empty segment in "a."',
    "2: sources.shop.sinks.log.only.match[2]: must be a text in which * stands for any run of characters, got 5",
  })
  says("filters with at least one", sink "{ type = 'log', only = { header = 'a', match = {} } }",
    { '2: sources.shop.sinks.log.only.match: must be a list of 1 to 64 globs such as { "invoice.*" }, got an empty table' })
end)

describe("a value from outside", function()
  says("is a fault of its option", "return { data_dir = env 'NOT_SET',\nsources = { a = { sinks = {\n"
    .. "{ type = 'http', url = 'https://a.b',\nsecret = file '/run/none' } } } } }", {
    '1: data_dir: env "NOT_SET" is not set, and no default is given',
    '4: sources.a.sinks.http.secret: file "/run/none" can\'t be read: No such file or directory',
  })
  says("is a fault through what was made of it",
    "return { http = { threads = tonumber(env 'NOT_SET'),\nlisten = env 'NOT_SET' .. ':1' }, "
    .. SOURCES .. " }", {
    '1: http.threads: env "NOT_SET" is not set, and no default is given',
    '2: http.listen: env "NOT_SET" is not set, and no default is given',
  })
  says("is a fault even where no option holds it", "local debug =\n  env 'NOT_SET' == 'yes'\nreturn { " .. SOURCES .. " }",
    { '2: env "NOT_SET" is not set, and no default is given' })
  says("is no table", "return { sources = { a = env('NOT_SET'),\nb = { sinks = { env('NOT_SET') } } } }", {
    "1: sources.a: must be a table, got (env NOT_SET)",
    "2: sources.b.sinks[1]: must be a table, got (env NOT_SET)",
  })
  says("is asked for by name", "return { data_dir = env(5) }", { '1: env takes the name of a variable, as in env "SECRET"' })
  says("is a file by its whole path", "return { data_dir = file 'secret' }",
    { '1: file takes an absolute path, as in file "/run/secrets/stripe"' })
end)

describe("a fault", function()
  it("is one line, whatever it quotes", function()
    local faults = faults_of("return { log = { level = 'a\\nb\\27[31m' }, " .. SOURCES .. " }")
    assert.same({ 'config.lua:1: log.level: must be "debug", "info", "warn" or "error", got "a\\10b\\27[31m"' }, faults)
  end)

  it("is counted when there are too many", function()
    local faults = faults_of("local t = { " .. SOURCES .. " }\nfor i = 1, 1200 do t['x' .. i] = i end\nreturn t")
    assert.equal(1001, #faults)
    assert.equal("config.lua: and 200 more faults", faults[1001])
  end)

  it("is found in tables that hold themselves", function()
    local faults = faults_of("local t = {} t.first = { t, t, t, t, t, t, t, t }\n"
      .. sink "{ type = 'log', ordered = true, ordering_key = t }")
    assert.matches("nested too deep", faults[1])
    assert.matches("holds too many keys, at most 64 are allowed", faults[#faults])
    faults = faults_of("local t = {} for i = 1, 30 do t[i] = t end\n"
      .. sink "{ type = 'log', ordered = true, ordering_key = { lua = 'm', call = 'f', args = t } }")
    assert.matches("holds too many values, at most 1000 are allowed", faults[#faults])
  end)

  it("names the file as it was given", function()
    local _, faults = config.load("return 5", "/etc/lanegate/config.lua", fake_host.new(), true)
    assert.matches("^/etc/lanegate/config.lua: must return one table", faults[1])
  end)
end)
