-- The walk of whoever is paged at three in the morning, told in order, with nothing but the command line. One customer's
-- receiver is down, another's refuses, a third must be stopped before anything of theirs goes out.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local process = require "support.process"
local receiver = require "support.receiver"

describe("at three in the morning", function()
  local sink, gate

  before_each(function()
    sink = receiver.start("--fail", "cus_7=503", "--fail", "cus_9=410")
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url),
      retry = [[base_ms = 3600000, max_ms = 3600000]] } }
  end)
  after_each(function()
    gate:remove()
    sink:remove()
  end)
  teardown(process.kill_all)

  local function post(key, count)
    for i = 1, count or 1 do
      assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = key }, key .. i).status)
    end
  end

  local function run(...)
    local code, out, err = gate:cli(...)
    assert.equal(0, code, table.concat({ ... }, " ") .. ": " .. err)
    return out
  end

  local function says(text, ...)
    for _, part in ipairs { ... } do assert.truthy(text:find(part, 1, true), part .. " is not in:\n" .. text) end
  end

  local function wait_says(part, ...)
    local words = { ... }
    return process.wait_for(part, function()
      local out = run(unpack(words))
      return out:find(part, 1, true) and out
    end)
  end

  it("one command finds the customer, and a second one unblocks them", function()
    post("cus_7", 4)
    post("cus_1", 2)
    sink:wait_taken(2, 20, "cus_1")

    -- Who, since when, the last answer, how many wait: nobody has to know a filter for that.
    local list = wait_says("retrying", "lanes")
    says(list, "demo/receiver/cus_7", "HTTP 503", "BLOCKED FOR")
    assert.falsy(list:find("cus_1", 1, true), list) -- who is well is not in the way
    assert.equal(4, json.decode(run("lanes", "--json")).lanes[1].depth)

    sink:tell "heal"
    says(run("lanes", "retry", "demo/receiver/cus_7", "--reason", "they are back"), "retrying demo/receiver/cus_7")
    assert.equal(4, #sink:wait_taken(4, 20, "cus_7"))
    process.wait_for("an empty list", function() return run "lanes" == "" end)
  end)

  it("dead letters are found, understood, counted, and asked about before they come late", function()
    post("cus_9", 3)
    local list = process.wait_for("three dead letters", function()
      local out = run("dlq", "list", "--class", "refused")
      return select(2, out:gsub("demo/receiver/cus_9", "")) == 3 and out
    end)
    says(list, "HTTP 410")
    local id = json.decode(run("dlq", "list", "demo/receiver/cus_9", "--json")).entries[1].id
    says(run("dlq", "show", id), "demo/receiver/cus_9", "refused", "410")
    assert.falsy(run("dlq", "list", "--class", "exhausted"):find("cus_9", 1, true))

    sink:tell "heal"
    post("cus_9")
    sink:wait_taken(1, 20, "cus_9")
    says(run("dlq", "replay", "demo/receiver/cus_9", "--dry-run"), "would replay 3 dead letters", "3 of them late")
    local code, _, err = gate:cli("dlq", "replay", "demo/receiver/cus_9")
    assert.equal(2, code)
    says(err, "late", "--yes")
    assert.equal(1, #sink:taken "cus_9")

    run("dlq", "discard", id, "--yes", "--reason", "a test of theirs")
    says(run("dlq", "replay", "demo/receiver/cus_9", "--yes", "--reason", "OPS-7"), "replayed 2 of 2")
    local taken = sink:wait_taken(3, 20, "cus_9")
    assert.is_true(taken[2].late and taken[3].late)
    assert.equal("", run("dlq", "list"))
  end)

  it("a customer is stopped before their next hook, over a restart, and let go", function()
    post "cus_1"
    sink:wait_taken(1, 20, "cus_1")
    says(run("lanes", "pause", "demo/receiver/cus_new", "--reason", "their migration"), "paused", "0 waiting")
    gate:restart()
    post("cus_new", 2)
    post "cus_1"
    sink:wait_taken(2, 20, "cus_1")
    says(wait_says("paused", "lanes"), "demo/receiver/cus_new")
    assert.equal(0, #sink:deliveries() - #sink:taken "cus_1")
    run("lanes", "resume", "demo/receiver/cus_new")
    assert.equal(2, #sink:wait_taken(2, 20, "cus_new"))
  end)
end)
