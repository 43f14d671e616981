-- The store as whoever runs the gateway sees it: asked while it serves, backed up under load, looked at when it does not.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("lanegate store", function()
  local sink, gate, dir

  before_each(function()
    dir = process.temp_dir()
    sink = receiver.start()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
  end)
  after_each(function()
    gate:remove()
    sink:remove()
    process.remove(dir)
  end)
  teardown(process.kill_all)

  local function tool(...)
    local words = { process.binary(), "store", ... }
    words[#words + 1] = "--config"
    words[#words + 1] = gate.config_path
    return process.run(words)
  end

  local function post(from, to)
    local requests = {}
    for i = from, to do
      requests[#requests + 1] = http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = "k" .. i % 5 }, ("b"):rep(2000))
    end
    local ids = {}
    for _, answer in ipairs(http.many(gate.ingest, requests, 8)) do
      assert.equal(201, answer.status)
      ids[#ids + 1] = json.decode(answer.body).id
    end
    return ids
  end

  it("says how it is, without a path", function()
    local empty = gate:ask("/v1/store").json
    assert.equal(0, empty.hooks.count)
    assert.equal(json.null, empty.hooks.oldest or json.null)
    post(1, 20)
    gate:wait_idle()
    local answer = gate:ask "/v1/store"
    assert.falsy(answer.body:find("/", 1, true), answer.body)
    local is = answer.json
    assert.is_true(is.available)
    assert.same({ 20, 20 }, { is.hooks.count, is.hooks.last_seq })
    assert.equal(1, is.hooks.oldest.seq)
    assert.equal(20, is.hooks.newest.seq)
    assert.same({ 0, 0, 0, 0, 0 },
      { is.rows.pending, is.rows.running, is.rows.retrying, is.rows.dead, is.rows.held_lanes })
    assert.is_true(is.disk.log_bytes > 0 and is.disk.free_bytes > 0 and is.commit.last_us > 0)
    assert.equal(7 * 24 * 3600 * 1000, is.retention_ms)
    assert.equal(400, gate:ask("/v1/store?source=demo").status)
    local code, out = gate:cli "store"
    assert.equal(0, code)
    assert.truthy(out:find(is.epoch, 1, true) and out:find("takes hooks", 1, true) and out:find(is.hooks.newest.id, 1, true), out)
    code, out = gate:cli("store", "show", "--json")
    assert.equal(0, code)
    assert.equal(is.epoch, json.decode(out).epoch)
  end)

  -- The machine is killed while it takes hooks; what the backup has goes on elsewhere, and arrives.
  it("is backed up under load, and goes on elsewhere after the machine died", function()
    local before = post(1, 100)
    gate:wait_idle()
    sink:tell("fail", { key = "*", status = 503 })
    local owed = post(101, 130)
    local epoch = gate:ask("/v1/store").json.epoch

    -- Somebody posts for as long as the backup takes.
    local url = "http://" .. gate.ingest .. "/webhooks/demo"
    local load = process.spawn({ "sh", "-c", ("while curl -s -o %s/answer -H 'X-Entity-Id: load' -d x %s; do :; done")
      :format(dir, url) }, dir .. "/load", dir .. "/load")
    process.wait_for("the load", function() return gate:ask("/v1/store").json.hooks.count > 135 end)
    local code, out, err = tool("backup", dir .. "/b.db", "--json")
    assert.equal(0, code, err)
    local said = json.decode(out)
    assert.is_true(said.online and said.hooks > 130, out)
    assert.equal(epoch, said.epoch)
    gate:kill9()
    process.wait_for("the end of the load", function() return not process.alive(load) end)
    assert.equal(1, (tool("backup", dir .. "/b.db"))) -- never over another one

    local new = dir .. "/new"
    code, out, err = process.run { process.binary(), "store", "restore", dir .. "/b.db", "--to", new, "--json" }
    assert.equal(0, code, err)
    said = json.decode(out)
    assert.equal(epoch, said.from_epoch)
    local taken = #sink:taken()
    sink:tell "heal"
    local text = assert(process.read_file(gate.config_path))
    gate:restart((text:gsub('data_dir = "data"', ('data_dir = "%s"'):format(new))))
    assert.equal(said.epoch, gate:ask("/v1/store").json.epoch)
    gate:wait_idle()
    local arrived = {}
    for i, delivery in ipairs(sink:taken()) do
      if i > taken then arrived[delivery.id] = (arrived[delivery.id] or 0) + 1 end
    end
    for _, id in ipairs(owed) do assert.equal(1, arrived[id]) end
    for _, id in ipairs(before) do assert.is_nil(arrived[id]) end
    for _, id in ipairs(owed) do assert.equal(200, gate:ask("/v1/hooks/" .. id).status) end
    code, out, err = process.run { process.binary(), "verify-order", sink.log_path }
    assert.equal(0, code, out .. err)
    gate:stop()
    assert.equal(0, (process.run { process.binary(), "store", "check", new }))
  end)

  it("that is killed in the middle of a backup leaves nothing under its name", function()
    post(1, 300)
    for _ = 1, 3 do
      local pid = process.spawn({ process.binary(), "store", "backup", dir .. "/k.db", "--config", gate.config_path },
        dir .. "/out", dir .. "/err")
      process.wait_for("a beginning", function()
        return process.read_file(dir .. "/k.db.part") or process.read_file(dir .. "/k.db") or not process.alive(pid)
      end)
      process.kill_hard(pid)
      local name = process.read_file(dir .. "/k.db")
      if name then -- it was faster
        assert.equal(0, (process.run { process.binary(), "store", "check", dir .. "/k.db" }))
        os.remove(dir .. "/k.db")
      end
    end
    assert.equal(0, (tool("backup", dir .. "/k.db")))
    assert.is_nil(process.read_file(dir .. "/k.db.part"))
  end)

  it("leaves alone what somebody serves, and says whom to ask", function()
    local code, _, err = tool "check"
    assert.equal(1, code)
    assert.truthy(err:find("is served by process " .. gate.pid, 1, true) and err:find("lanegate store backup", 1, true), err)
    code, _, err = tool "inspect"
    assert.equal(1, code)
    assert.truthy(err:find("lanegate lanes", 1, true), err)
    assert.equal(0, (tool("backup", dir .. "/b.db")))
    local code2, _, err2 = tool("restore", dir .. "/b.db", "--replace")
    assert.equal(2, code2) -- nobody to ask, and no --yes
    assert.truthy(err2:find("--yes", 1, true), err2)
    code, _, err = tool("restore", dir .. "/b.db", "--replace", "--yes")
    assert.equal(1, code)
    assert.truthy(err:find("is served by process", 1, true), err)
  end)

  it("is looked at without a gateway, log and all, and is not changed", function()
    sink:tell("fail", { key = "*", status = 503 })
    post(1, 12)
    gate:kill9()
    local function listing()
      local _, out = process.run { "sh", "-c", "cd " .. gate.dir .. "/data && stat -c '%n %s %y' * && sha256sum *" }
      return out
    end
    local before = listing()
    local code, out, err = tool("inspect", "--json")
    assert.equal(0, code, err)
    local is = json.decode(out)
    assert.same({ 12, 12, 5 }, { is.hooks, is.rows.pending, is.lanes_total })
    assert.is_true(is.log_bytes > 0)
    assert.equal(3, is.lanes[1].depth)
    assert.truthy(is.lanes[1].key:match "^k[12]$")
    assert.equal(0, (tool "check"))
    assert.equal(0, (tool "inspect"))
    assert.equal(0, (tool("backup", dir .. "/cold.db")))
    assert.equal(before, listing())
    code, out = process.run { process.binary(), "store", "inspect", dir .. "/cold.db", "--json" }
    assert.equal(0, code)
    assert.equal(12, json.decode(out).rows.pending)
    code, out, err = process.run { process.binary(), "store", "--admin", "http://" .. gate.admin }
    assert.same({ 69, "" }, { code, out })
    assert.truthy(err:find("lanegate store inspect", 1, true), err)
  end)

  it("tells nonsense", function()
    for _, words in ipairs { { "backup" }, { "restore" }, { "backup", "a", "b" }, { "bakcup", "x" },
      { "check", "--limit", "3" } } do
      local used = tool(unpack(words))
      assert.equal(2, used, table.concat(words, " "))
    end
    local code, _, err = tool("restore", dir)
    assert.equal(1, code)
    assert.truthy(err:find("is not a file", 1, true), err)
    code = tool("check", dir .. "/none")
    assert.equal(1, code)
  end)
end)
