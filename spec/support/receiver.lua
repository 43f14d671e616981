-- `lanegate receive` as the service behind a sink: its log is what really arrived.
local json = require "dkjson"
local http = require "support.http"
local process = require "support.process"

local receiver = {}

local Receiver = {}
Receiver.__index = Receiver

function Receiver:launch(listen)
  local words = { process.binary(), "receive", "--listen", listen, "--log", self.log_path, "--json" }
  for _, word in ipairs(self.arguments) do words[#words + 1] = word end
  self.out_path = self.dir .. "/out" .. self.generation
  self.generation = self.generation + 1
  self.pid = process.spawn(words, self.out_path, self.dir .. "/err")
  self.address = process.wait_for("the receiver to listen", function()
    if not process.alive(self.pid) then
      error("the receiver ended at once:\n" .. (process.read_file(self.dir .. "/err") or ""), 0)
    end
    local first = (process.read_file(self.out_path) or ""):match "^([^\n]+)\n"
    return first and (json.decode(first) or {}).address
  end)
  self.url = "http://" .. self.address .. "/hooks"
  return self
end

-- Further words go to `lanegate receive` as they are.
function receiver.start(...)
  local dir = process.temp_dir()
  local self = setmetatable({ dir = dir, log_path = dir .. "/deliveries", arguments = { ... }, generation = 1 }, Receiver)
  return self:launch "127.0.0.1:0"
end

-- Ends it and starts it again on the same port.
function Receiver:restart()
  process.stop(self.pid)
  return self:launch(self.address)
end

-- tell("fail", { key = "a", status = 503 }), tell("heal")
function Receiver:tell(act, parameters)
  local query = {}
  for name, value in pairs(parameters or {}) do query[#query + 1] = name .. "=" .. tostring(value) end
  local answer = assert(http.once(self.address, "POST", "/_drill/" .. act .. "?" .. table.concat(query, "&"), {}, ""))
  assert(answer.status == 200, answer.body)
end

-- Every delivery it has written down so far, decoded, in order of answer.
function Receiver:deliveries()
  local lines = {}
  for line in (process.read_file(self.log_path) or ""):gmatch "([^\n]+)\n" do lines[#lines + 1] = json.decode(line) end
  return lines
end

-- Only those it took (2xx).
function Receiver:taken(key)
  local found = {}
  for _, delivery in ipairs(self:deliveries()) do
    if delivery.status >= 200 and delivery.status < 300 and (not key or delivery.key == key) then
      found[#found + 1] = delivery
    end
  end
  return found
end

function Receiver:wait_taken(count, seconds, key)
  local taken
  process.wait_for(count .. " deliveries", function()
    taken = self:taken(key)
    return #taken >= count
  end, seconds or 60)
  return taken
end

function Receiver:stop()
  process.stop(self.pid)
end

function Receiver:remove()
  if process.alive(self.pid) then process.kill_hard(self.pid) end
  process.remove(self.dir)
end

return receiver
