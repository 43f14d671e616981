-- A gateway of its own in a folder of its own: started from a config given as text, stopped or killed at will.
local json = require "dkjson"
local http = require "support.http"
local process = require "support.process"

local gateway = {}

local Gateway = {}
Gateway.__index = Gateway

local function log_lines(self)
  local lines = {}
  for line in (process.read_file(self.log_path) or ""):gmatch "[^\n]+" do
    lines[#lines + 1] = json.decode(line) or { event = "unreadable", line = line }
  end
  return lines
end

-- Log lines (decoded) of one event since the last start.
function Gateway:events(name)
  local found = {}
  for i, line in ipairs(log_lines(self)) do
    if i > self.log_skip and line.event == name then found[#found + 1] = line end
  end
  return found
end

function Gateway:launch()
  self.log_skip = #log_lines(self)
  if self.log_pipe then
    self.log_reader = process.spawn({ "cat", self.log_pipe }, self.log_path, self.dir .. "/out")
  end
  self.pid = process.spawn({ process.binary(), "serve", "--config", self.config_path }, self.dir .. "/out",
    self.log_pipe or self.log_path, self.env)
  process.wait_for("the gateway to start", function()
    if not process.alive(self.pid) then
      error("the gateway ended at once:\n" .. (process.read_file(self.log_path) or ""), 0)
    end
    return self:events("started")[1]
  end)
  self.ingest = self:events("ingest_listening")[1].address
  self.admin = self:events("admin_listening")[1].address
  return self
end

-- options: config (text; "return {...}"), env (map), files (map of name to text, beside the config), log_pipe (true: the
-- log goes through a pipe that the process `log_reader` reads).
-- In the config, data_dir defaults to a folder beside it, and both listens should use port 0.
function gateway.start(options)
  local dir = process.temp_dir()
  local self = setmetatable({ dir = dir, env = options.env or {}, log_skip = 0 }, Gateway)
  self.config_path = dir .. "/config.lua"
  self.log_path = dir .. "/log"
  for name, text in pairs(options.files or {}) do
    local folder = name:match "^(.*)/"
    if folder then os.execute("mkdir -p " .. process.quote(dir .. "/" .. folder)) end
    process.write_file(dir .. "/" .. name, text)
  end
  process.write_file(self.config_path, options.config)
  if options.log_pipe then
    self.log_pipe = dir .. "/pipe"
    assert(os.execute("mkfifo " .. process.quote(self.log_pipe)) == 0)
  end
  return self:launch()
end

-- The same data, a new process; `config` replaces the file first.
function Gateway:restart(config)
  if process.alive(self.pid) then self:stop() end
  if config then process.write_file(self.config_path, config) end
  return self:launch()
end

function Gateway:post(source, headers, body)
  return http.once(self.ingest, "POST", "/webhooks/" .. source, headers, body or "")
end

function Gateway:ask(path, method, headers)
  local answer = assert(http.once(self.admin, method or "GET", path, headers))
  answer.json = answer.headers["content-type"] == "application/json" and json.decode(answer.body) or nil
  return answer
end

-- A counter or gauge: the sum of all series whose labels hold every given one.
function Gateway:metric(name, labels)
  local sum = 0
  for line in self:ask("/metrics").body:gmatch "[^\n]+" do
    local series, value = line:match "^(%S+) (%S+)$"
    if series and (series:match "^[^{]+") == "lanegate_" .. name then
      local all = true
      for label, wanted in pairs(labels or {}) do
        if not series:find(("%s=\"%s\""):format(label, wanted), 1, true) then all = false end
      end
      if all then sum = sum + tonumber(value) end
    end
  end
  return sum
end

function Gateway:wait_idle(seconds)
  process.wait_for("every row to be delivered", function()
    return self:metric "queue_pending" == 0 and self:metric "queue_inflight" == 0
  end, seconds or 60)
end

function Gateway:cli(...)
  local words = { process.binary(), ... }
  words[#words + 1] = "--admin"
  words[#words + 1] = "http://" .. self.admin
  return process.run(words)
end

function Gateway:kill9()
  process.kill_hard(self.pid)
end

function Gateway:stop(seconds)
  process.stop(self.pid, seconds)
end

function Gateway:memory_bytes()
  local kib = process.read_file(("/proc/%d/status"):format(self.pid)):match "VmRSS:%s+(%d+)"
  return tonumber(kib) * 1024
end

-- For the end of a spec: stops what still runs and removes the folder.
function Gateway:remove()
  if process.alive(self.pid) then process.kill_hard(self.pid) end
  process.remove(self.dir)
end

return gateway
