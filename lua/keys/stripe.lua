-- Stripe: everything about one customer in one lane. Most objects name their customer; a customer is its own; some hold it whole.
-- The rest (prices, products, balances) is nobody's: no order is needed.
local M = {}

---@param hook lanegate.Hook
function M.by_customer(hook)
  local customer = hook:get "data.object.customer" or hook:get "data.object.customer.id"
  if customer then return customer end
  if hook:get "data.object.object" == "customer" then return hook:get "data.object.id" end
  return lanegate.unordered
end

return M
