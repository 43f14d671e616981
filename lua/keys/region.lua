-- A receiver a region: the same module serves several sinks, each with the region as an argument.
local M = {}

-- ordering_key = { "keys.region", "by_shop", { "eu" } }: hooks of another region need no order here.
---@param hook lanegate.Hook
---@param region string
function M.by_shop(hook, region)
  local country = hook:get "shop.country"
  if country and M.region_of(country) ~= region then return lanegate.unordered end
  local shop = hook:get "shop.id"
  return shop and region .. ":" .. shop
end

local EUROPE = {}
for code in ("AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"):gmatch "%u%u" do
  EUROPE[code] = true
end

function M.region_of(country)
  return EUROPE[country] and "eu" or country == "US" and "us" or "world"
end

return M
