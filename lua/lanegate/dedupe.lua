-- What makes two posts the same hook: a preset, or a key of one's own. The normal form is { key = KEY, ttl_ms = N },
-- KEY as in keys.lua, with one kind more:
--
--   { kind = "headers", headers = { "x-topic", "x-event-id" } }     all of them together

local keys = require "lanegate.keys"
local report = require "lanegate.report"
local tree = require "lanegate.tree"
local types = require "lanegate.types"

local dedupe = {}

local DAY_MS = 24 * 60 * 60 * 1000
local TTL = { type = "ms", min = 1000, max = 366 * DAY_MS }
local TTL_DEFAULT_MS = 7 * DAY_MS
local HEADERS_MAX = 16

local function header(name) return { kind = "header", header = name } end
local function first(...) return { kind = "first", items = tree.list { ... } } end
local function headers(...) return { kind = "headers", headers = tree.list { ... } } end
local function json(name) return { kind = "json", path = tree.list { name }, integers = true } end

-- By the documentation of each provider:
--   github             docs.github.com, "Redelivering webhooks": a redelivery has the X-GitHub-Delivery of the original
--   standard_webhooks  standardwebhooks.com: "webhook-id", the same whenever a message is sent again
--   svix               docs.svix.com, "Verifying payloads manually": the same thing, named svix-id
--   shopify            shopify.dev, "Ignore duplicate webhooks": X-Shopify-Event-Id is the same for all deliveries of one
--                      event; an event may have several topics
--   stripe             docs.stripe.com, "Handle duplicate events": the id of the event object
--   slack              docs.slack.dev, "Events API": event_id, unique across all workspaces
local PRESETS = {
  github = function() return header "x-github-delivery" end,
  standard_webhooks = function() return first(header "webhook-id", header "svix-id") end,
  svix = function() return first(header "svix-id", header "webhook-id") end,
  shopify = function() return headers("x-shopify-topic", "x-shopify-event-id") end,
  stripe = function() return json "id" end,
  slack = function() return json "event_id" end,
}
local PRESET_NAMES = tree.sorted_keys(PRESETS)

dedupe.forms = 'the name of a preset, { header = "name" }, { headers = { "name", "name" } } or { json = "path" }'

local function preset(check, name, place)
  if type(name) == "string" and PRESETS[name] then return PRESETS[name]() end
  return check.faults:add(place, ("must be %s, got %s%s"):format(types.quoted(PRESET_NAMES), report.show(name),
    report.did_you_mean(name, PRESET_NAMES))) or nil
end

local function all_headers(check, list, place)
  if not tree.looks_like_list(list) or #list == 0 or #list > HEADERS_MAX then
    return check.faults:must(place, ('a list of 1 to %d header names such as { "x-topic", "x-event-id" }'):format(
      HEADERS_MAX), list) or nil
  end
  local names = check:value({ type = "header_names" }, list, place)
  return names and { kind = "headers", headers = names }
end

-- An integer is as good an id as a text, always as its exact digits. False for a key that a script makes.
local function settle(key)
  if key.kind == "json" then key.integers = true end
  for _, item in ipairs(key.items or {}) do
    if not settle(item) then return false end
  end
  return key.kind ~= "script"
end

local function own_key(check, value, place)
  local key = keys.read(check, value, place)
  if key and not settle(key) then
    return check.faults:add(place, "must not be a Lua function: dedupe takes headers and JSON paths") or nil
  end
  return key
end

-- One of `preset`, `headers` or a key of keys.lua, beside ttl_ms.
local function read_table(check, value, place)
  local rest = {}
  for name, member in pairs(value) do
    if name ~= "ttl_ms" then rest[name] = member end
  end
  local named = rest.preset ~= nil and "preset" or rest.headers ~= nil and "headers"
  if not named then
    if next(rest) == nil then return check.faults:must(place, dedupe.forms, value) or nil end
    return own_key(check, rest, place)
  end
  for _, name in ipairs(tree.sorted_keys(rest)) do
    if name ~= named then check.faults:add(report.member(place, name), ("is not an option beside %s"):format(named)) end
  end
  local read = named == "preset" and preset or all_headers
  return read(check, rest[named], report.member(place, named))
end

function dedupe.read(check, value, place)
  if type(value) == "string" then
    local key = preset(check, value, place)
    return key and { key = key, ttl_ms = TTL_DEFAULT_MS }
  end
  if type(value) ~= "table" then return check.faults:must(place, dedupe.forms, value) or nil end
  local ttl_ms = TTL_DEFAULT_MS
  if value.ttl_ms ~= nil then ttl_ms = check:value(TTL, value.ttl_ms, report.member(place, "ttl_ms")) end
  local key = read_table(check, value, place)
  return key and ttl_ms and { key = key, ttl_ms = ttl_ms }
end

return dedupe
