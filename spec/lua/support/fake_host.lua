-- The host of lua/lanegate/config.lua, played: a machine with two cores, and other rooms that have little to say.

local fake_host = {}

local MS = { ms = 1, s = 1000, m = 60000, h = 3600000, d = 86400000 }
local BYTES = { B = 1, KiB = 2 ^ 10, MiB = 2 ^ 20, GiB = 2 ^ 30, TiB = 2 ^ 40 }

local function parser(units)
  return function(text)
    local digits, unit = text:match("^(%d+)(%a+)$")
    return digits and units[unit] and tonumber(digits) * units[unit] or nil
  end
end

-- `given`: env and files by name, and judges that replace the ones here.
function fake_host.new(given)
  given = given or {}
  local env, files = given.env or {}, given.files or {}
  local host = {
    cores = 2,
    memory = 8 * 2 ^ 30,
    terminal = false,
    getenv = function(name) return env[name] end,
    read_file = function(path) return files[path], "No such file or directory" end,
    readable = function(path) return files[path] ~= nil, "No such file or directory" end,
    parse_ms = parser(MS),
    parse_bytes = parser(BYTES),
    within_budget = pcall,
    judge_url = function(url) if url:find("refused") then return "is refused" end end,
    judge_range = function(text) if not text:find("/", 1, true) then return "is no range" end end,
    judge_secret = function() end,
    judge_verify = function() end,
    judge_tls = function() end,
  }
  for name, func in pairs(given.judges or {}) do host[name] = func end
  return host
end

return fake_host
