#!/usr/bin/env luajit
-- A receiver that applies the hooks of each key once, and in order (README.md beside this says why so).
--
--     luajit receiver.lua PORT DATABASE      port 0 picks a free one; WEBHOOK_SECRET checks signatures
--
--     POST  a delivery. {"account": "a", "amount": 5} pays 5 into account a; with "from": "b" out of account b,
--           which waits until b has that much.
--     GET   the accounts, and the ledger in the order it was written
--
-- Needs lua-socket and lua-dkjson. SQLite and OpenSSL are called as C: one request at a time, a connection each.
local ffi = require "ffi"
local json = require "dkjson"
local mime = require "mime"
local socket = require "socket"

ffi.cdef [[
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
int sqlite3_open(const char *path, sqlite3 **out);
const char *sqlite3_errmsg(sqlite3 *db);
int sqlite3_exec(sqlite3 *db, const char *sql, void *each, void *ctx, char **error);
int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int size, sqlite3_stmt **out, const char **tail);
int sqlite3_bind_text(sqlite3_stmt *stmt, int at, const char *text, int size, intptr_t lifetime);
int sqlite3_bind_int64(sqlite3_stmt *stmt, int at, int64_t n);
int sqlite3_step(sqlite3_stmt *stmt);
int sqlite3_column_count(sqlite3_stmt *stmt);
int sqlite3_column_type(sqlite3_stmt *stmt, int at);
int64_t sqlite3_column_int64(sqlite3_stmt *stmt, int at);
const char *sqlite3_column_text(sqlite3_stmt *stmt, int at);
int sqlite3_column_bytes(sqlite3_stmt *stmt, int at);
int sqlite3_finalize(sqlite3_stmt *stmt);
const void *EVP_sha256(void);
unsigned char *HMAC(const void *md, const void *key, int key_size, const char *text, size_t size,
                    unsigned char *out, unsigned int *out_size);
]]
local sqlite, crypto = ffi.load "libsqlite3.so.0", ffi.load "libcrypto.so.3"
local SQLITE_OK, SQLITE_ROW, SQLITE_DONE, SQLITE_INTEGER, SQLITE_NULL = 0, 100, 101, 1, 5
local COPY = -1 -- SQLITE_TRANSIENT

local SCHEMA = [[
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS fence (tenant TEXT, source TEXT, key TEXT, epoch TEXT NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY (tenant, source, key));
CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS ledger (n INTEGER PRIMARY KEY, id TEXT UNIQUE, account TEXT, amount INTEGER, origin TEXT);
]]
local TOLERANCE_S = 300
local BODY_MAX = 32 * 1024 * 1024
local NOT_READY = {} -- raised when the effect can't be applied yet: the gateway tries this hook again, in its place

-- -- the database --------------------------------------------------------------------------------------------

local database

local function check(code, wanted)
  if code ~= wanted then error(ffi.string(sqlite.sqlite3_errmsg(database)), 0) end
end

local function exec(sql)
  check(sqlite.sqlite3_exec(database, sql, nil, nil, nil), SQLITE_OK)
end

