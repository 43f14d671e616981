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
    assert.equal(5, #samples())
    local code, out, err = run("check")
    assert.equal(0, code, out .. err)
    code, out, err = run("spec")
    assert.equal(0, code, out .. err)
    assert.truthy(out:find("5 successes", 1, true), out)
  end)

  it("has a verifier that takes what HubSpot signed", function()
    local verify = assert(guide:match "`(verify = %b{})`")
    process.write_file(dir .. "/verified.lua", "return { sources = { hubspot = { " .. verify
      .. ", sinks = { { type = \"log\" } } } } }")
    -- Published in hubspot-api-nodejs, test/unit/signature.spec.ts.
    process.write_file(dir .. "/request", "POST /webhooks/hubspot HTTP/1.1\r\nX-HubSpot-Signature: "
      .. "232db2615f3d666fe21a8ec971ac7b5402d33b9a925784df3ca654d05f4817de\r\n\r\n"
      .. '[{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1564113600000,"subscriptionType":'
      .. '"contact.creation","attemptNumber":0,"objectId":123,"changeSource":"CRM","changeFlag":"NEW","appId":54321}]')
    local function judge(secret)
      return process.run { "sh", "-c", ("cd %s && HUBSPOT_SECRET=%s %s verify --config verified.lua --source hubspot request")
        :format(dir, secret, process.quote(process.binary())) }
    end
    local code, out, err = judge "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy"
    assert.equal(0, code, out .. err)
    code, out = judge "another"
    assert.equal(1, code)
    assert.truthy(out:find("other_digest", 1, true), out)
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
