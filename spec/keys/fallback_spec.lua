local t = require "lanegate.testing"

local key = { "keys.fallback", "first_of", { "account=account.id", "user=user.id", "device=@x-device-id" } }

describe("keys.fallback.first_of", function()
  it("takes the first place that has a key", function()
    assert.lane("account:7", key, t.hook { json = { account = { id = "7" }, user = { id = "7" } } })
    assert.lane("user:7", key, t.hook { json = { user = { id = 7 } } })
    assert.lane("device:d1", key, t.hook { headers = { ["X-Device-Id"] = "d1" }, body = "no JSON" })
  end)

  it("never lets an account and a user share a lane", function()
    assert.other_lane(t.hook { json = { account = { id = "7" } } }, t.hook { json = { user = { id = "7" } } }, key)
  end)

  it("has no key where no place has one", function()
    assert.keyless(key, t.hook { json = { account = { id = "" } } }, "script_type")
  end)
end)
