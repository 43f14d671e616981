-- Ordering keys and filters: every malformed form is refused here, with the reason. Normal forms, as src/order wants
-- them:
--
--   { kind = "header", header = "x-shop" }
--   { kind = "json", path = { "data", "object", "customer" }, integers = false }
--   { kind = "script", module = "keys.shop", call = "by_region", args = { "eu" } }
--   { kind = "first", items = { key, key } }
--   filter: { header = NAME } or { path = { ... } }, with match = { globs }

local env = require "lanegate.env"
local report = require "lanegate.report"
local tree = require "lanegate.tree"
local types = require "lanegate.types"

local keys = {}

-- A table may hold itself, so that depth alone bounds nothing.
local SEGMENTS_MAX, KEYS_MAX, FIRST_DEPTH_MAX, GLOBS_MAX, ARGS_MAX, ARGS_DEPTH_MAX = 64, 64, 8, 64, 1000, 16

-- Each kind is named by the member that makes it one.
local KINDS = {
  header = { members = { "header" } },
  json = { members = { "json", "integers" } },
  lua = { members = { "lua", "call", "args" } },
  first = { members = { "first" } },
}
local KIND_NAMES = { "header", "json", "lua", "first" }
local FORMS = '{ header = "name" }, { json = "path" }, { lua = "module", call = "function" } or { first = { key, key } }'

local function header_name(check, value, place)
  if value == "" then return check.faults:add(place, "is an empty header name") or nil end
  return check:value({ type = "header_name" }, value, place)
end

