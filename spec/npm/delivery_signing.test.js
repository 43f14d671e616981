// What receivers check: every attempt carries signatures that the libraries of Standard Webhooks take, whatever the bytes of the
// hook, through a rotation, and anew at each retry. And nothing that a hook brings becomes a header of its own.
import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import http from "node:http";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import * as standard from "standardwebhooks";
import * as svix from "svix";

import { startGateway, waitFor } from "./support.js";

const coded = (text) => "whsec_" + Buffer.from(text).toString("base64");
const base64 = (text) => Buffer.from(text).toString("base64");
const fresh = coded("the secret of after the rotation"), old = coded("the secret of before the rotation");
const plain = "a plain text, not base64; with blanks inside";
const libraries = { standardwebhooks: standard.Webhook, svix: svix.Webhook };
const keyed = `ordered = true, ordering_key = { json = "key" }`;

let gateway, receiver;

// Keeps what came, headers as sent; answers the first `failures` attempts of a path with 503.
async function startReceiver() {
  const got = [];
  let failures = 0;
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      got.push({ path: request.url, headers: request.headers, raw: request.rawHeaders, body: Buffer.concat(chunks) });
      response.statusCode = request.url === "/failing" && failures-- > 0 ? 503 : 200;
      response.end();
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  server.unref();
  return {
    got,
    url: (path) => `http://127.0.0.1:${server.address().port}/${path}`,
    fail: (times) => (failures = times),
    stop: () => new Promise((closed) => (server.closeAllConnections(), server.close(closed))),
  };
}

before(async () => {
  receiver = await startReceiver();
  const source = (name, options) =>
    `${name} = { sinks = { { type = "http", name = "app", url = "${receiver.url(name)}", ${options} } } },`;
  gateway = await startGateway(
    source("rotating", `secret = { "${fresh}", "${old}" }`) +
      source("plain", `secret = "${plain}"`) +
      source("failing", `secret = "${fresh}", retry = { "1100ms" }`) +
      source("keyed", `secret = "${fresh}", ${keyed}`) +
      source("unsigned", `ordered = true, ordering_key = { header = "x-key" }`),
  );
});

after(async () => {
  await gateway?.stop();
  await receiver?.stop();
});

async function send(source, body, headers) {
  const answer = await gateway.post(source, body, headers);
  assert.equal(answer.status, 201);
  return answer.json.id;
}

function arrived(id, count = 1) {
  return waitFor(`${count} attempts`, () => {
    const attempts = receiver.got.filter(({ headers }) => headers["x-lanegate-id"] === id);
    return attempts.length >= count && attempts;
  });
}

// The libraries take text; a body of arbitrary bytes is checked through its signature over those bytes.
function verify(Webhook, secret, { headers, body }) {
  return new Webhook(secret).verify(body.toString(), headers);
}

for (const [name, Webhook] of Object.entries(libraries)) {
  test(`${name} with either secret of a rotation takes a delivery, and with a third one does not`, async () => {
    const body = JSON.stringify({ by: name, text: "Grüße ✓" });
    const [attempt] = await arrived(await send("rotating", body));
    assert.equal(attempt.headers["webhook-signature"].split(" ").length, 2);
    for (const secret of [fresh, old]) assert.deepEqual(verify(Webhook, secret, attempt), JSON.parse(body));
    assert.throws(() => verify(Webhook, coded("somebody else's"), attempt), /No matching signature/);
    assert.throws(() => verify(Webhook, fresh, { ...attempt, body: Buffer.from(body + " ") }), /No matching signature/);
  });

  test(`${name} takes a delivery signed with a secret that is plain text`, async () => {
    const [attempt] = await arrived(await send("plain", `{"plain":true}`));
    assert.deepEqual(verify(Webhook, base64(plain), attempt), { plain: true });
  });

  test(`${name} takes each attempt of a hook that is tried again, each with a time of its own`, async () => {
    receiver.fail(2);
    const attempts = await arrived(await send("failing", `{"again":1}`), 3);
    for (const attempt of attempts) assert.deepEqual(verify(Webhook, fresh, attempt), { again: 1 });
    const times = attempts.map(({ headers }) => Number(headers["webhook-timestamp"]));
    assert.ok(times[0] < times[1] && times[1] < times[2], times);
    assert.equal(new Set(attempts.map(({ headers }) => headers["webhook-id"])).size, 1);
    assert.equal(new Set(attempts.map(({ headers }) => headers["webhook-signature"])).size, 3);
    assert.deepEqual(attempts.map(({ headers }) => headers["x-lanegate-attempt"]), ["1", "2", "3"]);
    const replayed = { ...attempts[0], headers: { ...attempts[0].headers, "webhook-timestamp": String(times[0] - 360) } };
    assert.throws(() => verify(Webhook, fresh, replayed), /timestamp too old/);
  });
}