local function bind(stmt, at, value)
  if type(value) == "number" then
    check(sqlite.sqlite3_bind_int64(stmt, at, value), SQLITE_OK)
  elseif value ~= nil then -- what is not bound is NULL
    check(sqlite.sqlite3_bind_text(stmt, at, value, #value, COPY), SQLITE_OK)
  end
end

local function column(stmt, at)
  local kind = sqlite.sqlite3_column_type(stmt, at)
  if kind == SQLITE_NULL then return nil end
  if kind == SQLITE_INTEGER then return tonumber(sqlite.sqlite3_column_int64(stmt, at)) end
  local text = sqlite.sqlite3_column_text(stmt, at)
  return ffi.string(text, sqlite.sqlite3_column_bytes(stmt, at))
end

-- Runs one statement with `...` bound; gives its rows.
local function query(sql, ...)
  local out, rows = ffi.new "sqlite3_stmt *[1]", {}
  check(sqlite.sqlite3_prepare_v2(database, sql, #sql, out, nil), SQLITE_OK)
  local stmt = ffi.gc(out[0], sqlite.sqlite3_finalize)
  for at = 1, select("#", ...) do bind(stmt, at, (select(at, ...))) end
  local code = sqlite.sqlite3_step(stmt)
  while code == SQLITE_ROW do
    local row = {}
    for at = 1, sqlite.sqlite3_column_count(stmt) do row[at] = column(stmt, at - 1) end
    rows[#rows + 1] = row
    code = sqlite.sqlite3_step(stmt)
  end
  check(code, SQLITE_DONE)
  sqlite.sqlite3_finalize(ffi.gc(stmt, nil))
  return rows
end

-- -- a delivery ----------------------------------------------------------------------------------------------

local function equal(a, b) -- takes as long for a near miss as for any other
  local difference = #a == #b and 0 or 1
  for i = 1, math.min(#a, #b) do difference = bit.bor(difference, bit.bxor(a:byte(i), b:byte(i))) end
  return difference == 0
end

-- Standard Webhooks: one of the signatures is ours, and it is young.
local function signed(secret, headers, body)
  local id, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
  if not id or not (timestamp or ""):find "^%d+$" then return false end
  if math.abs(os.time() - tonumber(timestamp)) > TOLERANCE_S then return false end
  local text, digest = id .. "." .. timestamp .. "." .. body, ffi.new "unsigned char[32]"
  crypto.HMAC(crypto.EVP_sha256(), secret, #secret, text, #text, digest, nil)
  local wanted, found = "v1," .. mime.b64(ffi.string(digest, 32)), false
  for given in (headers["webhook-signature"] or ""):gmatch "%S+" do found = equal(given, wanted) or found end
  return found
end

-- The body as an order, or nil for one that nobody could apply.
local function read_order(body)
  local order = json.decode(body, 1, nil, nil, nil)
  if type(order) ~= "table" or type(order.account) ~= "string" or type(order.amount) ~= "number" then return nil end
  if order.amount % 1 ~= 0 or math.abs(order.amount) >= 2 ^ 53 then return nil end
  return (order.from == nil or type(order.from) == "string") and order or nil
end

local function effect(id, order)
  local pay = "INSERT INTO account VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET balance = balance + excluded.balance"
  if order.from then
    local there = query("SELECT balance FROM account WHERE name = ?", order.from)[1]
    if not there or there[1] < order.amount then error(NOT_READY) end
    query(pay, order.from, -order.amount)
  end
  query(pay, order.account, order.amount)
  query("INSERT INTO ledger (id, account, amount, origin) VALUES (?, ?, ?, ?)", id, order.account, order.amount, order.from)
end

-- All of one delivery, inside one transaction: the fence, the memory of ids, the effect.
local function take(headers, order)
  local function header(name) return headers["x-lanegate-" .. name] end
  local tenant, source, key = header "tenant", header "source", header "ordering-key"
  local id, on_purpose = header "idempotency-key", header "late" == "true" or header "replay-id" ~= nil
  if header "seq" then -- else it has no lane, and only its id counts
    local epoch, seq = header "epoch", tonumber(header "seq")
    local fence = query("SELECT epoch, seq FROM fence WHERE (tenant, source, key) = (?, ?, ?)", tenant, source, key)[1]
    local newer = not fence or epoch > fence[1] or epoch == fence[1] and seq > fence[2]
    if not newer and not on_purpose then return "behind" end -- seen before, or overtaken
    if newer then query("INSERT OR REPLACE INTO fence VALUES (?, ?, ?, ?, ?)", tenant, source, key, epoch, seq) end
  end
  if query("SELECT 1 FROM ledger WHERE id = ?", id)[1] then return "known" end
  effect(id, order)
  return "applied"
end

local function deliver(secret, headers, body)
  if secret ~= "" and not signed(secret, headers, body) then return "401 Unauthorized", { error = "signature" } end
  local order = read_order(body)
  if not order or not headers["x-lanegate-idempotency-key"] then
    return "422 Unprocessable Content", { error = "no_order" }
  end
  exec "BEGIN IMMEDIATE"
  local ok, result = pcall(take, headers, order)
  exec(ok and "COMMIT" or "ROLLBACK")
  if ok then return "200 OK", { result = result } end
  if result == NOT_READY then return "409 Conflict", { error = "not_ready" } end
  io.stderr:write(tostring(result), "\n")
  return "500 Internal Server Error", { error = "failed" }
end

local function show()
  local accounts, ledger = setmetatable({}, { __jsontype = "object" }), query "SELECT account, amount FROM ledger ORDER BY n"
  for _, row in ipairs(query "SELECT name, balance FROM account") do accounts[row[1]] = row[2] end
  return "200 OK", { accounts = accounts, ledger = setmetatable(ledger, { __jsontype = "array" }) }
end

-- -- HTTP, as little as a gateway in front of it needs ---------------------------------------------------------

local function read_request(client)
  local method = (client:receive "*l" or ""):match "^(%u+) "
  if not method then return nil end
  local headers = {}
  for line in function() return client:receive "*l" end do
    if line == "" then break end
    local name, value = line:match "^([^:]+):[ \t]*(.-)[ \t]*$"
    if name then headers[name:lower()] = value end
  end
  local length = tonumber(headers["content-length"] or 0)
  if not length or length > BODY_MAX then return nil end
  return method, headers, length > 0 and client:receive(length) or ""
end

local function serve(client, secret)
  client:settimeout(5)
  local method, headers, body = read_request(client)
  if not method or not body then return end
  local status, what
  if method == "GET" then status, what = show() else status, what = deliver(secret, headers, body) end
  local text = json.encode(what)
  client:send(("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s")
    :format(status, #text, text))
end

local function main(port, path)
  if not path then
    io.stderr:write "usage: luajit receiver.lua PORT DATABASE\n"
    os.exit(2)
  end
  local secret = os.getenv "WEBHOOK_SECRET" or ""
  if secret:find "^whsec_" then secret = mime.unb64(secret:sub(7)) end
  local out = ffi.new "sqlite3 *[1]"
  local code = sqlite.sqlite3_open(path, out)
  database = out[0]
  check(code, SQLITE_OK)
  exec(SCHEMA)

  local server = assert(socket.tcp4())
  assert(server:setoption("reuseaddr", true))
  assert(server:bind("127.0.0.1", tonumber(port)))
  assert(server:listen(128))
  print("listening on 127.0.0.1:" .. select(2, server:getsockname()))
  io.stdout:flush()
  while true do
    local client = server:accept()
    if client then
      serve(client, secret)
      client:close()
    end
  end
end

main(arg[1], arg[2])
