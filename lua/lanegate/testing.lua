---@meta lanegate.testing
-- What specs of key functions load: require "lanegate.testing". Keys are resolved by the gateway's own resolver, scripts run in
-- its own sandbox, under the budgets of its configuration.
--
-- Runs under LuaJIT: `lanegate spec DIR` sets the paths and calls busted; by hand it is `busted --lua=luajit` with LUA_PATH and
-- LUA_CPATH as `lanegate spec --paths` prints them.
if not rawget(_G, "jit") then
  error("lanegate.testing needs LuaJIT, this is " .. _VERSION .. ": run `lanegate spec DIR`, or `busted --lua=luajit`", 2)
end

local core = require "lanegate.testing_core"

local testing = {}

-- Where modules of keys are: a folder, relative to the working directory. LANEGATE_SCRIPTS says another; t.scripts(path) too.
local scripts_path = os.getenv "LANEGATE_SCRIPTS" or "lua"

---Where the modules named in keys are found, from here on.
---@param path string a folder
function testing.scripts(path)
  assert(type(path) == "string", "t.scripts: expected a folder, got a " .. type(path))
  scripts_path = path
end

-- ---- Lua values as source text: how a spec's tables become a configuration file ----

local function quoted(text)
  return (("%q"):format(text):gsub("\\\n", "\\n"):gsub("\r", "\\r"):gsub("%z", "\\0"))
end

