-- The two helpers of config.lua that reach the machine: env "NAME", env("NAME", default) and file "/abs/path".
--
-- A value that can't be had does not stop the file: a mark stands in for it, so that the check can name the option
-- it was meant for, together with all other faults. Where secrets are not wanted (client verbs, check --offline)
-- every value without a default is such a mark, and is accepted wherever it stands.

local env = {}

local Mark = { __metatable = false }

-- A mark swallows what people do to strings; what came of it is the same mark.
Mark.__concat = function(a, b) return env.is_mark(a) and a or b end
Mark.__index = function(mark) return function() return mark end end

-- Marks keep what they know outside themselves, since every field of theirs reads as a method.
local known = setmetatable({}, { __mode = "k" })

function env.is_mark(value)
  return type(value) == "table" and known[value] ~= nil
end

-- { text = what to show instead, fault = why there is no value (nil when it is not wanted), line }
function env.about(mark)
  return known[mark]
end

-- The line of config.lua that called the helper. A position is all we can ask for without the debug library.
local function calling_line()
  local _, where = pcall(error, "", 5)
  return tonumber(tostring(where):match(":(%d+):"))
end

-- What came from outside in this evaluation: { text, name }. It may be a secret wherever it stands, also where it does not
-- belong, so that a fault names where it is from and not what it is.
local outside = {}
local PART_MIN = 8 -- a shorter text is part of others by chance

-- 'env "NAME"' or 'file "/path"' of a value that is, or holds, what came from there; else nil.
function env.origin(value)
  if type(value) ~= "string" then return nil end
  for _, known_text in ipairs(outside) do
    local text = known_text.text
    if value == text or #text >= PART_MIN and value:find(text, 1, true) then return known_text.name end
  end
end

-- The helpers for one evaluation. `host` gives getenv(name) and read_file(path); `marks` lists the faulty ones.
function env.helpers(host, resolve)
  local marks = {}
  outside = {}

  local function came(text, name)
    if text ~= "" then outside[#outside + 1] = { text = text, name = name } end
    return text
  end

  local function mark(text, fault)
    local value = setmetatable({}, Mark)
    known[value] = { text = text, fault = fault, line = fault and calling_line() }
    if fault then marks[#marks + 1] = known[value] end
    return value
  end

  local function from_env(name, default)
    if type(name) ~= "string" or not name:find("^[%a_][%w_]*$") then
      error('env takes the name of a variable, as in env "SECRET"', 2)
    end
    local value = resolve and host.getenv(name)
    if value then return came(value, ("env %q"):format(name)) end
    if default ~= nil then return default end
    return (mark("(env " .. name .. ")", resolve and ("env %q is not set, and no default is given"):format(name)))
  end

  local function from_file(path)
    if type(path) ~= "string" or path:sub(1, 1) ~= "/" then
      error('file takes an absolute path, as in file "/run/secrets/stripe"', 2)
    end
    if not resolve then return (mark("(file " .. path .. ")")) end
    local text, reason = host.read_file(path)
    if not text then return (mark("(file " .. path .. ")", ("file %q can't be read: %s"):format(path, reason))) end
    return came(text:gsub("\r?\n$", "", 1), ("file %q"):format(path))
  end

  return from_env, from_file, marks
end

return env
