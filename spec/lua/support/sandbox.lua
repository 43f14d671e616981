-- Runs attacks and their controls in the sandbox, each pair in a process of its own (spec/lua/sandbox/try.c): first
-- the control, then the attack, then the control again, which must not notice.
local assert = require "luassert"
local json = require "dkjson"
local process = require "support.process"

local sandbox = {}

-- Processor time of one call, in microseconds. A breach takes a few milliseconds; a sanitizer makes C several times
-- slower.
local CPU_MAX = tonumber(os.getenv "SANDBOX_CPU_MAX_US" or 250000)

local function indent(code)
  return "  " .. code:gsub("\n", "\n  ")
end

-- A module whose functions have these bodies. `head` stands before them.
function sandbox.module(functions, head)
  local out = { head or "", "local M = {}" }
  for name, code in pairs(functions) do
    out[#out + 1] = ("function M.%s(hook, region, extra)\n%s\nend"):format(name, indent(code))
  end
  out[#out + 1] = "return M\n"
  return table.concat(out, "\n")
end

-- Calls functions of the files (map of path to text); gives a list of results, or nil, the exit code and stderr.
function sandbox.run(files, calls, ...)
  local dir = process.temp_dir()
  for path, text in pairs(files) do
    local folder = path:match "^(.*)/[^/]*$"
    if folder then os.execute("mkdir -p " .. process.quote(dir .. "/" .. folder)) end
    process.write_file(dir .. "/" .. path, text)
  end
  local words = { os.getenv "SANDBOX_TRY", "--path", dir, ... }
  for _, call in ipairs(calls) do words[#words + 1] = call end
  local code, out, err = process.run(words)
  process.remove(dir)
  err = err:gsub(dir:gsub("%p", "%%%0"), "DIR")
  if code ~= 0 then return nil, code, err end
  local results = {}
  for line in out:gmatch "[^\n]+" do
    results[#results + 1] = assert(json.decode(line))
    local error_text = results[#results].error
    if error_text then results[#results].error = error_text:gsub(dir:gsub("%p", "%%%0"), "DIR") end
  end
  return results
end

-- What a function of this body gives.
function sandbox.key(code, ...)
  local results, exit, err = sandbox.run({ ["m.lua"] = sandbox.module { f = code } }, { "m.f" }, ...)
  assert(results, ("exit %s: %s"):format(exit, err))
  return results[1]
end

local function says(wanted, got, what, case)
  assert.equal(wanted, got, ("%s of: %s"):format(what, case.name))
end

-- One case: name; attack (a body) and what comes of it: breach = kind or kinds, or error = part of a text, or key = text,
-- or missing = reason, or stopped = by an error or a breach; control (a body) and the key it gives ("ok" when it is not
-- said); head and files; options.
function sandbox.check(case)
  local files = { ["m.lua"] = sandbox.module({ attack = case.attack, control = case.control }, case.head) }
  for path, text in pairs(case.files or {}) do files[path] = text end
  local results, exit, err = sandbox.run(files, { "m.control", "m.attack", "m.control" }, unpack(case.options or {}))
  local calls = results and #results or 0
  assert(calls == 3, ("%s: the process ended with %s after %d calls: %s"):format(case.name, tostring(exit), calls,
    tostring(err)))
  for _, at in ipairs { 1, 3 } do
    says("", results[at].missing .. results[at].error, "control " .. at, case)
    says(case.control_key or "ok", results[at].key, "control " .. at, case)
  end
  local attack = results[2]
  if case.stopped then -- by whichever bound comes first
    assert(attack.missing == "script_breach" or attack.missing == "script_error", case.name .. ": gave " .. attack.missing)
  elseif case.breach then
    says("script_breach", attack.missing, "reason (" .. attack.error .. ")", case)
    local found = case.breach == attack.breach or type(case.breach) == "table" and (function()
      for _, kind in ipairs(case.breach) do if kind == attack.breach then return true end end
    end)()
    assert(found, ("%s: broke %s"):format(case.name, attack.breach))
  elseif case.error then
    says("script_error", attack.missing, "reason (" .. attack.error .. ")", case)
    assert(attack.error:find(case.error, 1, true), ("%s: said %s"):format(case.name, attack.error))
  elseif case.key then
    says("", attack.missing .. attack.error, "attack", case)
    says(case.key, attack.key, "key", case)
  else
    says(case.missing, attack.missing, "reason (" .. attack.error .. ")", case)
  end
  assert(attack.cpu_us < CPU_MAX, ("%s: took %d us of processor time"):format(case.name, attack.cpu_us))
end

-- The name of a case may stand first in it.
function sandbox.each(list)
  local i = 0
  return function()
    i = i + 1
    local case = list[i]
    if case then case.name = case.name or case[1] end
    return case
  end
end

return sandbox
