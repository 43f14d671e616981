-- The receiver that no library is: it says what bytes it is told to, when it is told to, and closes as rudely as asked.
--
--   luajit raw_receive.lua LOG      prints its port, then serves until it is killed
--
-- The path says what it does with a request (BYTES are percent-encoded):
--   /say?BYTES      reads all of it, says BYTES, closes
--   /keep?BYTES     as /say, and puts the head and the body (as hex digits) in LOG
--   /early?BYTES    says BYTES when it has seen the head, reads no more and stays connected
--   /endless?BYTES  reads all of it, says BYTES, then "x" for ever
--   /reset          reads all of it, then resets the connection
--   /hang           reads all of it, and says nothing
-- LOG gets a line "path seconds" for every request, and "ended BYTES" when nobody reads an endless answer any more.
local socket = require "socket"

local log = assert(io.open(arg[1], "ab"))
log:setvbuf "no"
local waits = {} -- socket -> { thread, writes }: the coroutine that waits for it, and for what
local kept = {} -- connections that nobody looks at any more

local function await(sock, writes)
  waits[sock] = { thread = coroutine.running(), writes = writes }
  coroutine.yield()
end

local Peer = {}
Peer.__index = Peer

function Peer:more()
  await(self.sock, false)
  local bytes, err, part = self.sock:receive(65536)
  bytes = bytes or part
  self.got = self.got .. bytes
  return #bytes > 0 or err == "timeout"
end

function Peer:read_head()
  while not self.got:find("\r\n\r\n", 1, true) do
    if not self:more() then return nil end
  end
  local head, rest = self.got:match "^(.-\r\n\r\n)(.*)$"
  self.got = rest
  return head
end

function Peer:read_body(head)
  local length = tonumber(head:lower():match "\ncontent%-length: *(%d+)" or 0)
  if head:lower():find("\nexpect: 100-continue", 1, true) then self:say "HTTP/1.1 100 Continue\r\n\r\n" end
  while #self.got < length do
    if not self:more() then return end
  end
end

-- True when all of it went out.
function Peer:say(bytes)
  local at = 1
  while at <= #bytes do
    await(self.sock, true)
    local last, err, part = self.sock:send(bytes, at)
    at = (last or part) + 1
    if not last and err ~= "timeout" then return false end
  end
  return true
end

local acts = {}

function acts.say(peer, head, bytes)
  peer:read_body(head)
  peer:say(bytes)
end

function acts.keep(peer, head, bytes)
  peer:read_body(head)
  local body = peer.got:gsub(".", function(c) return ("%02x"):format(c:byte()) end)
  log:write((head:gsub("\r", "")), body, "\n")
  peer:say(bytes)
end

function acts.early(peer, _, bytes)
  peer:say(bytes)
  kept[#kept + 1] = peer.sock
end

function acts.endless(peer, head, bytes)
  peer:read_body(head)
  local count, block = 0, ("x"):rep(4096)
  peer:say(bytes)
  while peer:say(block) do count = count + #block end
  log:write("ended ", count, "\n")
end

function acts.reset(peer, head)
  peer:read_body(head)
  peer.sock:setoption("linger", { on = true, timeout = 0 })
end

function acts.hang(peer, head)
  peer:read_body(head)
  repeat until not peer:more()
end

local function serve(sock)
  local peer = setmetatable({ sock = sock, got = "" }, Peer)
  local head = peer:read_head()
  local act, query = (head or ""):match "^%u+ /(%l+)%??(%S*) HTTP/1.1\r\n"
  if act then
    log:write(("/%s %.6f\n"):format(act, socket.gettime()))
    acts[act](peer, head, (query:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)))
  end
  if kept[#kept] ~= sock then sock:close() end
end

local listener = assert(socket.bind("127.0.0.1", 0, 256))
listener:settimeout(0)
print((select(2, listener:getsockname())))
io.stdout:flush()

while true do
  local reading, writing = { listener }, {}
  for sock, wait in pairs(waits) do
    local list = wait.writes and writing or reading
    list[#list + 1] = sock
  end
  local readable, writable = socket.select(reading, writing)
  local woken = {}
  for _, list in ipairs { readable, writable } do
    for _, sock in ipairs(list) do woken[#woken + 1] = sock end
  end
  for _, sock in ipairs(woken) do
    if sock == listener then
      local peer = listener:accept()
      if peer then
        peer:settimeout(0)
        assert(coroutine.resume(coroutine.create(serve), peer))
      end
    else
      local thread = waits[sock].thread
      waits[sock] = nil
      assert(coroutine.resume(thread))
    end
  end
end
