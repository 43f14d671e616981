-- What options mean together: rules that no single row of the schema can hold. They run behind the rows, on normal
-- forms, in which whatever was refused already is missing.

local address = require "lanegate.address"
local env = require "lanegate.env"
local report = require "lanegate.report"
local schema = require "lanegate.schema"
local tree = require "lanegate.tree"
local types = require "lanegate.types"

local rules = {}

-- A table that is not given is not there for members either.
local function member_of(value, name)
  return type(value) == "table" and not env.is_mark(value) and value[name] or nil
end

-- Sinks ---------------------------------------------------------------------------------------------------------

local function ordering(check, given, sink, place)
  if sink.ordered then
    sink.on_dead = sink.on_dead or given.on_dead == nil and { refused = "skip", exhausted = "hold" } or nil
    return
  end
  for _, option in ipairs { "ordering_key", "on_missing_key", "on_dead" } do
    if given[option] ~= nil and (given.ordered == nil or sink.ordered == false) then
      check.faults:add(report.member(place, option), "is only for ordered sinks: it needs ordered = true")
    end
  end
  sink.on_missing_key = nil
end

local function tls(check, sink, place)
  if sink.tls and (sink.tls.cert == nil) ~= (sink.tls.key == nil) then
    check.faults:add(report.member(place, "tls"), "must have both cert and key, or neither")
  end
end

function rules.sink(check, given, sink, place)
  ordering(check, given, sink, place)
  tls(check, sink, place)
end

-- Sources -------------------------------------------------------------------------------------------------------

local function is_list(value)
  return type(value) == "table" and not env.is_mark(value)
end

-- Was something left out, or refused already? Then the scheme has nothing whole to judge.
local function is_whole(check, given, verify, scheme, place)
  for _, row in ipairs(scheme.rows) do
    if row.required and verify[row.name] == nil then return false end
    local value = member_of(given, row.name)
    if value ~= nil and verify[row.name] == nil then return false end
    if env.is_mark(value) and not check.resolve then return false end
  end
  local names, there = scheme.one_of or {}, scheme.one_of == nil
  for _, name in ipairs(names) do there = there or verify[name] ~= nil end
  if not there then check.faults:add(place, "must have " .. table.concat(names, " or ")) end
  return there
end

-- The public URL is an option of the source, since it says where the source is; it is the scheme that signs it.
local function signs_url(scheme, verify)
  return scheme.url == "always" or scheme.url == "template" and verify.template:find("{url}", 1, true) ~= nil
end

-- What a scheme takes is judged by the scheme itself. "secret[2]: must be ..." becomes a fault of that option.
local function scheme(check, given, source, place)
  local verify, at = source.verify, report.member(place, "verify")
  local row = schema.schemes[verify.type]
  if not row or not is_whole(check, member_of(given, "verify"), verify, row, at) then return end
  if signs_url(row, verify) then
    if not source.url and member_of(given, "url") ~= nil then return end
    if not source.url then
      check.faults:add(report.member(place, "url"), ('must be the address that the provider posts to: verify = { type = "%s" '
        .. "} signs it, and a proxy may have changed what arrives here"):format(verify.type))
      return
    end
    verify.url = source.url
  end
  local wrong = check.host.judge_verify(verify)
  if not wrong then return end
  local option, index, sentence = wrong:match("^([%a_]+)%[?(%d*)%]?: (.*)$")
  if not option then
    check.faults:add(at, wrong)
  elseif option == "url" then
    check.faults:add(report.member(place, "url"), sentence)
  elseif index ~= "" and is_list(member_of(member_of(given, "verify"), option)) then
    check.faults:add(report.member(report.member(at, option), tonumber(index)), sentence)
  else
    check.faults:add(report.member(at, option), sentence)
  end
end

local function handshake(check, source, place)
  if source.handshake and source.handshake.type == "zoom" and source.verify and source.verify.type ~= "zoom" then
    check.faults:add(report.member(place, "handshake"), 'needs verify = { type = "zoom", ... }: Zoom asks whether its '
      .. "receiver knows the secret")
  end
