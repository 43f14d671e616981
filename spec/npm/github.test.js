// Every example payload that GitHub publishes, through an ordered sink keyed by repository: byte for byte, each
// repository in the order it was sent.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { startGateway, startReceiver, waitFor } from "./support.js";

const events = createRequire(import.meta.url)("@octokit/webhooks-examples/api.github.com/index.json");

// How a key is shown in a header: bytes outside 0x20-0x7E and "%" percent-encoded.
const shown = (key) =>
  [...Buffer.from(key)]
    .map((byte) =>
      byte < 0x20 || byte > 0x7e || byte === 0x25
        ? "%" + byte.toString(16).toUpperCase().padStart(2, "0")
        : String.fromCharCode(byte),
    )
    .join("");

test("GitHub's payloads keep their bytes and each repository its order", async (t) => {
  const receiver = await startReceiver();
  const gateway = await startGateway(`
    github = { sinks = { { type = "http", name = "app", url = "${receiver.url}", ordered = true,
      ordering_key = { json = "repository.full_name" } } } },`);
  t.after(async () => {
    await gateway.stop();
    await receiver.stop();
  });
  const sent = [];
  for (const event of events)
    for (const example of event.examples) {
      const body = Buffer.from(JSON.stringify(example, null, sent.length % 3));
      const headers = { "content-type": "application/json", "x-github-event": event.name };
      const answer = await gateway.post("github", body, headers);
      assert.equal(answer.status, 201);
      const name = example.repository?.full_name;
      sent.push({ id: answer.json.id, body, event: event.name, key: name ? shown(name) : "default/github" });
    }
  assert.ok(sent.length > 300);

  await waitFor("every delivery", () => receiver.hooks.length >= sent.length);
  const sentById = new Map(sent.map((one) => [one.id, one]));
  const lanes = (list) => {
    const byKey = {};
    for (const { key, id } of list) (byKey[key] ??= []).push(id);
    return byKey;
  };
  const got = receiver.hooks.map(({ headers, body }) => {
    const one = sentById.get(headers["x-lanegate-id"]);
    assert.deepEqual(body, one.body);
    assert.equal(headers["x-github-event"], one.event);
    return { id: one.id, key: headers["x-lanegate-ordering-key"] };
  });
  assert.ok(Object.keys(lanes(sent)).length > 10);
  assert.deepEqual(lanes(got), lanes(sent));
});
