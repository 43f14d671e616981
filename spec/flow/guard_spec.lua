-- A sink that is renamed or taken out of the file while hooks are owed to it: none of them is lost unseen.
local configs = require "support.configs"
local gateway = require "support.gateway"
local json = require "dkjson"
local process = require "support.process"
local receiver = require "support.receiver"

describe("a sink", function()
  local sink, gate

  before_each(function() sink = receiver.start() end)
  after_each(function()
    if gate then gate:remove() end
    gate = nil
    sink:remove()
  end)
  teardown(process.kill_all)

  local function post(key, body)
    assert.equal(201, gate:post("demo", { ["X-Entity-Id"] = key }, body).status)
  end

  local function named(name, more)
    return ([[{ type = "http", name = "%s", url = "%s", ordered = true, ordering_key = { header = "x-entity-id" }, %s },]])
      :format(name, sink.url, more or "")
  end

  -- Three hooks of lane a, whose head is exhausted and holds it, and two of lane b, which keeps failing.
  local function with_backlog()
    sink:tell("fail", { key = "*", status = 503 })
    local few = "base_ms = 1, max_ms = 5, max_attempts = 3"
    gate = gateway.start { config = configs.demo { sinks = named "billing", retry = few } }
    for i = 1, 3 do post("a", "a" .. i) end
    process.wait_for("the held lane", function()
      local lane = gate:ask("/v1/lanes?key=a").json.lanes[1]
      return lane and lane.state == "held"
    end)
    gate:restart(configs.demo { sinks = named "billing" })
    for i = 1, 2 do post("b", "b" .. i) end
    process.wait_for("attempts of lane b", function() return #sink:deliveries() >= 5 end)
    gate:stop()
  end

  -- Starts with a configuration that must not be started with; gives what it says.
  local function refused(config)
    process.write_file(gate.config_path, config)
    local code, _, err = process.run { "timeout", "20", process.binary(), "serve", "--config", gate.config_path }
    assert.equal(78, code)
    return err
  end

  local function says(text, part)
    assert.truthy(text:find(part, 1, true), text)
  end

  local function classes()
    local counts, dlq = {}, gate:ask("/v1/dlq").json
    for _, entry in ipairs(dlq.entries) do counts[entry.class] = (counts[entry.class] or 0) + 1 end
    return counts
  end

  it("with a new name takes its lanes along, and their order", function()
    sink:tell("fail", { key = "*", status = 503 })
    gate = gateway.start { config = configs.demo { sinks = named "billing" } }
    for i = 1, 5 do post("a", "a" .. i) end
    post("", "keyless")
    process.wait_for("some attempts", function() return #sink:deliveries() >= 3 end)

    local renamed = configs.demo { sinks = named("invoices", [[was = "billing"]]) }
    gate:restart(renamed)
    assert.equal("billing", gate:events("sink_renamed")[1].was)
    for i = 6, 10 do post("a", "a" .. i) end
    local lanes = gate:ask("/v1/lanes?key=a").json
    assert.equal(1, lanes.total) -- old hooks and new ones
    assert.equal("invoices", lanes.lanes[1].sink)

    gate:restart(renamed) -- the line may stay in the file
    assert.same({}, gate:events "sink_renamed")
    sink:tell "heal"
    local taken, last = sink:wait_taken(10, 60, "a"), 0
    for _, delivery in ipairs(taken) do
      assert.is_true(delivery.seq > last, "seq " .. delivery.seq .. " came after " .. last)
      last = delivery.seq
    end
    gate:wait_idle()
    assert.equal(11, #sink:taken())
    assert.equal(1, #sink:taken "default/demo")

    gate:restart(configs.demo { sinks = named "invoices" }) -- nor does it have to
  end)

  it("that is gone stops the start while hooks are owed to it, and nothing is lost by trying", function()
    with_backlog()
    local other = configs.plain_sink(sink.url, "other")
    local err = refused(configs.demo { sinks = other })
    says(err, [[sources.demo: hooks are owed to a sink "billing" that is gone (4 pending, 1 held): ]])
    says(err, [[add was = "billing" to the sink]])
    says(err, [[add retire = { "demo/billing" }]])
    err = refused((configs.demo { sinks = other }):gsub("demo = {", "news = {", 1))
    says(err, [[sources.demo: is gone, and hooks are owed to its sink "billing" (4 pending, 1 held): bring it back]])

    sink:tell "heal"
    gate:restart(configs.demo { sinks = named "billing" })
    sink:wait_taken(2, 20, "b")
    assert.equal("held", gate:ask("/v1/lanes?key=a").json.lanes[1].state)
  end)

  it("that is retired leaves dead letters", function()
    with_backlog()
    local retired = configs.demo { sinks = configs.plain_sink(sink.url, "other"), top = [[retire = { "demo/billing" },]] }
    gate:restart(retired)
    assert.equal(5, gate:events("sink_retired")[1].hooks)
    assert.same({ sink_gone = 5 }, classes())
    assert.equal(0, gate:metric "queue_pending")

    gate:restart(retired)
    assert.same({}, gate:events "sink_retired")
    gate:restart(configs.demo { sinks = configs.plain_sink(sink.url, "other") }) -- dead letters are owed to nobody
    assert.same({ sink_gone = 5 }, classes())
    sink:tell "heal"
    post("a", "on it goes")
    assert.equal(1, #sink:wait_taken(1))
  end)

  it("whose whole source is gone can be retired too", function()
    with_backlog()
    gate:restart(((configs.demo { sinks = configs.plain_sink(sink.url, "other"), top = [[retire = { "demo/billing" },]] })
      :gsub("demo = {", "news = {", 1)))
    assert.same({ source_gone = 5 }, classes())
  end)

  it("does not take over the backlog of another one beside its own", function()
    sink:tell("fail", { key = "*", status = 503 })
    gate = gateway.start { config = configs.demo { sinks = named "billing" .. named "invoices" } }
    post("a", "1")
    gate:stop()
    local err = refused(configs.demo { sinks = named("invoices", [[was = "billing"]]) })
    says(err, [[sources.demo.sinks.invoices.was: the sink is owed hooks of its own (1, and 0 dead letters), so that the 1 ]]
      .. [[owed to "billing" can't be put among them]])
  end)

  it("gets only the headers that are stored, and so does everybody else", function()
    gate = gateway.start { config = configs.demo { sinks = named "billing", source = [[store_headers = { "x-entity-id" },]] } }
    local answer = gate:post("demo", { ["X-Entity-Id"] = "a", ["X-Private"] = "hush", ["Content-Type"] = "text/plain" }, "x")
    assert.equal(201, answer.status)
    assert.equal("a", sink:wait_taken(1)[1].key)
    local hook = gate:ask("/v1/hooks/" .. json.decode(answer.body).id)
    assert.falsy(hook.body:find("hush", 1, true))
    assert.truthy(hook.body:find("text/plain", 1, true))
    assert.truthy(hook.body:lower():find("x-entity-id", 1, true))
  end)
end)
