-- The configuration as it may be shown: the values that the schema marks as public, and "(set)" for every other one.
-- Built by allowing, so that an option nobody thought of stays hidden.

local schema = require "lanegate.schema"
local tree = require "lanegate.tree"

local redact = {}

local SET = "(set)"

local section

local function copy(value)
  if type(value) ~= "table" then return value end
  local out = tree.is_list(value) and tree.list() or {}
  for key, item in pairs(value) do out[key] = copy(item) end
  return out
end

-- What `public` may say beside true.
local shows = {}

-- Paths and queries of webhook URLs are often secrets.
function shows.origin(value)
  local origin, rest = value:match("^(%a[%w+.-]*://[^/?#@\\]*)(.*)$")
  if not origin then return SET end
  return origin .. (rest ~= "" and rest ~= "/" and "/" .. SET or "/")
end

function shows.names(value)
  local out = {}
  for name in pairs(value) do out[name] = SET end
  return out
end

function shows.ordering_key(value)
  local out = copy(value)
  if value.kind == "script" then out.args = SET end
  if value.kind == "first" then
    for i, item in ipairs(value.items) do out.items[i] = shows.ordering_key(item) end
  end
  return out
end

function shows.handshake(value)
  return { type = value.type, verify_token = value.verify_token and SET or nil }
end

-- Types whose values have rows of their own.
local walks = {}

function walks.section(row, value)
  return section(row.rows, value)
end

walks.partial = walks.section

function walks.limit(row, value)
  return value and section(row.rows, value)
end

function walks.limits(row, value)
  local out = {}
  for name, limit in pairs(value) do out[name] = section(row.rows, limit) end
  return out
end

function walks.sources(row, value)
  local out = {}
  for name, source in pairs(value) do out[name] = section(row.rows, source) end
  return out
end

function walks.sinks(row, value)
  local out = tree.list()
  for i, item in ipairs(value) do out[i] = section(row.rows, item) end
  return out
end
walks.tokens = walks.sinks

function walks.retry(row, value)
  local out = section(row.rows, value)
  if value.schedule_ms then out.schedule_ms = copy(value.schedule_ms) end
  return out
end

function walks.verify(_, value)
  local out = section(schema.schemes[value.type].rows, value)
  out.type = value.type
  return out
end

local function shown(row, value)
  if walks[row.type] then return walks[row.type](row, value) end
  if row.public == true then return copy(value) end
  if row.public then return shows[row.public](value) end
  return SET
end

function section(rows, value)
  local out = {}
  for _, row in ipairs(rows) do
    local given = value[row.name]
    if given ~= nil then out[row.name] = shown(row, given) end
  end
  return out
end

-- `root` is a normal form without faults.
function redact.run(root)
  return section(schema.rows, root)
end

return redact
