-- Real processes for flows: started in the background, their output in files, ended whatever happens.
local socket = require "socket"

local process = {}

local running = {} -- pid -> when it started: what a crashed spec would leave behind

local function quote(text)
  return "'" .. tostring(text):gsub("'", "'\\''") .. "'"
end
process.quote = quote

function process.read_file(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "*a"
  file:close()
  return text
end

function process.write_file(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- Runs a command to its end: gives its exit code, stdout and stderr.
function process.run(words, stdin)
  local dir = process.temp_dir()
  local line = {}
  for _, word in ipairs(words) do line[#line + 1] = quote(word) end
  if stdin then process.write_file(dir .. "/in", stdin) end
  local command = ("%s >%s/out 2>%s/err <%s; echo $? >%s/code"):format(
    table.concat(line, " "), dir, dir, stdin and dir .. "/in" or "/dev/null", dir)
  os.execute(command)
  local code = tonumber(process.read_file(dir .. "/code"))
  local out, err = process.read_file(dir .. "/out"), process.read_file(dir .. "/err")
  process.remove(dir)
  return code, out, err
end

function process.temp_dir()
  local pipe = io.popen "mktemp -d"
  local dir = pipe:read "*l"
  pipe:close()
  return dir
end

function process.remove(dir)
  assert(dir:match "^/tmp/" or dir:match "^/var/", "not a temporary folder: " .. dir)
  os.execute("rm -rf " .. quote(dir))
end

-- State and start time (in ticks) of a process; nil when there is none. The system gives a number out again, on a busy machine
-- within minutes: who still has it may be somebody else.
local function look(pid)
  local rest = (process.read_file(("/proc/%d/stat"):format(pid)) or ""):match "^.*%) (.*)$"
  if not rest then return nil end
  local fields = {}
  for field in rest:gmatch "%S+" do fields[#fields + 1] = field end
  return fields[1], fields[20], tonumber(fields[18])
end

-- Starts `words` in the background with `env` added. Output goes to out_path / err_path (appended). Gives the pid.
function process.spawn(words, out_path, err_path, env)
  local line = { "exec", "env" }
  for name, value in pairs(env or {}) do line[#line + 1] = quote(name .. "=" .. value) end
  for _, word in ipairs(words) do line[#line + 1] = quote(word) end
  local command = ("sh -c %s >>%s 2>>%s </dev/null & echo $!"):format(
    quote(table.concat(line, " ")), quote(out_path), quote(err_path))
  local pipe = io.popen(command)
  local pid = tonumber(pipe:read "*l")
  pipe:close()
  running[pid] = select(2, look(pid))
  return pid
end

function process.signal(pid, name)
  return process.alive(pid) and os.execute(("kill -%s %d 2>/dev/null"):format(name, pid)) == 0
end

-- One of ours, started here. A zombie is gone too: nobody in this program waits for grandchildren. But not while a
-- thread of it is still in a sync: until that ends, the process has its files, and their locks.
function process.alive(pid)
  local state, started, threads = look(pid)
  local gone = not state or (state == "Z" and threads <= 1) or started ~= running[pid]
  if gone then running[pid] = nil end
  return not gone
end

-- Waits for a condition, never for time: the first true value of `check`, or an error after `seconds`.
function process.wait_for(what, check, seconds)
  local deadline = socket.gettime() + (seconds or 20)
  repeat
    local value = check()
    if value then return value end
    socket.sleep(0.005)
  until socket.gettime() > deadline
  error("waited in vain for " .. what, 2)
end

function process.kill_hard(pid)
  process.signal(pid, "KILL")
  process.wait_for("the end of process " .. pid, function() return not process.alive(pid) end)
end

-- SIGTERM, then its end within `seconds`; SIGKILL and an error when it does not come.
function process.stop(pid, seconds)
  process.signal(pid, "TERM")
  local ok = pcall(process.wait_for, "the end", function() return not process.alive(pid) end, seconds or 30)
  if not ok then
    process.kill_hard(pid)
    error("process " .. pid .. " did not end on SIGTERM", 2)
  end
end

-- For the end of a spec file: nothing stays behind.
function process.kill_all()
  for pid in pairs(running) do
    if process.alive(pid) then process.kill_hard(pid) end
  end
end

-- The binary under test: LANEGATE_BIN is set by ctest.
function process.binary()
  return assert(os.getenv "LANEGATE_BIN", "set LANEGATE_BIN to the lanegate binary")
end

return process