// The signature is over the very bytes: here one library signs the same bytes, where it can take them.
test("bodies of any bytes are signed as they are", async () => {
  const everyByte = Buffer.from([...Array(256).keys()]);
  const texts = ["\r\n\r\n\0", "\ufeff{}", '"\ud83d\ude00"'].map((text) => Buffer.from(text));
  const bodies = [Buffer.alloc(0), everyByte, randomBytes(100000), ...texts];
  for (const body of bodies) {
    const [attempt] = await arrived(await send("rotating", body, { "content-type": "application/octet-stream" }));
    assert.deepEqual(attempt.body, body);
    const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signatures } = attempt.headers;
    const expected = [fresh, old].map((secret) => {
      const mac = createHmac("sha256", Buffer.from(secret.slice(6), "base64"));
      return "v1," + mac.update(`${id}.${at}.`).update(body).digest("base64");
    });
    assert.equal(signatures, expected.join(" "));
    if (body.length && Buffer.from(body.toString()).equals(body))
      for (const Webhook of Object.values(libraries))
        assert.equal(new Webhook(fresh).sign(id, new Date(at * 1000), body.toString()), expected[0]);
  }
});

// How a key is shown in a header: bytes outside 0x20-0x7E, "%", and a blank as the first or last byte are percent-encoded.
function shown(key) {
  const bytes = [...Buffer.from(key)];
  const isOpen = (byte, i) => byte > 0x20 || (byte === 0x20 && i > 0 && i < bytes.length - 1);
  return bytes
    .map((byte, i) =>
      isOpen(byte, i) && byte < 0x7f && byte !== 0x25
        ? String.fromCharCode(byte)
        : "%" + byte.toString(16).toUpperCase().padStart(2, "0"),
    )
    .join("");
}

const names = (attempt) => attempt.raw.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()).sort();

test("a key of any bytes stays one value of one header", async () => {
  const [usual] = await arrived(await send("keyed", `{"key":"usual"}`, { "content-type": "application/json" }));
  const keys = [
    "a\r\nx-injected: yes", "a\nx-injected: yes", "\r\n\r\nGET / HTTP/1.1", "a\0b", "Grüße ✓ 😀", "  blanks  ", " ", "100%",
    "%0d%0ax-injected: yes", "tab\there", "\u007f\u0080\u2028", "webhook-id: forged", "*", "quotes\"'\\",
  ];
  for (const key of keys) {
    const [attempt] = await arrived(await send("keyed", JSON.stringify({ key }), { "content-type": "application/json" }));
    assert.equal(attempt.headers["x-lanegate-ordering-key"], shown(key));
    assert.deepEqual(names(attempt), names(usual));
    assert.deepEqual(verify(standard.Webhook, fresh, attempt), { key });
  }
});

// Raw, since no client would send these. Gives what was answered.
function sendRaw(source, line) {
  const [host, port] = gateway.ingest.split(":");
  const head = [`POST /webhooks/${source} HTTP/1.1`, "Host: x", "Connection: close", "Content-Length: 0", line];
  return new Promise((resolve, reject) => {
    const peer = connect(Number(port), host, () => peer.write(Buffer.from(head.join("\r\n") + "\r\n\r\n", "latin1")));
    let said = "";
    peer.on("data", (bytes) => (said += bytes)).on("error", reject).on("close", () => resolve(said));
  });
}

test("a provider's header can't forge one of ours, and bytes that a header can't hold are refused at the door", async () => {
  const forged = {
    "x-lanegate-seq": "1",
    "x-lanegate-ordering-key": "forged",
    "x-ankusa-id": "forged",
    "webhook-id": "forged",
    "webhook-timestamp": "1",
    "webhook-signature": "v1,forged",
    "x-own": "kept",
  };
  const [attempt] = await arrived(await send("keyed", `{"key":"k"}`, forged));
  for (const [name, value] of Object.entries(forged))
    if (name !== "x-own") assert.notEqual(attempt.headers[name], value);
  assert.equal(attempt.headers["x-own"], "kept");
  assert.equal(names(attempt).filter((name) => name === "webhook-signature").length, 1);
  verify(standard.Webhook, fresh, attempt);

  for (const value of ["a\rb", "a\0b", "gr\xfc\xdfe", "\x7f", "a\n b"])
    assert.match(await sendRaw("unsigned", `X-Key: ${value}`), /^HTTP\/1\.1 400 /, JSON.stringify(value));
  const id = JSON.parse((await sendRaw("unsigned", "X-Key: \t padded % key \t ")).split("\r\n\r\n")[1]).id;
  const [padded] = await arrived(id);
  assert.equal(padded.headers["x-lanegate-ordering-key"], "padded %25 key");
  assert.equal(padded.headers["x-key"], "padded % key");
});
