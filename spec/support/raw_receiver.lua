-- raw_receive.lua as a child process: answers that no library would give.
local process = require "support.process"

local raw_receiver = {}

local Raw = {}
Raw.__index = Raw

local program = debug.getinfo(1, "S").source:match "^@(.*)raw_receiver%.lua$" .. "raw_receive.lua"

function raw_receiver.start()
  local self = setmetatable({ dir = process.temp_dir() }, Raw)
  self.log_path = self.dir .. "/log"
  self.pid = process.spawn({ "luajit", program, self.log_path }, self.dir .. "/out", self.dir .. "/err")
  self.port = process.wait_for("the raw receiver to listen", function()
    if not process.alive(self.pid) then error(process.read_file(self.dir .. "/err"), 0) end
    return tonumber((process.read_file(self.dir .. "/out") or ""):match "^(%d+)\n")
  end)
  return self
end

-- The URL under which it does `act` with `bytes`: see the head of raw_receive.lua.
function Raw:url(act, bytes)
  local query = (bytes or ""):gsub("[^%w]", function(c) return ("%%%02X"):format(c:byte()) end)
  return ("http://127.0.0.1:%d/%s?%s"):format(self.port, act, query)
end

-- An answer with a length; lines is further text of the head.
function Raw:answer(status, lines, body)
  body = body or "no"
  return self:url("say", ("HTTP/1.1 %d Whatever\r\nContent-Length: %d\r\n%s\r\n%s"):format(status, #body, lines or "", body))
end

-- What /keep has put in the log: { headers = { [lower-case name] = { values } }, body }, in order of arrival.
function Raw:kept()
  local found = {}
  for head, hex in self:log():gmatch "/keep [%d.]+\n(.-)\n\n(%x*)\n" do
    local headers = {}
    for name, value in head:gmatch "\n([^:\n]+): ?([^\n]*)" do
      name = name:lower()
      headers[name] = headers[name] or {}
      table.insert(headers[name], value)
    end
    found[#found + 1] = { headers = headers, body = hex:gsub("%x%x", function(c) return string.char(tonumber(c, 16)) end) }
  end
  return found
end

function Raw:log()
  return process.read_file(self.log_path) or ""
end

function Raw:remove()
  if process.alive(self.pid) then process.kill_hard(self.pid) end
  process.remove(self.dir)
end

return raw_receiver
