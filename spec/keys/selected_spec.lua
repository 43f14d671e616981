local t = require "lanegate.testing"

local key = { "keys.selected", "events", { "type", "data.object.customer", { "invoice.*", "charge.refunded" } } }

describe("keys.selected.events", function()
  local function event(type) return t.hook { json = { type = type, data = { object = { customer = "cus_1" } } } } end

  it("orders the events it is told to", function()
    assert.lane("cus_1", key, event "invoice.paid")
    assert.lane("cus_1", key, event "charge.refunded")
  end)

  it("lets all others go as they come", function()
    assert.unordered(key, event "charge.refund.updated")
    assert.unordered(key, event "price.updated")
    assert.unordered(key, t.hook { body = "no JSON" })
  end)

  it("has no key where an event it orders names nobody", function()
    assert.keyless(key, t.hook { json = { type = "invoice.paid" } })
  end)

  it("costs little", function()
    local used = t.budget(key, t.fixture("payloads/stripe_invoice_paid.http"))
    assert.is_true(used.instructions > 0 and used.instructions < 2000, "instructions: " .. used.instructions)
    assert.is_true(used.memory_bytes < 1024 * 1024)
  end)
end)
