-- Every sample of lua/README.md is run, in the folder that a reader of it would have.
local process = require "support.process"

local guide = process.read_file "../lua/README.md" or process.read_file "lua/README.md"

-- Blocks of Lua begin with a comment that names their file.
local function samples()
  local found = {}
  for block in guide:gmatch "```lua\n(.-)```" do
    local path = assert(block:match "^%-%- ([%w_/.]+)\n", "a sample without a file's name:\n" .. block)
    found[#found + 1] = { path = path, text = block }
  end
  return found
end

describe("the script author's guide", function()
  local dir
  setup(function()
    dir = process.temp_dir()
    for _, sample in ipairs(samples()) do
      assert(os.execute(("mkdir -p %s/%s"):format(dir, sample.path:match "^(.*)/[^/]*$" or ".")) == 0)
      process.write_file(dir .. "/" .. sample.path, sample.text)
    end
  end)
  teardown(function() process.remove(dir) end)

  local function run(...)
    local words = {}
    for i, word in ipairs { process.binary(), ... } do words[i] = process.quote(word) end
    return process.run { "sh", "-c", "cd " .. dir .. " && " .. table.concat(words, " ") }
  end

  it("has samples that load, and specs that hold", function()
    assert.equal(4, #samples())
    local code, out, err = run("check")
    assert.equal(0, code, out .. err)
    code, out, err = run("spec")
    assert.equal(0, code, out .. err)
    assert.truthy(out:find("5 successes", 1, true), out)
  end)

  it("shows commands that there are", function()
    local _, help = process.run { process.binary(), "--help" }
    local count = 0
    for block in guide:gmatch "```sh\n(.-)```" do
      for verb in ("\n" .. block):gmatch "\nlanegate ([%l-]+)" do
        count = count + 1
        assert.truthy(help:find("\n  " .. verb .. " ", 1, true), verb)
      end
    end
    assert.equal(4, count)
  end)
end)
