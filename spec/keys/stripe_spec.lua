local t = require "lanegate.testing"

local key = { "keys.stripe", "by_customer" }

describe("keys.stripe.by_customer", function()
  it("goes by the customer an object names", function()
    assert.lane("cus_NffrFeUfNV2Hib", key, t.fixture "payloads/stripe_invoice_paid.http")
  end)

  it("takes a customer itself into the same lane", function()
    assert.same_lane(t.fixture "payloads/stripe_customer_created.http", t.fixture "payloads/stripe_invoice_paid.http", key)
  end)

  it("finds a customer that is expanded", function()
    local hook = t.hook { json = { data = { object = { object = "charge", customer = { id = "cus_1" } } } } }
    assert.lane("cus_1", key, hook)
  end)

  it("needs no order for what belongs to nobody", function()
    assert.unordered(key, t.fixture "payloads/stripe_price_updated.http")
    assert.unordered(key, t.hook { body = "not JSON" })
  end)

  it("keeps customers apart", function()
    local function charge(customer)
      return t.hook { json = { data = { object = { object = "charge", customer = customer } } } }
    end
    assert.other_lane(charge "cus_1", charge "cus_2", key)
  end)
end)
