-- The recipe of config/receivers: each of its programs applies every effect once and in order, whatever is delivered,
-- and whoever is killed. LANEGATE_RECIPES names the languages; the ones that need more than the tests do are tried by
-- spec/npm.
local json = require "dkjson"
local mime = require "mime"
local configs = require "support.configs"
local gateway = require "support.gateway"
local http = require "support.http"
local process = require "support.process"
local sign = require "support.sign"

local here = debug.getinfo(1, "S").source:match "^@(.*)spec/flow/" or "../"
local programs = { lua = { "luajit", "receiver.lua" }, python = { "python3", "receiver.py" },
  javascript = { "node", "receiver.js" } }

local EPOCH, NEXT_EPOCH = "01890a5d-ac96-774b-bcce-b302099a8057", "01990000-0000-7000-8000-000000000001"
local SECRET = "whsec_" .. mime.b64 "a secret that both of them know."

local function signature(secret, id, timestamp, body)
  return "v1," .. mime.b64(sign.hmac(mime.unb64(secret:sub(7)), ("%s.%d.%s"):format(id, timestamp, body)))
end

-- A program of the recipe, running on a database of its own.
local Recipe = {}
Recipe.__index = Recipe

function Recipe:launch(port)
  self.generation = self.generation + 1
  local out = self.dir .. "/out" .. self.generation
  local program = programs[self.language]
  self.pid = process.spawn({ program[1], here .. "config/receivers/" .. program[2], port, self.dir .. "/db" }, out,
    self.dir .. "/err", self.env)
  self.address = process.wait_for("the receiver to listen", function()
    if not process.alive(self.pid) then
      error("the receiver ended at once:\n" .. (process.read_file(self.dir .. "/err") or ""), 0)
    end
    return (process.read_file(out) or ""):match "listening on ([%d.:]+)\n"
  end)
  self.url = "http://" .. self.address .. "/hooks"
  return self
end

local function start(language, secret)
  local self = setmetatable({ language = language, dir = process.temp_dir(), generation = 0, sent = 0,
    env = { WEBHOOK_SECRET = secret } }, Recipe)
  return self:launch "0"
end

-- The same port, the same database.
function Recipe:kill9()
  process.kill_hard(self.pid)
  return self:launch(self.address:match "%d+$")
end

function Recipe:remove()
  if process.alive(self.pid) then process.kill_hard(self.pid) end
  process.remove(self.dir)
end

-- One delivery as the gateway would send it: d has seq, key, id, ... and what its body is made of. Gives the status, and
-- what the receiver made of it.
function Recipe:deliver(d)
  self.sent = self.sent + 1
  local body = d.body or json.encode { account = d.account or "a", amount = d.amount or 1, from = d.from }
  local headers = { ["x-lanegate-tenant"] = d.tenant or "default", ["x-lanegate-source"] = d.source or "bank",
    ["x-lanegate-idempotency-key"] = d.id or "hook-" .. self.sent }
  if d.seq then
    headers["x-lanegate-epoch"], headers["x-lanegate-seq"] = d.epoch or EPOCH, tostring(d.seq)
    headers["x-lanegate-ordering-key"] = d.key or "k"
  end
  if d.late then headers["x-lanegate-late"] = "true" end
  headers["x-lanegate-replay-id"] = d.replay
  for name, value in pairs(d.headers or {}) do headers[name] = value end
  local answer = assert(http.once(self.address, "POST", "/hooks", headers, body))
  return answer.status, json.decode(answer.body).result
end

function Recipe:state()
  return json.decode(assert(http.once(self.address, "GET", "/")).body)
end

function Recipe:balance(account)
  return self:state().accounts[account or "a"] or 0
end