-- "a.b.c", or { "a.b", "c" } where names hold dots: the list of segments.
local function read_path(check, value, row, place)
  local segments = tree.list()
  if value == "" or (type(value) == "table" and next(value) == nil) then
    return check.faults:add(place, "is an empty path") or nil
  end
  if type(value) == "string" then
    for segment in (value .. "."):gmatch("(.-)%.") do segments[#segments + 1] = segment end
  elseif tree.looks_like_list(value) then
    segments = types.read_list(check, value, row, place, { type = "path_segment" })
    if not segments then return nil end
  else
    return check.faults:must(place, types.json_path.expects, value) or nil
  end
  for _, segment in ipairs(segments) do
    if segment == "" then
      return check.faults:add(place, "has an empty segment in " .. report.show(value)) or nil
    end
  end
  if #segments > SEGMENTS_MAX then
    return check.faults:add(place, ("has %d segments, at most %d are allowed"):format(#segments, SEGMENTS_MAX)) or nil
  end
  return segments
end

types.path_segment = { expects = "the name of a member or the number of an element, as a text", is_text = true,
  read = function(check, value, row, place)
    if type(value) ~= "string" then return check.faults:must(place, types.expects(row), value) or nil end
    return value
  end }

types.json_path = { expects = 'a path such as "data.object.customer", or a list of its segments', read = read_path,
  placeholder = function(text) return tree.list { text } end }

types.glob = { expects = "a text in which * stands for any run of characters", is_text = true,
  read = function(check, value, row, place)
    if type(value) ~= "string" or value == "" then return check.faults:must(place, types.expects(row), value) or nil end
    return value
  end }

local function json_path(check, value, place)
  return check:value({ type = "json_path" }, value, place)
end

-- What a function in Lua is given beside the hook.
types.plain = { expects = "a plain value", is_text = true, read = function(check, value, row, place)
  if type(value) == "string" or type(value) == "number" or type(value) == "boolean" then return value end
  return check.faults:must(place, types.expects(row), value) or nil
end }

-- Any tree of plain values. `left`: how many more there may be.
local function plain_tree(check, value, place, depth, left)
  left.count = left.count - 1
  if type(value) ~= "table" or env.is_mark(value) then return check:value({ type = "plain" }, value, place) end
  if depth > ARGS_DEPTH_MAX then return check.faults:add(place, "is nested too deep") or nil end
  local out = tree.looks_like_list(value) and tree.list() or {}
  for _, key in ipairs(tree.sorted_keys(value)) do
    if left.count <= 0 then break end
    out[key] = plain_tree(check, value[key], report.member(place, key), depth + 1, left)
  end
  return out
end

types.script_args = { expects = "a list of arguments", read = function(check, value, row, place)
  if not tree.looks_like_list(value) then return check.faults:must(place, types.expects(row), value) or nil end
  local left = { count = ARGS_MAX + 1 }
  local args = plain_tree(check, value, place, 0, left)
  if left.count <= 0 then
    return check.faults:add(place, ("holds too many values, at most %d are allowed"):format(ARGS_MAX)) or nil
  end
  return args
end }

local function holds_blank(value)
  if type(value) ~= "table" then return type(value) == "string" and not value:find("%S") end
  for _, item in pairs(value) do
    if holds_blank(item) then return true end
  end
  return false
end

-- The same with secrets among them: never shown, and never blank, since a blank secret verifies nothing.
types.secret_args = { expects = types.script_args.expects, read = function(check, value, row, place)
  if not tree.looks_like_list(value) then
    return check.faults:add(place, ("must be %s, got %s"):format(types.expects(row), report.show_kind(value))) or nil
  end
  local args = types.script_args.read(check, value, row, place)
  if args and holds_blank(args) then
    return check.faults:add(place, "must be a list of arguments; a text in it is empty or blank") or nil
  end
  return args
end }

local function name_type(expects, pattern)
  return { expects = expects, read = function(check, value, row, place)
    if type(value) == "string" and value:find(pattern) then return value end
    return check.faults:must(place, types.expects(row), value) or nil
  end }
end
types.script_module = name_type('the name of a module, such as "keys.shop"', "^[%a_][%w_]*[%w_.]*$")
types.script_function = name_type("the name of a function of the module", "^[%a_][%w_]*$")

local function lua_key(check, value, place)
  local names = value.lua ~= nil and { "lua", "call", "args" } or { 1, 2, 3 } -- the short form
  local function read(number, kind)
    return types[kind].read(check, value[names[number]], { type = kind }, report.member(place, names[number]))
  end
  local module, call = read(1, "script_module"), read(2, "script_function")
  local args = value[names[3]] == nil and tree.list() or read(3, "script_args")
  return module and call and args and { kind = "script", module = module, call = call, args = args }
end

local read = {}

function read.header(check, value, place)
  local name = header_name(check, value.header, report.member(place, "header"))
  return name and { kind = "header", header = name }
end

function read.json(check, value, place)
  local path = json_path(check, value.json, report.member(place, "json"))
  local integers = value.integers
  if integers ~= nil then
    integers = check:value({ type = "boolean" }, integers, report.member(place, "integers"))
  end
  return path and { kind = "json", path = path, integers = integers or false }
end

function read.lua(check, value, place)
  return lua_key(check, value, place)
end

function read.first(check, value, place, depth, left)
  local at = report.member(place, "first")
  local given = value.first
  if not tree.looks_like_list(given) then return check.faults:must(at, "a list of keys", given) or nil end
  if #given == 0 then return check.faults:add(at, "is empty: it needs at least one key") or nil end
  if depth == FIRST_DEPTH_MAX then return check.faults:add(at, "is nested too deep") or nil end
  local items = tree.list()
  for i, item in ipairs(given) do
    left.count = left.count - 1
    if left.count < 0 then
      return left.count == -1 and check.faults:add(at, ("holds too many keys, at most %d are allowed"):format(KEYS_MAX)) or nil
    end
    items[#items + 1] = keys.read(check, item, report.member(at, i), depth + 1, left)
  end
  return { kind = "first", items = items }
end

-- The kinds that the table names, and its members that belong to none of them.
local function kinds_of(value)
  local kinds = {}
  for _, name in ipairs(KIND_NAMES) do
    if value[name] ~= nil then kinds[#kinds + 1] = name end
  end
  if #kinds == 0 and type(value[1]) == "string" and #value >= 2 then return { "lua" }, {} end

  local strays, known = {}, {}
  for _, name in ipairs(kinds) do
    for _, member in ipairs(KINDS[name].members) do known[member] = true end
  end
  for _, key in ipairs(tree.sorted_keys(value)) do
    if not known[key] then strays[#strays + 1] = key end
  end
  return kinds, strays
end

-- Inside a first, `depth` says how many are around it, and `left` how many more keys there may be in all.
function keys.read(check, value, place, depth, left)
  if type(value) ~= "table" or next(value) == nil then
    return check.faults:must(place, "a key such as " .. FORMS, value) or nil
  end
  check.lines[place.path] = place.line -- for faults of scripts, found later
  local kinds, strays = kinds_of(value)
  if #kinds > 1 then
    return check.faults:add(place, ("has two kinds at once, %s and %s: a key is of one kind; "
      .. "first = { key, key } tries several"):format(kinds[1], kinds[2])) or nil
  end
  if #kinds == 0 then
    local word = strays[1]
    return check.faults:add(place, ("has an unknown kind of key, %s: must be %s%s"):format(report.show(word), FORMS,
      report.did_you_mean(word, KIND_NAMES))) or nil
  end
  for _, stray in ipairs(strays) do
    check.faults:add(report.member(place, stray), ("is not an option of a %s key%s"):format(kinds[1],
      report.did_you_mean(stray, KINDS[kinds[1]].members)))
  end
  return read[kinds[1]](check, value, place, depth or 0, left or { count = KEYS_MAX })
end

function keys.read_filter(check, value, place)
  if type(value) ~= "table" or (value.json == nil) == (value.header == nil) then
    return check.faults:must(place, "{ json = PATH, match = { globs } } or { header = NAME, match = { globs } }", value)
      or nil
  end
  local filter = {}
  for _, key in ipairs(tree.sorted_keys(value)) do
    if key ~= "json" and key ~= "header" and key ~= "match" then
      check.faults:add(report.member(place, key), "is not an option of a filter"
        .. report.did_you_mean(key, { "json", "header", "match" }))
    end
  end
  if value.header ~= nil then
    filter.header = header_name(check, value.header, report.member(place, "header"))
  else
    filter.path = json_path(check, value.json, report.member(place, "json"))
  end
  local at, globs = report.member(place, "match"), value.match
  if not tree.looks_like_list(globs) or #globs == 0 or #globs > GLOBS_MAX then
    return check.faults:must(at, ('a list of 1 to %d globs such as { "invoice.*" }'):format(GLOBS_MAX), globs) or nil
  end
  filter.match = types.read_list(check, globs, { type = "glob" }, at, { type = "glob" })
  return filter
end

return keys
