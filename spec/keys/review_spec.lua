-- A second pair of eyes on the sandbox: attacks by somebody who did not write it. Each is a key function of its own, and beside
-- each a harmless one must still give its key, in the same process and the same module.
local t = require "lanegate.testing"

-- name, what it is to end with (the reason, or "=KEY" for a key that shows that nothing was reached), the body.
local attacks = {
  { "the metatable of strings", "=false",
    [=[local m = getmetatable("") return tostring(m)]=] },
  { "a change of the string library", "=falsetrue",
    [=[local ok = pcall(function() string.rep = nil end) return tostring(ok) .. tostring(("x").rep ~= nil)]=] },
  { "the table of globals", "script_error",
    [=[_G.leak = "x" return tostring(rawget(_G, "leak"))]=] },
  { "a global that another call set", "=nil",
    [=[return tostring(leak)]=] },
  { "recursion through coroutine.wrap", "script_error",
    [=[local function f() return coroutine.wrap(f)() end return f()]=] },
  { "a coroutine resumed for ever", "script_breach",
    [=[local co co = coroutine.create(function() while true do coroutine.yield() end end) for i=1,1e9 do
      coroutine.resume(co) end]=] },
  { "pcall in a coroutine around a loop", "script_breach",
    [=[return coroutine.wrap(function() while true do pcall(function() while true do end end) end end)()]=] },
  { "a handler of xpcall that loops", "script_breach",
    [=[return xpcall(function() while true do end end, function(e) while true do end end)]=] },
  { "recursion through gsub", "script_error",
    [=[local function f() return (("x"):gsub("x", f)) end return f()]=] },
  { "a comparison that lies", "script_breach",
    [=[local t = {} for i=1,5000 do t[i]=i end table.sort(t, function() return true end) return "x"]=] },
  { "a concatenation of a gigabyte", "script_breach",
    [=[local t = {} for i=1,1000 do t[i]=("x"):rep(1e6) end return table.concat(t)]=] },
  { "a width of a hundred million", "script_error",
    [=[return ("%99999999d"):format(1)]=] },
  { "a format of a million parts", "script_breach",
    [=[return ("%s"):rep(1e6):format(1)]=] },
  { "__tostring that loops", "script_breach",
    [=[return tostring(setmetatable({}, {__tostring=function() while true do end end}))]=] },
  { "an error whose text raises", "script_error",
    [=[error(setmetatable({}, {__tostring=function() error("again") end}))]=] },
  { "a table that is its own __index", "script_error",
    [=[local t = {} setmetatable(t, {__index=t}) return t.x or "none"]=] },
  { "a chain of a hundred thousand __index", "script_breach",
    [=[local t = {} for i=1,1e5 do t = setmetatable({}, {__index=t}) end return t.x or "none"]=] },
  { "__index that asks itself", "script_error",
    [=[local t t = setmetatable({}, {__index=function(_, k) return t[k] end}) return t.x]=] },
  { "__eq that loops", "script_breach",
    [=[local m = {__eq=function() while true do end end} return tostring(setmetatable({},m)==setmetatable({},m))]=] },
  { "ten million results", "script_error",
    [=[return select("#", unpack({}, 1, 1e7))]=] },
  { "two billion results", "script_error",
    [=[return select("#", unpack({}, -1e9, 1e9))]=] },
  { "a million bytes at once", "script_error",
    [=[return ("x"):rep(1e6):byte(1, -1)]=] },
  { "a byte of 300", "script_error",
    [=[return string.char(unpack({1,2,300}))]=] },
  { "JSON decoded a hundred times", "script_breach",
    [=[local s = "[" .. ("1,"):rep(5e5) .. "1]" for i=1,100 do lanegate.json_decode(s) end return "x"]=] },
  { "ten gigabytes hashed", "script_breach",
    [=[local s = ("x"):rep(1e7) for i=1,1000 do lanegate.sha256(s) end return "x"]=] },
  { "next from the middle, again and again", "script_breach",
    [=[local t = {} for i=1,1e5 do t["k"..i]=i end local k for i=1,1e5 do k = next(t, "k50000") end return k]=] },
  { "what would load code", "=nilnilnilnilnilnilnil",
    [=[return tostring(loadstring) .. tostring(load) .. tostring(dofile) .. tostring(setfenv) .. tostring(newproxy) ..
      tostring(collectgarbage) .. tostring(string.dump)]=] },
  { "long numbers made of text", "script_breach",
    [=[local s = ("1"):rep(4e6) local t = 0 for i=1,1000 do t = t + s end return "x"]=] },
  { "long texts compared", "script_breach",
    [=[local a, b = ("x"):rep(8e6), ("x"):rep(8e6-1).."y" local n = 0 for i=1,1e5 do if a < b then n = n + 1 end end
      return "x"]=] },
  { "a pattern that balances nothing", "script_breach",
    [=[return (("("):rep(1e5)):find("%b()") or "no"]=] },
  { "a pattern of back references", "script_breach",
    [=[return (("a"):rep(3e4)):find("(a*)%1%1%1b") or "no"]=] },
  { "a lazy pattern at each place", "script_breach",
    [=[for w in ("a"):rep(1e5):gmatch("(a-)$") do end return "x"]=] },
}

describe("the sandbox, attacked by others:", function()
  local folder
  setup(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir -p " .. folder) == 0)
    local file = assert(io.open(folder .. "/attacks.lua", "w"))
    file:write "local M = {}\nfunction M.harmless(hook) return hook:get 'a' end\n"
    for i, attack in ipairs(attacks) do file:write(("function M.a%d() %s end\n"):format(i, attack[3])) end
    file:write "return M\n"
    file:close()
    t.scripts(folder)
  end)
  teardown(function() os.execute("rm -r " .. folder) end)

  local hook = t.hook { json = { a = "7" } }
  for i, attack in ipairs(attacks) do
    it(attack[1], function()
      local key, reason = t.key({ "attacks", "a" .. i }, hook)
      assert.equal(attack[2], key and "=" .. key or reason)
      assert.equal("7", (t.key({ "attacks", "harmless" }, hook)))
    end)
  end
end)
