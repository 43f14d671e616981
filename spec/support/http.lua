-- A small HTTP/1.1 client on a raw socket, so that a flow sees just what was sent and what came back.
local socket = require "socket"

local http = {}

local Connection = {}
Connection.__index = Connection

function http.connect(address, timeout)
  local host, port = address:match "^%[?([^%]]+)%]?:(%d+)$"
  local sock = assert(socket.connect(host, tonumber(port)))
  sock:setoption("tcp-nodelay", true)
  sock:settimeout(timeout or 30)
  return setmetatable({ sock = sock, address = address }, Connection)
end

function Connection:send(bytes)
  return self.sock:send(bytes)
end

function Connection:close()
  self.sock:close()
end

-- One answer: { status, headers (lower-case names), body }, or nil and what the socket said.
function Connection:receive()
  local line, err = self.sock:receive "*l"
  if not line then return nil, err end
  local status = tonumber(line:match "^HTTP/1%.%d (%d%d%d)")
  if not status then return nil, "not an answer: " .. line end
  local headers = {}
  while true do
    line, err = self.sock:receive "*l"
    if not line then return nil, err end
    if line == "" then break end
    local name, value = line:match "^([^:]+):%s*(.-)%s*$"
    headers[name:lower()] = value
  end
  if status == 100 then return self:receive() end
  local body = ""
  local length = tonumber(headers["content-length"])
  if length and length > 0 then
    body, err = self.sock:receive(length)
    if not body then return nil, err end
  elseif not length and status ~= 204 and status ~= 304 then
    body = self.sock:receive "*a" or ""
  end
  return { status = status, headers = headers, body = body }
end

-- The bytes of a request; headers are given as a map or as a list of { name, value }.
function http.request(method, path, headers, body)
  local lines = { ("%s %s HTTP/1.1"):format(method, path), "Host: " .. (headers and headers.Host or "localhost") }
  for name, value in pairs(headers or {}) do
    if type(value) == "table" then name, value = value[1], value[2] end
    lines[#lines + 1] = name .. ": " .. value
  end
  if body then lines[#lines + 1] = "Content-Length: " .. #body end
  return table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or "")
end

function Connection:ask(method, path, headers, body)
  local ok, err = self:send(http.request(method, path, headers, body))
  if not ok then return nil, err end
  return self:receive()
end

-- One request on a connection of its own.
function http.once(address, method, path, headers, body)
  local connection = http.connect(address)
  headers = headers or {}
  headers.Connection = headers.Connection or "close"
  local answer, err = connection:ask(method, path, headers, body)
  connection:close()
  return answer, err
end

-- Posts many requests over `width` connections at once; requests[i] goes before requests[i+width] on its
-- connection. Gives the answers in order.
function http.many(address, requests, width)
  local answers, connections = {}, {}
  for i = 1, math.min(width, #requests) do connections[i] = http.connect(address) end
  for first = 1, #requests, width do
    local last = math.min(first + width - 1, #requests)
    for i = first, last do assert(connections[i - first + 1]:send(requests[i])) end
    for i = first, last do answers[i] = assert(connections[i - first + 1]:receive()) end
  end
  for _, connection in ipairs(connections) do connection:close() end
  return answers
end

return http
