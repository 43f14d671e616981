-- What `verify-order` proves of a receiver's log, alone and against the gateway that wrote to it.
local json = require "dkjson"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local receiver = require "support.receiver"

describe("verify-order --against", function()
  local sink, gate

  before_each(function() sink, gate = receiver.start("--fail-rate", "20", "--seed", "3"), nil end)
  after_each(function()
    if gate then gate:remove() end
    sink:remove()
  end)
  teardown(process.kill_all)

  local function start(sinks)
    gate = gateway.start { config = configs.demo { sinks = sinks or configs.ordered_sink(sink.url) } }
  end

  local function post(count, keys)
    local requests = {}
    for i = 1, count do
      requests[i] = http.request("POST", "/webhooks/demo", { ["X-Entity-Id"] = "k" .. i % keys }, tostring(i))
    end
    for _, answer in ipairs(http.many(gate.ingest, requests, 8)) do assert.equal(201, answer.status) end
  end

  -- Its exit code, and what it says.
  local function verify(log, ...)
    local code, out, err = process.run { process.binary(), "verify-order", log or sink.log_path, "--against",
      "http://" .. gate.admin, "--json", ... }
    assert.equal("", err)
    return code, json.decode(out)
  end

  it("finds a whole log complete", function()
    start()
    post(1500, 30)
    gate:wait_idle()
    local code, said = verify()
    assert.equal(0, code)
    assert.is_true(said.in_order and said.against.complete)
    assert.same({ 1500, 1500, 0, 0 },
      { said.against.hooks, said.against.delivered, said.against.undelivered, said.against.missing })
  end)

  it("names a delivery that is not in the log", function()
    start()
    post(100, 5)
    gate:wait_idle()
    local lost = sink:taken()[40]
    local lines = {}
    for line in process.read_file(sink.log_path):gmatch "[^\n]+" do
      if not line:find(lost.id, 1, true) then lines[#lines + 1] = line end
    end
    local with_hole = sink.dir .. "/hole"
    process.write_file(with_hole, table.concat(lines, "\n") .. "\n")
    local code, said = verify(with_hole)
    assert.equal(1, code)
    assert.equal(1, said.against.missing)
    assert.same({ id = lost.id, seq = lost.seq, source = "demo", sink = "receiver", state = "done" },
      said.against.missing_rows[1])
    assert.equal(0, (verify())) -- the log as it was
  end)

  it("lists what is not delivered yet, which is not missing", function()
    sink:tell("heal")
    sink:tell("fail", { key = "k1", status = 503 })
    start()
    post(20, 2)
    sink:wait_taken(10, 20, "k0")
    local code, said
    process.wait_for("the other ten", function()
      code, said = verify()
      return said.against.delivered == 10
    end)
    assert.equal(0, code)
    assert.equal(10, said.against.undelivered)
    assert.equal(10, #said.against.undelivered_rows)
    for _, row in ipairs(said.against.undelivered_rows) do assert.equal("pending", row.state) end
  end)

  it("is right while hooks come in, and after a kill -9", function()
    start()
    for _ = 1, 3 do
      post(200, 10)
      assert.equal(0, (verify()))
      gate:kill9()
      gate:restart()
      assert.equal(0, (verify()))
    end
    gate:wait_idle()
    local code, said = verify()
    assert.equal(0, code)
    assert.equal(600, said.against.delivered)
  end)

  it("tells sinks that share a source apart by their lanes", function()
    local other = receiver.start()
    start(configs.ordered_sink(sink.url) .. ([[{ type = "http", name = "other", url = "%s", ordered = true,
      ordering_key = { header = "x-entity-id" } }, { type = "log" }]]):format(other.url))
    post(60, 3)
    gate:wait_idle()
    local code, said = verify(nil, "--sink", "demo/receiver")
    assert.same({ 0, 60 }, { code, said.against.delivered })
    code, said = verify(other.log_path, "--sink", "demo/other")
    assert.same({ 0, 60 }, { code, said.against.delivered })
    code, said = verify() -- one log for both: what the other got is missing in it
    assert.same({ 1, 60, "other" }, { code, said.against.missing, said.against.missing_rows[1].sink })
    code = process.run { process.binary(), "verify-order", sink.log_path, "--against", "http://" .. gate.admin,
      "--sink", "demo/nobody" }
    assert.equal(2, code)
    other:remove()
  end)

  it("says that no gateway answers", function()
    start()
    gate:stop()
    local code, out = process.run { process.binary(), "verify-order", sink.log_path, "--against",
      "http://" .. gate.admin }
    assert.same({ 69, "" }, { code, out })
  end)

  it("does not read for ever what is no log", function()
    local code, out, err = process.run { process.binary(), "verify-order", "/dev/zero" }
    assert.same({ 1, "" }, { code, out })
    assert.truthy(err:find("a line has more than 1 MiB", 1, true), err)
  end)

  it("leaves out half a line at the end, and needs no line feed behind the last one", function()
    start()
    post(10, 2)
    gate:wait_idle()
    local whole = process.read_file(sink.log_path)
    local cut = sink.dir .. "/cut"
    process.write_file(cut, whole .. whole:match("^[^\n]*"):sub(1, -10))
    local code, said = verify(cut)
    assert.same({ 0, 10 }, { code, said.against.delivered })
    process.write_file(cut, (whole:gsub("\n$", ""))) -- without its last line feed: whole all the same
    code, said = verify(cut)
    assert.same({ 0, 10 }, { code, said.against.delivered })
  end)
end)
