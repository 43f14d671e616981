-- What a supervisor hears: ready, still getting on, stopping.
local configs = require "support.configs"
local gateway = require "support.gateway"
local process = require "support.process"
local unix = require "socket.unix"

describe("under a supervisor", function()
  local dir, heard, gate

  before_each(function()
    dir = process.temp_dir()
    heard = assert(unix.dgram())
    assert(heard:bind(dir .. "/notify"))
    heard:settimeout(20)
  end)
  after_each(function()
    if gate then gate:remove() end
    heard:close()
    process.remove(dir)
  end)
  teardown(process.kill_all)

  local function start(env)
    env.NOTIFY_SOCKET = dir .. "/notify"
    gate = gateway.start { config = configs.demo { sinks = [[{ type = "log" },]] }, env = env }
  end

  it("the gateway says when it is ready, that it gets on, and that it stops", function()
    start { WATCHDOG_USEC = "300000" }
    assert.equal("READY=1", heard:receive())
    for _ = 1, 4 do assert.equal("WATCHDOG=1", heard:receive()) end
    process.signal(gate.pid, "TERM")
    local last
    repeat last = assert(heard:receive()) until last ~= "WATCHDOG=1"
    assert.equal("STOPPING=1", last)
  end)

  it("the gateway says when it reads its configuration again, and when that is done, well or not", function()
    start {}
    assert.equal("READY=1", heard:receive())
    for _, config in ipairs { configs.demo { sinks = [[{ type = "log" },]] }, "return {" } do
      process.write_file(gate.config_path, config)
      process.signal(gate.pid, "HUP")
      assert.truthy(heard:receive():match "^RELOADING=1\nMONOTONIC_USEC=%d+$")
      assert.equal("READY=1", heard:receive())
    end
  end)

  it("without a watchdog it says no more than it must", function()
    start {}
    assert.equal("READY=1", heard:receive())
    process.signal(gate.pid, "TERM")
    assert.equal("STOPPING=1", heard:receive())
  end)

  it("a watchdog that is meant for another process is none of its business", function()
    start { WATCHDOG_USEC = "300000", WATCHDOG_PID = "1" }
    assert.equal("READY=1", heard:receive())
    process.signal(gate.pid, "TERM")
    assert.equal("STOPPING=1", heard:receive())
  end)
end)
