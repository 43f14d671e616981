-- What a machine can check about the tree, checked, and without a list of excuses.
--
--   luajit spec/lint/lint.lua [ROOT]      prints "file:line: rule: what", one a line; exit 1 when there is any
--
-- Each rule is a function (tree, report) in `rules` below; lint_spec.lua shows each of them failing.

local lint = {}

-- The rooms in the direction of flow, and what each may see (util always), with what the public headers of those show in
-- turn. src/<room>/CMakeLists.txt may ask for less.
local may_see = {
  util = "",
  envelope = "",
  json = "",
  metrics = "",
  events = "",
  limits = "",
  http = "metrics",
  verify = "envelope json",
  order = "envelope json",
  store = "envelope metrics",
  deliver = "envelope metrics",
  ingest = "envelope json metrics events limits http verify order store",
  lanes = "envelope metrics events store deliver",
  replay = "envelope json metrics order store deliver lanes",
  script = "envelope json metrics order",
  config = "envelope json metrics limits http verify order store deliver lanes script",
  admin = "envelope json metrics events limits http verify order store deliver lanes replay",
  gateway = "envelope json metrics events limits http verify order store deliver ingest lanes replay script config admin",
  cli = "envelope json metrics limits http verify order store deliver lanes replay script config gateway",
  testing = "envelope json metrics limits http verify order store deliver lanes script config",
}

-- A library's header, and where it may be included: rooms, or single files.
local third_party = {
  { "^h2o[./]", "http" },
  { "^sqlite3", "store" },
  { "^lua", "script testing" },
  { "^lauxlib%.h$", "script testing" },
  { "^jansson", "json/tree.h" },
  { "^curl/", "deliver cli" },
  { "^openssl/", "util verify http deliver" },
}

-- Unbounded, not reentrant, blind to errors, or a shell.
local banned = { "strcpy", "strcat", "sprintf", "vsprintf", "gets", "strtok", "atoi", "atol", "atof", "system", "popen",
  "alloca", "tmpnam", "mktemp", "asctime", "ctime", "localtime", "gmtime" }

-- Written in halves, so that this file keeps its own rules.
local unfinished = { "TO" .. "DO", "FIX" .. "ME" }
local machine_paths = { "/wo" .. "rk/", "/tmp" .. "/h/", "/ro" .. "ot/", "/ho" .. "me/", "registry%.npm" .. "js%.org",
  "deb%.debi" .. "an%.org" }
local focus = { "#on" .. "ly%f[%W]", "%.on" .. "ly%s*%(", "%f[%w]fdes" .. "cribe%f[%W]", "%f[%w]fi" .. "t%s*%(" }

local function set(words)
  local of = {}
  for word in words:gmatch("%S+") do
    of[word] = true
  end
  return of
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function lines(text)
  local n, at = 0, 1
  return function()
    if at > #text then
      return nil
    end
    local stop = text:find("\n", at, true) or #text + 1
    local line = text:sub(at, stop - 1)
    n, at = n + 1, stop + 1
    return n, line
  end
end

