-- Faults, all of them, each a line a person can act on:
--
--     config.lua:14: sources.stripe.sinks.billing.ordering_key: must be ..., got ...
--
-- A place is where in the file a value stands: { path = "http.listen", line = 5, node = a node of lines.lua }.

local env = require "lanegate.env"

local report = {}

local SHOWN_MAX = 60
local FAULTS_MAX = 1000 -- a file that a program has written can be wrong in every line

-- A value as it may be shown: short, on one line.
function report.show(value)
  if env.is_mark(value) then return env.about(value).text end
  if type(value) == "string" then
    local origin = env.origin(value)
    if origin then return "the text of " .. origin end
    local shown = value:sub(1, SHOWN_MAX):gsub("[%c\128-\255]", function(char) return ("\\%d"):format(char:byte()) end)
    return '"' .. shown .. '"' .. (#value > SHOWN_MAX and "..." or "")
  end
  if value == nil then return "nothing" end
  if type(value) == "table" then
    if next(value) == nil then return "an empty table" end
    return #value > 0 and "a list" or "a table"
  end
  if type(value) == "function" then return "a function" end
  return tostring(value)
end

-- For secrets: what kind of value it is, and no more.
function report.show_kind(value)
  if type(value) == "string" then
    return value:find("%S") and "a text of " .. #value .. " bytes" or "a blank text"
  end
  return type(value) == "table" and report.show(value) or "a " .. type(value)
end

-- How many letters differ: insertions, deletions, changes and swaps of neighbours.
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

-- ' (did you mean "listen"?)' when one of `candidates` is near to `word`, else "". A unit left out is always near.
function report.did_you_mean(word, candidates)
  if type(word) ~= "string" or #word > SHOWN_MAX then return "" end
  local best, best_distance = nil, math.max(1, math.floor(#word / 3)) + 1
  for _, candidate in ipairs(candidates) do
    local d = distance(word:lower(), candidate)
    if word .. "_ms" == candidate or word .. "_bytes" == candidate then d = 0 end
    if d < best_distance then best, best_distance = candidate, d end
  end
  return best and (' (did you mean "%s"?)'):format(best) or ""
end

-- The place of a member of the value at `place`. `shown` is how the path names it, where that is not the key.
function report.member(place, key, shown)
  local node = place.node and place.node.items and place.node.items[key]
  local step = shown or key
  if type(step) == "number" then
    step = ("[%d]"):format(step)
  elseif type(step) ~= "string" or not step:find("^[%w_-]+$") or env.origin(step) then
    step = "[" .. report.show(step) .. "]"
  end
  local joint = (place.path == "" or step:sub(1, 1) == "[") and "" or "."
  return { path = place.path .. joint .. step, line = node and node.line or place.line, node = node }
end

local Faults = {}
Faults.__index = Faults

-- `file` is how the file is named in front of each line.
function report.new(file)
  return setmetatable({ file = file, list = {}, more = 0 }, Faults)
end

-- Beyond a bound faults are only counted.
function Faults:full()
  return #self.list >= FAULTS_MAX
end

-- `text` goes on the sentence that the path begins; always false, so that `return faults:add(...)` reads well.
function Faults:add(place, text)
  if self:full() then
    self.more = self.more + 1
    return false
  end
  local where = place.path ~= "" and place.path .. ": " or ""
  self.list[#self.list + 1] = { line = place.line, text = where .. text, number = #self.list + 1 }
  return false
end

function Faults:must(place, expected, value)
  return self:add(place, ("must be %s, got %s"):format(expected, report.show(value)))
end

-- The lines, as the file is read from top to bottom.
function Faults:lines()
  table.sort(self.list, function(a, b)
    if (a.line or 0) ~= (b.line or 0) then return (a.line or 0) < (b.line or 0) end
    return a.number < b.number
  end)
  local out = {}
  for i, fault in ipairs(self.list) do
    local where = fault.line and ("%s:%d"):format(self.file, fault.line) or self.file
    -- One fault is one line, whatever it quotes.
    out[i] = where .. ": " .. fault.text:gsub("%c", " ")
  end
  if self.more > 0 then out[#out + 1] = ("%s: and %d more faults"):format(self.file, self.more) end
  return out
end

return report
