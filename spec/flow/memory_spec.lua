-- Bounds on memory: what strangers send and do not finish stays within max_buffered_bytes.
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"

describe("stalled posts", function()
  local gate

  after_each(function() gate:remove() end)
  teardown(process.kill_all)

  it("of 8 MB each, 200 at once, stay within the bound, and others are served", function()
    gate = gateway.start { config = configs.demo { sinks = [[{ type = "log" },]],
      http = [[max_buffered_bytes = "64MiB", body_timeout_ms = 60000,]] } }
    local before = gate:memory_bytes()
    local part, connections = ("x"):rep(1024 * 1024), {}
    local highest = before
    for i = 1, 200 do
      local connection = http.connect(gate.ingest, 2)
      connections[i] = connection
      connection:send(("POST /webhooks/demo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"):format(8 * 1024 * 1024))
      for _ = 1, 7 do
        if not connection:send(part) then break end -- shut by the gateway: that is the bound at work
      end
      highest = math.max(highest, gate:memory_bytes())
    end
    local limit = before + 64 * 1024 * 1024 * 2 + 32 * 1024 * 1024
    assert.is_true(highest < limit, ("%d MiB were used, %d before"):format(highest / 1048576, before / 1048576))
    assert.equal(201, gate:post("demo", {}, "still here").status)
    for _, connection in ipairs(connections) do connection:close() end
  end)
end)
