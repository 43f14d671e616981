-- What an nginx worker does with a hook: the same facts that Lanegate keeps of it, as one entry of a Redis stream.
-- luacheck: globals ngx
local redis = require "nginx.redis" -- lua-resty-redis, as Debian names it

local hooks = {}

local function refuse(status, problem)
  ngx.log(ngx.ERR, problem)
  ngx.status = status
  ngx.header["Content-Length"] = 0
  return ngx.exit(status)
end

function hooks.accept(redis_port)
  ngx.req.read_body()
  local body = ngx.req.get_body_data()
  if not body then
    return refuse(400, "no body in memory")
  end
  local red = redis:new()
  red:set_timeouts(1000, 5000, 5000)
  local connected, problem = red:connect("127.0.0.1", redis_port)
  if not connected then
    return refuse(503, problem)
  end
  local id
  id, problem = red:xadd("hooks", "*", "path", ngx.var.request_uri, "received_at", ngx.now(), "remote_ip", ngx.var.remote_addr,
    "headers", ngx.req.raw_header(true), "body", body)
  if not id then
    return refuse(503, problem)
  end
  red:set_keepalive(60000, 256)
  local answer = '{"id":"' .. id .. '","status":"accepted"}'
  ngx.status = 201
  ngx.header["Content-Type"] = "application/json"
  ngx.header["Content-Length"] = #answer
  ngx.print(answer)
end

return hooks
