-- Shopify: one lane an order. Which member holds the order's id depends on the topic.
local M = {}

---@param hook lanegate.Hook
function M.by_order(hook)
  local topic = hook:header "x-shopify-topic" or ""
  local id
  if topic:find "^orders/" then
    id = hook:get "id"
  else
    id = hook:get "order_id"
  end
  -- Ids are only unique within a shop.
  local shop = hook:header "x-shopify-shop-domain"
  return id and shop and shop .. "/" .. id
end

return M
