-- What comes with the binary says what the binary says: man pages, completion, the unit, the board.
local dkjson = require "dkjson"
local process = require "support.process"

local function output(...)
  local code, out, err = process.run { ... }
  assert.equal(0, code, err)
  return out
end

local function has(program)
  return (process.run { "sh", "-c", "command -v " .. program }) == 0
end

local function verbs()
  local found = {}
  for name in output(process.binary(), "--help"):gmatch "\n  ([%l-]+) +[^\n]+" do found[#found + 1] = name end
  assert.is_true(#found > 9)
  return found
end

describe("beside the binary", function()
  local share
  setup(function()
    share = process.temp_dir()
    output("luajit", "vendor/package/manual.lua", process.binary(), "9.9", share)
  end)
  teardown(function() process.remove(share) end)

  it("every verb has a man page that holds its help", function()
    for _, verb in ipairs(verbs()) do
      local page = process.read_file(share .. "/man/man1/lanegate-" .. verb .. ".1")
      assert.truthy(page, verb)
      local help = output(process.binary(), verb, "--help")
      local last = help:match "([^\n]+)\n*$":gsub("\\", "\\e"):gsub("%-", "\\-")
      assert.truthy(page:find(last, 1, true), verb .. " lacks: " .. last)
      assert.truthy(page:find('lanegate 9.9', 1, true))
    end
    assert.truthy(process.read_file(share .. "/man/man1/lanegate.1"):find("lanegate\\-dlq (1)", 1, true))
  end)

  it("the pages are sound roff", function()
    if not has "groff" then pending "no groff here" return end
    local _, out, err = process.run { "sh", "-c", "groff -man -ww -z " .. share .. "/man/man1/*.1" }
    assert.equal("", out .. err)
  end)

  it("bash completes verbs, their words and their options", function()
    local function completed(...)
      local words = { ... }
      return output("bash", "-c", ("source %s/bash-completion/completions/lanegate; COMP_WORDS=(%s); COMP_CWORD=%d; " ..
        "_lanegate; echo \"${COMPREPLY[@]}\""):format(share, table.concat(words, " "), #words - 1))
    end
    assert.equal("dlq\n", completed("lanegate", "dl"))
    assert.equal("replay\n", completed("lanegate", "dlq", "rep"))
    assert.equal("--dry-run\n", completed("lanegate", "dlq", "replay", "--dr"))
    assert.equal("--help --version\n", completed("lanegate", "--"))
  end)

  it("the other shells get the same verbs", function()
    local zsh = process.read_file(share .. "/zsh/vendor-completions/_lanegate")
    local fish = process.read_file(share .. "/fish/vendor_completions.d/lanegate.fish")
    for _, verb in ipairs(verbs()) do
      assert.truthy(zsh:find("'" .. verb .. ":", 1, true), verb)
      assert.truthy(fish:find("-a " .. verb .. " ", 1, true), verb)
    end
  end)

  it("the service's box is below 2.0", function()
    if not has "systemd-analyze" then pending "no systemd-analyze here" return end
    local version = tonumber(output("systemd-analyze", "--version"):match "systemd (%d+)")
    if version < 250 then pending "this systemd-analyze can't judge a file" return end
    local code, out = process.run { "systemd-analyze", "security", "--offline=true", "--threshold=20",
      "vendor/package/lanegate.service" }
    assert.equal(0, code, out)
    assert.truthy(out:find("Overall exposure level", 1, true), out)
  end)

  it("the board asks for nothing that the gateway does not count", function()
    local known = {}
    for kind, name, labels in process.read_file "src/metrics/table.h":gmatch
      'X%([%u_]+,%s*(%u+),%s*"([%w_]+)",%s*"([%w_,]*)"' do
      for _, ending in ipairs(kind == "HISTOGRAM" and { "_bucket", "_sum", "_count" } or { "" }) do
        known["lanegate_" .. name .. ending] = "," .. labels .. ",instance,le,"
      end
    end
    local board = assert(dkjson.decode((process.read_file "config/grafana.json")))
    local queries, used = 0, {}
    for _, panel in ipairs(board.panels) do
      for _, target in ipairs(panel.targets or {}) do
        queries = queries + 1
        for metric, selector in target.expr:gmatch "(lanegate_[%w_]+)({[^}]*})" do
          assert.truthy(known[metric], metric)
          used[metric] = true
          for label in selector:gmatch '([%w_]+)=' do
            assert.truthy(known[metric]:find("," .. label .. ",", 1, true), metric .. " has no " .. label)
          end
        end
        for list in target.expr:gmatch "by %(([%w_, ]+)%)" do
          for label in list:gmatch "[%w_]+" do
            local metric = target.expr:match "lanegate_[%w_]+"
            assert.truthy(known[metric]:find("," .. label .. ",", 1, true), metric .. " has no " .. label)
          end
        end
      end
    end
    assert.is_true(queries > 20)
    assert.truthy(used.lanegate_dispatch_lane_blocked_seconds_max)
  end)
end)
