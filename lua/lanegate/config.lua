-- From the text of config.lua to what the gateway runs on, or to all that is wrong with it. `host` is what C lends:
--
--   getenv(name), read_file(path), readable(path)     the machine (the latter two give nil or false, and a reason)
--   parse_ms(text), parse_bytes(text)                 units (nil when malformed)
--   within_budget(func)                               a pcall that ends what never ends
--   judge_url(url, is_proxy, ranges, allow_http), judge_range(text), judge_secret(text), judge_verify(options),
--   judge_tls(cert, key, client_ca)                   what other rooms know better (nil, or what is wrong)
--   cores, memory, terminal                           for defaults that the machine decides

local check = require "lanegate.check"
local dsl = require "lanegate.dsl"
local lines = require "lanegate.lines"
local redact = require "lanegate.redact"
local reference = require "lanegate.reference"
local report = require "lanegate.report"

local config = {}

-- Gives { root, shown, lines } (normal form, what may be shown, the line of every table, by path); or nil and the faults, one
-- text each. `file` is the path as the user gave it, `resolve` says whether env and file are wanted.
function config.load(source, file, host, resolve)
  local faults = report.new(file)
  local given, marks, fault = dsl.run(source, host, resolve)
  local root, line_of
  if given then
    root, line_of = check.run(given, { faults = faults, host = host, resolve = resolve, node = lines.of(source),
                                       directory = file:match("^.*/") or "" })
  else
    faults:add({ path = "", line = fault.line }, fault.text)
  end
  -- A missing value that no option holds would otherwise decide something unseen.
  for _, about in ipairs(marks) do
    if not about.seen then faults:add({ path = "", line = about.line }, about.fault) end
  end
  if #faults.list > 0 then return nil, faults:lines() end
  return { root = root, shown = redact.run(root), lines = line_of }
end

config.reference = reference.text

return config
