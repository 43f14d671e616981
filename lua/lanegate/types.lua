-- What a value of each type may be. A type is { expects, read }:
--
--   expects   the rest of the sentence "must be ...": a text, or a function of the row
--   read      (check, value, row, place) gives the normal form, or nil after it has reported the fault
--   is_text   the normal form is one text, so that a placeholder may stand in for it
--   placeholder(text)   what stands in, where that is neither a text nor the default
--
-- Tables with rows of their own (sections, sources, sinks, verify, retry, tokens) are read by check.lua, keys and
-- filters by keys.lua.

local address = require "lanegate.address"
local env = require "lanegate.env"
local report = require "lanegate.report"
local tree = require "lanegate.tree"

local types = {}

local function expects(row)
  local text = types[row.type].expects
  return type(text) == "function" and text(row) or text
end
types.expects = expects

local function refuse(check, value, row, place)
  check.faults:must(place, expects(row), value)
  return nil
end

-- Plain text: not empty, and without control characters, which no option has a use for.
local function is_plain(value)
  return type(value) == "string" and value ~= "" and not value:find("%c")
end

-- A type whose values are texts that `accepts`, turned by `normal` (if any).
local function text_type(sentence, accepts, normal)
  return { expects = sentence, is_text = true, read = function(check, value, row, place)
    if not is_plain(value) or not accepts(value) then return refuse(check, value, row, place) end
    return normal and normal(value, check) or value
  end }
end