end

-- Nil when all are stored, or when what is stored is not known here.
local function stored_headers(source)
  local list = source.store_headers
  if type(list) ~= "table" then return nil end
  local stored = {}
  for _, name in ipairs(list) do
    if not types.is_header_name(name) then return nil end -- a placeholder
    stored[name:lower()] = true
  end
  return stored
end

-- The first header that the key asks for and that is not stored.
local function header_not_stored(key, stored)
  if not key then return nil end
  for _, name in ipairs(key.headers or { key.header }) do
    if types.is_header_name(name) and not stored[name:lower()] then return name end
  end
  for _, item in ipairs(key.items or {}) do
    local name = header_not_stored(item, stored)
    if name then return name end
  end
end

-- Of several ways to a dedupe key one is enough: a preset knows more names than a provider uses.
local function dedupe_not_stored(key, stored)
  local missing
  for _, item in ipairs(key.items or { key }) do
    local name = header_not_stored(item, stored)
    if not name then return nil end
    missing = missing or name
  end
  return missing
end

-- A key or a filter must give the same for the hook as it is stored as for the hook as it came.
local function survival(check, source, place)
  local stored = stored_headers(source)
  if not stored then return end
  for i, sink in ipairs(source.sinks or {}) do
    for _, option in ipairs { "ordering_key", "only" } do
      local name = header_not_stored(sink[option], stored)
      if name then
        local at = report.member(report.member(place, "sinks"), i, sink.name)
        check.faults:add(report.member(at, option), ("reads the header %s, which store_headers does not keep: a replay "
          .. "could not find it again"):format(report.show(name)))
      end
    end
  end
  local lost = source.dedupe and dedupe_not_stored(source.dedupe.key, stored)
  if lost then
    check.faults:add(report.member(place, "dedupe"), ("reads the header %s, which store_headers does not keep"):format(
      report.show(lost)))
  end
  for i, name in ipairs(source.forward_headers or {}) do
    if types.is_header_name(name) and not stored[name:lower()] and name:lower() ~= "content-type" then
      check.faults:add(report.member(report.member(place, "forward_headers"), i), ("is %s, which store_headers does not "
        .. "keep"):format(report.show(name)))
    end
  end
end

-- A backlog moves from a name that is free now to one sink.
local function old_names(check, source, place)
  local names, taken = {}, {}
  for _, sink in ipairs(source.sinks or {}) do
    if sink.name then names[sink.name] = true end
  end
  for i, sink in ipairs(source.sinks or {}) do
    if sink.was then
      local at = report.member(report.member(report.member(place, "sinks"), i, sink.name), "was")
      if names[sink.was] then
        check.faults:add(at, ("%s is the name of a sink of this source now, and keeps its backlog"):format(
          report.show(sink.was)))
      elseif taken[sink.was] then
        check.faults:add(at, ("%s is what sink %s was, too: a backlog moves to one sink"):format(report.show(sink.was),
          report.show(taken[sink.was])))
      end
      taken[sink.was] = taken[sink.was] or sink.name
    end
  end
end

function rules.source(check, given, source, place)
  survival(check, source, place)
  old_names(check, source, place)
  if source.verify then scheme(check, given, source, place) end
  handshake(check, source, place)
  if source.verify and source.verify.type == "none" and member_of(given, "on_verify_failure") ~= nil then
    check.faults:add(report.member(place, "on_verify_failure"), 'has no meaning with verify = { type = "none" }, '
      .. "which never fails")
  end
end

-- The whole -----------------------------------------------------------------------------------------------------

-- Key by key, the nearest last. An explicit schedule takes the place of base_ms and max_ms, and they of it.
local function merged_retry(levels)
  local out = {}
  for _, level in ipairs(levels) do
    if level.schedule_ms then out.base_ms, out.max_ms = nil, nil end
    if level.base_ms or level.max_ms then out.schedule_ms = nil end
    for key, value in pairs(level) do out[key] = value end
  end
  return out
end

