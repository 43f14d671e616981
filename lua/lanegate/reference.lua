-- config/README.md, from the rows of the schema. To write it anew:
--
--   LUA_PATH="lua/?.lua" luajit -e 'io.write(require("lanegate.reference").text())' > config/README.md

local schema = require "lanegate.schema"
local types = require "lanegate.types"

local reference = {}

local HEAD = [[
# Configuration

`config.lua` is Lua, run once when the gateway starts, in a world without files, network or clock. It returns one table.
Without `--config` it is `./config.lua`, then `/etc/lanegate/config.lua`. Relative paths are relative to the file.
`lanegate check` names every fault of a file at once, with its line. Beside this page, [config.lua](config.lua) runs as it is.

- `env "NAME"` is a variable of the environment, `env("NAME", "other")` one with a default; `file "/run/secrets/x"` is what a
  file holds, without a line feed at its end. One that is missing is a fault of the option it was meant for.
- Every `_ms` option takes milliseconds, or a text such as `"250ms"`, `"30s"`, `"5m"`, `"72h"`, `"7d"`.
- Every `_bytes` option takes bytes, or a text such as `"64KiB"`, `"8MiB"`, `"1GiB"`.
- An option marked *later* is not built yet in this version, and refused.

Beside the gateway's own file: [receivers/](receivers/README.md) has whole receivers that apply each effect once and in order, and
[alerts.yml](alerts.yml) the rules for Prometheus, each with what to do first when it fires.

This page is made from `lua/lanegate/schema.lua`; a test compares the two.
]]

local function default_of(row)
  if row.later then return "*later*" end
  if row.shown then return row.shown end
  if row.required then return "required" end
  local default = row.default
  if row.type == "section" then return "see below" end
  if default == nil then return "unset" end
  if type(default) == "table" then
    if default.type then return ('`{ type = "%s" }`'):format(default.type) end
    local items = {}
    for i, item in ipairs(default) do items[i] = tostring(item) end
    return #items == 0 and "`{}`" or "`{ " .. table.concat(items, ", ") .. " }`"
  end
  return type(default) == "string" and ('`"%s"`'):format(default) or ("`%s`"):format(tostring(default))
end

-- What may be written, where name and default do not say it.
local function values_of(row)
  if row.later then return "" end
  if (row.type == "choice" or row.type == "number_choice") and #row.choices > 1 then
    local shown = types.quoted(row.choices):gsub('"[^"]+"', "`%0`")
    return " One of " .. shown .. "."
  end
  if row.type == "integer" then return (" From %.0f to %.0f."):format(row.min, row.max) end
  return ""
end