local function quoted(choices)
  local out = {}
  for i, choice in ipairs(choices) do out[i] = type(choice) == "string" and ('"%s"'):format(choice) or tostring(choice) end
  if #out < 2 then return out[1] end
  return table.concat(out, ", ", 1, #out - 1) .. " or " .. out[#out]
end
types.quoted = quoted

local function contains(list, value)
  for _, item in ipairs(list or {}) do
    if item == value then return true end
  end
  return false
end

local TOKEN = "^[%w!#$%%&'*+.^_`|~-]+$"
function types.is_header_name(value)
  return type(value) == "string" and #value <= 256 and value:find(TOKEN) ~= nil
end

-- Plain kinds ---------------------------------------------------------------------------------------------------

types.boolean = { expects = "true or false", read = function(check, value, row, place)
  if type(value) ~= "boolean" then return refuse(check, value, row, place) end
  return value
end }

local function whole(value)
  return type(value) == "number" and value == math.floor(value) and math.abs(value) <= 2 ^ 53
end

local function exact(number)
  return ("%.0f"):format(number)
end

types.integer = {
  expects = function(row) return ("a whole number from %s to %s"):format(exact(row.min), exact(row.max)) end,
  read = function(check, value, row, place)
    if not whole(value) or value < row.min or value > row.max then return refuse(check, value, row, place) end
    return value
  end,
}

-- `parse` is the host's: units become numbers in one place of the program, src/util/units.c.
local function unit_type(unit, sample, parse)
  return {
    expects = function(row)
      return ('%s from %s to %s, or a text such as "%s"'):format(unit, exact(row.min), exact(row.max), sample)
    end,
    read = function(check, value, row, place)
      local number = value
      if type(value) == "string" then number = check.host[parse](value) end
      if not whole(number) or number < row.min or number > row.max then return refuse(check, value, row, place) end
      return number
    end,
  }
end
types.ms = unit_type("milliseconds", "30s", "parse_ms")
types.bytes = unit_type("bytes", "8MiB", "parse_bytes")

types.number = {
  expects = function(row) return ("a number from %g to %s"):format(row.min, exact(row.max)) end,
  read = function(check, value, row, place)
    if type(value) ~= "number" or not (value >= row.min and value <= row.max) then
      return refuse(check, value, row, place)
    end
    return value
  end,
}

types.number_choice = {
  expects = function(row) return quoted(row.choices) end,
  read = function(check, value, row, place)
    if not contains(row.choices, value) then return refuse(check, value, row, place) end
    return value
  end,
}

types.choice = {
  is_text = true,
  expects = function(row) return quoted(row.choices) end,
  read = function(check, value, row, place)
    if contains(row.choices, value) then return value end
    if contains(row.later_choices, value) then
      return check.faults:add(place, ('"%s" is not built yet in this version'):format(value)) or nil
    end
    check.faults:add(place, ("must be %s, got %s%s"):format(quoted(row.choices), report.show(value),
      report.did_you_mean(value, row.choices)))
    return nil
  end,
}

-- Names and paths -----------------------------------------------------------------------------------------------

function types.is_name(value)
  return type(value) == "string" and #value <= 64 and value:find("^[%w_-]+$") ~= nil
end
types.name = text_type("a name of 1 to 64 letters, digits, _ and -", types.is_name)

types.path = text_type("a path", function() return true end, function(value, check)
  return value:sub(1, 1) == "/" and value or check.directory .. value
end)

types.file = { expects = "the path of a file", is_text = true, read = function(check, value, row, place)
  local path = types.path.read(check, value, row, place)
  local readable, reason = true, nil
  if path and check.resolve then readable, reason = check.host.readable(path) end
  if not readable then
    return check.faults:add(place, ("must be a file that can be read, got %s: %s"):format(report.show(path), reason)) or nil
  end
  return path
end }

types.url_prefix = text_type('a path such as "/webhooks", without a slash at its end', function(value)
  return #value <= 256 and (value .. "/"):find("^/[%w._~/-]+/$") and not value:find("//", 1, true)
    and value:sub(-1) ~= "/" and not (value .. "/"):find("/%.%.?/")
end)

types.header_prefix = text_type("1 to 32 lower-case letters, digits and -", function(value)
  return #value <= 32 and value:find("^[a-z0-9][a-z0-9-]*$") and value:sub(-1) ~= "-"
end)

-- How a signature is written, and what it signs: judged by the scheme.
types.text = text_type("a text without control characters", function() return true end)
types.marks = types.text
types.field_name = text_type('a name such as "t"', function(value) return #value <= 64 and value:find("^[%w_.-]+$") end)
types.public_url = text_type('the address that the provider posts to, such as "https://hooks.example.com/webhooks/shop", '
  .. "without a query", function(value) return value:find("^https?://[^/?#%s]+/[^?#%s]*$") end)

-- Addresses -----------------------------------------------------------------------------------------------------

types.address = text_type('an address and a port, such as "127.0.0.1:4000" or "[::1]:4000"', address.listen)

-- A text that a room of the program judges: `judge` is the host's and gives what is wrong.
local function judged_type(sentence, judge)
  return { expects = sentence, is_text = true, read = function(check, value, row, place)
    if not is_plain(value) then return refuse(check, value, row, place) end
    local wrong = check.host[judge](value)
    if not wrong then return value end
    if env.origin(value) then return refuse(check, value, row, place) end
    return check.faults:add(place, wrong) or nil
  end }
end

types.range = judged_type('a range such as "10.0.0.0/8"', "judge_range")

-- Judged by rules.lua, which knows what egress says.
types.url = { expects = "a URL that begins with https:// or http://", is_text = true,
  read = function(check, value, row, place)
    -- The text may hold a token: it is not shown.
    if not is_plain(value) then
      return check.faults:add(place, ("must be %s, got %s"):format(expects(row), report.show_kind(value))) or nil
    end
    return value
  end }
types.proxy = { expects = "the URL of a proxy", is_text = true, read = types.url.read }

-- Lists ---------------------------------------------------------------------------------------------------------

-- Reads every item of a list as `item_row`; nil when any is refused.
function types.read_list(check, value, row, place, item_row)
  if not tree.looks_like_list(value) then return refuse(check, value, row, place) end
  local out, good = tree.list(), true
  for i, item in ipairs(value) do
    local normal = check:value(item_row, item, report.member(place, i))
    if normal == nil then good = false end
    out[#out + 1] = normal
  end
  return good and out or nil
end

types.addresses = { expects = types.address.expects .. ", or a list of them",
  placeholder = function(text) return tree.list { text } end,
  read = function(check, value, row, place)
    if type(value) == "string" then
      local one = check:value({ type = "address" }, value, place)
      return one and tree.list { one }
    end
    if type(value) == "table" and #value == 0 then return refuse(check, value, row, place) end
    return types.read_list(check, value, row, place, { type = "address" })
  end }

-- Providers publish theirs as lines of a file, so a text with blanks between is fine too.
local RANGES_MAX = 4096

-- An entry of a text that came from outside: a fault has its number only.
types.foreign_range = { expects = types.range.expects, read = function(check, value, row, place)
  if not check.host.judge_range(value) then return value end
  return check.faults:add(place, ("must be %s, got number %d of %s"):format(expects(row), row.number, row.origin)) or nil
end }

types.ranges = { expects = 'a list of ranges such as { "10.0.0.0/8" }', read = function(check, value, row, place)
  local list = value
  if type(value) == "string" then
    list = {}
    for range in value:gmatch("[^%s,]+") do list[#list + 1] = range end
    if #list == 0 then return refuse(check, value, row, place) end
  end
  if tree.looks_like_list(list) and #list > RANGES_MAX then
    return check.faults:add(place, ("must have at most %d ranges, got %d"):format(RANGES_MAX, #list)) or nil
  end
  local origin = env.origin(value)
  if not origin then return types.read_list(check, list, row, place, { type = "range" }) end
  local out, good = tree.list(), true
  for i, range in ipairs(list) do
    out[i] = check:value({ type = "foreign_range", origin = origin, number = i }, range, report.member(place, i))
    good = good and out[i] ~= nil
  end
  return good and out or nil
end }

types.header_name = text_type("a header name", types.is_header_name)

types.header_names = { expects = 'a list of header names such as { "content-type" }',
  read = function(check, value, row, place)
    return types.read_list(check, value, row, place, { type = "header_name" })
  end }

types.stored_headers = { expects = '"all", or a list of header names such as { "x-shop" }',
  read = function(check, value, row, place)
    if value == "all" then return value end
    return types.read_list(check, value, row, place, { type = "header_name" })
  end }

types.sink_path = text_type('a sink as "source/sink"', function(value)
  local source, sink = value:match("^([^/]*)/([^/]*)$")
  return types.is_name(source) and types.is_name(sink)
end)

types.sink_paths = { expects = 'a list of sinks such as { "shop/billing" }', read = function(check, value, row, place)
  return types.read_list(check, value, row, place, { type = "sink_path" })
end }

types.status = { expects = "a status from 400 to 499, but neither 408 nor 429, which ask for another attempt",
  read = function(check, value, row, place)
    if not whole(value) or value < 400 or value > 499 or value == 408 or value == 429 then
      return refuse(check, value, row, place)
    end
    return value
  end }

types.statuses = { expects = "a list of statuses such as { 400, 410 }", read = function(check, value, row, place)
  return types.read_list(check, value, row, place, { type = "status" })
end }

types.scope = { is_text = true, expects = types.choice.expects, read = types.choice.read }

types.scopes = { expects = function(row) return "a list out of " .. quoted(row.choices) end,
  read = function(check, value, row, place)
    if type(value) == "table" and #value == 0 then return refuse(check, value, row, place) end
    return types.read_list(check, value, row, place, { type = "scope", choices = row.choices })
  end }

types.schedule = { expects = 'a list of waits such as { "5s", "5m" }', read = function(check, value, row, place)
  return types.read_list(check, value, row, place, { type = "ms", min = 1, max = 366 * 24 * 3600 * 1000 })
end }

-- Secrets: what they are is never said, only what is wrong with them ----------------------------------------------

types.hash = { expects = "the SHA-256 of the token as 64 hex digits", read = function(check, value, row, place)
  if type(value) ~= "string" or #value ~= 64 or value:find("%X") then
    return check.faults:add(place, ("must be %s, got %s"):format(expects(row), report.show_kind(value))) or nil
  end
  return value:lower()
end }

-- Not blank, and what `judge` (the host's, where there is one) asks for beside.
local function secret_type(judge)
  return { expects = "a secret", read = function(check, value, _, place)
    local wrong
    if type(value) ~= "string" or not value:find("%S") then
      wrong = "must be a secret that is not blank, got " .. report.show_kind(value)
    else
      wrong = judge and check.host[judge](value)
    end
    if wrong then return check.faults:add(place, wrong) or nil end
    return value
  end }
end
types.secret = secret_type()
types.sink_secret = secret_type("judge_secret")

-- One or several, while one takes the place of another. Where they are not resolved, the list is there and empty.
local function rotating_type(one, noun)
  return { expects = noun .. ", or a list of them", placeholder = function() return tree.list() end,
    read = function(check, value, row, place)
      if type(value) ~= "table" then
        local single = check:value({ type = one }, value, place)
        return single and tree.list { single }
      end
      if #value == 0 or #value > 16 then
        return check.faults:add(place, ("must be %s, or a list of 1 to 16 of them"):format(noun)) or nil
      end
      return types.read_list(check, value, row, place, { type = one })
    end }
end
types.secrets = rotating_type("secret", "a secret")
types.sink_secrets = rotating_type("sink_secret", "a secret")

-- Public, but long and easily mistaken for the private one: not shown either. Their form is the scheme's to judge.
types.public_key = { expects = "a public key", read = function(check, value, row, place)
  if type(value) ~= "string" or not value:find("%S") then
    return check.faults:add(place, ("must be %s, got %s"):format(expects(row), report.show_kind(value))) or nil
  end
  return value
end }
types.public_keys = rotating_type("public_key", "a public key")
types.fingerprint = text_type("the SHA-256 of a certificate, 64 hex digits", function() return true end)
types.fingerprints = rotating_type("fingerprint", "the fingerprint of a certificate")

-- Written by the gateway: they frame the message.
local FRAMING_HEADERS = { ["content-length"] = true, ["transfer-encoding"] = true, ["connection"] = true,
  ["keep-alive"] = true, ["te"] = true, ["trailer"] = true, ["upgrade"] = true, ["expect"] = true,
  ["proxy-connection"] = true }

types.header_value = { expects = "a header value: printable ASCII, without blanks at its ends", is_text = true,
  read = function(check, value, _, place)
    if type(value) ~= "string" or value:find("[^\t\32-\126]") or value:find("^%s") or value:find("%s$") then
      return check.faults:add(place, "must be a header value (printable ASCII, no blank at its ends), got "
        .. report.show_kind(value)) or nil
    end
    return value
  end }

types.headers = { expects = 'a table such as { ["x-team"] = "billing" }', read = function(check, value, row, place)
  if type(value) ~= "table" or #value > 0 then return refuse(check, value, row, place) end
  local out, good, seen = {}, true, {}
  for _, name in ipairs(tree.sorted_keys(value)) do
    local at = report.member(place, name)
    local lower = type(name) == "string" and name:lower()
    local fault = not types.is_header_name(name) and "is not a header name"
      or FRAMING_HEADERS[lower] and "is set by the gateway itself"
      or seen[lower] and "is there twice, in another case"
    if fault then check.faults:add(at, fault) end
    seen[lower or name] = true
    out[name] = check:value({ type = "header_value" }, value[name], at)
    good = good and not fault and out[name] ~= nil
  end
  return good and out or nil
end }

-- Named in the schema, but not built: never read.
types.anything = { expects = "a value", read = function(_, value) return value end }

return types