local write = {}
write.string = quoted
write.boolean = tostring
write.number = function(number) return ("%.17g"):format(number) end
function write.table(value, depth)
  if depth > 64 then error("a table is nested too deep, or holds itself", 0) end
  local parts = {}
  for i = 1, #value do parts[i] = write[type(value[i])](value[i], depth + 1) end
  for key, item in pairs(value) do
    local index = type(key) == "number" and key >= 1 and key <= #value and key % 1 == 0
    if not index then
      local how = write[type(item)]
      parts[#parts + 1] = ("[%s] = %s"):format(write[type(key)](key, depth + 1), how(item, depth + 1))
    end
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end
setmetatable(write, { __index = function(_, kind) error("a " .. kind .. " has no place in a configuration", 0) end })

-- ---- configurations ----

local function absolute(path)
  if path:sub(1, 1) == "/" then return path end
  local pipe = assert(io.popen "pwd")
  local here = pipe:read "*l"
  pipe:close()
  return here .. "/" .. path
end

local function load_file(path)
  local config, faults = core.load(path)
  if not config then error(faults, 0) end
  return config
end

local loaded = {} -- source text -> configuration

local function load_text(text)
  if not loaded[text] then
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local good, config = pcall(load_file, path)
    os.remove(path)
    -- The file's name is nobody's business: what was wrong with the spec is.
    if not good then error((tostring(config):gsub(path:gsub("%p", "%%%0") .. ":?%d*:? ?", "")), 0) end
    loaded[text] = config
  end
  return loaded[text]
end

-- A configuration around one key. Its source and sink are both named "spec".
local function config_of(spec)
  if type(spec) ~= "table" then error("expected an ordering key such as { header = \"x-shop\" }, got a " .. type(spec), 0) end
  return load_text("return " .. write.table({
    scripts = { path = absolute(scripts_path) },
    sources = { spec = { sinks = { { type = "log", name = "spec", ordered = true, ordering_key = spec } } } },
  }, 0))
end

local function config_from(config)
  if type(config) == "string" then return load_file(config) end
  if type(config) ~= "table" then error("expected a configuration: a table, or the path of a file; got a " .. type(config), 0) end
  return load_text("return " .. write.table(config, 0))
end

-- ---- JSON, for hook{ json = ... } ----

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

---Stands for null in hook{ json = ... }.
testing.null = setmetatable({}, { __tostring = function() return "null" end })

local encode = {}
encode.boolean = tostring
function encode.string(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return escapes[c] or ("\\u%04x"):format(c:byte()) end) .. '"'
end
function encode.number(number)
  if number ~= number or number == math.huge or number == -math.huge then error("JSON has no word for " .. number, 0) end
  return number % 1 == 0 and math.abs(number) < 2 ^ 53 and ("%d"):format(number) or ("%.17g"):format(number)
end
function encode.table(value, depth)
  if value == testing.null then return "null" end
  if depth > 1000 then error("a table is nested too deep, or holds itself", 0) end
  local parts = {}
  if #value > 0 then
    for i = 1, #value do parts[i] = encode[type(value[i])](value[i], depth + 1) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for name, item in pairs(value) do
    if type(name) ~= "string" then error("a name in JSON is a string, got a " .. type(name), 0) end
    parts[#parts + 1] = encode.string(name) .. ":" .. encode[type(item)](item, depth + 1)
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end
setmetatable(encode, { __index = function(_, kind) error("JSON has no word for a " .. kind, 0) end })

-- ---- hooks ----

local MEMBERS = { id = true, tenant = true, source = true, method = true, path = true, query = true, remote_ip = true,
  received_at = true, verified = true, content_type = true, headers = true, body = true, json = true }

-- Headers as a map or as a list of { name, value }: always a list, a map's in the order of names.
local function header_list(headers)
  local list = {}
  if headers[1] then
    for i, header in ipairs(headers) do list[i] = { header[1], header[2] } end
    return list
  end
  for name, value in pairs(headers) do
    for _, one in ipairs(type(value) == "table" and value or { value }) do list[#list + 1] = { name, tostring(one) } end
  end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

local function has_header(list, wanted)
  for _, header in ipairs(list) do
    if header[1]:lower() == wanted then return true end
  end
  return false
end

local VERIFIED = { ["nil"] = "skipped", ["true"] = "ok", ["false"] = "failed" }

---A hook, as one that arrived. What is left out is as in the simplest request.
---@param parts table headers (a map, or a list of {name, value}), body or json, and id, tenant, source, method, path, query,
---content_type, received_at (unix ms), remote_ip, verified
---@return userdata hook
function testing.hook(parts)
  assert(type(parts) == "table", "t.hook: expected a table, got a " .. type(parts))
  for name in pairs(parts) do
    if not MEMBERS[name] then error("t.hook: there is no member \"" .. tostring(name) .. "\" of a hook", 2) end
  end
  if parts.json ~= nil and parts.body ~= nil then error("t.hook: either body or json", 2) end
  local headers = header_list(parts.headers or {})
  local content_type = parts.content_type or (parts.json ~= nil and "application/json" or nil)
  if content_type and not has_header(headers, "content-type") then
    headers[#headers + 1] = { "Content-Type", content_type }
  end
  local body = parts.body or ""
  if parts.json ~= nil then
    local good, text = pcall(function() return encode[type(parts.json)](parts.json, 0) end)
    if not good then error("t.hook: " .. text, 2) end
    body = text
  end
  return core.hook { id = parts.id, tenant = parts.tenant or "default", source = parts.source or "spec",
    method = parts.method or "POST", path = parts.path or "/webhooks/" .. (parts.source or "spec"), query = parts.query,
    remote_ip = parts.remote_ip or "192.0.2.1", received_at = parts.received_at, body = body, headers = headers,
    verification = VERIFIED[tostring(parts.verified)] }
end

local function read_file(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "*a"
  file:close()
  return text
end

-- A file beside the spec: in the folder of the nearest caller that has it. (A tail call leaves no trace of its own.)
local function read_beside_caller(path)
  local level = 3
  local caller = debug.getinfo(level, "S")
  while caller do
    local folder = caller.source:match "^@(.*/)[^/]*$"
    local text = folder and read_file(folder .. path)
    if text then return text end
    level = level + 1
    caller = debug.getinfo(level, "S")
  end
end

---A hook from a file with a raw HTTP request, as `lanegate hooks show --raw ID` prints it. Looked for beside the spec first, then
---in the working directory.
---@param path string
---@param parts? table what is to be otherwise, as for t.hook: source, tenant, received_at ...
---@return userdata hook
function testing.fixture(path, parts)
  local text = read_beside_caller(path) or read_file(path)
  if not text then error(("t.fixture: there is no file %q, neither beside the spec nor here"):format(path), 2) end
  local request, fault = core.raw(text)
  if not request then error(("t.fixture: %s: %s"):format(path, fault), 2) end
  for name, value in pairs(parts or {}) do request[name] = value end
  return testing.hook(request)
end

-- ---- what becomes of them ----

-- One table a sink: sink, ordered, filtered, key, lane, reason. Errors name the spec's line.
local function resolve(config, source, hook)
  local lanes = core.resolve(config, source, hook)
  for _, lane in ipairs(lanes) do
    if lane.nondeterministic then error("nondeterministic: " .. (lane.error or ""), 0) end
  end
  return lanes
end

-- Errors of ours at the spec's own line, two levels up.
local function guarded(run, ...)
  local results = { pcall(run, ...) }
  if not results[1] then error(results[2], 3) end
  return unpack(results, 2, table.maxn(results))
end

local function lane_of(spec, hook)
  return resolve(config_of(spec), "spec", hook)[1]
end

---The lane a hook takes under a key: { key, lane (32 hex digits), reason (why there is no key), error (what a script said) }.
---`lane` is nil when the hook takes none (lanegate.unordered).
---@param spec table any ordering key
---@param hook userdata
---@return table
function testing.lane(spec, hook)
  return guarded(lane_of, spec, hook)
end

---The key of a hook, or nil and why there is none: a reason of the metric lane_key_missing, or "unordered". A key over 128
---bytes is given as it is stamped: "sha256:" and hex.
---@param spec table any ordering key: { header = }, { json = }, { lua =, call =, args = }, { first = { } }
---@param hook userdata
---@return string? key
---@return string? reason
---@return string? error what a script said
function testing.key(spec, hook)
  local lane = guarded(lane_of, spec, hook)
  if lane.key then return lane.key end
  return nil, lane.reason or "unordered", lane.error
end

---What every sink of a source does with a hook: a list in the order of the sinks, `false` for an unordered sink, else
---{ sink, key, lane, reason, filtered }.
---@param config table|string a configuration as in config.lua, or the path of one (env and file give placeholders)
---@param source string
---@param hook userdata
---@return (table|false)[]
function testing.lanes(config, source, hook)
  local lanes = guarded(function() return resolve(config_from(config), source, hook) end)
  for i, lane in ipairs(lanes) do
    if not lane.ordered then lanes[i] = false end
  end
  return lanes
end

---What the scripts of a key use for a hook: { instructions, pattern_steps, memory_bytes, time_ns, breach }.
---@param spec table any ordering key
---@param hook userdata
---@return table
function testing.budget(spec, hook)
  return guarded(function() return core.budget(config_of(spec), "spec", hook) end)
end

-- ---- assertions ----

local function show(lane)
  if lane.key then return ("the lane of key %q"):format(lane.key) end
  local why = lane.reason and (" (" .. lane.reason .. (lane.error and ": " .. lane.error or "") .. ")") or ""
  return (lane.lane and "the keyless lane" or "no lane") .. why
end

-- A lane as t.lane gives it; or a hook, when a key is given to resolve it with.
local function as_lane(value, spec)
  if type(value) == "userdata" then
    if not spec then error("which key? assert.same_lane(hook, hook, key)", 0) end
    return lane_of(spec, value)
  end
  if type(value) ~= "table" then error("expected a lane (t.lane) or a hook, got a " .. type(value), 0) end
  return value
end

local function fail(state, text)
  state.failure_message = text
  return false
end

-- Called as assert.lane(...): true, or false with the words in state.failure_message. `wanted` is what assert.is_not turns round.
local checks = {
  -- assert.lane(key, spec, hook)
  lane = function(state, arguments)
    local lane = lane_of(arguments[2], arguments[3])
    if lane.key == arguments[1] then return true end
    return fail(state, ("expected the lane of key %q, got %s"):format(tostring(arguments[1]), show(lane)))
  end,
  -- assert.keyless(spec, hook [, reason])
  keyless = function(state, arguments)
    local lane = lane_of(arguments[1], arguments[2])
    local right = lane.lane and not lane.key and (arguments[3] == nil or lane.reason == arguments[3])
    if right then return true end
    return fail(state, ("expected the keyless lane%s, got %s"):format(
      arguments[3] and " (" .. arguments[3] .. ")" or "", show(lane)))
  end,
  -- assert.unordered(spec, hook)
  unordered = function(state, arguments)
    local lane = lane_of(arguments[1], arguments[2])
    if not lane.lane then return true end
    return fail(state, "expected a hook outside the lanes, got " .. show(lane))
  end,
  -- assert.same_lane(a, b [, spec])
  same_lane = function(state, arguments)
    local a, b = as_lane(arguments[1], arguments[3]), as_lane(arguments[2], arguments[3])
    if a.lane and a.lane == b.lane then return true end
    return fail(state, ("expected one lane for both, got %s and %s"):format(show(a), show(b)))
  end,
  -- assert.other_lane(a, b [, spec])
  other_lane = function(state, arguments)
    local a, b = as_lane(arguments[1], arguments[3]), as_lane(arguments[2], arguments[3])
    if a.lane and b.lane and a.lane ~= b.lane then return true end
    return fail(state, ("expected two lanes, got %s and %s"):format(show(a), show(b)))
  end,
}

-- Under busted they are assertions; elsewhere a spec may call t.assert.lane and so on, which raise.
local has_luassert, luassert = pcall(require, "luassert")
testing.assert = {}
for name, check in pairs(checks) do
  if has_luassert then luassert:register("assertion", name, check) end
  testing.assert[name] = function(...)
    local state = {}
    if not check(state, { ... }) then error(state.failure_message, 2) end
  end
end

return testing
