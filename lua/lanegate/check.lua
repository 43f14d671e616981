-- Walks what config.lua returned along the rows of schema.lua: every fault is collected, every default filled in,
-- every unit made a number. What options mean together is judged by rules.lua.

local dedupe = require "lanegate.dedupe"
local env = require "lanegate.env"
local keys = require "lanegate.keys"
local report = require "lanegate.report"
local rules = require "lanegate.rules"
local schema = require "lanegate.schema"
local tree = require "lanegate.tree"
local types = require "lanegate.types"

local Check = {}
Check.__index = Check

-- The normal form of one value, or nil when it was refused (and reported) or when there is none.
function Check:value(row, value, place)
  local kind = types[row.type]
  if not env.is_mark(value) then return kind.read(self, value, row, place) end

  local about = env.about(value)
  about.seen = true
  if about.fault then return self.faults:add(place, about.fault) or nil end
  if kind.is_text then return about.text end
  if row.type == "section" then return self:section({}, row.rows, place) end
  if kind.placeholder then return kind.placeholder(about.text) end
  return self:default(row, place)
end

function Check:default(row, place)
  local default = row.default
  if type(default) == "function" then default = default(self.host) end
  if default == nil then return nil end
  return types[row.type].read(self, default, row, place)
end

local function names_of(rows, kind)
  local names = {}
  for _, row in ipairs(rows) do
    if not row.sink or not kind or row.sink == kind then names[#names + 1] = row.name end
  end
  return names
end

local function row_named(rows, name)
  for _, row in ipairs(rows) do
    if row.name == name then return row end
  end
end

function Check:unknown_keys(value, rows, place, kind)
  for _, key in ipairs(tree.sorted_keys(value)) do
    local row = row_named(rows, key)
    local at = report.member(place, key)
    if not row then
      local hint = self.faults:full() and "" or report.did_you_mean(key, names_of(rows, kind))
      self.faults:add(at, "is not an option here" .. hint)
    elseif row.sink and kind and row.sink ~= kind then
      self.faults:add(at, ("is an option of %s sinks, not of %s sinks"):format(row.sink, kind))
    elseif row.later then
      self.faults:add(at, "is not built yet in this version")
    end
  end
end

-- A table with one row an option. `how`: no_defaults leaves out what is not given; kind is the type of a sink.
function Check:section(value, rows, place, how)
  how = how or {}
  if value == nil then value = {} end
  if env.is_mark(value) then env.about(value).seen = true end
  if type(value) ~= "table" or env.is_mark(value) then return self.faults:must(place, "a table", value) or nil end

  self.lines[place.path] = place.line
  self:unknown_keys(value, rows, place, how.kind)
  local normal = {}
  for _, row in ipairs(rows) do
    local given, at = value[row.name], report.member(place, row.name)
    if not row.later and (not row.sink or row.sink == how.kind) then
      if given ~= nil then
        normal[row.name] = self:value(row, given, at)
      elseif row.required then
        self.faults:must(at, types.expects(row), nil)
      elseif row.type == "section" then
        normal[row.name] = self:section({}, row.rows, at)
      elseif not how.no_defaults then
        normal[row.name] = self:default(row, at)
      end
    end
  end
  return normal
end

types.section = { expects = "a table", read = function(check, value, row, place)
  return check:section(value, row.rows, place)
end }

-- A section whose defaults come from a wider one: see rules.lua.
types.partial = { expects = "a table", read = function(check, value, row, place)
  if type(value) ~= "table" then return check.faults:must(place, types.partial.expects, value) or nil end
  return check:section(value, row.rows, place, { no_defaults = true })
end }

local A_LIMIT = "a limit such as { rate = 50, burst = 200 }"

types.limit = { expects = function(row) return row.off and A_LIMIT .. ", or false" or A_LIMIT end,
  read = function(check, value, row, place)
    if row.off and value == false then return false end
    if type(value) ~= "table" or #value > 0 then return check.faults:must(place, types.expects(row), value) or nil end
    local out = check:section(value, row.rows, place)
    if not out or not out.rate then return nil end
    out.burst = out.burst or math.max(1, math.ceil(out.rate))
    return out
  end }

types.limits = { expects = "a table of limits by name", read = function(check, value, row, place)
  if type(value) ~= "table" then return check.faults:must(place, types.expects(row), value) or nil end
  local out = {}
  for _, name in ipairs(tree.sorted_keys(value)) do
    local at = report.member(place, name)
    if types.is_name(name) then
      out[name] = check:value({ type = "limit", rows = row.rows }, value[name], at)
    else
      check.faults:add(at, "must be " .. types.name.expects)
    end
  end
  return out
end }

types.retry = { expects = "a table of waits and bounds, or a list of waits", read = function(check, value, row, place)
  if type(value) ~= "table" then return check.faults:must(place, types.retry.expects, value) or nil end
  if #value == 0 then return check:section(value, row.rows, place, { no_defaults = true }) end
  if not tree.looks_like_list(value) then
    return check.faults:add(place, "is a list of waits and has named options too: it must be one or the other") or nil
  end
  local schedule = types.schedule.read(check, value, { type = "schedule" }, place)
  return schedule and { schedule_ms = schedule }
end }

types.on_dead = { expects = '"skip", "hold" or { refused = ..., exhausted = ... }', read = function(check, value, _, place)
  local words = { "skip", "hold" }
  if type(value) == "table" then
    return check:section(value, {
      { name = "refused", type = "choice", choices = words, default = "skip" },
      { name = "exhausted", type = "choice", choices = words, default = "hold" },
    }, place)
  end
  local both = types.choice.read(check, value, { type = "choice", choices = words }, place)
  return both and { refused = both, exhausted = both }
end }

types.ordering_key = { expects = "a key", read = function(check, value, _, place)
  return keys.read(check, value, place)
end }

types.dedupe = { expects = dedupe.forms, read = function(check, value, _, place)
  return dedupe.read(check, value, place)
end }

types.filter = { expects = "a filter", read = function(check, value, _, place)
  return keys.read_filter(check, value, place)
end }

types.verify = { expects = 'a table such as { type = "none" }', read = function(check, value, row, place)
  if type(value) ~= "table" then return check.faults:must(place, types.expects(row), value) or nil end
  local scheme = type(value.type) == "string" and schema.schemes[value.type]
  local at = report.member(place, "type")
  if not scheme then
    local built = {}
    for _, name in ipairs(tree.sorted_keys(schema.schemes)) do
      if not schema.schemes[name].later then built[#built + 1] = name end
    end
    return check.faults:add(at, ("must be %s, got %s%s"):format(types.quoted(built), report.show(value.type),
      report.did_you_mean(value.type, tree.sorted_keys(schema.schemes)))) or nil
  end
  if scheme.later then return check.faults:add(at, ('"%s" is not built yet in this version'):format(value.type)) or nil end
  local rows = { { name = "type", type = "name", required = true } }
  for _, option in ipairs(scheme.rows) do rows[#rows + 1] = option end
  return check:section(value, rows, place)
end }

types.handshake = { expects = '"slack", "zoom", "graph" or { type = "meta", verify_token = ... }',
  read = function(check, value, _, place)
    local rows = {
      { name = "type", type = "choice", choices = { "slack", "zoom", "graph", "meta" }, required = true },
      { name = "verify_token", type = "secrets" },
    }
    if type(value) ~= "table" then
      local word = types.choice.read(check, value, rows[1], place)
      value = word and { type = word }
    end
    local out = value and check:section(value, rows, place)
    if not out or not out.type then return nil end
    if (out.type == "meta") ~= (value.verify_token ~= nil) then
      return check.faults:add(place, out.type == "meta" and ('must be { type = "meta", verify_token = ... }: the token is '
        .. "what Meta sends to prove that it is them") or "takes a verify_token only with type = \"meta\"") or nil
    end
    return out
  end }

types.tokens = { expects = "a list of { hash = ..., scopes = { ... } }", read = function(check, value, row, place)
  if not tree.looks_like_list(value) then return check.faults:must(place, types.expects(row), value) or nil end
  local out = tree.list()
  for i, item in ipairs(value) do
    local token = check:section(item, row.rows, report.member(place, i)) or {}
    token.name = token.name or "token" .. i
    out[i] = token
  end
  return out
end }

-- How a path names a sink: by its name, which the file may leave to its type.
local function sink_name(value)
  if type(value) ~= "table" then return nil end
  local name = value.name == nil and value.type or value.name
  return types.is_name(name) and name or nil
end

types.sinks = { expects = "a list of sinks, at least one", read = function(check, value, row, place)
  if not tree.looks_like_list(value) or #value == 0 then
    return check.faults:must(place, types.expects(row), value) or nil
  end
  local out, seen = tree.list(), {}
  for i, item in ipairs(value) do
    local name = sink_name(item)
    local at = report.member(place, i, name)
    if name and seen[name] then
      check.faults:add(at, ('is the name of two sinks of this source (the other is number %d): give one a name of its own')
        :format(seen[name]))
    end
    seen[name or i] = seen[name or i] or i
    local kind = type(item) == "table" and (item.type == "http" or item.type == "log") and item.type or nil
    local sink = check:section(item, row.rows, at, { kind = kind })
    if sink then
      sink.name = sink.name or name or sink.type
      rules.sink(check, item, sink, at)
    end
    out[i] = sink or {} -- refused, but counted: the others keep their numbers
  end
  return out
end }

types.sources = { expects = "a table of sources by name, at least one", read = function(check, value, row, place)
  if type(value) ~= "table" or next(value) == nil then
    return check.faults:must(place, types.expects(row), value) or nil
  end
  local out = {}
  for _, name in ipairs(tree.sorted_keys(value)) do
    local at = report.member(place, name)
    if not types.is_name(name) then
      check.faults:add(at, "must be " .. types.name.expects)
    else
      out[name] = check:section(value[name], row.rows, at)
      if out[name] then rules.source(check, value[name], out[name], at) end
    end
  end
  return out
end }

local check = {}

-- `given` is what the file returned, `context` { faults, host, resolve, directory, node }. The normal form; faults are
-- in context.faults. Also gives the line of every table, by path, for those who find more faults later.
function check.run(given, context)
  local self = setmetatable({ faults = context.faults, host = context.host, resolve = context.resolve,
                              directory = context.directory, lines = {} }, Check)
  local place = { path = "", line = context.node.line, node = context.node }
  local normal = self:section(given, schema.rows, place)
  rules.whole(self, given, normal, place)
  return normal, self.lines
end

return check
