-- Whatever stands wherever in a file, it is taken or refused in words: no check ever fails itself.

local config = require "lanegate.config"
local fake_host = require "fake_host"

-- A file in which every option is given, as a tree.
local function full()
  local retry = { base_ms = 1, max_ms = "5s", give_up_after_ms = "1h", max_attempts = 3, jitter = true }
  return {
    data_dir = "data", sink_header_prefix = "acme", drain_timeout_ms = "5s", retire = { "shop/gone" },
    log = { level = "info", format = "json" },
    http = { listen = { "127.0.0.1:1" }, threads = 1, max_body_bytes = "1MiB", max_buffered_bytes = "2MiB", prefix = "/in",
      routing = "tenant_path", header_timeout_ms = 1, body_timeout_ms = 1, idle_timeout_ms = 1, max_connections = 1 },
    admin = { listen = "127.0.0.1:2", tokens = { { hash = ("ab"):rep(32), scopes = { "read" }, name = "ci" } } },
    store = { type = "sqlite", max_batch = 1, max_batch_bytes = 1, max_queue = 1, max_queue_bytes = "1MiB",
      commit_timeout_ms = 100, retention_ms = 0, max_bytes = "1GiB", min_free_bytes = 0 },
    dispatch = { concurrency = 1, sink_concurrency = 1, max_inflight_bytes = "1MiB", max_pending_bytes = "1MiB",
      attempt_timeout_ms = "30s", retry = retry, breaker = { failures = 1, open_ms = 1, max_open_ms = 1 } },
    ordering = { max_body_bytes = 1 },
    rate_limits = { default = { rate = 0.5, burst = 1 }, tenants = { acme = { rate = 1 } }, sources = { shop = { rate = 1 } },
      address = { rate = 1 }, failed_signatures = false },
    egress = { allow_private = { "10.0.0.0/8" }, allow_http = true },
    sources = { shop = { tenant = "acme", verify = { type = "standard_webhooks", secret = { "whsec_AAAA" }, tolerance_ms = 1000 },
      store_headers = { "x-a", "x" },
      on_verify_failure = "reject", forward_headers = { "x-a" }, respond = 200, trust_url_tenant = false, retry = { "5s" },
      sinks = {
        { type = "http", name = "a", url = "https://a.b", method = "PUT", secret = "x", headers = { ["x-b"] = "c" },
          tls = { ca = "/ca", cert = "/cert", key = "/key" }, timeout_ms = 1, refused = { 410 }, proxy = "http://p:1",
          only = { json = "a.b", match = { "x*" } }, ordered = true, on_missing_key = "unordered",
          on_dead = { refused = "hold", exhausted = "skip" }, concurrency = 1, retry = retry,
          ordering_key = { first = { { json = { "a", "b" }, integers = true }, { header = "x" } } } },
        { type = "log", name = "b", was = "old", only = { header = "x", match = { "y" } } },
      } } },
  }
end

-- Lua source of a tree, with the value at `path` replaced by the text `odd`.
local function source_of(value, path, odd, at)
  if at == path then return odd end
  if type(value) ~= "table" then return type(value) == "string" and ("%q"):format(value) or tostring(value) end
  local parts = {}
  for key, item in pairs(value) do
    local name = type(key) == "number" and key or ("%q"):format(key)
    parts[#parts + 1] = ("[%s] = %s"):format(name, source_of(item, path, odd, at .. "/" .. key))
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function paths_of(value, at, out)
  out[#out + 1] = at
  if type(value) == "table" then
    for key, item in pairs(value) do paths_of(item, at .. "/" .. key, out) end
  end
  return out
end

describe("an odd value", function()
  local host = fake_host.new { files = { ["/ca"] = "", ["/cert"] = "", ["/key"] = "" } }
  local tree = full()
  local paths = paths_of(tree, "", {})

  it("has a control: the whole file is good", function()
    local loaded, faults = config.load("return " .. source_of(tree, nil, nil, ""), "config.lua", host, true)
    assert.same(nil, faults)
    assert.is_table(loaded.root)
    assert.is_true(#paths > 100)
  end)

  for _, odd in ipairs { "nil", "true", "0", "-1.5", "1/0", "0/0", "2^60", "''", "'\\0\\n\\255'", "('x'):rep(1000)", "{}",
                         "{ {} }", "{ 'x', y = 1 }", "{ [1.5] = 1, [true] = 2 }", "{ [2] = 'hole' }", "pairs",
                         "env 'NOT_SET'", "{ env 'NOT_SET' }", "{ type = env 'NOT_SET' }", "env" } do
    it("such as " .. odd .. " breaks no check, wherever it stands", function()
      for _, path in ipairs(paths) do
        for _, resolve in ipairs(odd:find "env" and { true, false } or { true }) do
          local source = "return " .. source_of(tree, path, odd, "")
          local ok, loaded, faults = pcall(config.load, source, "config.lua", host, resolve)
          assert.message(path .. " = " .. odd .. ": " .. tostring(loaded)).is_true(ok)
          if not loaded then
            for _, fault in ipairs(faults) do assert.message(path).matches("^config%.lua[:%d]*: .", fault) end
          end
        end
      end
    end)
  end
end)
