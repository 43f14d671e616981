-- Looking on while it happens.
local configs = require "support.configs"
local gateway = require "support.gateway"
local process = require "support.process"
local receiver = require "support.receiver"

describe("lanegate lanes --watch", function()
  local gate, sink

  before_each(function()
    sink = receiver.start()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
  end)
  after_each(function()
    gate:remove()
    sink:remove()
  end)
  teardown(process.kill_all)

  it("shows on a terminal what waits, again and again", function()
    sink:tell("fail", { key = "anna", status = "503" })
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = "anna" }, "x").status)
    local screen = gate.dir .. "/screen"
    local command = ("stty rows 20 cols 120; exec %s lanes --watch --admin %s"):format(
      process.quote(process.binary()), gate.admin)
    local pid = process.spawn({ "script", "-qfc", command, "/dev/null" }, screen, "/dev/null")
    process.wait_for("two screens with the lane", function()
      local text = process.read_file(screen) or ""
      return select(2, text:gsub("\27%[H", "")) >= 2 and select(2, text:gsub("demo/[%w-]+/anna +retrying", "")) >= 2
    end)
    process.signal(pid, "TERM")
  end)

  it("says what it is for where there is no terminal", function()
    local code, _, err = process.run { process.binary(), "lanes", "--watch", "--admin", gate.admin }
    assert.equal(2, code)
    assert.truthy(err:find("is for a terminal", 1, true), err)
  end)
end)
