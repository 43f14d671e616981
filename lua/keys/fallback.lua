-- A chain: the first of several places that has a key, each under a prefix of its own, so that an account and a user who
-- happen to have the same number never share a lane.
local M = {}

---@param hook lanegate.Hook
---@param ... string places, each "prefix=json.path" or "prefix=@header-name"
function M.first_of(hook, ...)
  for i = 1, select("#", ...) do
    local prefix, place = (select(i, ...)):match "^([^=]*)=(.+)$"
    local value
    if place:sub(1, 1) == "@" then value = hook:header(place:sub(2)) else value = hook:get(place) end
    if value and value ~= "" then return prefix .. ":" .. value end
  end
end

return M
