-- A script sees what it was given and nothing else, and leaves nothing for the next call.
local sandbox = require "sandbox"

local ALLOWED = { "assert", "bit", "coroutine", "error", "getmetatable", "ipairs", "lanegate", "math", "next", "pairs",
  "pcall", "rawequal", "rawget", "rawset", "require", "select", "setmetatable", "string", "table", "tonumber", "tostring",
  "type", "unpack", "xpcall" }
local DENIED = { "_G", "_VERSION", "_ENV", "collectgarbage", "debug", "dofile", "ffi", "gcinfo", "getfenv", "io", "jit", "load",
  "loadfile", "loadstring", "module", "newproxy", "ngx", "os", "package", "print", "setfenv", "arg", "thread", "env", "file" }

local function list(names)
  return '{ "' .. table.concat(names, '", "') .. '" }'
end

-- A module can see itself only through names: look each one up as a global.
local function types_of(names)
  local out = {}
  for _, name in ipairs(names) do out[#out + 1] = ("%q .. '=' .. type(%s)"):format(name, name) end
  return "return table.concat({ " .. table.concat(out, ", ") .. " }, ' ')"
end

local CASES = {
  { "exit", attack = "os.exit(3)", error = "global 'os'", control = "return type(os) == 'nil' and 'ok'" },
  { "code from text", attack = "return loadstring('return 1')()", error = "global 'loadstring'",
    control = "return type(load) == 'nil' and 'ok'" },
  { "code dumped", attack = "return string.dump(function() end)", error = "field 'dump'",
    control = "return type(('').dump) == 'nil' and 'ok'" },
  { "bytecode as a module", files = { ["b.lua"] = string.dump(function() return 42 end) }, attack = "return require 'b'",
    error = "attempt to load chunk with wrong mode", control = "return 'ok'" },
  { "ffi", attack = "return require 'ffi'", error = "no module ffi", control = "return type(require 'bit') == 'table' and 'ok'" },
  { "jit", attack = "return require 'jit'", error = "no module jit",
    control = "return type(require 'math') == 'table' and 'ok'" },
  { "LuaJIT's hidden libraries", attack = "return require 'table.clear'", error = "no module table.clear",
    control = "return type(require 'lanegate') == 'table' and 'ok'" },
  { "a module above the folder", attack = "return require '../../etc/passwd'", error = "no module ../../etc/passwd",
    control = "return 'ok'" },
  { "a module by an absolute path", attack = "return require '/etc/passwd'", error = "no module /etc/passwd",
    control = "return 'ok'" },
  { "a module by dots", attack = "return require '...etc.passwd'", error = "no module ...etc.passwd", control = "return 'ok'" },
  { "a module with NUL in its name", files = { ["n.lua"] = "return { x = 'ok' }" }, attack = "return require('n\\0x').x",
    error = "no module n", control = "return require('n').x" },
  { "our own modules", attack = "return require 'lanegate.config'", error = "no module lanegate.config",
    control = "return 'ok'" },
  { "the metatable of texts", attack = "return getmetatable('').__index.x", error = "attempt to index", control = "return 'ok'" },
  { "a method for all texts", attack = "getmetatable('').__index.evil = 1", error = "attempt to index", control = "return 'ok'" },
  { "setting the metatable of texts", attack = "return setmetatable('', {})", error = "bad argument",
    control = "return getmetatable(setmetatable({}, { __metatable = 'ok' }))" },
  { "a library changed", attack = "string.format = function() return 'evil' end", error = "string can't be changed",
    control = "return string.format('%s', 'ok')" },
  { "a library changed raw", attack = "rawset(string, 'format', error) return 'evil'", error = "can't be changed",
    control = "local t = {} rawset(t, 1, 'ok') return rawget(t, 1)" },
  { "a library grown by insert", attack = "table.insert(string, 'x') return string[1]", error = "can't be changed",
    control = "local t = {} table.insert(t, 'ok') return t[1]" },
  { "a library sorted", attack = "table.sort(lanegate)", error = "can't be changed", control = "table.sort({}) return 'ok'" },
  { "a library given a metatable", attack = "setmetatable(math, {})", error = "protected metatable",
    control = "setmetatable({}, {}) return 'ok'" },
  { "the metatable of a library", attack = "return tostring(getmetatable(string))", key = "false", control = "return 'ok'" },
  { "lanegate changed", attack = "lanegate.unordered = 'x'", error = "lanegate can't be changed",
    control = "return lanegate.null ~= lanegate.unordered and 'ok'" },
  { "a base function replaced", head = "local M = {}", attack = "tostring = function() return 'evil' end return tostring(1)",
    key = "evil", control = "return tostring(1) == '1' and 'ok'" },
  { "a library replaced", attack = "string = false return tostring(string)", key = "false", control = "return string and 'ok'" },
  { "a global from call to call", attack = "counter = (counter or 0) + 1 return tostring(counter)", key = "1",
    control = "counter = (counter or 0) + 1 return counter == 1 and 'ok'" },
  { "many globals from call to call", key = "ok", control = "return (a1 or a500) and 'evil' or 'ok'",
    attack = "for i = 1, 1 do " .. (function()
      local out = {}
      for i = 1, 500 do out[i] = "a" .. i .. " = 1" end
      return table.concat(out, " ")
    end)() .. " end return 'ok'" },
  { "globals of a module that is needed late",
    files = { ["late.lua"] = "shared = 'ok' function late() return shared end return {}" },
    attack = "require 'late' return late()", key = "ok", control = "require 'late' return late()" },
  { "globals of a call inside a module that is needed", files = { ["sees.lua"] = "return { seen = secret }" },
    attack = "secret = 'x' return tostring(require('sees').seen)", key = "nil",
    control = "secret = 'x' return require('sees').seen == nil and secret == 'x' and 'ok'" },
  { "an argument that is changed", attack = "extra.n = extra.n + 1 return tostring(extra.n)", key = "2",
    control = "return extra.n == 1 and 'ok'" },
  { "a hook kept from call to call", head = "local kept", attack = "return kept.id", error = "this hook is over",
    control = "kept = hook return kept.id == hook.id and 'ok'" },
  { "a method of a hook kept", head = "local kept", attack = "return kept:get('shop.id')", error = "this hook is over",
    control = "kept = hook return 'ok'" },
  { "an iterator over headers kept", head = "local kept", attack = "return kept()", error = "this hook is over",
    control = "kept = hook:each_header() kept() return 'ok'" },
  { "a body kept", head = "local kept", attack = "return kept == hook.body and 'ok'", key = "ok",
    control = "kept = hook.body return 'ok'" },
  { "a hook written to", attack = "hook.body = 'x'", error = "read-only", control = "return #hook.body > 0 and 'ok'" },
  { "a hook written raw", attack = "rawset(hook, 'body', 'x')", error = "table expected", control = "return 'ok'" },
  { "the metatable of a hook", attack = "return tostring(getmetatable(hook))", key = "false", control = "return 'ok'" },
  { "a method on something else", attack = "return hook.header(lanegate.null, 'x')", error = "a hook is expected",
    control = "return hook.header(hook, 'x-shop') == '7' and 'ok'" },
  { "a method on a table", attack = "return hook.get({}, 'x')", error = "a hook is expected", control = "return 'ok'" },
  { "a method on nothing", attack = "return hook.json()", error = "a hook is expected", control = "return 'ok'" },
  { "a method with the metatable of a library", attack = "return hook.header(string, 'x')", error = "a hook is expected",
    control = "return 'ok'" },
  { "addresses", attack = "return tostring({}) .. tostring(type) .. tostring(hook) .. ('%s'):format({})",
    key = "tablefunctionhooktable", control = "return 'ok'" },
  { "addresses by %p", attack = "return ('%p'):format({})", error = "invalid", control = "return 'ok'" },
  { "randomness", attack = "return math.random()", error = "field 'random'", control = "return math.pi > 3 and 'ok'" },
  { "the seed of randomness", attack = "return math.randomseed(1)", error = "field 'randomseed'", control = "return 'ok'" },
  { "the environment of a function", attack = "return getfenv(1)", error = "global 'getfenv'", control = "return 'ok'" },
  { "the environment set", attack = "setfenv(1, {})", error = "global 'setfenv'", control = "return 'ok'" },
  { "newproxy", attack = "return newproxy(true)", error = "global 'newproxy'", control = "return 'ok'" },
  { "debug", attack = "return debug.getregistry()", error = "global 'debug'", control = "return 'ok'" },
  { "a thread for its environment", attack = "return tostring(coroutine.running())", key = "nil",
    control = "return type(coroutine.create(type)) == 'thread' and 'ok'" },
  { "everything that is denied", attack = types_of(DENIED), control = "return 'ok'",
    key = (table.concat(DENIED, "=nil ") .. "=nil") },
}

local RESULTS = {
  { "a number is no key", attack = "return 42", missing = "script_type", control = "return '4' and 'ok'" },
  { "true is no key", attack = "return true", missing = "script_type", control = "return 'ok'" },
  { "nothing is no key", attack = "return", missing = "script_type", control = "return 'ok'" },
  { "nil is no key", attack = "return nil", missing = "script_type", control = "return 'ok'" },
  { "a table is no key", attack = "return { 'x' }", missing = "script_type", control = "return 'ok'" },
  { "null is no key", attack = "return lanegate.null", missing = "script_type", control = "return 'ok'" },
  { "a hook is no key", attack = "return hook", missing = "script_type", control = "return 'ok'" },
  { "a table with __tostring is no key", attack = "return setmetatable({}, { __tostring = function() return 'x' end })",
    missing = "script_type", control = "return 'ok'" },
  { "any bytes are one", attack = "return 'a\\0b\\r\\nX-Evil: 1'", key = "a%00b%0D%0AX-Evil: 1", control = "return 'ok'" },
  { "only the first result counts", attack = "return 'ok', 'x'", key = "ok", control = "return 'ok'" },
  { "an error that is a table", attack = "error { code = 7 }", error = "an error that is no text but a table",
    control = "return select(2, pcall(error, { code = 'ok' })).code" },
  { "an error that is a table with __tostring that spins", error = "an error that is no text but a table",
    attack = "error(setmetatable({}, { __tostring = function() while true do end end }))", control = "return 'ok'" },
  { "an error that is nothing", attack = "error()", error = "an error that is no text but a nil", control = "return 'ok'" },
  { "an error in a module that is needed", files = { ["bad.lua"] = "error 'at once'" }, attack = "require 'bad'",
    error = "bad.lua:1: at once", control = "return 'ok'" },
}

describe("a script can't reach", function()
  for case in sandbox.each(CASES) do
    it(case.name, function() sandbox.check(case) end)
  end

  it("anything but what is allowed", function()
    local result = sandbox.key(types_of(ALLOWED))
    assert.is_nil(result.key:find("=nil", 1, true))
    assert.equal("ok", sandbox.key("for _, name in ipairs " .. list { "sha256", "hmac_sha256", "hex", "base64", "json_decode" }
      .. " do assert(type(lanegate[name]) == 'function') end return 'ok'").key)
  end)
end)

describe("of what a function gives,", function()
  for case in sandbox.each(RESULTS) do
    it(case.name, function() sandbox.check(case) end)
  end
end)
