-- Only these event types are ordered; all others are delivered as they come.
local M = {}

-- ordering_key = { "keys.selected", "events", { "type", "data.object.id", { "invoice.*", "charge.refunded" } } }
---@param hook lanegate.Hook
---@param type_path string where the event's type stands
---@param key_path string where the key stands
---@param types string[] names; a * at the end stands for any rest
function M.events(hook, type_path, key_path, types)
  local type = hook:get(type_path)
  for _, wanted in ipairs(types) do
    local prefix = wanted:match "^(.*)%*$"
    if type == wanted or (prefix and type and type:sub(1, #prefix) == prefix) then return hook:get(key_path) end
  end
  return lanegate.unordered
end

return M
