-- The requests of wrk: JSON bodies of 1 KB whose key goes round LANES lanes (100000), or copies of BODY_FILE, in which the
-- first key, cus_0000000, gives way to another. The same key is in the header x-key.
local lanes = tonumber(os.getenv "LANES" or "100000")
local body_file = os.getenv "BODY_FILE"
local n, pad = 0, ("x"):rep(936)

local function small(key)
  return ('{"id":"evt_%012d","data":{"object":{"customer":"%s"}},"pad":"%s"}'):format(n, key, pad)
end

local function from_file()
  local file = assert(io.open(body_file, "rb"))
  local text = file:read "*a"
  file:close()
  local start, stop = text:find("cus_0000000", 1, true)
  local before, after = text:sub(1, start - 1), text:sub(stop + 1)
  return function(key)
    return before .. key .. after
  end
end

local body = body_file and from_file() or small

function request() -- luacheck: ignore
  n = n + 1
  local key = ("cus_%07d"):format((n * 7919) % lanes)
  return wrk.format("POST", nil, { ["content-type"] = "application/json", ["x-key"] = key }, body(key)) -- luacheck: ignore
end
