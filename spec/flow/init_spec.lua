-- `lanegate init` writes a folder that works at once.
local dkjson = require "dkjson"
local gateway = require "support.gateway"
local process = require "support.process"

local function lanegate(...) return process.run { process.binary(), ... } end
local function in_folder(dir, ...)
  local words = {}
  for i, word in ipairs { process.binary(), ... } do words[i] = process.quote(word) end
  return process.run { "sh", "-c", "cd " .. process.quote(dir) .. " && " .. table.concat(words, " ") }
end

describe("lanegate init", function()
  teardown(process.kill_all)

  it("takes no empty name for the root of everything", function()
    local code, _, err = lanegate("init", "--source", "stripe", "")
    assert.equal(2, code)
    assert.truthy(err:find("is empty", 1, true), err)
  end)

  for _, provider in ipairs { "stripe", "github", "shopify" } do
    it("makes a folder for " .. provider .. " that works at once", function()
      local dir = process.temp_dir()
      finally(function() process.remove(dir) end)
      local code, out, err = lanegate("init", "--source", provider, dir)
      assert.equal(0, code, err)
      assert.truthy(out:find("sample.http", 1, true))
      code, _, err = in_folder(dir, "check")
      assert.equal(0, code, err)
      code, out = in_folder(dir, "key", "--source", provider, "--hook", "sample.http", "--json")
      assert.equal(0, code, out)
      assert.truthy(dkjson.decode(out).key, out)

      local config = process.read_file(dir .. "/config.lua"):gsub(":400[02]\"", ":0\"")
      local gate = gateway.start {
        config = config:gsub("return {", ("return { scripts = { path = %q },"):format(dir .. "/lua"), 1),
      }
      finally(function()
        gate:remove()
        process.remove(dir)
      end)
      code, out, err = process.run { dir .. "/send-sample", "http://" .. gate.ingest }
      assert.equal(0, code, err)
      assert.truthy(out:find('"accepted"', 1, true), out)
      code = in_folder(dir, "init", "--source", provider)
      assert.equal(1, code) -- nothing is written over
    end)
  end
end)

