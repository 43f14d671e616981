#!/usr/bin/env node
// A receiver that applies the hooks of each key once, and in order (README.md beside this says why so).
//
//     node receiver.js PORT DATABASE      port 0 picks a free one; WEBHOOK_SECRET checks signatures
//
//     POST  a delivery. {"account": "a", "amount": 5} pays 5 into account a; with "from": "b" out of account b,
//           which waits until b has that much.
//     GET   the accounts, and the ledger in the order it was written
//
// Needs `npm install node-sqlite3-wasm`: SQLite on real files, without a compiler.
"use strict";
const crypto = require("node:crypto");
const fs = require("node:fs");
const http = require("node:http");
const { Database } = require("node-sqlite3-wasm");

const SCHEMA = `
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS fence (tenant TEXT, source TEXT, key TEXT, epoch TEXT NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY (tenant, source, key));
  CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS ledger (n INTEGER PRIMARY KEY, id TEXT UNIQUE, account TEXT, amount INTEGER, origin TEXT);
`;
const TOLERANCE_S = 300;
const BODY_MAX = 32 << 20;

// The effect can't be applied yet. The gateway tries this hook again, and holds back those behind it.
class NotReady extends Error {}

// Standard Webhooks: one of the signatures is ours, and it is young.
function signed(secret, headers, body) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature = "" } = headers;
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - timestamp) > TOLERANCE_S) return false;
  const digest = crypto.createHmac("sha256", secret).update(`${id}.${timestamp}.`).update(body).digest("base64");
  const wanted = Buffer.from("v1," + digest);
  const given = signature.split(" ").map((one) => Buffer.from(one));
  return given.filter((one) => one.length === wanted.length && crypto.timingSafeEqual(one, wanted)).length > 0;
}

// The body as an order, or null for one that nobody could apply.
function readOrder(body) {
  try {
    const { account, amount, from: origin = null } = JSON.parse(body);
    const good = typeof account === "string" && Number.isSafeInteger(amount);
    return good && (origin === null || typeof origin === "string") ? { account, amount, origin } : null;
  } catch {
    return null;
  }
}

function effect(database, id, { account, amount, origin }) {
  const pay = `INSERT INTO account VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET balance = balance + excluded.balance`;
  if (origin !== null) {
    const there = database.get("SELECT balance FROM account WHERE name = ?", [origin]);
    if (!there || there.balance < amount) throw new NotReady();
    database.run(pay, [origin, -amount]);
  }
  database.run(pay, [account, amount]);
  database.run("INSERT INTO ledger (id, account, amount, origin) VALUES (?, ?, ?, ?)", [id, account, amount, origin]);
}

// All of one delivery, inside one transaction: the fence, the memory of ids, the effect.
function take(database, headers, order) {
  const id = headers["x-lanegate-idempotency-key"];
  const lane = ["tenant", "source", "ordering-key"].map((name) => headers["x-lanegate-" + name]);
  const onPurpose = headers["x-lanegate-late"] === "true" || headers["x-lanegate-replay-id"] !== undefined;
  if (headers["x-lanegate-seq"] !== undefined) { // else it has no lane, and only its id counts
    const [epoch, seq] = [headers["x-lanegate-epoch"], Number(headers["x-lanegate-seq"])];
    const fence = database.get("SELECT epoch, seq FROM fence WHERE (tenant, source, key) = (?, ?, ?)", lane);
    const newer = !fence || epoch > fence.epoch || (epoch === fence.epoch && seq > fence.seq);
    if (!newer && !onPurpose) return "behind"; // seen before, or overtaken
    if (newer) database.run("INSERT OR REPLACE INTO fence VALUES (?, ?, ?, ?, ?)", [...lane, epoch, seq]);
  }
  if (database.get("SELECT 1 FROM ledger WHERE id = ?", [id])) return "known";
  effect(database, id, order);
  return "applied";
}

function deliver(database, secret, headers, body) {
  if (secret.length && !signed(secret, headers, body)) return [401, { error: "signature" }];
  const order = readOrder(body);
  if (!order || headers["x-lanegate-idempotency-key"] === undefined) return [422, { error: "no_order" }];
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = take(database, headers, order);
    database.exec("COMMIT");
    return [200, { result }];
  } catch (error) {
    database.exec("ROLLBACK");
    if (error instanceof NotReady) return [409, { error: "not_ready" }];
    console.error(error);
    return [500, { error: "failed" }];
  }
}

function show(database) {
  const accounts = database.all("SELECT name, balance FROM account").map(({ name, balance }) => [name, balance]);
  const ledger = database.all("SELECT account, amount FROM ledger ORDER BY n");
  return [200, { accounts: Object.fromEntries(accounts), ledger: ledger.map((row) => [row.account, row.amount]) }];
}

function openDatabase(path) {
  fs.rmSync(path + ".lock", { recursive: true, force: true }); // of a process that was killed; there is only one of us
  const database = new Database(path);
  database.exec(SCHEMA);
  return database;
}

function main(port, path) {
  if (path === undefined) {
    console.error("usage: node receiver.js PORT DATABASE");
    process.exit(2);
  }
  const text = process.env.WEBHOOK_SECRET ?? "";
  const secret = text.startsWith("whsec_") ? Buffer.from(text.slice(6), "base64") : Buffer.from(text);
  const database = openDatabase(path);
  const server = http.createServer((request, response) => {
    const chunks = [];
    let length = 0;
    request.on("data", (chunk) => {
      length += chunk.length;
      if (length <= BODY_MAX) chunks.push(chunk);
    });
    request.on("end", () => {
      let [status, what] = [413, { error: "too_large" }];
      if (request.method === "GET") [status, what] = show(database);
      else if (length <= BODY_MAX) [status, what] = deliver(database, secret, request.headers, Buffer.concat(chunks));
      const text = Buffer.from(JSON.stringify(what));
      response.writeHead(status, { "content-type": "application/json", "content-length": text.length }).end(text);
    });
  });
  server.listen(Number(port), "127.0.0.1", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
}

main(...process.argv.slice(2));
