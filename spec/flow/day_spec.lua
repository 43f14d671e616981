-- A day in the life. Acme sells subscriptions over Stripe and builds on GitHub; Bolt, on the same gateway, has a shop. Their
-- receivers fail in all the ways that receivers do, the gateway is reloaded and killed, and in the evening every promise is
-- checked: each hook that was answered is where it belongs, in order, and nothing else is.
local json = require "dkjson"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local providers = require "support.providers"
local receiver = require "support.receiver"

local SECRETS = { stripe = "whsec_old", github = "gh-secret", shop = "shpss_secret" }

local SOURCES = { "stripe", "github", "shop" }
local SINKS = { "billing", "analytics", "ci", "fulfilment", "mail" }
local SOURCE_OF = { billing = "stripe", analytics = "stripe", ci = "github", fulfilment = "shop", mail = "shop" }
local TENANT_OF = { stripe = "acme", github = "acme", shop = "bolt" }
local ORDERED = { billing = true, ci = true, fulfilment = true }

local CONFIG = [[
return {
  http = { listen = "127.0.0.1:0", threads = 2 }, admin = { listen = "127.0.0.1:0" }, log = { format = "json" },
  store = { min_free_bytes = "16MiB" }, egress = { allow_private = { "127.0.0.1/32" }, allow_http = true },
  dispatch = { retry = { base_ms = 20, max_ms = 200 }, breaker = { failures = 5, open_ms = 50, max_open_ms = 200 } },
  sources = {
    stripe = { tenant = "acme", verify = { type = "stripe", secret = { "whsec_old", NEXT } }, dedupe = "stripe", sinks = {
      { type = "http", name = "billing", url = "BILLING", ordered = true,
        ordering_key = { first = { { json = "data.object.customer" }, { json = "data.object.id" } } } },
      { type = "http", name = "analytics", url = "ANALYTICS" } } },
    github = { tenant = "acme", verify = { type = "github", secret = "gh-secret" }, dedupe = "github", sinks = {
      { type = "http", name = "ci", url = "CI", ordered = true, ordering_key = { json = "repository.full_name" } } } },
    shop = { tenant = "bolt", verify = { type = "shopify", secret = "shpss_secret" }, dedupe = "shopify", sinks = {
      { type = "http", name = "fulfilment", url = "FULFILMENT", ordered = true,
        ordering_key = { json = "id", integers = true } },
      { type = "http", name = "mail", url = "MAIL" } } },
  },
}]]

