-- The worked examples load as they are, and say of themselves what is true.
local process = require "support.process"

local function files()
  local found = {}
  local _, out = process.run { "sh", "-c", "ls config/examples" }
  for name in out:gmatch "%S+" do found[#found + 1] = name end
  return found
end

describe("the examples", function()
  it("load, each as it is", function()
    local count = 0
    for _, name in ipairs(files()) do
      if name:find "%.lua$" then
        count = count + 1
        local code, out, err = process.run { process.binary(), "check", "--offline", "config/examples/" .. name }
        assert.equal(0, code, name .. ": " .. out .. err)
      end
    end
    assert.is_true(count >= 5)
  end)

  it("are refused when they are spoilt", function()
    local dir = process.temp_dir()
    finally(function() process.remove(dir) end)
    local text = process.read_file "config/examples/stripe.lua"
    process.write_file(dir .. "/config.lua", (text:gsub("ordered = true,", "ordred = true,", 1)))
    local code, _, err = process.run { process.binary(), "check", "--offline", dir .. "/config.lua" }
    assert.equal(78, code)
    assert.truthy(err:find("ordred", 1, true), err)
  end)

  it("are each named in their README", function()
    local readme = process.read_file "config/examples/README.md"
    for _, name in ipairs(files()) do
      if name ~= "README.md" then assert.truthy(readme:find("`" .. name .. "`", 1, true), name) end
    end
  end)

  it("the packaged configuration loads, and listens on this machine alone", function()
    local code, out, err = process.run { process.binary(), "config", "--json", "--config", "vendor/package/config.lua" }
    assert.equal(0, code, err)
    assert.truthy(out:find('"127.0.0.1:4000"', 1, true), out)
  end)
end)