local function with_retry_defaults(check, retry, ordered)
  for _, row in ipairs(schema.retry) do
    local scheduled = retry.schedule_ms and (row.name == "base_ms" or row.name == "max_ms")
    if retry[row.name] == nil and not scheduled then
      retry[row.name] = row.name == "max_ms" and ordered and 60000 or check:default(row, { path = "" })
    end
  end
  return retry
end

local function retries(check, whole, source, sink, place)
  local levels = { whole.dispatch and whole.dispatch.retry or {}, source.retry or {}, sink.retry or {} }
  sink.retry = with_retry_defaults(check, merged_retry(levels), sink.ordered)
  if not sink.retry.schedule_ms and sink.retry.base_ms > sink.retry.max_ms then
    check.faults:add(report.member(place, "retry"), ("base_ms (%.0f) must be at most max_ms (%.0f)"):format(
      sink.retry.base_ms, sink.retry.max_ms))
  end
end

local function dead_letters(check, whole, source)
  local out = {}
  for _, level in ipairs { whole.dispatch and whole.dispatch.dlq or {}, source.dlq or {} } do
    for key, value in pairs(level) do out[key] = value end
  end
  for _, row in ipairs(schema.dlq) do
    if out[row.name] == nil then out[row.name] = check:default(row, { path = "" }) end
  end
  source.dlq = out
end

local function timeouts(check, whole, given, sink, place)
  local outer = whole.dispatch and whole.dispatch.attempt_timeout_ms
  if outer and sink.timeout_ms and member_of(given, "timeout_ms") ~= nil and sink.timeout_ms > outer then
    check.faults:add(report.member(place, "timeout_ms"), ("must be at most dispatch.attempt_timeout_ms (%.0f), got %.0f")
      :format(outer, sink.timeout_ms))
  end
end

-- What egress opens: ranges, and whether plain http is allowed. Where it is wrong itself, or not resolved, everything,
-- so that only the form of a URL is judged.
local function opened(given, whole)
  local section = whole.egress or {}
  local ranges, http = section.allow_private, section.allow_http
  local given_ranges = member_of(given.egress, "allow_private")
  if env.is_mark(given_ranges) then ranges = nil end
  for i in ipairs(ranges or {}) do
    if env.is_mark(member_of(given_ranges, i)) then ranges = nil end
  end
  if http == nil or env.is_mark(member_of(given.egress, "allow_http")) then http = true end
  return { ranges = ranges or { "0.0.0.0/0", "::/0" }, http = http }
end

-- What can be seen to be refused before anybody connects. The host's message holds the line that would allow it.
local function egress(check, open, given, sink, place)
  for _, option in ipairs { "url", "proxy" } do
    if sink[option] and not env.is_mark(given[option]) then
      local wrong = check.host.judge_url(sink[option], option == "proxy", open.ranges, open.http)
      if wrong then check.faults:add(report.member(place, option), wrong) end
    end
  end
end

