#!/usr/bin/env python3
"""A receiver that applies the hooks of each key once, and in order (README.md beside this says why so).

    python3 receiver.py PORT DATABASE      port 0 picks a free one; WEBHOOK_SECRET checks signatures

    POST  a delivery. {"account": "a", "amount": 5} pays 5 into account a; with "from": "b" out of account b,
          which waits until b has that much.
    GET   the accounts, and the ledger in the order it was written
"""
import base64
import hashlib
import hmac
import json
import os
import sqlite3
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS fence (tenant TEXT, source TEXT, key TEXT, epoch TEXT NOT NULL, seq INTEGER NOT NULL,
  PRIMARY KEY (tenant, source, key));
CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS ledger (n INTEGER PRIMARY KEY, id TEXT UNIQUE, account TEXT, amount INTEGER, origin TEXT);
"""
TOLERANCE_S = 300
BODY_MAX = 32 << 20

database = None
lock = threading.Lock()  # of the database: a transaction at a time
secret = b""


class NotReady(Exception):
    """The effect can't be applied yet. The gateway tries this hook again, and holds back those behind it."""


def signed(headers, body):
    """Standard Webhooks: one of the signatures is ours, and it is young."""
    try:
        age = abs(time.time() - int(headers["webhook-timestamp"]))
    except (TypeError, ValueError):
        return False
    text = "{}.{}.".format(headers["webhook-id"], headers["webhook-timestamp"]).encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(secret, text, hashlib.sha256).digest()).decode()
    given = headers.get("webhook-signature", "").split(" ")
    return age <= TOLERANCE_S and any([hmac.compare_digest(wanted.encode(), one.encode()) for one in given])


def read_order(body):
    """The body as (account, amount, origin), or None for one that nobody could apply."""
    try:
        order = json.loads(body)
        account, amount, origin = order["account"], order["amount"], order.get("from")
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    good = isinstance(account, str) and type(amount) is int and abs(amount) < 2**53
    return (account, amount, origin) if good and isinstance(origin, (str, type(None))) else None


def effect(id, order):
    account, amount, origin = order
    pay = "INSERT INTO account VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET balance = balance + excluded.balance"
    if origin is not None:
        there = database.execute("SELECT balance FROM account WHERE name = ?", (origin,)).fetchone()
        if there is None or there[0] < amount:
            raise NotReady
        database.execute(pay, (origin, -amount))
    database.execute(pay, (account, amount))
    database.execute("INSERT INTO ledger (id, account, amount, origin) VALUES (?, ?, ?, ?)", (id, account, amount, origin))


def take(headers, order):
    """All of one delivery, inside one transaction: the fence, the memory of ids, the effect."""
    id = headers["x-lanegate-idempotency-key"]
    lane = (headers["x-lanegate-tenant"], headers["x-lanegate-source"], headers["x-lanegate-ordering-key"])
    on_purpose = headers["x-lanegate-late"] == "true" or headers["x-lanegate-replay-id"] is not None
    place, newer = None, False
    if headers["x-lanegate-seq"] is not None:  # else it has no lane, and only its id counts
        place = (headers["x-lanegate-epoch"], int(headers["x-lanegate-seq"]))
        fence = database.execute("SELECT epoch, seq FROM fence WHERE (tenant, source, key) = (?, ?, ?)", lane).fetchone()
        newer = fence is None or place > fence
        if not newer and not on_purpose:
            return "behind"  # seen before, or overtaken
    if newer:
        database.execute("INSERT OR REPLACE INTO fence VALUES (?, ?, ?, ?, ?)", lane + place)
    if database.execute("SELECT 1 FROM ledger WHERE id = ?", (id,)).fetchone():
        return "known"
    effect(id, order)
    return "applied"


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > BODY_MAX:
            self.close_connection = True
            return self.answer(413, {"error": "too_large"})
        body = self.rfile.read(length)
        if secret and not signed(self.headers, body):
            return self.answer(401, {"error": "signature"})
        order = read_order(body)
        if order is None or self.headers["x-lanegate-idempotency-key"] is None:
            return self.answer(422, {"error": "no_order"})
        with lock:
            database.execute("BEGIN IMMEDIATE")
            try:
                result = take(self.headers, order)
                database.execute("COMMIT")
            except NotReady:
                database.execute("ROLLBACK")
                return self.answer(409, {"error": "not_ready"})
            except Exception:
                database.execute("ROLLBACK")
                raise  # no answer: the gateway tries again
        self.answer(200, {"result": result})

    def do_GET(self):
        with lock:
            accounts = dict(database.execute("SELECT name, balance FROM account"))
            ledger = [list(row) for row in database.execute("SELECT account, amount FROM ledger ORDER BY n")]
        self.answer(200, {"accounts": accounts, "ledger": ledger})

    def answer(self, status, what):
        body = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    global database, secret
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    text = os.environ.get("WEBHOOK_SECRET", "")
    secret = base64.b64decode(text[6:]) if text.startswith("whsec_") else text.encode()
    database = sqlite3.connect(sys.argv[2], isolation_level=None, check_same_thread=False)
    database.executescript(SCHEMA)
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
    print("listening on 127.0.0.1:%d" % server.server_address[1], flush=True)
    server.serve_forever()


main()
