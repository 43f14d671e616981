-- Every row of the schema says all that a row must say.

local schema = require "lanegate.schema"
local types = require "lanegate.types"
require "lanegate.check" -- adds the types with rows of their own

local function each_row(rows, path, visit)
  for _, row in ipairs(rows) do
    visit(row, path .. row.name)
    if row.rows then each_row(row.rows, path .. row.name .. ".", visit) end
  end
end

local function every(visit)
  each_row(schema.rows, "", visit)
  for name, scheme in pairs(schema.schemes) do each_row(scheme.rows or {}, "verify " .. name .. ".", visit) end
end

describe("a row", function()
  it("has a type that there is, and a sentence", function()
    every(function(row, path)
      assert.message(path).is_table(types[row.type])
      assert.message(path).matches("^.+%.$", row.doc)
    end)
  end)

  it("has its unit in its name", function()
    every(function(row, path)
      assert.message(path).equal(row.name:find("_ms$") ~= nil, row.type == "ms")
      assert.message(path).equal(row.name:find("_bytes$") ~= nil, row.type == "bytes")
    end)
  end)

  it("has bounds where it is a number", function()
    every(function(row, path)
      if row.type == "ms" or row.type == "bytes" or row.type == "integer" then
        assert.message(path).is_number(row.min)
        assert.message(path).is_number(row.max)
        assert.message(path).is_true(row.min < row.max)
      end
    end)
  end)

  it("says its default in the reference when it is a function", function()
    every(function(row, path)
      if type(row.default) == "function" then assert.message(path).is_string(row.shown) end
    end)
  end)

  it("that may hold a secret is not public", function()
    for _, name in ipairs { "secret", "hash", "proxy" } do
      local found = false
      every(function(row, path)
        if row.name == name then
          found = true
          assert.message(path).is_nil(row.public)
        end
      end)
      assert.message(name).is_true(found)
    end
  end)

  it("is named once in its table", function()
    local seen = {}
    every(function(_, path)
      -- retry is one table in three places, and so are the options of schemes
      assert.message(path).is_nil(seen[path])
      seen[path] = true
    end)
  end)
end)
