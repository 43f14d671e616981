-- What receivers can do to an attempt, and what the gateway makes of it: by what an operator sees of the lane afterwards.
-- Waits are judged by due_at, not sat out.
local configs = require "support.configs"
local gateway = require "support.gateway"
local process = require "support.process"
local raw_receiver = require "support.raw_receiver"
local socket = require "socket"

local BACKOFF_MS, HOUR_MS = 60000, 3600000

describe("an attempt", function()
  local raw, gate

  before_each(function() raw = raw_receiver.start() end)
  after_each(function()
    if gate then gate:remove() end
    gate = nil
    raw:remove()
  end)
  teardown(process.kill_all)

  -- One hook for many sinks: urls is a map of sink name to URL, more a map of sink name to further options.
  local function deliver(urls, options)
    options = options or {}
    local sinks = {}
    for name, url in pairs(urls) do
      local more = "ordered = true, timeout_ms = 5000, " .. (options.more and options.more[name] or "")
      sinks[#sinks + 1] = configs.plain_sink(url, name, more)
    end
    gate = gateway.start { config = configs.demo { sinks = table.concat(sinks),
      retry = options.retry or ("base_ms = %d, max_ms = %d, jitter = false"):format(BACKOFF_MS, BACKOFF_MS) } }
    assert.equal(201, gate:post("demo", { ["Content-Type"] = "text/plain" }, options.body or "x").status)
  end

  -- The lane of a sink after at least `attempts` (1), with its head; and how long after the attempt it is due again.
  local function after(name, attempts)
    local lane
    process.wait_for("an attempt at " .. name, function()
      local listed = gate:ask("/v1/lanes?sink=" .. name).json.lanes[1]
      if not listed then return false end
      lane = gate:ask("/v1/lanes/default/" .. listed.lane).json
      -- The outcome is on the disk a moment after it is known.
      return lane and lane.state == "retrying" and lane.head.attempts >= (attempts or 1) and lane.head.last_attempt_at
    end)
    return lane, lane.head.due_at - lane.head.last_attempt_at
  end

  local function is_near(expected, got, name, more)
    local near = got >= expected - 100 and got <= expected + (more or 3000)
    assert.is_true(near, ("%s: %d ms, expected %d"):format(name, got, expected))
  end

  local function date(unix_s)
    return os.date("!%a, %d %b %Y %H:%M:%S GMT", unix_s)
  end

  it("that is told when to come back comes back then, but not before the backoff and within the hour", function()
    local at = os.time() + 600
    local asked = { -- what is said, how long is waited
      seconds = { "503", "120", 120000 },
      too_many = { "429", "90", 90000 },
      timeout = { "408", "100", 100000 },
      sooner = { "503", "1", BACKOFF_MS },
      zero = { "503", "0", BACKOFF_MS },
      longer = { "503", "7200", HOUR_MS },
      far_date = { "503", date(os.time() + 86400), HOUR_MS },
      near_date = { "503", date(os.time() + 5), BACKOFF_MS },
      past = { "503", date(os.time() - 600), BACKOFF_MS },
      negative = { "503", "-120", BACKOFF_MS },
      fraction = { "503", "120.5", BACKOFF_MS },
      text = { "503", "soon", BACKOFF_MS },
      huge = { "503", "99999999999999999999", BACKOFF_MS },
      unit = { "503", "120s", BACKOFF_MS },
      hex = { "503", "0x100", BACKOFF_MS },
      local_date = { "503", date(at):gsub("GMT", "+0000"), BACKOFF_MS },
      empty = { "503", "", BACKOFF_MS },
      not_found = { "404", "120", BACKOFF_MS }, -- means nothing there
    }
    local urls = { date = raw:answer(503, "Retry-After: " .. date(at) .. "\r\n") }
    for name, case in pairs(asked) do urls[name] = raw:answer(tonumber(case[1]), "Retry-After: " .. case[2] .. "\r\n") end
    deliver(urls)
    for name, case in pairs(asked) do
      local _, wait_ms = after(name)
      is_near(case[3], wait_ms, name)
    end
    is_near(at * 1000, after("date").head.due_at, "date", 100)
    assert.equal(0, gate:ask("/v1/dlq").json.total)
  end)

  it("that is answered by anything but a refusal is made again, and by a refusal is the last", function()
    local stranger = assert(socket.bind("127.0.0.1", 0))
    stranger:settimeout(0)
    local location = ("Location: http://127.0.0.1:%d/\r\n"):format(select(2, stranger:getsockname()))
    local urls = {}
    local again, refusals = { 401, 403, 404, 405, 409, 451, 500, 501, 503, 507 }, { 400, 410, 413, 422 }
    local redirects = { 300, 301, 302, 303, 304, 307, 308 }
    for _, status in ipairs(again) do urls["s" .. status] = raw:answer(status) end
    for _, status in ipairs(redirects) do urls["s" .. status] = raw:answer(status, location) end
    for _, status in ipairs(refusals) do urls["s" .. status] = raw:answer(status) end
    deliver(urls)

    for _, list in ipairs { again, redirects } do
      for _, status in ipairs(list) do
        local lane, wait_ms = after("s" .. status)
        assert.equal(status, lane.head.http_status)
        assert.equal("transient", lane.head.class)
        assert.truthy(lane.head.last_error:find("^HTTP " .. status), lane.head.last_error)
        is_near(BACKOFF_MS, wait_ms, status)
      end
    end
    assert.equal("HTTP 307 (redirects are not followed)", after("s307").head.last_error)
    assert.is_nil(stranger:accept()) -- nobody knocked
    stranger:close()

    local dead
    process.wait_for("the dead letters", function()
      dead = gate:ask("/v1/dlq").json
      return dead.total == #refusals
    end)
    for _, entry in ipairs(dead.entries) do
      assert.equal("refused", entry.class)
      assert.equal(1, entry.attempts)
      assert.equal("HTTP " .. entry.sink:sub(2), entry.reason)
    end
  end)

  it("whose answer is not as it should be is judged by what there is of it", function()
    local head = "HTTP/1.1 %d Whatever\r\nContent-Length: %d\r\n\r\n"
    local urls = {
      endless = raw:url("endless", "HTTP/1.1 500 Whatever\r\n\r\n"),
      endless_ok = raw:url("endless", "HTTP/1.1 200 OK\r\n\r\n"),
      endless_head = raw:url("endless", "HTTP/1.1 200 OK\r\nX-Long: "),
      half = raw:url("say", head:format(200, 100) .. "not a hundred"),
      reset = raw:url "reset",
      nothing = raw:url "say",
      garbage = raw:url("say", "I am not HTTP\r\n\r\n"),
      hang = raw:url "hang",
      gone = "http://127.0.0.1:1/",
      nameless = "http://nowhere.invalid/",
    }
    deliver(urls, { more = { hang = "timeout_ms = 200" } })
    local says = {
      endless = "^HTTP 500$",
      endless_head = "^the head of the answer is larger than 64 KiB$",
      half = "^the connection broke inside an HTTP 200 answer$",
      reset = "^the connection broke after the request was sent, without an answer %(a retry may be a duplicate%)$",
      nothing = "^the connection broke after the request was sent, without an answer %(a retry may be a duplicate%)$",
      garbage = "^the answer is not HTTP$",
      hang = "^no answer within 200 ms %(a retry may be a duplicate%)$",
      gone = "^connection refused by 127%.0%.0%.1:1$",
      nameless = "look", -- "name look-up failed", or "timed out looking up" where no name server answers
    }
    for name, pattern in pairs(says) do
      local lane, wait_ms = after(name)
      assert.truthy(lane.head.last_error:find(pattern), name .. ": " .. lane.head.last_error)
      assert.equal("transient", lane.head.class)
      is_near(BACKOFF_MS, wait_ms, name)
    end
    -- A success is one from its first 64 KiB on, and nobody reads the rest.
    process.wait_for("the endless success", function() return #gate:ask("/v1/lanes?sink=endless_ok").json.lanes == 0 end)
    assert.equal(1, gate:metric("dispatch_deliveries_total", { sink = "endless_ok", result = "ok" }))
    process.wait_for("the end of endless answers", function() return select(2, raw:log():gsub("\nended %d", "")) == 3 end)
    for bytes in raw:log():gmatch "\nended (%d+)" do -- what waits in the two sockets comes on top
      assert.is_true(tonumber(bytes) < 16 * 1024 * 1024, bytes)
    end
  end)

  it("that is answered before the request was read takes the answer, and the hook is not lost by a failure", function()
    local said = "HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    deliver({ no = raw:url("early", said:format(503)), yes = raw:url("early", said:format(200)) },
      { body = ("y"):rep(24 * 1024 * 1024) })
    assert.equal("HTTP 503", after("no").head.last_error)
    process.wait_for("the success", function() return #gate:ask("/v1/lanes?sink=yes").json.lanes == 0 end)
    assert.equal(1, gate:metric("dispatch_deliveries_total", { sink = "yes", result = "ok" }))
  end)

  -- A listener whose queue is full drops what knocks: on loopback that is what a black hole looks like.
  it("that nobody accepts says so, and is not a refused connection", function()
    local listener = socket.tcp()
    assert(listener:bind("127.0.0.1", 0))
    assert(listener:listen(0))
    local port, knocking = select(2, listener:getsockname()), {}
    for i = 1, 8 do
      knocking[i] = socket.tcp()
      knocking[i]:settimeout(0)
      knocking[i]:connect("127.0.0.1", port)
    end
    deliver({ hole = ("http://127.0.0.1:%d/"):format(port) }, { more = { hole = "timeout_ms = 200" } })
    assert.equal("timed out connecting to 127.0.0.1:" .. port, after("hole").head.last_error)
    for _, knock in ipairs(knocking) do knock:close() end
    listener:close()
  end)

  it("of a sink with a list of waits takes them one by one, and the last one again and again", function()
    deliver({ list = raw:answer(503) }, { more = { list = [[retry = { "30s", "80s" }]] } })
    for attempt, wait_ms in ipairs { 30000, 80000, 80000, 80000 } do
      local lane = after("list", attempt)
      assert.equal(attempt, lane.head.attempts)
      local left_ms = lane.head.due_at - socket.gettime() * 1000
      assert.is_true(left_ms <= wait_ms and left_ms > wait_ms - 10000, attempt .. ": " .. left_ms)
      assert.equal(200, gate:ask(("/v1/lanes/default/%s/retry"):format(lane.lane), "POST").status)
    end
  end)

  it("is not given up on for time that the sink was paused", function()
    deliver({ slow = raw:answer(503) }, { retry = "base_ms = 20, max_ms = 20, jitter = false, give_up_after_ms = 600" })
    after "slow"
    assert.equal(200, gate:ask("/v1/sinks/demo/slow/pause", "POST").status)
    local paused_at = socket.gettime()
    local before = gate:ask("/v1/lanes?sink=slow").json.lanes[1].head.attempts
    process.wait_for("more time than a hook has", function() return socket.gettime() > paused_at + 0.7 end)
    assert.equal(200, gate:ask("/v1/sinks/demo/slow/resume", "POST").status)
    local dead
    process.wait_for("the dead letter", function()
      dead = gate:ask("/v1/dlq").json
      return dead.total == 1
    end)
    assert.equal("exhausted", dead.entries[1].class)
    assert.is_true(dead.entries[1].attempts >= before + 3, dead.entries[1].attempts .. " after " .. before)
  end)
end)
