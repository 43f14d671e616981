-- The process and its surroundings: bad configuration, a second process, signals that do nothing yet.
local configs = require "support.configs"
local gateway = require "support.gateway"
local process = require "support.process"

local log_sink = [[{ type = "log" },]]

describe("lanegate serve", function()
  local gate

  after_each(function()
    if gate then gate:remove() end
    gate = nil
  end)
  teardown(process.kill_all)

  it("names every fault of a bad configuration in one run, and exits with 78", function()
    local dir = process.temp_dir()
    finally(function() process.remove(dir) end)
    process.write_file(dir .. "/config.lua", [[
return {
  http = { listne = "127.0.0.1:0", header_timeout_ms = "soon" },
  sources = {
    demo = {
      sinks = {
        { type = "http", name = "a", url = "http://10.1.2.3/", ordering_key = { header = "x" } },
        { type = "log", name = "a", ordered = "yes" },
      },
    },
  },
}
]])
    local code, _, err = process.run { process.binary(), "serve", "--config", dir .. "/config.lua" }
    assert.equal(78, code)
    assert.truthy(err:find("config.lua:2: http.listne: ", 1, true), err)
    assert.truthy(err:find("listen", 1, true), err)
    assert.truthy(err:find("config.lua:2: http.header_timeout_ms: ", 1, true), err)
    assert.truthy(err:find("config.lua:6: sources.demo.sinks.a.ordering_key: ", 1, true), err)
    assert.truthy(err:find("config.lua:6: sources.demo.sinks.a.url: ", 1, true), err)
    assert.truthy(err:find("config.lua:7: sources.demo.sinks.a", 1, true), err)
    local same = { process.run { process.binary(), "check", "--config", dir .. "/config.lua" } }
    assert.equal(78, same[1])
  end)

  it("refuses a second process on the same data, naming the first", function()
    gate = gateway.start { config = configs.demo { sinks = log_sink } }
    local code, _, err = process.run { process.binary(), "serve", "--config", gate.config_path }
    assert.equal(1, code)
    assert.truthy(err:find(tostring(gate.pid), 1, true), err)
  end)

  it("keeps its log out of its files when it is started without a stderr", function()
    local dir = process.temp_dir()
    finally(function() process.remove(dir) end)
    local config = configs.demo { sinks = log_sink }
    process.write_file(dir .. "/config.lua", config)
    local pid = process.spawn({ "sh", "-c", ("exec %s serve --config %s/config.lua 2>&-"):format(
      process.quote(process.binary()), dir) }, "/dev/null", "/dev/null")
    process.wait_for("the gateway to start", function() return process.read_file(dir .. "/data/store.db") end)
    process.wait_for("its pid", function() return process.read_file(dir .. "/data/lock") ~= "" end)
    process.stop(pid)
    assert.equal(pid .. "\n", process.read_file(dir .. "/data/lock"))
  end)

  it("says that what a verb prints did not arrive", function()
    for _, target in ipairs { ">/dev/full", ">&-" } do
      local code, _, err = process.run { "sh", "-c", process.quote(process.binary()) .. " version " .. target }
      assert.equal(1, code, target)
      assert.truthy(err:find("standard output", 1, true), err)
    end
  end)

  it("does not begin anew where a log without its database may hold hooks", function()
    gate = gateway.start { config = configs.demo { sinks = log_sink } }
    assert.equal(201, gate:post("demo", {}, "x").status)
    gate:kill9()
    os.remove(gate.dir .. "/data/store.db")
    local code, _, err = process.run { process.binary(), "serve", "--config", gate.config_path }
    assert.equal(1, code)
    assert.truthy(err:find("store.db-wal", 1, true), err)
    assert.truthy(process.read_file(gate.dir .. "/data/store.db-wal"), "the log was removed")
  end)

  it("says what a data directory must be", function()
    local dir = process.temp_dir()
    finally(function() process.remove(dir) end)
    process.write_file(dir .. "/file", "")
    for path, part in pairs { file = "is not a directory", ["missing/data"] = "its parent must exist" } do
      process.write_file(dir .. "/config.lua", (configs.demo { sinks = log_sink }:gsub('data_dir = "data"',
        ("data_dir = %q"):format(path), 1)))
      local code, _, err = process.run { process.binary(), "serve", "--config", dir .. "/config.lua" }
      assert.equal(1, code)
      assert.truthy(err:find(part, 1, true), err)
    end
  end)

  it("is not let begin where check can see that no data directory will be", function()
    local dir = process.temp_dir()
    finally(function() process.remove(dir) end)
    process.write_file(dir .. "/file", "")
    local function check(data_dir)
      process.write_file(dir .. "/config.lua", ('return { data_dir = "%s", sources = { a = { sinks = { { type = "log" } } } } }')
        :format(data_dir))
      local code, _, err = process.run { process.binary(), "check", "--config", dir .. "/config.lua" }
      return code, err
    end
    for path, why in pairs { ["nowhere/data"] = "the one around it must be there", file = "is there, and is not one",
                             ["file/data"] = "the one around it must be there" } do
      local code, err = check(path)
      assert.equal(78, code)
      assert.truthy(err:find("data_dir: must be a folder", 1, true) and err:find(why, 1, true), err)
    end
    assert.equal(0, (check "data"))
    assert.equal(0, (check "."))
  end)

  it("says which address is taken", function()
    gate = gateway.start { config = configs.demo { sinks = log_sink } }
    local dir = process.temp_dir()
    finally(function() process.remove(dir) end)
    local config = configs.demo { sinks = log_sink }
    process.write_file(dir .. "/config.lua", (config:gsub("listen = \"127.0.0.1:0\"", ("listen = %q"):format(gate.ingest), 1)))
    local code, _, err = process.run { process.binary(), "serve", "--config", dir .. "/config.lua" }
    assert.equal(1, code)
    assert.truthy(err:find(gate.ingest, 1, true), err)
  end)
end)
