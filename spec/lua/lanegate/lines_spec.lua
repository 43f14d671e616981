-- Which line says this? Found without running anything.

local lines = require "lanegate.lines"

-- The line of a path such as { "http", "listen" }, falling back to the nearest ancestor as report.lua does.
local function line_of(source, path)
  assert(load(source))
  local node = lines.of(source)
  local line = node.line
  for _, key in ipairs(path) do
    node = node and node.items and node.items[key]
    line = node and node.line or line
  end
  return line
end

local function finds(title, source, expected)
  it(title, function()
    for path, line in pairs(expected) do
      local keys = {}
      for key in path:gmatch("[^/]+") do keys[#keys + 1] = tonumber(key) or key end
      assert.message(path).equal(line, line_of(source, keys))
    end
  end)
end

describe("lines", function()
  finds("of nested tables, lists and all forms of keys", [[
return {
  a = { b = 1,
    c = { "x",
      "y"; { d = 1 } } },
  ["e.f"] = {
    [2] = "two", ['g'] =
      1 },
}]], { ["a"] = 2, ["a/b"] = 2, ["a/c"] = 3, ["a/c/1"] = 3, ["a/c/2"] = 4, ["a/c/3/d"] = 4, ["e.f"] = 5,
    ["e.f/2"] = 6, ["e.f/g"] = 6 })

  finds("behind comments and odd strings", [==[
#!/usr/bin/lua
--[[ a = {
]] -- b = {
local text = [=[
{ ]] }
]=]
return { a = "}\"{", b = '\\',
  c = [[
{,]], -- }
  d = 1 --[=[ } ]=], e = 2,
  f = 0x1F, g = 1e-3, h = .5, i = 3 }]==], { a = 7, b = 7, c = 8, d = 10, e = 10, f = 11, i = 11 })

  finds("behind expressions with commas, calls and functions in them", [[
return {
  a = f(1, { x = 1 },
    2),
  b = function(p, q) if p then return { 1, 2 } end
    for i = 1, 2 do local t = { i, q } end
    repeat local z = 1 until z
    while p do break end
  end, c = 1,
  d = e { 1, 2 } .. "x",
  f = g[{ 1, 2 }], h = 2,
}]], { a = 2, ["a/x"] = 2, b = 4, c = 8, d = 9, ["d/1"] = 9, f = 10, h = 10 })

  finds("of locals that hold a table", [[
local sink = {
  name = "x",
}
local function f() return { a = 1 } end
local other = f()
return {
  sinks = { sink,
    other },
  made = f(), sum = sink .. sink,
}]], { sinks = 7, ["sinks/1"] = 7, ["sinks/1/name"] = 2, ["sinks/2"] = 8, ["sinks/2/a"] = 8,
    made = 9, sum = 9, ["sum/name"] = 9 })

  finds("of a table returned by its name", "local t = {\n  a = 1 }\nreturn t", { a = 2 })
  finds("of nothing known", "return f(1, 2)", { a = 1 })
  finds("of keys that are computed", "local k = 'a'\nreturn {\n [k] = 1,\n [k .. 'b'] = { c = 1 }, d = 2 }",
    { a = 2, ab = 2, ["ab/c"] = 2, d = 4 })

  it("counts the entries of a list as Lua does", function()
    local source = "return { 'a', b = 1, 'c', [10] = 'x',\n'd' }"
    assert.equal(1, line_of(source, { 2 }))
    assert.equal(2, line_of(source, { 3 }))
    assert.equal(1, line_of(source, { 10 }))
  end)

  it("never hangs on a text that is no Lua", function()
    for _, source in ipairs { "", "return", "return {", "return { a = ", "{{{", "return { [ = } ]", "'",
                               "[[", "--[[", "return { a = 'x" } do
      assert.is_table(lines.of(source))
    end
  end)
end)
