local t = require "lanegate.testing"

describe("keys.region.by_shop", function()
  local function hook(country, id) return t.hook { json = { shop = { id = id, country = country } } } end

  it("keys the shops of its region", function()
    assert.lane("eu:42", { "keys.region", "by_shop", { "eu" } }, hook("DE", "42"))
    assert.lane("us:42", { "keys.region", "by_shop", { "us" } }, hook("US", "42"))
    assert.lane("world:42", { "keys.region", "by_shop", { "world" } }, hook("JP", "42"))
  end)

  it("leaves other regions' hooks outside its lanes", function()
    assert.unordered({ "keys.region", "by_shop", { "eu" } }, hook("US", "42"))
  end)

  it("has no key without a shop", function()
    assert.keyless({ "keys.region", "by_shop", { "eu" } }, hook("DE"))
  end)
end)
