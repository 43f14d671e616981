-- No door into the network: what can be seen of a destination is a fault of the file, with the line that would open it; what
-- only a name server knows parks the sink, and costs neither an attempt nor a hook. Nothing leaves loopback here: names are
-- looked up in a file (support/names.c).
local configs = require "support.configs"
local gateway = require "support.gateway"
local json = require "dkjson"
local process = require "support.process"
local receiver = require "support.receiver"
local socket = require "socket"

local cases = json.decode(process.read_file(
  debug.getinfo(1, "S").source:match "^@(.*)flow/egress_spec%.lua$" .. "fixtures/ssrf.json"))

-- A Lua string of any bytes.
local function quoted(text)
  return '"' .. text:gsub("[^%w]", function(c) return ("\\%03d"):format(c:byte()) end) .. '"'
end

describe("a destination that can be seen to be inside", function()
  local dir

  before_each(function() dir = process.temp_dir() end)
  after_each(function() process.remove(dir) end)

  -- What `check` says of all URLs at once, by id; egress is the text of that section.
  local function faults(urls, egress)
    local sinks = {}
    for i, case in ipairs(urls) do
      sinks[i] = ([[{ type = "http", name = "%s", url = %s }]]):format(case.id, quoted(case.url))
    end
    process.write_file(dir .. "/config.lua", ("return { egress = { %s }, sources = { demo = { sinks = { %s } } } }")
      :format(egress, table.concat(sinks, ",\n")))
    local code, out, err = process.run { process.binary(), "check", "--config", dir .. "/config.lua" }
    local found, count = {}, 0
    for line in (out .. err):gmatch "[^\n]+" do
      local id = line:match "sources%.demo%.sinks%.(%w+)%.url: "
      if id then
        found[id] = line
        count = count + 1
      end
    end
    assert.equal(count == 0 and 0 or 78, code, out .. err)
    return found
  end

  it("is a fault of the file, which shows the line that opens it", function()
    local found, refused = faults(cases.urls, "allow_http = true"), 0
    for _, case in ipairs(cases.urls) do
      local said = found[case.id]
      if case.allowed then
        assert.is_nil(said)
      else
        refused = refused + 1
        assert.truthy(said, case.id .. " is taken: " .. case.why)
        local line = case.opens and ('to allow it: egress = { allow_private = { "%s" } }'):format(case.opens)
        assert.equal(line ~= nil, said:find("to allow it", 1, true) ~= nil, said)
        if line then assert.truthy(said:find(line, 1, true), said) end
      end
    end
    assert.is_true(refused > 35 and refused < #cases.urls)
  end)

  it("is none once that line is there, and the rest stays shut", function()
    for _, case in ipairs(cases.urls) do
      if case.opens then
        local found = faults({ case }, ('allow_http = true, allow_private = { "%s" }'):format(case.opens))
        assert.is_nil(found[case.id])
      end
    end
    local found = faults(cases.urls, 'allow_http = true, allow_private = { "0.0.0.0/0", "::/0" }')
    for _, case in ipairs(cases.urls) do
      local shut = not case.allowed and not case.opens
      assert.equal(shut, found[case.id] ~= nil, case.id .. ": " .. case.why)
    end
  end)

  it("over plain http is one too, and shows that line", function()
    local found, seen = faults(cases.urls, ""), 0
    for _, case in ipairs(cases.urls) do
      if case.allowed then
        seen = seen + 1
        assert.truthy(found[case.id]:find("egress = { allow_http = true }", 1, true), found[case.id])
      end
    end
    assert.is_true(seen >= 4)
  end)
end)

describe("a name", function()
  local sink, gate, dir

  before_each(function()
    sink, dir = receiver.start(), process.temp_dir()
  end)
  after_each(function()
    if gate then gate:remove() end
    gate = nil
    sink:remove()
    process.remove(dir)
  end)
  teardown(process.kill_all)

  local function say(text)
    process.write_file(dir .. "/names.new", text)
    assert(os.rename(dir .. "/names.new", dir .. "/names"))
  end

  local function config(name, allowed, more)
    local port = sink.address:match ":(%d+)$"
    local named = configs.ordered_sink(("http://%s:%s/hooks"):format(name, port), more)
    local text = configs.demo { sinks = named .. configs.plain_sink(sink.url, "healthy"),
      retry = "base_ms = 10, max_ms = 20 }, breaker = { open_ms = 1000, max_open_ms = 1000" }
    return (text:gsub('allow_private = { "127.0.0.1/32" }', ("allow_private = { %s }"):format(allowed), 1))
  end

  local function start(text, env)
    env = env or {}
    env.LD_PRELOAD = assert(os.getenv "LANEGATE_SPEC_PRELOAD", "set LANEGATE_SPEC_PRELOAD to the library of support/names.c")
    env.LANEGATE_SPEC_NAMES = dir .. "/names"
    env.ASAN_OPTIONS = "verify_asan_link_order=0"
    gate = gateway.start { config = text, env = env }
  end

  local function post()
    local answer = gate:post("demo", { ["X-Entity-Id"] = "a" }, "x")
    assert.equal(201, answer.status)
    return json.decode(answer.body).id
  end

  -- How often the sink of the name took a hook.
  local function taken(id)
    local n = 0
    for _, delivery in ipairs(sink:taken "a") do
      if delivery.id == id then n = n + 1 end
    end
    return n
  end

  -- The sink as it is shown, once it is parked.
  local function parked()
    local shown
    process.wait_for("the sink to be parked", function()
      for _, one in ipairs(gate:ask("/v1/sinks").json.sinks) do
        if one.sink == "receiver" then shown = one end
      end
      return shown.parked
    end)
    return shown
  end

  local function is_parked_for(reason)
    local shown = parked()
    assert.equal("config", shown.breaker_cause)
    assert.truthy(shown.last_error:find(reason, 1, true), shown.last_error)
    assert.equal(0, shown.dead)
    local lane = gate:ask("/v1/lanes?sink=receiver").json.lanes[1]
    assert.equal("parked", lane.state)
    assert.equal(0, lane.head.attempts)
    assert.equal(0, gate:ask("/v1/dlq").json.total)
  end

  it("that leads inside parks its sink, and a start with the range opened delivers", function()
    say "hooks.example 127.0.0.2"
    start(config("hooks.example", '"127.0.0.1/32"'))
    local one = post()
    is_parked_for "egress refused: 127.0.0.2 is loopback; see egress.allow_private"
    assert.equal(0, taken(one))
    process.wait_for("the sink beside it", function() return gate:metric("dispatch_deliveries_total",
      { sink = "healthy", result = "ok" }) == 1 end)

    say "hooks.example 127.0.0.1"
    gate:restart(config("hooks.example", '"127.0.0.1/32", "127.0.0.2/32"'))
    process.wait_for("the hook", function() return taken(one) == 1 end)
    gate:wait_idle()
    assert.equal(1, sink:taken("a")[1].attempt)
  end)

  it("that leads to a forbidden address in another form parks its sink too", function()
    local inside = { "::1", "::ffff:127.0.0.9", "64:ff9b::7f00:1", "10.255.255.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
      "224.0.0.1", "2002:7f00:1::", "2001:0:7f00:1::", "fc00::1", "fe80::1" }
    for _, address in ipairs(inside) do
      say("hooks.example " .. address)
      start(config("hooks.example", '"127.0.0.1/32"'))
      post()
      is_parked_for "egress refused: "
      gate:remove()
      gate = nil
    end
  end)

  it("that answers differently the second time is judged the second time", function()
    say "hooks.example 127.0.0.1"
    start(config("hooks.example", '"127.0.0.1/32"'))
    local first = post()
    process.wait_for("the first hook", function() return taken(first) == 1 end)
    say "hooks.example 127.0.0.3"
    gate:restart() -- no kept connection, no kept look-up
    local second = post()
    is_parked_for "127.0.0.3 is loopback"
    say "hooks.example 127.0.0.1" -- and a probe finds it well again
    process.wait_for("the second hook", function() return taken(second) == 1 end)
    gate:wait_idle()
  end)

  it("of several addresses is delivered to one that is allowed, and to no other", function()
    say "hooks.example 127.0.0.2,::1,127.0.0.1"
    start(config("hooks.example", '"127.0.0.1/32"'))
    local mixed = post()
    process.wait_for("the hook", function() return taken(mixed) == 1 end)
    gate:wait_idle()
  end)

  it("that is not found fails and is tried again; one that hangs stalls nobody", function()
    say "hooks.example fail"
    start(config("hooks.example", '"127.0.0.1/32"', "timeout_ms = 300"))
    local late = post()
    local function head_says(text)
      process.wait_for(text, function()
        local lane = gate:ask("/v1/lanes?sink=receiver").json.lanes[1]
        return lane and (lane.head.last_error or ""):find(text, 1, true) and lane.head.class == "transient"
      end)
    end
    head_says "name look-up failed"
    say "hooks.example hang"
    head_says "timed out looking up the host's name"
    local at = socket.gettime()
    local others = post()
    process.wait_for("the sink beside it", function() return gate:metric("dispatch_deliveries_total",
      { sink = "healthy", result = "ok" }) == 2 end)
    assert.is_true(socket.gettime() - at < 2)
    say "hooks.example 127.0.0.1"
    process.wait_for("both hooks", function() return taken(late) == 1 and taken(others) == 1 end)
  end)

  it("is not asked of a proxy that only the environment names", function()
    say "hooks.example 127.0.0.1"
    local proxy = assert(socket.bind("127.0.0.1", 0))
    proxy:settimeout(0)
    local url = ("http://127.0.0.1:%d"):format(select(2, proxy:getsockname()))
    local env = { http_proxy = url, HTTP_PROXY = url, ALL_PROXY = url, all_proxy = url }
    start(config("hooks.example", '"127.0.0.1/32"'), env)
    local direct = post()
    process.wait_for("the hook", function() return taken(direct) == 1 end)
    assert.is_nil(proxy:accept())
    proxy:close()
  end)
end)
