-- A script can't grow beyond its state's memory, nor overrun a stack, nor leave anything behind.
local sandbox = require "sandbox"

local CASES = {
  { "a hook let go, and collected", key = "ok",
    attack = "hook = nil for i = 1, 3000 do local t = { i, {}, tostring(i) .. 'x' } end return 'ok'", control = "return 'ok'" },
  { "a text doubled for ever",
    attack = "local s = 'z' while true do s = s .. s end", breach = { "memory", "instructions", "time" },
    control = "local s = 'z' for i = 1, 10 do s = s .. s end return #s == 1024 and 'ok'" },
  { "a gigabyte at once", attack = "return #string.rep('z', 1e9)", breach = "memory",
    control = "return #string.rep('z', 1e3) == 1000 and 'ok'" },
  { "a gigabyte by the method", attack = "return #(('z'):rep(1e9))", breach = "memory",
    control = "return #(('z'):rep(1e3)) == 1000 and 'ok'" },
  { "a gigabyte, caught", attack = "pcall(string.rep, 'z', 1e9) return 'ok'", breach = "memory",
    control = "pcall(string.rep, 'z', 1e3) return 'ok'" },
  { "a gigabyte with a separator", attack = "return #string.rep('z', 1e6, ('y'):rep(1e3))", breach = "memory",
    control = "return ('a'):rep(2, 'b') == 'aba' and 'ok'" },
  { "a table without end", attack = "local t = {} for i = 1, 1e9 do t[i] = ('z'):rep(999) .. i end",
    breach = { "memory", "instructions", "time" }, control = "local t = {} for i = 1, 100 do t[i] = 'z' .. i end return 'ok'" },
  { "pcall around what grows", breach = { "memory", "instructions", "time" },
    attack = "local keep = {} repeat pcall(function() for i = 1, 1e9 do keep[#keep + 1] = ('z'):rep(9999) .. i end end) "
      .. "keep = {} until false", control = "return 'ok'" },
  { "growing over many calls", head = "local keep = {}", options = { "--memory", "2097152" }, breach = "memory",
    attack = "for i = 1, 3000 do keep[i] = ('z'):rep(900) .. i end return 'ok'",
    control = "local t = {} for i = 1, 300 do t[i % 10] = ('z'):rep(900) .. i end return 'ok'" },
  { "stopping the collector", attack = "return collectgarbage('stop')", error = "global 'collectgarbage' (a nil value)",
    control = "return type(collectgarbage) == 'nil' and 'ok'" },
  { "a table with room for billions", attack = "local t = {} t[2^40] = 1 t[1e8] = 1 return tostring(#t)", key = "0",
    control = "local t = { 1 } t[2] = 1 return #t == 2 and 'ok'" },
  { "globals without end", attack = "for i = 1, 1e9 do _ENV, x = nil, i end", breach = "instructions",
    control = "x = 1 return 'ok'" },
  { "replacements that grow", breach = { "memory", "instructions", "pattern_steps" },
    attack = "local s = 'xx' while true do s = s:gsub('x', 'xxxx') end",
    control = "return (('xx'):gsub('x', 'ok', 1)):sub(1, 2)" },
  { "a format with a huge width", attack = "return ('%99999999d'):format(1)", error = "invalid",
    control = "return ('%5d'):format(1) == '    1' and 'ok'" },
  { "a format of many large texts", breach = { "memory", "instructions", "time" },
    attack = "local s = ('x'):rep(1e6) return ('%s'):rep(100):format(unpack((function() local t = {} "
      .. "for i = 1, 100 do t[i] = s end return t end)()))", control = "return ('%s%s'):format('o', 'k')" },
  { "upper, lower, reverse of large texts kept", breach = { "memory", "instructions", "time" },
    attack = "local s, t = ('x'):rep(3e6), {} for i = 1, 100 do t[i] = (s .. i):upper() end", control = "return ('OK'):lower()" },
  { "too many bytes of a text", attack = "return #{ ('x'):rep(1e5):byte(1, -1) }", error = "string slice too long",
    control = "return string.char(('ok'):byte(1, -1))" },
  { "too many captures", attack = "return ('x'):find(('()'):rep(33))", error = "too many captures",
    control = "return ('x'):find(('()'):rep(32)) and 'ok'" },
  { "a pattern that is too deep", attack = "return ('x'):rep(300):find(('x?'):rep(300))", error = "pattern too complex",
    control = "return ('x'):rep(30):find(('x?'):rep(30)) and 'ok'" },
  { "recursion without end", attack = "local f f = function(n) return f(n + 1) + 1 end return f(0)", stopped = true,
    control = "local f f = function(n) return n == 0 and 0 or f(n - 1) + 1 end return f(1000) == 1000 and 'ok'" },
  { "recursion through pcall", stopped = true,
    attack = "local function f() local good, why = pcall(f) if not good then error(why, 0) end end f()",
    control = "return select(2, pcall(pcall, pcall, pcall)) == true and 'ok' or 'ok'" },
  { "recursion through replacements", stopped = true,
    attack = "local function f(x) return (x:gsub('.', f)) end return f('a')",
    control = "return (('ab'):gsub('.', function(c) return c == 'a' and 'o' or 'k' end))" },
  { "recursion through coroutine.wrap", stopped = true,
    attack = "local function f() return coroutine.wrap(f)() end return f()",
    control = "return coroutine.wrap(function() return coroutine.wrap(function() return 'ok' end)() end)()" },
  { "recursion through coroutine.resume", stopped = true,
    attack = "local function f() local good, why = coroutine.resume(coroutine.create(f)) if not good then error(why, 0) end "
      .. "end return f()", control = "return select(2, coroutine.resume(coroutine.create(function() return 'ok' end)))" },
  { "recursion through sort", stopped = true,
    attack = "local function f() table.sort({ 1, 2 }, f) return true end f()",
    control = "table.sort({ 1, 2 }, function(a, b) table.sort({ 2, 1 }) return a < b end) return 'ok'" },
  { "recursion through __tostring", stopped = true,
    attack = "local mt = {} mt.__tostring = function(t) return ('%s'):format(t) end return tostring(setmetatable({}, mt))",
    control = "local mt = {} mt.__tostring = function(t) return ('%s'):format('ok') end return tostring(setmetatable({}, mt))" },
  { "recursion through xpcall", stopped = true,
    attack = "local function f() local good, why = xpcall(f, function(m) return m end) if not good then error(why, 0) end "
      .. "end f()", control = "return xpcall(function() return xpcall(function() end, function() end) end, print) and 'ok'" },
  { "recursion through a replacement table", stopped = true,
    attack = "local t t = setmetatable({}, { __index = function(_, k) return (k:gsub('.', t)) end }) return (('a'):gsub('.', t))",
    control = "return (('ab'):gsub('.', { a = 'o', b = 'k' }))" },
  { "recursion through __lt in sort", stopped = true,
    attack = "local mt = {} local function new() return setmetatable({}, mt) end "
      .. "mt.__lt = function() table.sort { new(), new() } return false end table.sort { new(), new() }",
    control = "local mt = { __lt = function() return true end } "
      .. "table.sort { setmetatable({}, mt), setmetatable({}, mt) } return 'ok'" },
  { "recursion through require", files = { ["r.lua"] = "return require 'r'" }, attack = "return require 'r'",
    error = "needs itself", control = "return type(require 'string') == 'table' and 'ok'" },
  { "a chain of modules", stopped = true, attack = "return require 'x1'",
    files = (function()
      local files = {}
      for i = 1, 100 do files["x" .. i .. ".lua"] = ("return require 'x%d'"):format(i + 1) end
      return files
    end)(), control = "return 'ok'" },
  { "code nested too deep", files = { ["deep.lua"] = "return " .. ("("):rep(50000) .. "1" .. (")"):rep(50000) },
    attack = "return require 'deep'", error = "deep.lua:1", control = "return 'ok'" },
  { "JSON nested too deep", attack = "return tostring(lanegate.json_decode(('['):rep(1e5)))", key = "nil",
    control = "return type(lanegate.json_decode(('['):rep(2000) .. (']'):rep(2000))) == 'table' and 'ok'" },
  { "a coroutine resumed by itself", key = "cannot resume non-suspended coroutine",
    attack = "local co co = coroutine.create(function() return coroutine.resume(co) end) "
      .. "return select(3, coroutine.resume(co))",
    control = "local co = coroutine.create(function() return 'ok' end) return select(2, coroutine.resume(co))" },
  { "a coroutine that resumes its caller", key = "cannot resume non-suspended coroutine",
    attack = "local a, b a = coroutine.create(function() return select(3, coroutine.resume(b)) end) "
      .. "b = coroutine.create(function() return coroutine.resume(a) end) return (select(2, coroutine.resume(a)))",
    control = "return coroutine.status(coroutine.create(print or type)) == 'suspended' and 'ok'" },
  { "a dead coroutine resumed", key = "cannot resume dead coroutine",
    attack = "local co = coroutine.create(error) coroutine.resume(co) return select(2, coroutine.resume(co))",
    control = "local co = coroutine.create(error) coroutine.resume(co) return coroutine.status(co) == 'dead' and 'ok'" },
  { "the function yields", attack = "return coroutine.yield('x')", error = "yield", control = "return 'ok'" },
  { "a yield across a replacement", error = "yield across",
    attack = "return coroutine.wrap(function() return (('x'):gsub('.', coroutine.yield)) end)()",
    control = "return coroutine.wrap(function() coroutine.yield('ok') end)()" },
  { "a coroutine kept from call to call",
    head = "local co = coroutine.wrap(function(h) while true do coroutine.yield(h.id) end end)",
    attack = "local _, why = pcall(co) return (why:match 'this hook is over')", key = "this hook is over",
    control = "pcall(co, hook) return 'ok'" },
  { "a result that is too long", attack = "return ('k'):rep(4097)", breach = "result_bytes",
    control = "return #('k'):rep(4096) == 4096 and 'ok'" },
}

describe("memory and stacks: a script can't do harm with", function()
  for case in sandbox.each(CASES) do
    it(case.name, function() sandbox.check(case) end)
  end
end)