-- C without its comments and the insides of its strings; line feeds stay where they are.
function lint.code_only(text)
  local out, at = {}, 1
  while at <= #text do
    local start = text:find("[\"'/]", at)
    if not start then
      break
    end
    out[#out + 1] = text:sub(at, start - 1)
    local opener = text:sub(start, start)
    local stop
    if text:sub(start, start + 1) == "/*" then
      stop = select(2, text:find("*/", start + 2, true)) or #text
      out[#out + 1] = " " .. text:sub(start, stop):gsub("[^\n]", "")
    elseif text:sub(start, start + 1) == "//" then
      stop = (text:find("\n", start, true) or #text + 1) - 1
    elseif opener == "/" then
      stop = start
      out[#out + 1] = "/"
    else
      stop = start + 1
      while stop <= #text and text:sub(stop, stop) ~= opener do
        stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
      end
      out[#out + 1] = opener .. opener
    end
    at = stop + 1
  end
  out[#out + 1] = text:sub(at)
  return table.concat(out)
end

-- Every file that belongs to the project, relative to the root, sorted: what git knows or would add.
local function files_below(root)
  local quoted = "'" .. root:gsub("'", "'\\''") .. "'"
  local walk = "find . -type f -not -path '*/.*' -not -path './build/*' -not -path '*/node_modules/*'"
  local list = "{ git ls-files -co --exclude-standard -- . 2>/dev/null || " .. walk .. "; }"
  local pipe = assert(io.popen("cd " .. quoted .. " && " .. list .. " | sort -u"))
  local found = {}
  for path in pipe:lines() do
    path = path:gsub("^%./", "")
    local file = io.open(root .. "/" .. path, "rb")
    if file then -- listed, but deleted in the work tree
      file:close()
      found[#found + 1] = path
    end
  end
  pipe:close()
  return found
end

function lint.tree(root)
  local tree = { root = root, files = files_below(root), text = {} }
  for _, path in ipairs(tree.files) do
    local text = read(root .. "/" .. path)
    if not text:find("%z") then -- binary fixtures have nothing to say
      tree.text[path] = text
    end
  end
  return tree
end

-- Room and file of a path below src, such as "store", "sqlite/batch.c"; nil for files beside the rooms.
local function room_of(path)
  return path:match("^src/([%w_]+)/(.+)$")
end

local function each_c_file(tree)
  local i = 0
  return function()
    while i < #tree.files do
      i = i + 1
      local path = tree.files[i]
      if path:find("^src/.*%.[ch]$") and tree.text[path] then
        return path, tree.text[path]
      end
    end
  end
end

local function needs_of(tree, room)
  local cmake = tree.text["src/" .. room .. "/CMakeLists.txt"] or ""
  local call = cmake:gsub("#[^\n]*", ""):match("room[%l_]*%s*%((.-)%)") or ""
  return set(call:match("NEEDS%s+([%l_%s]+)") or "")
end

local rules = {}
lint.rules = rules

-- A room asks in its CMakeLists.txt for rooms that the flow lets it see.
function rules.direction(tree, report)
  for _, path in ipairs(tree.files) do
    local room = path:match("^src/([%w_]+)/CMakeLists%.txt$")
    if room and not may_see[room] then
      report(path, 1, "room " .. room .. " has no place in the flow: give it one in spec/lint/lint.lua")
    elseif room then
      local allowed = set(may_see[room])
      for needed in pairs(needs_of(tree, room)) do
        if not allowed[needed] then
          report(path, 1, room .. " must not see " .. needed)
        end
      end
    end
  end
end

-- And a file includes its own room, util, and what the room asked for.
function rules.include(tree, report)
  for path, text in each_c_file(tree) do
    local room, name = room_of(path)
    local seen = room and needs_of(tree, room)
    for n, line in lines(text) do
      local open, header = line:match('^%s*#%s*include%s*([<"])([^>"]+)[>"]')
      local other = header and header:match("^([%w_]+)/")
      if open == '"' and not other then
        report(path, n, "write \"room/" .. header .. "\": the reader sees whose it is")
      elseif open == '"' and room and other ~= room and other ~= "util" and not seen[other] and may_see[other] then
        report(path, n, room .. " includes " .. header .. " but does not need " .. other)
      end
      for _, library in ipairs(header and third_party or {}) do
        local places = set(library[2])
        if header:find(library[1]) and not (room and (places[room] or places[room .. "/" .. name])) then
          report(path, n, header .. " belongs in " .. library[2] .. " only")
        end
      end
    end
  end
end

-- Is this file named in the text: `lane_id.c`, or `lane_id.[ch]` for both?
local function named(map, name)
  local function has(word, boundary)
    return map:find("%f[%w_/]" .. word:gsub("%p", "%%%0") .. boundary)
  end
  local both = name:gsub("%.[ch]$", ".[ch]")
  return has(name, "%f[^%w_]") or has(both, "")
end

-- Every file in src is named in src/README.md or in its room's README.md.
function rules.map(tree, report)
  for _, path in ipairs(tree.files) do
    local below = path:match("^src/(.+)$")
    local name = path:match("([^/]+)$")
    if below and name ~= "README.md" and name ~= "CMakeLists.txt" then
      local room, inside = room_of(path)
      local map, own = tree.text["src/README.md"] or "", room and tree.text["src/" .. room .. "/README.md"] or ""
      if not (named(map, below) or named(own, inside or below)) then
        report(path, 1, "not named in src/README.md or its room's README.md")
      end
    end
  end
end

function rules.banned(tree, report)
  for path, text in each_c_file(tree) do
    for n, line in lines(lint.code_only(text)) do
      for _, name in ipairs(banned) do
        if line:find("%f[%w_]" .. name .. "%s*%(") then
          report(path, n, name .. "() is not used here")
        end
      end
    end
  end
end

-- A header's first line begins to say what it is for.
function rules.header_comment(tree, report)
  for path, text in each_c_file(tree) do
    if path:find("%.h$") and not text:find("^/%*") then
      report(path, 1, "a header starts with a comment: what it is, who owns what")
    end
  end
end

local function rule_of_patterns(where, patterns, what)
  return function(tree, report)
    for _, path in ipairs(tree.files) do
      if path:find(where) and tree.text[path] then
        for n, line in lines(tree.text[path]) do
          for _, pattern in ipairs(patterns) do
            if line:find(pattern) then
              report(path, n, what)
            end
          end
        end
      end
    end
  end
end

local unfinished_words = {}
for i, word in ipairs(unfinished) do
  unfinished_words[i] = "%f[%w]" .. word .. "%f[%W]"
end
rules.unfinished = rule_of_patterns("", unfinished_words, "an issue is the place for what is left to do")
rules.machine_path = rule_of_patterns("", machine_paths, "names one machine's path or host")
rules.focus = rule_of_patterns("^spec/.*%.[lj][us]a?$", focus, "a leftover focus: the other tests would not run")

-- All findings as "file:line: rule: what", sorted.
function lint.run(root)
  local tree, found = lint.tree(root), {}
  for name, rule in pairs(rules) do
    rule(tree, function(path, line, what)
      found[#found + 1] = ("%s:%d: %s: %s"):format(path, line, name, what)
    end)
  end
  table.sort(found)
  return found, #tree.files
end

if arg and arg[0] and arg[0]:find("lint%.lua$") then
  local found, files = lint.run(arg[1] or ".")
  for _, finding in ipairs(found) do
    print(finding)
  end
  print(("lint: %d files, %d findings"):format(files, #found))
  os.exit(#found == 0 and files > 0 and 0 or 1)
end

return lint
