-- No polling: 10,000 hooks with a receiver that takes 0 to 5 ms for each, over 1, 5, 20 and 1,000 keys at concurrency
-- 100. The time is held against the optimum, from the service times that the receiver measured itself: the longest
-- lane's sum, or the total over 100, whichever is longer. Beside it, on the same receiver, a client that keeps nothing
-- and does nothing but wait its turn: what the machine itself takes to bring a request over and wake who waits for it.
--
--     BUILD=build/release LUA_PATH='spec/?.lua;;' luajit spec/bench/keys.lua
local BUILD = os.getenv "BUILD" or "build/release"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local socket = require "socket"

local HOOKS, CONCURRENCY, MOST_US = 10000, 100, 5000
local TURNS = BUILD .. "/spec/bench/bench_turns"
if not os.getenv "LANEGATE_BIN" then
  process.binary = function() return BUILD .. "/lanegate" end
end

-- Runs `during(port)` against a fresh receiver; gives the time taken and the optimum, in seconds.
local function received(during)
  local dir = process.temp_dir()
  local pid = process.spawn({ TURNS, "receive", tostring(MOST_US) }, dir .. "/out", dir .. "/err")
  local port = process.wait_for("the receiver to listen", function()
    return (process.read_file(dir .. "/out") or ""):match "^(%d+)\n"
  end)
  during(port)
  process.stop(pid)
  local hooks, took, longest, total =
    process.read_file(dir .. "/out"):match "hooks (%d+) took_us (%d+) longest_us (%d+) total_us (%d+)"
  assert(tonumber(hooks) == HOOKS, hooks)
  process.remove(dir)
  return took / 1e6, math.max(longest, total / CONCURRENCY) / 1e6
end

-- Every hook is committed, and none delivered, before the clock starts: the sink is paused until then.
local function through_the_gateway(keys, port)
  local gate = gateway.start { config = configs.demo {
    sinks = configs.ordered_sink("http://127.0.0.1:" .. port, ("concurrency = %d"):format(CONCURRENCY)) } }
  assert(gate:ask("/v1/sinks/demo/receiver/pause", "POST").status == 200)
  local requests = {}
  for i = 1, HOOKS do
    requests[i] = http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = "k" .. i % keys }, tostring(i))
  end
  for _, answer in ipairs(http.many(gate.ingest, requests, 32)) do assert(answer.status == 201) end
  assert(gate:ask("/v1/sinks/demo/receiver/resume", "POST").status == 200)
  repeat socket.sleep(0.3) until gate:metric "queue_pending" == 0 -- seldom: asking takes time from a core
  gate:remove()
end

local function plainly(keys, port)
  local code, _, err = process.run { TURNS, "ask", port, tostring(keys), tostring(HOOKS) }
  assert(code == 0, err)
end

print(("%6s %10s %10s %8s %14s"):format("keys", "took s", "optimum s", "ratio", "plain client"))
for _, keys in ipairs { 1, 5, 20, 1000 } do
  local took, optimum = received(function(port) through_the_gateway(keys, port) end)
  local plain_took, plain_optimum = received(function(port) plainly(math.min(keys, CONCURRENCY), port) end)
  print(("%6d %10.2f %10.2f %8.3f %14.3f"):format(keys, took, optimum, took / optimum, plain_took / plain_optimum))
end
