local t = require "lanegate.testing"

local key = { "keys.shopify", "by_order" }

describe("keys.shopify.by_order", function()
  it("takes an order and its refund into one lane", function()
    local order, refund = t.fixture "payloads/shopify_order_create.http", t.fixture "payloads/shopify_refund_create.http"
    assert.lane("anna.myshopify.com/820982911946154508", key, order) -- a number that Lua could not hold
    assert.same_lane(order, refund, key)
  end)

  it("keeps the orders of two shops apart", function()
    local function order(shop)
      return t.hook { headers = { ["X-Shopify-Topic"] = "orders/paid", ["X-Shopify-Shop-Domain"] = shop }, json = { id = 7 } }
    end
    assert.other_lane(order "anna.myshopify.com", order "bert.myshopify.com", key)
  end)

  it("has no key for what is no order", function()
    assert.keyless(key, t.hook { headers = { ["X-Shopify-Topic"] = "products/update", ["X-Shopify-Shop-Domain"] = "a" },
      json = { id = 7 } })
  end)
end)
