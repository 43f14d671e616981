-- Words for values and near misses.

local report = require "lanegate.report"

describe("did you mean", function()
  local OPTIONS = { "listen", "threads", "max_body_bytes", "idle_timeout_ms" }
  for word, expected in pairs {
    lissten = "listen", Listen = "listen", lsiten = "listen", liste = "listen", max_body = "max_body_bytes",
    idle_timeout = "idle_timeout_ms", thraeds = "threads",
  } do
    it(word .. " is " .. expected, function()
      assert.equal((' (did you mean "%s"?)'):format(expected), report.did_you_mean(word, OPTIONS))
    end)
  end

  it("is not said of anything", function()
    for _, word in ipairs { "port", "x", "", "workers", ("x"):rep(1000) } do
      assert.equal("", report.did_you_mean(word, OPTIONS))
    end
    assert.equal("", report.did_you_mean(5, OPTIONS))
  end)
end)

describe("a value", function()
  it("is shown short and on one line", function()
    assert.equal('"a\\10b"', report.show("a\nb"))
    assert.equal('"' .. ("x"):rep(60) .. '"...', report.show(("x"):rep(61)))
    assert.equal("nothing", report.show(nil))
    assert.equal("a list", report.show { 1 })
    assert.equal("a table", report.show { a = 1 })
    assert.equal("an empty table", report.show {})
    assert.equal("a function", report.show(print))
    assert.equal("1.5", report.show(1.5))
  end)

  it("that is a secret is only described", function()
    assert.equal("a text of 6 bytes", report.show_kind("secret"))
    assert.equal("a blank text", report.show_kind("  "))
    assert.equal("a number", report.show_kind(12345))
  end)
end)

describe("faults", function()
  it("are told in the order of the file", function()
    local faults = report.new("config.lua")
    faults:add({ path = "b", line = 3 }, "second")
    faults:add({ path = "c", line = 3 }, "third")
    faults:add({ path = "", line = nil }, "no line")
    faults:add({ path = "a", line = 1 }, "first")
    assert.same({ "config.lua: no line", "config.lua:1: a: first", "config.lua:3: b: second", "config.lua:3: c: third" },
      faults:lines())
  end)
end)
