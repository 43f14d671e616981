-- Addresses to listen on, as they stand in a configuration file: literal ones only, since a name may mean another
-- address tomorrow. An address is eight groups of 16 bits; an IPv4 one is v4-mapped. Where deliveries may go is judged
-- by src/deliver.

local address = {}

local function ipv4_groups(text)
  local bytes = { text:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$") }
  if #bytes ~= 4 then return nil end
  for i, digits in ipairs(bytes) do
    if #digits > 3 or (#digits > 1 and digits:sub(1, 1) == "0") or tonumber(digits) > 255 then return nil end
    bytes[i] = tonumber(digits)
  end
  return bytes[1] * 256 + bytes[2], bytes[3] * 256 + bytes[4]
end

function address.ipv4(text)
  local high, low = ipv4_groups(text)
  return high and { 0, 0, 0, 0, 0, 0xffff, high, low }
end

-- One side of "::": a run of groups, the last of which may be an IPv4 address. nil when malformed.
local function ipv6_run(text)
  local groups = {}
  if text == "" then return groups end
  for part in (text .. ":"):gmatch("(.-):") do
    local high, low = ipv4_groups(part)
    if high then
      groups[#groups + 1], groups[#groups + 2] = high, low
    elseif #groups < 8 and part:find("^%x%x?%x?%x?$") then
      groups[#groups + 1] = tonumber(part, 16)
    else
      return nil
    end
  end
  -- A dotted part counts only at the end.
  return not text:find("%.[%d.]*:") and groups or nil
end

function address.ipv6(text)
  local left, right = text:match("^(.-)::(.*)$")
  if not left then
    local groups = ipv6_run(text)
    return groups and #groups == 8 and groups or nil
  end
  local head, tail = ipv6_run(left), ipv6_run(right)
  if not head or not tail or #head + #tail > 7 or left:find(".", 1, true) then return nil end
  while #head + #tail < 8 do head[#head + 1] = 0 end
  for _, group in ipairs(tail) do head[#head + 1] = group end
  return head
end

function address.is_loopback(groups)
  local mapped = groups[6] == 0xffff
  for i = 1, 5 do mapped = mapped and groups[i] == 0 end
  if mapped then return math.floor(groups[7] / 256) == 127 end
  for i = 1, 7 do
    if groups[i] ~= 0 then return false end
  end
  return groups[8] == 1
end

-- "127.0.0.1:4000", "[::1]:4000": its groups and port; nil when malformed.
function address.listen(text)
  local host, port = text:match("^%[([^%]]+)%]:(%d+)$")
  local groups = host and address.ipv6(host)
  if not host then
    host, port = text:match("^([%d.]+):(%d+)$")
    groups = host and address.ipv4(host)
  end
  if not groups or #port > 5 or tonumber(port) > 65535 then return nil end
  return groups, tonumber(port)
end

return address
