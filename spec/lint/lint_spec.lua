-- Every rule of the lint is seen failing on a snippet, beside one like it that passes.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]+$") or "."
local lint = assert(loadfile(here .. "/lint.lua"))()

local only = "on" .. "ly" -- this file is linted too

-- Lays the files (path = text) below a fresh folder and gives the findings of one rule as "path:line".
local function findings(rule, files)
  local root = os.tmpname()
  os.remove(root)
  for path, text in pairs(files) do
    local full = root .. "/" .. path
    assert(os.execute("mkdir -p '" .. full:match("(.*)/") .. "'"))
    local file = assert(io.open(full, "wb"))
    file:write(text)
    file:close()
  end
  local found = {}
  for _, finding in ipairs((lint.run(root))) do
    local path, line, by = finding:match("^([^:]+):(%d+): ([%w_]+): ")
    if by == rule then
      found[#found + 1] = path .. ":" .. line
    end
  end
  os.execute("rm -rf '" .. root .. "'")
  return found
end

describe("lint", function()
  it("keeps rooms to the direction of flow", function()
    local function asked(needs)
      local room = "room(deliver SOURCES a.c\n  NEEDS " .. needs .. " LIBS x)\n"
      return findings("direction", { ["src/deliver/CMakeLists.txt"] = room })
    end
    assert.same({}, asked("envelope metrics"))
    assert.same({ "src/deliver/CMakeLists.txt:1" }, asked("envelope store"))
    assert.same({ "src/deliver/CMakeLists.txt:1" }, asked("lanes"))
  end)

  it("knows every room", function()
    local path = "src/attic/CMakeLists.txt"
    assert.same({ path .. ":1" }, findings("direction", { [path] = "room(attic SOURCES a.c)" }))
  end)

  it("keeps includes to what the room asked for", function()
    local function including(line)
      return findings("include", {
        ["src/store/CMakeLists.txt"] = "room(store SOURCES a.c NEEDS envelope)\n",
        ["src/store/a.c"] = "#include <stdio.h>\n" .. line .. "\n",
      })
    end
    assert.same({}, including('#include "store/store.h"'))
    assert.same({}, including('#include "util/buf.h"'))
    assert.same({}, including('#include "envelope/envelope.h"'))
    assert.same({ "src/store/a.c:2" }, including('#include "lanes/lanes.h"'))
    assert.same({ "src/store/a.c:2" }, including('#  include "metrics/metrics.h"'))
    assert.same({ "src/store/a.c:2" }, including('#include "store.h"'))
    assert.same({ "src/store/a.c:2" }, including('#include "../lanes/lanes.h"'))
  end)

  it("keeps a library behind its room", function()
    local headers = {
      { "<h2o.h>", "http/a.c", "ingest/a.c" },
      { "<sqlite3.h>", "store/a.c", "lanes/a.c" },
      { "<lua.h>", "script/a.c", "config/a.c" },
      { "<luajit-2.1/lua.h>", "script/a.c", "order/a.c" },
      { "<lauxlib.h>", "script/a.c", "cli/a.c" },
      { "<jansson.h>", "json/tree.h", "json/walk.c" },
      { "<curl/curl.h>", "deliver/a.c", "http/a.c" },
      { "<openssl/evp.h>", "verify/a.c", "store/a.c" },
    }
    for _, case in ipairs(headers) do
      local include = "/* . */\n#include " .. case[1] .. "\n"
      assert.same({}, findings("include", { ["src/" .. case[2]] = include }))
      assert.same({ "src/" .. case[3] .. ":2" }, findings("include", { ["src/" .. case[3]] = include }))
    end
  end)

  it("wants every source file on the map", function()
    local files = {
      ["src/README.md"] = "| `main.c` | starts |",
      ["src/main.c"] = "",
      ["src/order/README.md"] = "`spec.c` reads a spec; `lane_id.[ch]` hashes; `sub/deep.c` too",
      ["src/order/CMakeLists.txt"] = "",
      ["src/order/spec.c"] = "",
      ["src/order/lane_id.h"] = "",
      ["src/order/lane_id.c"] = "",
      ["src/order/sub/deep.c"] = "",
    }
    assert.same({}, findings("map", files))
    files["src/order/native.c"] = ""
    files["src/order/ec.c"] = "" -- the end of a name that is there
    files["src/order/spec.h"] = ""
    assert.same({ "src/order/ec.c:1", "src/order/native.c:1", "src/order/spec.h:1" }, findings("map", files))
  end)

  it("refuses calls that overrun, forget or run a shell", function()
    for _, name in ipairs { "strcpy", "strcat", "sprintf", "gets", "strtok", "atoi", "system", "popen", "alloca" } do
      local code = "void f(void) {\n  " .. name .. " (x);\n}\n"
      assert.same({ "src/a/a.c:2" }, findings("banned", { ["src/a/a.c"] = code }))
    end
    assert.same({}, findings("banned", {
      ["src/a/a.c"] = '/* gets(x)\n atoi(x) */ fgets(x); snprintf(x); puts("system(x) \\" gets(x)"); // strtok(x)\n'
        .. "strtok_r(x); char c = '\"'; file_system(x); x = a / b; int atoi;\n",
    }))
    local third = "/* two\n lines */ char q = '\"';\ngets(x);\n"
    assert.same({ "src/a/a.c:3" }, findings("banned", { ["src/a/a.c"] = third }))
  end)

  it("wants a header to begin with its comment", function()
    assert.same({}, findings("header_comment", { ["src/a/a.h"] = "/* What it is. */\n#ifndef A\n" }))
    assert.same({ "src/a/a.h:1" }, findings("header_comment", { ["src/a/a.h"] = "#ifndef A\n/* late */\n" }))
  end)

  it("finds words that put work off", function()
    local word = "TO" .. "DO"
    assert.same({ "vendor/x.md:2" }, findings("unfinished", { ["vendor/x.md"] = "a\n(" .. word .. ": b)\n" }))
    assert.same({ "src/a/a.c:1" }, findings("unfinished", { ["src/a/a.c"] = "// FIX" .. "ME\n" }))
    assert.same({}, findings("unfinished", { ["a.md"] = "MASTO" .. "DON\n" }))
  end)

  it("finds one machine's paths and hosts", function()
    assert.same({ "a.sh:1", "b.json:1" }, findings("machine_path", {
      ["a.sh"] = "cd /ro" .. "ot/x\n",
      ["b.json"] = '"https://registry.npm' .. 'js.org/x"\n',
      ["c.sh"] = "cd /tmp/x /opt/y\n",
    }))
  end)

  it("finds leftover focus", function()
    assert.same({ "spec/a_spec.lua:1", "spec/b.test.js:1", "spec/c_spec.lua:2" }, findings("focus", {
      ["spec/a_spec.lua"] = 'it("works #' .. only .. '", f)\n',
      ["spec/b.test.js"] = "test." .. only .. "('x', f)\n",
      ["spec/c_spec.lua"] = "-- the only one\nfdes" .. "cribe('x')\n",
    }))
  end)

  it("does not look into binary files", function()
    assert.same({}, findings("unfinished", { ["spec/f.bin"] = "\0TO" .. "DO\n" }))
  end)
end)