local function table_of(out, rows)
  out[#out + 1] = "| option | default | what it is |\n|---|---|---|\n"
  for _, row in ipairs(rows) do
    local doc = row.doc .. values_of(row)
    out[#out + 1] = ("| `%s` | %s | %s |\n"):format(row.name, default_of(row), doc)
  end
end

local function heading(out, title, doc)
  out[#out + 1] = ("\n## %s\n\n%s\n\n"):format(title, doc)
end

local function top_level()
  local rows = {}
  for _, row in ipairs(schema.rows) do
    if row.type ~= "section" then rows[#rows + 1] = row end
  end
  return rows
end

local function sections(out, rows, prefix)
  for _, row in ipairs(rows) do
    if row.type == "section" or row.type == "tokens" then
      heading(out, prefix .. row.name, row.doc)
      table_of(out, row.rows)
      sections(out, row.rows, prefix .. row.name .. ".")
    end
  end
end

local function sinks_of(kind)
  local rows = {}
  for _, row in ipairs(schema.sink) do
    if row.sink == kind then rows[#rows + 1] = row end
  end
  return rows
end

local function verify(out)
  heading(out, "verify", "`{ type = NAME, ... }`. Every scheme has its own options.")
  out[#out + 1] = "| type | option | default | what it is |\n|---|---|---|---|\n"
  local later = {}
  local names = {}
  for name in pairs(schema.schemes) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local scheme = schema.schemes[name]
    if scheme.later then
      later[#later + 1] = "`" .. name .. "`"
    elseif #scheme.rows == 0 then
      out[#out + 1] = ("| `%s` | | | Takes anything. |\n"):format(name)
    else
      for _, row in ipairs(scheme.rows) do
        out[#out + 1] = ("| `%s` | `%s` | %s | %s |\n"):format(name, row.name, default_of(row), row.doc)
      end
    end
  end
  if #later > 0 then out[#out + 1] = "\n*Later:* " .. table.concat(later, ", ") .. ".\n" end
end

local KEYS = [[

## Ordering keys

| form | the key is |
|---|---|
| `{ header = "x-entity-id" }` | the value of that header, in any case of its name; the first one if it is there twice |
| `{ json = "data.object.customer" }` | the string at that path of a JSON body; elements of arrays by number: `items.0.id` |
| `{ json = { "a.b", "c" } }` | the same, where names hold dots |
| `{ json = "order_id", integers = true }` | a string, or an integer as its exact digits |
| `{ first = { { json = "a" }, { header = "b" } } }` | the first of them that there is |
| `{ lua = "keys.shop", call = "by_region", args = { "eu" } }` | what `by_region(hook, "eu")` of `keys/shop.lua` returns |
| `{ "keys.shop", "by_region", { "eu" } }` | the same; modules lie under `scripts.path` |
]]

local RELOAD = [[

## Reload

`SIGHUP` and `lanegate reload` make a running gateway read its file again, with all that `file` and `scripts.path` hold then
(the environment of a process does not change). A good file replaces what runs, without dropping a connection or a hook; a
bad one is logged as `reload_refused`, with every fault, and changes nothing. `lanegate check` says the same before.

- New hooks go by the new file. What waits keeps its lane and its place, and goes to its sink as the sink is now; an attempt
  under way ends as it began. A sink that is reached another way than before (`url`, `method`, `secret`, `tls`, `proxy`) is
  tried at once, whatever its hooks were waiting for, and its breaker closes; so is one that was parked.
- `data_dir`, `store`, `quarantine.retention_ms`, `admin.listen`, and of `http` the listen, the threads, sizes, timeouts and
  `max_connections` need a restart, and so does `was` on a sink whose old name is owed hooks. All of them are named.
- The files of `http.tls` are read again; connections that are open keep what they have.
- A sink that is gone while hooks are owed to it is refused as at the start, unless `retire` names it. One that is owed
  nothing goes when the last hook that was on its way to it is delivered.
- Counters of a source or a sink that is gone stay as they are until the restart, and go on should it come back; its gauges
  are 0.
]]

-- The whole page.
function reference.text()
  local out = { HEAD }
  heading(out, "Top level", "Beside the sections below.")
  table_of(out, top_level())
  sections(out, schema.rows, "")
  heading(out, "retry", "On a sink it goes over the source's, and that over dispatch's, key by key. A list of waits stands "
    .. "for `base_ms` and `max_ms`.")
  table_of(out, schema.retry)
  heading(out, "dlq", "On a source it goes over dispatch's, key by key.")
  table_of(out, schema.dlq)
  for _, row in ipairs(schema.rows) do
    if row.type == "sources" then
      heading(out, "sources.NAME", "One provider each, posted to `PREFIX/NAME`.")
      table_of(out, row.rows)
    end
  end
  verify(out)
  heading(out, "sinks", "Entries of a source's `sinks`. Options of every sink:")
  table_of(out, sinks_of(nil))
  heading(out, "http sinks", "Beside those of every sink. 2xx is a success; what is not in `refused` is tried again.")
  table_of(out, sinks_of("http"))
  sections(out, schema.sink, "sinks.")
  out[#out + 1] = KEYS
  out[#out + 1] = RELOAD
  return table.concat(out)
end

return reference
