-- The normalised configuration is a tree of plain tables. A list is marked as one, so that an empty list and an empty
-- table reach C as what they are.

local tree = {}

local List = { list = true }

-- Marks `items` and gives it back.
function tree.list(items)
  return setmetatable(items or {}, List)
end

function tree.is_list(value)
  return getmetatable(value) == List
end

-- The keys of a table in an order that does not change from run to run.
function tree.sorted_keys(value)
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) == type(b) and type(a) ~= "boolean" and type(a) ~= "table" then return a < b end
    return tostring(a) < tostring(b)
  end)
  return keys
end

-- True for {} and for tables with the keys 1 to n only.
function tree.looks_like_list(value)
  if type(value) ~= "table" then return false end
  local count = 0
  for _ in pairs(value) do count = count + 1 end
  return count == #value
end

return tree