describe("a day in the life", function()
  local gate, receivers = nil, {}
  local accepted = {} -- id -> { source, entity, n }: every hook that got its 201
  local life = {} -- "source/entity" -> how many hooks of it there have been

  local function config(next_secret)
    local words = { NEXT = next_secret and ('"%s"'):format(next_secret) or "nil" }
    for name, sink in pairs(receivers) do words[name:upper()] = sink.url end
    return (CONFIG:gsub("%f[%w]%u+%f[%W]", words))
  end

  setup(function()
    for _, name in ipairs(SINKS) do receivers[name] = receiver.start() end
    gate = gateway.start { config = config() }
  end)
  teardown(function()
    gate:remove()
    for _, sink in pairs(receivers) do sink:remove() end
    process.kill_all()
  end)

  -- The providers ----------------------------------------------------------------------------------------------

  local makers = { stripe = providers.stripe, github = providers.github, shop = providers.shopify }

  local function hook(source, entity, secret)
    local place = source .. "/" .. entity
    life[place] = (life[place] or 0) + 1
    local headers, body = makers[source](secret or SECRETS[source], entity, life[place])
    return { source = source, entity = entity, n = life[place], headers = headers, body = body }
  end

  local function entities(source)
    local found = {}
    for i = 1, 8 do
      found[i] = source == "stripe" and "cus_Q" .. i or source == "github" and "repo-" .. i or "82098291194615450" .. i
    end
    return found
  end

  local function request(one)
    return http.request("POST", "/webhooks/" .. one.source, one.headers, one.body)
  end

  local function note(one, answer)
    assert.equal(201, answer.status, answer.body)
    one.id = json.decode(answer.body).id
    accepted[one.id] = one
  end

  -- `rounds` hooks of each of the eight entities of a source, all at once; those of one entity come one after the other.
  local function business(source, rounds, secret)
    local hooks, requests = {}, {}
    for _ = 1, rounds do
      for _, entity in ipairs(entities(source)) do
        hooks[#hooks + 1] = hook(source, entity, secret)
        requests[#requests + 1] = request(hooks[#hooks])
      end
    end
    for i, answer in ipairs(http.many(gate.ingest, requests, 8)) do note(hooks[i], answer) end
    return hooks
  end

  local function all_business(rounds)
    for _, source in ipairs(SOURCES) do business(source, rounds) end
  end

  -- One hook of each entity on a connection of its own, of which only the first bytes are sent.
  local function on_the_wire(source, bytes)
    local hooks, connections = {}, {}
    for i, entity in ipairs(entities(source)) do
      hooks[i], connections[i] = hook(source, entity), http.connect(gate.ingest)
      connections[i]:send(request(hooks[i]):sub(1, bytes))
    end
    return hooks, connections
  end

  -- The receivers ----------------------------------------------------------------------------------------------

  local function taken(name)
    local ids, count = {}, 0
    for _, delivery in ipairs(receivers[name]:taken()) do
      if not ids[delivery.id] then count = count + 1 end
      ids[delivery.id] = true
    end
    return ids, count
  end

  local function has_all(name)
    local ids = taken(name)
    for id, one in pairs(accepted) do
      if one.source == SOURCE_OF[name] and not ids[id] then return false end
    end
    return true
  end

  local function wait_all(...)
    for _, name in ipairs { ... } do
      process.wait_for(name .. " to have all hooks", function() return has_all(name) end)
    end
  end

  local function run(...)
    local code, out, err = gate:cli(...)
    assert.equal(0, code, table.concat({ ... }, " ") .. ": " .. err)
    return out
  end

  -- The day ----------------------------------------------------------------------------------------------------

  it("06:00, quiet business: everything arrives everywhere", function()
    all_business(4)
    wait_all("billing", "analytics", "ci", "fulfilment", "mail")
  end)

  it("07:30, Stripe is impatient and sends again what it has sent: that is one hook", function()
    local hooks = business("stripe", 1)
    for _, one in ipairs(hooks) do
      local answer = gate:post("stripe", one.headers, one.body)
      assert.equal(201, answer.status)
      assert.same({ id = one.id, status = "accepted", duplicate = true }, json.decode(answer.body))
    end
  end)

  it("08:00, somebody who guesses posts an order to Bolt's shop, and a push of yesterday's secret", function()
    for source, entity in pairs { shop = "820982911946154501", github = "repo-1" } do
      local headers, body = makers[source]("guessed", entity, 999)
      local answer = gate:post(source, headers, body)
      assert.equal(401, answer.status)
      assert.equal("verification_failed", json.decode(answer.body).error)
    end
  end)

  it("09:00, a bad deploy: billing is 404 for a while, its hooks wait, and nobody else does", function()
    receivers.billing:tell("fail", { key = "*", status = 404 })
    all_business(4)
    wait_all("analytics", "ci", "fulfilment", "mail")
    process.wait_for("the breaker", function()
      return gate:metric("dispatch_breaker_transitions_total", { sink = "billing", state = "open" }) > 0
    end)
    assert.is_false(has_all "billing")
    assert.equal(0, gate:ask("/v1/dlq").json.total)

    receivers.billing:tell "heal"
    wait_all "billing"
  end)

  it("10:30, Bolt's mail service is dead: their orders are packed all the same", function()
    process.kill_hard(receivers.mail.pid)
    business("shop", 4)
    wait_all "fulfilment"
    assert.is_false(has_all "mail")
    receivers.mail:launch(receivers.mail.address)
    wait_all "mail"
  end)

  it("11:15, a push that CI chokes on: it is put aside, and its repository goes on", function()
    receivers.ci:tell("fail", { key = "acme/repo-3", status = 422 })
    local poison = hook("github", "repo-3")
    note(poison, gate:post("github", poison.headers, poison.body))
    process.wait_for("a dead letter", function() return gate:ask("/v1/dlq").json.total == 1 end)
    receivers.ci:tell "heal"

    local later = business("github", 1)
    process.wait_for("the next push", function() return taken("ci")[later[3].id] end)
    assert.falsy(taken("ci")[poison.id])
    local entry = gate:ask("/v1/dlq").json.entries[1]
    assert.same({ poison.id, "acme", "acme/repo-3", "refused" }, { entry.id, entry.tenant, entry.key, entry.class })

    assert.truthy(run("dlq", "replay", "github/ci", "--yes", "--reason", "CI is mended"):find("replayed 1 of 1", 1, true))
    wait_all "ci"
    for _, delivery in ipairs(receivers.ci:taken()) do assert.equal(delivery.id == poison.id, delivery.late) end
  end)

  it("13:00, a slip of the pen: a file that would forget what billing is owed is refused", function()
    receivers.billing:tell("fail", { key = "*", status = 503 })
    business("stripe", 1)
    process.write_file(gate.config_path, (config():gsub('"billing"', '"biling"')))
    local code, _, err = gate:cli "reload"
    assert.equal(78, code)
    assert.truthy(err:find("stripe/billing", 1, true), err)
    receivers.billing:tell "heal"
    wait_all("billing", "analytics")
  end)

  it("13:05, Stripe's secret is rotated: a reload while hooks are half here loses none, and no connection", function()
    local early, body = makers.stripe("whsec_new", "cus_Q1", 999)
    assert.equal(401, gate:post("stripe", early, body).status)

    local hooks, connections = on_the_wire("stripe", 100)
    process.write_file(gate.config_path, config "whsec_new")
    run "reload"
    for i, connection in ipairs(connections) do
      connection:send(request(hooks[i]):sub(101))
      note(hooks[i], connection:receive())
    end
    local new = hook("stripe", "cus_Q1", "whsec_new")
    note(new, connections[1]:ask("POST", "/webhooks/stripe", new.headers, new.body))
    for _, connection in ipairs(connections) do connection:close() end
    wait_all("billing", "analytics")
  end)

  it("15:00, the power supply: killed in the middle of business, and all that was answered is there", function()
    receivers.ci:tell("hang", { key = "*" })
    all_business(2)
    assert.is_false(has_all "ci")

    -- Of eight more, four are here to their last byte, and four are not. Nobody waits for their answers.
    local hooks, connections = on_the_wire("shop", 100)
    for i = 1, 4 do connections[i]:send(request(hooks[i]):sub(101)) end
    gate:kill9()
    for i, connection in ipairs(connections) do
      local answer = connection:receive()
      if answer then note(hooks[i], answer) end
      connection:close()
    end
    gate:launch()
    receivers.ci:tell "heal"

    -- Shopify asks again; what had reached the disk is known by its event id.
    for _, one in ipairs(hooks) do
      local id = one.id
      note(one, gate:post("shop", one.headers, one.body))
      assert.equal(id or one.id, one.id)
    end
    wait_all("billing", "analytics", "ci", "fulfilment", "mail")
  end)

  it("17:00, billing lost its morning: the day is replayed to it, while business goes on", function()
    local _, before = taken "billing"
    local out = json.decode(run("replay", "start", "stripe/billing", "--since", "1h", "--rate", "500", "--yes", "--json"))
    all_business(2)
    process.wait_for("the replay", function() return gate:ask("/v1/replays/" .. out.id).json.state == "done" end)
    wait_all("billing", "analytics", "ci", "fulfilment", "mail")
    local again, count = {}, 0
    for _, delivery in ipairs(receivers.billing:taken()) do
      if delivery.replay_id == out.id and not again[delivery.id] then
        again[delivery.id], count = true, count + 1
      end
    end
    assert.is_true(count >= before, ("%d of %d"):format(count, before))
  end)

  -- The evening ------------------------------------------------------------------------------------------------

  describe("in the evening", function()
    setup(function() gate:wait_idle() end)

    for _, name in ipairs(SINKS) do
      local source = SOURCE_OF[name]

      it(name .. "'s log is whole, and in order where order was promised", function()
        local code, out, err = process.run { process.binary(), "verify-order", receivers[name].log_path, "--json", "--against",
          "http://" .. gate.admin, "--sink", source .. "/" .. name }
        assert.equal(0, code, out .. err)
        local said = json.decode(out)
        assert.is_true(said.in_order and said.against.complete)
        assert.same({ 0, 0 }, { said.against.undelivered, said.against.missing })
      end)

      it(name .. " got every hook that was answered, and nothing else, byte for byte and in its tenant's name", function()
        local ids, count = taken(name)
        local owed = 0
        for id, one in pairs(accepted) do
          if one.source == source then
            owed = owed + 1
            assert.truthy(ids[id], one.source .. " " .. one.entity .. " " .. one.n)
          end
        end
        assert.equal(owed, count)
        for _, delivery in ipairs(receivers[name]:deliveries()) do
          assert.is_true(delivery.intact)
          assert.equal(TENANT_OF[source], delivery.tenant)
        end
      end)

      if ORDERED[name] then
        it(name .. " got the hooks of each entity in the order in which they were posted", function()
          local last, seen = {}, {}
          for _, delivery in ipairs(receivers[name]:taken()) do
            local one = accepted[delivery.id]
            if not seen[delivery.id] and not delivery.late and not delivery.replay_id then
              local previous = last[one.entity] or 0
              assert.is_true(one.n > previous, ("%s: %d after %d"):format(one.entity, one.n, previous))
              last[one.entity] = one.n
            end
            seen[delivery.id] = true
          end
        end)
      end
    end

    it("the gateway owes nothing, keeps what it took and only that, and its log holds no trouble and no secret", function()
      assert.equal(200, gate:ask("/ready").status)
      assert.equal(0, gate:ask("/v1/dlq").json.total)
      assert.equal(0, #gate:ask("/v1/lanes").json.lanes)
      local stored, count = gate:ask("/v1/hooks?limit=1000").json.hooks, 0
      for _ in pairs(accepted) do count = count + 1 end
      assert.equal(count, #stored)
      for line in process.read_file(gate.log_path):gmatch "[^\n]+" do
        local event = json.decode(line)
        assert.is_true(event.level ~= "error" or event.event == "reload_refused", line)
        for _, secret in ipairs { "whsec_old", "whsec_new", "gh-secret", "shpss_secret" } do
          assert.is_nil(line:find(secret, 1, true), line)
        end
      end
    end)
  end)
end)