-- Names under which a receiver must be able to trust what it reads.
local function own_headers(check, whole, sink, place)
  local prefixes = { "x-lanegate-", "x-ankusa-", "x-" .. (whole.sink_header_prefix or "lanegate") .. "-" }
  if sink.secret then prefixes[#prefixes + 1] = "webhook-" end
  for _, name in ipairs(tree.sorted_keys(sink.headers or {})) do
    local own = false
    for _, prefix in ipairs(prefixes) do own = own or name:lower():sub(1, #prefix) == prefix end
    if own then check.faults:add(report.member(report.member(place, "headers"), name), "is set by the gateway itself") end
  end
end

local function shared_tenant(check, whole, source, place)
  if whole.http and whole.http.routing == "tenant_path" and source.tenant == "default" and source.verify
      and source.verify.type == "none" and source.trust_url_tenant == false then
    check.faults:add(place, "takes its tenant from the URL and verifies nothing, so that anybody can post as anybody: "
      .. "give it a verify, a tenant, or trust_url_tenant = true")
  end
end

local function sources(check, given, whole, place)
  local all, open = report.member(place, "sources"), opened(given, whole)
  for _, name in ipairs(tree.sorted_keys(whole.sources or {})) do
    local source = whole.sources[name]
    local at = report.member(all, name)
    shared_tenant(check, whole, source, at)
    dead_letters(check, whole, source)
    local given_sinks = member_of(member_of(given.sources, name), "sinks")
    for i, sink in ipairs(source.sinks or {}) do
      local sink_at = report.member(report.member(at, "sinks"), i, sink.name)
      retries(check, whole, source, sink, sink_at)
      local given_sink = member_of(given_sinks, i) or {}
      timeouts(check, whole, given_sink, sink, sink_at)
      egress(check, open, given_sink, sink, sink_at)
      own_headers(check, whole, sink, sink_at)
      sink.concurrency = sink.concurrency or whole.dispatch and whole.dispatch.sink_concurrency
    end
  end
end

local function is_any(groups)
  for i = 1, 8 do
    if groups[i] ~= 0 and not (i == 6 and groups[i] == 0xffff) then return false end
  end
  return true
end

local function is_v4(groups)
  for i = 1, 5 do
    if groups[i] ~= 0 then return false end
  end
  return groups[6] == 0xffff
end

-- Two sockets can't listen on one address, nor one of them on a part of the other's "all addresses".
local function clash(listen, other)
  local groups, port = address.listen(listen or "")
  local other_groups, other_port = address.listen(other or "")
  if not groups or not other_groups or port == 0 or port ~= other_port then return false end
  return table.concat(groups, ":") == table.concat(other_groups, ":")
    or is_v4(groups) == is_v4(other_groups) and (is_any(groups) or is_any(other_groups))
end

local function listens_apart(check, whole, place)
  local listens = whole.http and whole.http.listen
  if type(listens) ~= "table" then return end
  local at = report.member(report.member(place, "http"), "listen")
  for i = 2, #listens do
    for k = 1, i - 1 do
      if clash(listens[i], listens[k]) then
        check.faults:add(report.member(at, i), ("%s is taken by %s of the same list: must be another port")
          :format(report.show(listens[i]), report.show(listens[k])))
        break
      end
    end
  end
  local admin_listen = member_of(whole.admin, "listen")
  for _, listen in ipairs(listens) do
    if clash(admin_listen, listen) then
      check.faults:add(report.member(report.member(place, "admin"), "listen"),
        ("%s is taken by http.listen (%s): must be another port"):format(report.show(admin_listen), report.show(listen)))
    end
  end
end

local function admin(check, whole, place)
  if not whole.admin then return end
  local at = report.member(place, "admin")
  local listen, tokens, auth = whole.admin.listen, whole.admin.tokens, whole.admin.auth
  local groups = listen and address.listen(listen)
  if groups and tokens and not address.is_loopback(groups) and #tokens == 0 and auth ~= "none" then
    check.faults:add(report.member(at, "listen"), ("%s is reached from outside this machine: it needs tokens, or "
      .. 'auth = "none" when something in front asks for them'):format(report.show(listen)))
  end
  if auth == "none" and tokens and #tokens > 0 then
    check.faults:add(report.member(at, "auth"), '"none" contradicts tokens: must be one or the other')
  end
  local seen = {}
  for i, token in ipairs(tokens or {}) do
    if seen[token.name] then
      check.faults:add(report.member(report.member(at, "tokens"), i), ('has the name "%s", like another one')
        :format(token.name))
    end
    seen[token.name] = true
  end
end

-- The files are read where they are at hand. "key: ..." is a fault of that option.
local function front_tls(check, given, whole, place)
  local files, written = whole.http and whole.http.tls, member_of(member_of(given, "http"), "tls")
  if not files then return end
  local at = report.member(report.member(place, "http"), "tls")
  if (member_of(written, "cert") == nil) ~= (member_of(written, "key") == nil) then
    check.faults:add(at, "must have both cert and key, or neither")
  elseif files.client_ca and member_of(written, "cert") == nil then
    check.faults:add(report.member(at, "client_ca"), "has no meaning without cert and key")
  elseif files.cert and files.key and check.resolve then
    local wrong = check.host.judge_tls(files.cert, files.key, files.client_ca)
    local option, sentence = (wrong or ""):match("^([%a_]+): (.*)$")
    if wrong then check.faults:add(option and report.member(at, option) or at, sentence or wrong) end
  end
end

-- A client's certificate is only seen under TLS.
local function client_certificates(check, whole, place)
  local files = whole.http and whole.http.tls
  if not files or files.cert then return end
  for _, name in ipairs(tree.sorted_keys(whole.sources or {})) do
    local verify = whole.sources[name].verify
    if verify and verify.type == "mtls" then
      check.faults:add(report.member(report.member(report.member(place, "sources"), name), "verify"),
        '"mtls" sees the client\'s certificate under TLS only: it needs http.tls')
    end
  end
end

-- `smaller` and `larger` are { section, option }.
local function at_most(check, whole, place, smaller, larger)
  local small, large = member_of(whole[smaller[1]], smaller[2]), member_of(whole[larger[1]], larger[2])
  if small and large and small > large then
    local at = report.member(report.member(place, larger[1]), larger[2])
    check.faults:add(at, ("must be at least %s.%s (%.0f), got %.0f"):format(smaller[1], smaller[2], small, large))
  end
end

local function store(check, given, place)
  if member_of(given.store, "type") ~= "none" then return end
  for _, source in pairs(type(given.sources) == "table" and given.sources or {}) do
    local sinks = member_of(source, "sinks")
    for _, sink in pairs(type(sinks) == "table" and sinks or {}) do
      if member_of(sink, "ordered") == true then
        check.faults:add(report.member(report.member(place, "store"), "type"),
          '"none" keeps no lanes: an ordered sink needs a store')
        return
      end
    end
  end
end

-- Only what is gone is retired.
local function retired(check, whole, place)
  for i, path in ipairs(whole.retire or {}) do
    local name, gone = path:match("^(.*)/(.*)$")
    local source = name and whole.sources and whole.sources[name]
    local at = report.member(report.member(place, "retire"), i)
    for _, sink in ipairs(source and source.sinks or {}) do
      if sink.name == gone then
        check.faults:add(at, ("%s is a sink of this file: only one that is gone can be retired"):format(report.show(path)))
      elseif sink.was == gone then
        check.faults:add(at, ("%s is what sink %s was: its backlog moves there, or is retired, but not both"):format(
          report.show(path), report.show(sink.name)))
      end
    end
  end
end

-- A limit on a source that is not there limits nothing. A tenant need not be in the file.
local function limited_sources(check, whole, place)
  local limits = whole.rate_limits and whole.rate_limits.sources
  for _, name in ipairs(tree.sorted_keys(limits or {})) do
    if whole.sources and not whole.sources[name] then
      check.faults:add(report.member(report.member(report.member(place, "rate_limits"), "sources"), name),
        "is no source of this file" .. report.did_you_mean(name, tree.sorted_keys(whole.sources)))
    end
  end
end

function rules.whole(check, given, whole, place)
  store(check, given, place)
  admin(check, whole, place)
  front_tls(check, given, whole, place)
  client_certificates(check, whole, place)
  listens_apart(check, whole, place)
  at_most(check, whole, place, { "http", "max_body_bytes" }, { "http", "max_buffered_bytes" })
  at_most(check, whole, place, { "http", "max_body_bytes" }, { "store", "max_queue_bytes" })
  local breaker = whole.dispatch and whole.dispatch.breaker
  if breaker and breaker.open_ms and breaker.max_open_ms and breaker.open_ms > breaker.max_open_ms then
    check.faults:add(report.member(report.member(report.member(place, "dispatch"), "breaker"), "max_open_ms"),
      ("must be at least open_ms (%.0f), got %.0f"):format(breaker.open_ms, breaker.max_open_ms))
  end
  sources(check, given, whole, place)
  retired(check, whole, place)
  limited_sources(check, whole, place)
end

return rules
