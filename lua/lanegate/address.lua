-- Addresses as they stand in a configuration file: what can be seen to be wrong, or closed, without asking anybody.
-- Every address is eight groups of 16 bits; an IPv4 one is v4-mapped. The connection itself is judged again, at the
-- address it really goes to, by src/deliver.

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

local function is_mapped(groups)
  return groups[6] == 0xffff and groups[1] + groups[2] + groups[3] + groups[4] + groups[5] == 0
end

-- "10.0.0.0/8", "fd00::/8", "127.0.0.1": { groups, bits }, bits of the 128. nil when malformed, or when bits behind
-- the length are set, which is mostly a slip of the pen.
function address.cidr(text)
  local host, digits = text:match("^([^/]+)/(%d%d?%d?)$")
  local groups = address.ipv4(host or text)
  local width = groups and 32 or 128
  groups = groups or address.ipv6(host or text)
  local length = digits and tonumber(digits) or width
  if not groups or (text:find("/", 1, true) and not host) or length > width then return nil end
  local range = { groups = groups, bits = length + 128 - width }
  for i, group in ipairs(groups) do
    local free = math.min(16, math.max(0, i * 16 - range.bits))
    if group % 2 ^ free ~= 0 then return nil end
  end
  return range
end

function address.inside(groups, range)
  for i = 1, 8 do
    local free = math.min(16, math.max(0, i * 16 - range.bits))
    if math.floor(groups[i] / 2 ^ free) ~= math.floor(range.groups[i] / 2 ^ free) then return false end
  end
  return true
end

local function ranges(text)
  local out = {}
  for cidr in text:gmatch("%S+") do out[#out + 1] = assert(address.cidr(cidr), cidr) end
  return out
end

local LOOPBACK = ranges "127.0.0.0/8 ::1/128"
local CLOSED_V4 = ranges [[ 0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
  192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 ]]
-- Of the rest, only 2000::/3 is the public internet, without its transition and documentation ranges.
local PUBLIC_V6 = address.cidr "2000::/3"
local CLOSED_V6 = ranges "2001::/23 2001:db8::/32 2002::/16 3fff::/20"

local function in_any(groups, list)
  for _, range in ipairs(list) do
    if address.inside(groups, range) then return true end
  end
  return false
end

function address.is_loopback(groups)
  return in_any(groups, LOOPBACK)
end

-- Private, loopback, link-local, reserved, or a form that hides such an address.
function address.is_closed(groups)
  if is_mapped(groups) then return in_any(groups, CLOSED_V4) end
  return not address.inside(groups, PUBLIC_V6) or in_any(groups, CLOSED_V6)
end

function address.is_allowed(groups, allowed)
  return not address.is_closed(groups) or in_any(groups, allowed)
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

-- A URL in its parts: { scheme, user, host, groups (of a literal address), origin }; or nil and what is wrong.
function address.url(text)
  if text:find("[^\33-\126]") or text:find("[\\\"<>^`{|}]") then
    return nil, "it has a blank or another character that must be percent-encoded"
  end
  local scheme, rest = text:match("^(%a[%w+.-]*)://(.*)$")
  if not scheme then return nil, "it must begin with https:// or http://" end
  local authority, path = rest:match("^([^/?#]*)(.*)$")
  if path:find("#", 1, true) then return nil, "a #fragment is never sent" end
  local user, place = authority:match("^(.*)@(.*)$")
  place = place or authority

  local bracketed, port = place:match("^%[([^%]]*)%](.*)$")
  local host = bracketed
  if not bracketed then host, port = place:match("^([^:]*)(.*)$") end
  local digits = port:match("^:(%d+)$")
  if port ~= "" and not (digits and #digits <= 5 and tonumber(digits) >= 1 and tonumber(digits) <= 65535) then
    return nil, "the port must be a number from 1 to 65535"
  end

  local groups
  if bracketed then
    groups = address.ipv6(host)
    if not groups then return nil, "the address in brackets is not an IPv6 address" end
  else
    if host == "" or #host > 253 or host:find("[^%w._-]") or host:find("..", 1, true) or host:find("^[.-]") then
      return nil, "the host is not a name"
    end
    -- Clients read 0x7f.1, 017700000001 and 2130706433 as addresses; here only the plain form is one.
    local last = host:match("([^.]+)%.?$")
    groups = address.ipv4(host)
    if not groups and (last:find("^%d+$") or last:lower():find("^0x%x*$")) then
      return nil, "the host must be a name, or an address in its plain form, such as 10.0.0.1"
    end
  end
  return { scheme = scheme:lower(), user = user, host = host, groups = groups, has_path = path ~= "" and path ~= "/",
           origin = scheme:lower() .. "://" .. place }
end

return address
