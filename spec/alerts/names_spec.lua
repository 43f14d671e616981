-- config/alerts.yml asks for nothing that the gateway does not count, and forgets nothing that a person needs.
local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

local alerts = read "config/alerts.yml"

-- Each rule's name and its text.
local function rules()
  local found, starts = {}, {}
  for at, name in alerts:gmatch "()%- alert: (%w+)" do starts[#starts + 1] = { at = at, name = name } end
  for i, start in ipairs(starts) do
    found[start.name] = alerts:sub(start.at, (starts[i + 1] or { at = #alerts + 1 }).at - 1)
  end
  return found
end

-- Every metric of the table with its labels.
local function metrics()
  local found = {}
  for name, labels in read("src/metrics/table.h"):gmatch 'X%([%u_]+,%s*%u+,%s*"([%w_]+)",%s*"([%w_,]*)"' do
    found["lanegate_" .. name] = "," .. labels .. ","
  end
  return found
end

local function expression(rule)
  return rule:match "expr:(.-)\n        %w+:"
end

describe("the alerts", function()
  it("use metrics and labels that there are", function()
    local known, used = metrics(), 0
    for name, rule in pairs(rules()) do
      for metric, selector in expression(rule):gmatch "(lanegate_[%w_]+)({?[^}%s]*}?)" do
        used = used + 1
        assert.truthy(known[metric], name .. ": " .. metric)
        for label in selector:gmatch '([%w_]+)=~?"' do
          assert.truthy(known[metric]:find("," .. label .. ",", 1, true), name .. ": " .. metric .. " has no " .. label)
        end
      end
    end
    assert.is_true(used > 12)
    for metric in alerts:gmatch "lanegate_[%w_]+" do assert.truthy(known[metric], metric) end
  end)

  it("name states of lanes that there are", function()
    local states = read "src/lanes/view.h"
    local seen = 0
    for state in alerts:gmatch 'state="([%w_]+)"' do
      seen = seen + 1
      assert.truthy(states:find('"' .. state .. '"', 1, true), state)
    end
    assert.equal(3, seen)
  end)

  it("know every answer by which a hook is refused for want of room or store", function()
    local refusals, count = expression(rules().LanegateRefusesHooks), 0
    for code in read("src/ingest/ingest_priv.h"):gmatch 'X%([%u_]+,%s*"([%w_]+)",%s*503' do
      if code ~= "draining" then -- meant so
        count = count + 1
        assert.truthy(refusals:find('["|]' .. code .. '["|]'), code)
      end
    end
    assert.equal(select(2, refusals:match('"(.-)"'):gsub("|", "|")) + 1, count)
  end)

  it("say what is wrong, what that means, and what to do", function()
    for name, rule in pairs(rules()) do
      for _, part in ipairs { "summary", "description", "what_to_do" } do
        assert.truthy(rule:find("\n          " .. part .. ": ", 1, true), name .. " has no " .. part)
      end
      assert.truthy(rule:match "severity: page\n" or rule:match "severity: ticket\n", name)
    end
  end)

  it("name verbs that there are", function()
    local known = read "src/cli/cli.c"
    for verb in alerts:gmatch "lanegate (%l+) " do assert.truthy(known:find("verb_" .. verb, 1, true), verb) end
  end)

  it("are each seen firing", function()
    local played, count = read "spec/fixtures/alerts_test.yml", 0
    for name in pairs(rules()) do
      count = count + 1
      assert.truthy(played:find(name, 1, true), name .. " is not played")
    end
    assert.equal(12, count)
  end)
end)
