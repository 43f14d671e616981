-- Whoever reads the log may stop reading. The gateway does not.
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"

local HOOKS = 1500 -- a line of some 200 bytes each: several times what a pipe holds

local CONFIG = [[return {
  http = { listen = "127.0.0.1:0" }, admin = { listen = "127.0.0.1:0" },
  sources = { demo = { sinks = { { type = "log" } } } },
}]]

describe("a log that nobody reads", function()
  local gate

  before_each(function() gate = gateway.start { config = CONFIG, log_pipe = true } end)
  after_each(function()
    process.signal(gate.log_reader, "CONT")
    gate:remove()
  end)

  local function post_many()
    local requests = {}
    for i = 1, HOOKS do requests[i] = http.request("POST", "/webhooks/demo", {}, "x") end
    for _, answer in ipairs(http.many(gate.ingest, requests, 16)) do assert.equal(201, answer.status) end
  end

  it("stops no answer and no delivery, and is whole when it is read again", function()
    process.signal(gate.log_reader, "STOP")
    post_many()
    gate:wait_idle()
    assert.equal(200, gate:ask("/ready").status)
    process.signal(gate.log_reader, "CONT")
    process.wait_for("the lines", function() return #gate:events "delivery" == HOOKS end)
    assert.equal(0, #gate:events "log_lines_dropped")
  end)

  it("does not hold up the end", function()
    process.signal(gate.log_reader, "STOP")
    post_many()
    gate:stop()
  end)
end)
