-- No polling: 10,000 hooks with receivers that take 0 to 5 ms, over 1, 5, 20 and 1,000 keys at concurrency 100. The time
-- is held against the optimum, from the service times that the receiver measured itself: the longest lane's sum, or the
-- total over 100, whichever is longer.
--
--     LANEGATE_BIN=build/release/lanegate LUA_PATH='spec/?.lua;;' luajit spec/bench/keys.lua
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local receiver = require "support.receiver"
local socket = require "socket"

local HOOKS, CONCURRENCY = 10000, 100

-- Every hook is committed, and none delivered, before the clock starts: the sink is paused until then.
local function measure(keys)
  local sink = receiver.start("--delay", "*=0ms..5ms", "--quiet", "--seed", tostring(keys))
  local gate = gateway.start { config = configs.demo {
    sinks = configs.ordered_sink(sink.url, ("concurrency = %d"):format(CONCURRENCY)) } }
  assert(gate:ask("/v1/sinks/demo/receiver/pause", "POST").status == 200)
  local requests = {}
  for i = 1, HOOKS do
    requests[i] = http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = "k" .. i % keys }, tostring(i))
  end
  for _, answer in ipairs(http.many(gate.ingest, requests, 32)) do assert(answer.status == 201) end
  assert(gate:ask("/v1/sinks/demo/receiver/resume", "POST").status == 200)
  repeat socket.sleep(0.3) until gate:metric "queue_pending" == 0 -- seldom: asking takes time from a core
  sink:stop() -- the log is complete

  local lanes, total, first, last = {}, 0, math.huge, 0
  local taken = sink:taken()
  assert(#taken == HOOKS, #taken .. " deliveries")
  for _, delivery in ipairs(taken) do
    local service = delivery.service_us / 1e6
    lanes[delivery.key] = (lanes[delivery.key] or 0) + service
    total = total + service
    first = math.min(first, delivery.started_ms / 1000)
    last = math.max(last, delivery.started_ms / 1000 + service)
  end
  local longest = 0
  for _, sum in pairs(lanes) do longest = math.max(longest, sum) end
  gate:remove()
  sink:remove()
  return last - first, math.max(longest, total / CONCURRENCY)
end

print(("%6s %10s %10s %8s"):format("keys", "took s", "optimum s", "ratio"))
for _, keys in ipairs { 1, 5, 20, 1000 } do
  local took, optimum = measure(keys)
  print(("%6d %10.2f %10.2f %8.3f"):format(keys, took, optimum, took / optimum))
end
