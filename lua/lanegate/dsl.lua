-- What config.lua may say. It runs once, in a world that is built by allowing: pure computing, and the helpers env
-- and file. It returns one table; whatever goes wrong on the way becomes one fault with its line.

local env = require "lanegate.env"

local dsl = {}

-- Library functions that call back into Lua run on the C stack, which has no room for deep nesting: one at a time.
local function not_nested(name, func)
  local running = false
  return function(...)
    if running then error(name .. " can't be called inside its own callback here", 2) end
    running = true
    local results = { pcall(func, ...) }
    running = false
    if not results[1] then
      local message = results[2]
      local placed = type(message) ~= "string" or message:find("^config%.lua:%d")
      error(message, placed and 0 or 2)
    end
    return unpack(results, 2, table.maxn(results))
  end
end

local gsub, sort = not_nested("string.gsub", string.gsub), not_nested("table.sort", table.sort)

local function pick(from, names, also)
  local picked = also or {}
  for name in names:gmatch("%S+") do picked[name] = from[name] end
  return picked
end

local function string_library()
  return pick(string, "byte char find format gmatch len lower match rep reverse sub upper", { gsub = gsub })
end

-- The globals of the file. Conversions let the marks of env.lua through, so that a number from an unset variable
-- is a fault of its option and not a silent default.
local function globals(from_env, from_file)
  return pick(_G, "assert error ipairs next pairs pcall select type unpack", {
    _VERSION = _VERSION,
    env = from_env,
    file = from_file,
    tonumber = function(value, base)
      if env.is_mark(value) then return value end
      return tonumber(value, base)
    end,
    tostring = function(value)
      if env.is_mark(value) then return value end
      return tostring(value)
    end,
    string = string_library(),
    table = pick(table, "concat insert maxn remove", { sort = sort }),
    math = pick(math, "abs ceil floor fmod huge max min modf pow sqrt"),
  })
end

-- "config.lua:12: message" of the Lua compiler or of error(), as a line and a message.
local function split_position(message)
  if type(message) ~= "string" then return nil, "raised a " .. type(message) .. " instead of a message" end
  if message == "not enough memory" then return nil, "needs more memory than a configuration may have" end
  local line, rest = message:match("^config%.lua:(%d+): (.*)$")
  return tonumber(line), rest or message
end

-- Runs `source`. Gives the table it returned and the marks of its helpers; or nil, those marks, and the fault
-- { line, text }. `host` brings getenv, read_file, and `within_budget(func, ...)`, a pcall that ends code which
-- never ends.
function dsl.run(source, host, resolve)
  local from_env, from_file, marks = env.helpers(host, resolve)
  local chunk, message = load(source, "=config.lua", "t", globals(from_env, from_file))
  if not chunk then
    local line, text = split_position(message)
    return nil, marks, { line = line, text = text }
  end

  -- Methods of strings come from here; a copy, so that the file can't change what the checks use.
  local strings = getmetatable("")
  local usual = strings.__index
  strings.__index = string_library()
  local ok, result = host.within_budget(chunk)
  strings.__index = usual

  if not ok then
    local line, text = split_position(result)
    return nil, marks, { line = line, text = text }
  end
  if type(result) ~= "table" or env.is_mark(result) then
    local what = result == nil and "nothing" or "a " .. type(result)
    return nil, marks, { text = "must return one table, as in return { sources = { ... } }, but returned " .. what }
  end
  return result, marks
end

return dsl
