-- RECOVERY.md, told by a machine: each of its commands is run as it stands, in a small world of its own in which the page's
-- folders and `systemctl` are ours.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

local page = process.read_file "../RECOVERY.md" or process.read_file "RECOVERY.md"

-- The blocks of shell under a title.
local function commands(title)
  local section = assert((page .. "\n## "):match("\n## " .. title .. "\n(.-)\n## "), title)
  local blocks = {}
  for block in section:gmatch "```sh\n(.-)```" do blocks[#blocks + 1] = block end
  return blocks
end

describe("a machine that died", function()
  local sink, gate, world

  before_each(function()
    sink = receiver.start()
    world = process.temp_dir()
    gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(sink.url) } }
    for _, folder in ipairs { "backup", "old", "bin" } do os.execute("mkdir " .. world .. "/" .. folder) end
    -- What it is told to start and stop is written down; the spec does it.
    process.write_file(world .. "/bin/systemctl", "#!/bin/sh\necho \"$@\" >>" .. world .. "/told\n")
    process.write_file(world .. "/bin/lanegate", ("#!/bin/sh\nexec %s \"$@\"\n"):format(process.quote(process.binary())))
    os.execute("chmod +x " .. world .. "/bin/*")
  end)
  after_each(function()
    gate:remove()
    sink:remove()
    process.remove(world)
  end)
  teardown(process.kill_all)

  local function post(from, to)
    local requests = {}
    for i = from, to do
      requests[#requests + 1] = http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = "k" .. i % 3 }, tostring(i))
    end
    for _, answer in ipairs(http.many(gate.ingest, requests, 8)) do assert.equal(201, answer.status) end
  end

  local function run(text)
    text = text:gsub("/backup", world .. "/backup"):gsub("/mnt/old/lanegate", world .. "/old"):gsub("/var/lib/lanegate",
      gate.dir .. "/data")
    process.write_file(world .. "/script", text)
    return process.run { "sh", "-c", ("cd %s && PATH=%s/bin:$PATH LANEGATE_ADMIN=http://%s sh -e %s/script"):format(gate.dir,
      world, gate.admin, world) }
  end

  local function run_well(text)
    local code, out, err = run(text)
    assert.equal(0, code, text .. out .. err)
    return out
  end

  local function epoch() return gate:ask("/v1/store").json.epoch end

  it("has a backup of each day", function()
    post(1, 9)
    local before = commands "Before it happens"
    assert.equal(2, #before)
    run_well(before[1])
    run_well(before[1]) -- the week after
    local code, out = process.run { "sh", "-c", "ls " .. world .. "/backup" }
    assert.equal(0, code)
    local name = assert(out:match "^(lanegate%-%d%.db)\n$", out)
    out = run_well((before[2]:gsub("lanegate%-1%.db", name)))
    assert.truthy(out:find("ok; 9 hooks, 9 rows", 1, true), out)
    assert.truthy(out:find("a backup of 20", 1, true), out)
  end)

  it("goes on elsewhere when its disk lives", function()
    post(1, 30)
    sink:wait_taken(30)
    sink:tell("fail", { key = "*", status = 503 })
    post(31, 40)
    local id = epoch()
    gate:kill9()
    os.execute(("cp -a %s/data/. %s/old && rm -rf %s/data && mkdir %s/data"):format(gate.dir, world, gate.dir, gate.dir))
    local block = commands("The disk is alive")[1]
    local stop = assert(block:find("systemctl start", 1, true))
    local out = run_well(block:sub(1, stop - 1))
    assert.truthy(out:find("ok; 40 hooks, 40 rows", 1, true), out)
    sink:tell "heal"
    gate:launch()
    gate:wait_idle()
    assert.equal(id, epoch())
    local code, said, err = process.run { process.binary(), "verify-order", sink.log_path, "--against", "http://" .. gate.admin }
    assert.equal(0, code, said .. err)
  end)

  it("begins a new epoch when only a backup is left", function()
    post(1, 30)
    sink:wait_taken(30)
    gate:wait_idle()
    sink:tell("fail", { key = "*", status = 503 })
    post(31, 42)
    run_well "lanegate store backup /backup/lanegate-1.db"
    local id = epoch()
    sink:tell "heal"
    post(43, 60)
    gate:wait_idle()
    gate:kill9()
    local delivered = #sink:taken()

    local block = commands("The disk is gone")[1]
    local start = assert(block:find("systemctl start", 1, true))
    local out = run_well(block:sub(1, start - 1))
    assert.truthy(out:find(id, 1, true), out)
    assert.truthy(out:find("replaced-", 1, true), out)
    gate:launch()
    out = run_well(block:sub(start))
    assert.truthy(out:find("restored", 1, true), out)
    assert.equal("stop lanegate\nstart lanegate\n", process.read_file(world .. "/told"))
    assert.are_not.equal(id, epoch())
    assert.equal(id, gate:ask("/v1/store").json.restored.from_epoch)

    -- What the backup owed is delivered once more, in order, and says that it is of another epoch.
    gate:wait_idle()
    local again, last = 0, {}
    for i, delivery in ipairs(sink:taken()) do
      if i > delivered then
        again = again + 1
        assert.equal(epoch(), delivery.epoch)
        assert.is_true(delivery.seq > (last[delivery.key] or 0))
        last[delivery.key] = delivery.seq
      end
    end
    assert.equal(12, again)
    post(61, 70)
    gate:wait_idle()
    assert.equal(delivered + 22, #sink:taken())
    local code, said, err = process.run { process.binary(), "verify-order", sink.log_path }
    assert.equal(0, code, said .. err)
  end)

  it("says what is broken", function()
    post(1, 30)
    gate:wait_idle()
    gate:stop()
    local file = assert(io.open(gate.dir .. "/data/store.db", "r+b"))
    file:seek("set", 8192 * 3)
    file:write(("x"):rep(4096))
    file:close()
    local block = commands("Something is broken")[1]
    local code, _, err = run(block)
    assert.equal(1, code)
    assert.truthy(err:find("expected:", 1, true), err)
    assert.truthy(err:find("To do: restore a backup", 1, true), err)
    local out
    code, out = run "lanegate store check --json"
    assert.equal(1, code)
    local answer = json.decode(out)
    assert.is_false(answer.ok)
    assert.is_true(#answer.faults > 0 and #answer.faults[1].action > 0)
    code, _, err = run "lanegate store backup /backup/b.db"
    assert.equal(1, code)
    assert.truthy(err:find("faults", 1, true) or err:find("can't be read", 1, true), err)
    assert.is_nil(process.read_file(world .. "/backup/b.db"))
    assert.is_nil(process.read_file(world .. "/backup/b.db.part"))
  end)
end)