for language in (os.getenv "LANEGATE_RECIPES" or "lua"):gmatch "%S+" do
  describe("the receiver in " .. language, function()
    local receiver, gate

    before_each(function() receiver, gate = start(language, ""), nil end)
    after_each(function()
      if gate then gate:remove() end
      receiver:remove()
    end)
    teardown(process.kill_all)

    local function expect(status, result, d)
      local got_status, got_result = receiver:deliver(d)
      assert.same({ status, result }, { got_status, got_result })
    end

    it("applies a repeated delivery once", function()
      for _ = 1, 3 do receiver:deliver { seq = 7, id = "x", amount = 5 } end
      expect(200, "behind", { seq = 7, id = "x", amount = 5 })
      assert.equal(5, receiver:balance())
    end)

    it("drops what is lower than the last one applied", function()
      expect(200, "applied", { seq = 10, amount = 5 })
      expect(200, "behind", { seq = 9, amount = 100 })
      expect(200, "applied", { seq = 12, amount = 1 })
      expect(200, "behind", { seq = 11, amount = 100 })
      assert.equal(6, receiver:balance())
    end)

    it("compares numbers, not their text", function()
      expect(200, "applied", { seq = 9 })
      expect(200, "applied", { seq = 10 })
      expect(200, "behind", { seq = 9 })
    end)

    it("applies a late one once, and does not go back with it", function()
      expect(200, "applied", { seq = 5 })
      expect(200, "applied", { seq = 3, id = "late", late = true, amount = 10 })
      expect(200, "known", { seq = 3, id = "late", late = true, amount = 10 })
      expect(200, "behind", { seq = 4, amount = 100 })
      assert.equal(11, receiver:balance())
    end)

    it("a replay applies what was missed, and nothing again", function()
      expect(200, "applied", { seq = 5, id = "five" })
      expect(200, "known", { seq = 5, id = "five", replay = "r1" })
      expect(200, "applied", { seq = 2, id = "two", replay = "r1", amount = 10 })
      expect(200, "known", { seq = 2, id = "two", replay = "r2", amount = 10 })
      assert.equal(11, receiver:balance())
    end)

    it("compares by epoch first", function()
      expect(200, "applied", { seq = 900, id = "old" })
      expect(200, "applied", { seq = 3, epoch = NEXT_EPOCH, amount = 10 })
      expect(200, "behind", { seq = 901, amount = 100 })
      expect(200, "behind", { seq = 2, epoch = NEXT_EPOCH, amount = 100 })
      assert.equal(11, receiver:balance())
    end)

    it("knows a hook that comes again after a restore, and goes on from it", function()
      expect(200, "applied", { seq = 8, id = "eight" })
      expect(200, "known", { seq = 8, id = "eight", epoch = NEXT_EPOCH })
      expect(200, "behind", { seq = 7, epoch = NEXT_EPOCH, amount = 100 })
      assert.equal(1, receiver:balance())
    end)

    it("keeps keys, sources and tenants apart", function()
      expect(200, "applied", { seq = 9 })
      expect(200, "applied", { seq = 1, key = "other" })
      expect(200, "applied", { seq = 1, source = "other" })
      expect(200, "applied", { seq = 1, tenant = "other" })
      assert.equal(4, receiver:balance())
    end)

    it("asks for a hook again until it is ready for it", function()
      expect(409, nil, { seq = 4, id = "transfer", from = "b", amount = 5 })
      expect(409, nil, { seq = 4, id = "transfer", from = "b", amount = 5 })
      assert.equal(0, receiver:balance())
      expect(200, "applied", { seq = 5, key = "b", account = "b", amount = 7 })
      expect(200, "applied", { seq = 4, id = "transfer", from = "b", amount = 5 })
      assert.same({ a = 5, b = 2 }, receiver:state().accounts)
    end)

    it("applies a hook without a lane once, by its id", function()
      expect(200, "applied", { id = "loose" })
      expect(200, "known", { id = "loose" })
      expect(200, "applied", { id = "another" })
      assert.equal(2, receiver:balance())
    end)

    it("decides against what nobody could apply", function()
      for _, body in ipairs { "", "no JSON", "[]", "7", [[{"account":"a"}]], [[{"account":1,"amount":1}]],
        [[{"account":"a","amount":1.5}]], [[{"account":"a","amount":"1"}]], [[{"account":"a","amount":1,"from":2}]] } do
        assert.equal(422, (receiver:deliver { seq = 1, body = body }))
      end
      expect(200, "applied", { seq = 1 }) -- none of them moved the fence
    end)

    it("forgets nothing when it is killed", function()
      expect(200, "applied", { seq = 2, id = "two" })
      receiver:kill9()
      expect(200, "behind", { seq = 2, id = "two" })
      assert.equal(1, receiver:balance())
    end)

    it("takes only what is signed, and young", function()
      receiver:remove()
      receiver = start(language, SECRET)
      local now, body = os.time(), [[{"account":"a","amount":1}]]
      local function signed(of, at, secret)
        return { ["webhook-id"] = "msg", ["webhook-timestamp"] = tostring(at),
          ["webhook-signature"] = signature(secret or SECRET, "msg", at, of) }
      end
      local function status(headers) return (receiver:deliver { id = "signed", body = body, headers = headers }) end
      assert.equal(401, status {})
      assert.equal(401, status(signed(body .. " ", now)))
      assert.equal(401, status(signed(body, now - 3600)))
      assert.equal(401, status(signed(body, now + 3600)))
      assert.equal(401, status(signed(body, now, "whsec_" .. mime.b64 "a secret of somebody else's own.")))
      assert.equal(0, receiver:balance())
      local rotating = signed(body, now)
      rotating["webhook-signature"] = "v1,AAAA " .. rotating["webhook-signature"] .. " v2,BBBB"
      assert.equal(200, status(rotating))
      assert.equal(1, receiver:balance())
    end)

    local function start_gateway()
      gate = gateway.start { config = configs.demo { sinks = configs.ordered_sink(receiver.url,
        ([[secret = "%s", timeout_ms = 2000]]):format(SECRET)) } }
    end

    local function post(key, order)
      local answer = gate:post("demo", { ["X-Entity-Id"] = key }, json.encode(order))
      assert.equal(201, answer.status)
    end

    it("is right in the end, behind a gateway, whoever is killed in the middle", function()
      receiver:remove()
      receiver = start(language, SECRET)
      start_gateway()
      local wanted, sent = { accounts = {}, ledger = {} }, 0
      for round = 1, 4 do
        for _ = 1, 40 do
          sent = sent + 1
          local account = "acc" .. sent % 4
          post(account, { account = account, amount = sent })
          wanted.accounts[account] = (wanted.accounts[account] or 0) + sent
          wanted.ledger[account] = wanted.ledger[account] or {}
          table.insert(wanted.ledger[account], sent)
        end
        gate:kill9()
        if round % 2 == 0 then receiver:kill9() end
        gate:restart()
      end
      gate:wait_idle()
      local state, ledger = receiver:state(), {}
      for _, row in ipairs(state.ledger) do
        ledger[row[1]] = ledger[row[1]] or {}
        table.insert(ledger[row[1]], row[2])
      end
      assert.same(wanted.accounts, state.accounts)
      assert.same(wanted.ledger, ledger) -- each account in the order it was sent
    end)

    it("holds a hook in its place until it is ready, and no other", function()
      receiver:remove()
      receiver = start(language, SECRET)
      start_gateway()
      post("a", { account = "a", amount = 30, from = "b" }) -- before b has anything
      post("a", { account = "a", amount = 1 })
      for i = 1, 10 do post("c", { account = "c", amount = i }) end
      process.wait_for("the others", function() return receiver:balance "c" == 55 end)
      assert.equal(0, receiver:balance "a")
      post("b", { account = "b", amount = 50 })
      gate:wait_idle()
      assert.same({ a = 31, b = 20, c = 55 }, receiver:state().accounts)
      for _, row in ipairs(receiver:state().ledger) do
        if row[1] == "a" then
          assert.equal(30, row[2]) -- the first of its lane was applied first
          break
        end
      end
    end)
  end)
end
