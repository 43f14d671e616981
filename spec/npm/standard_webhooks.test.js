// What the libraries of Standard Webhooks sign, the gateway takes; what the gateway signs, they take.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as standard from "standardwebhooks";
import * as svix from "svix";

import { startGateway, startReceiver, waitFor } from "./support.js";

const inSecret = "whsec_" + Buffer.from("a secret of the provider's own..").toString("base64");
const outSecret = "whsec_" + Buffer.from("another that the receiver knows.").toString("base64");
const libraries = { standardwebhooks: standard.Webhook, svix: svix.Webhook };

let gateway, receiver;

before(async () => {
  receiver = await startReceiver();
  gateway = await startGateway(`
    signed = { verify = { type = "standard_webhooks", secret = "${inSecret}" },
      sinks = { { type = "http", name = "app", url = "${receiver.url}", secret = "${outSecret}" } } },`);
});

after(async () => {
  await gateway?.stop();
  await receiver?.stop();
});

function sign(Webhook, body, { id = "msg_" + Math.random().toString(36).slice(2), at = new Date(), secret = inSecret } = {}) {
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign(id, at, body),
  };
}

for (const [name, Webhook] of Object.entries(libraries)) {
  const body = JSON.stringify({ by: name, text: "Grüße ✓" });

  test(`a hook signed by ${name} is taken`, async () => {
    const answer = await gateway.post("signed", body, sign(Webhook, body));
    assert.equal(answer.status, 201);
    assert.equal(answer.json.status, "accepted");
  });

  test(`${name} verifies what the gateway delivers`, async () => {
    const answer = await gateway.post("signed", body, sign(Webhook, body));
    const hook = await waitFor("the delivery", () =>
      receiver.hooks.find((one) => one.headers["x-lanegate-id"] === answer.json.id),
    );
    assert.deepEqual(new Webhook(outSecret).verify(hook.body.toString(), hook.headers), JSON.parse(body));
    assert.throws(() => new Webhook(inSecret).verify(hook.body.toString(), hook.headers));
    assert.equal(hook.headers["x-lanegate-verification"], "ok");
  });

  const refused = async (body, headers) => {
    const answer = await gateway.post("signed", body, headers);
    assert.equal(answer.status, 401);
    assert.equal(answer.json.error, "verification_failed");
  };

  test(`one byte more than ${name} signed is refused`, () => refused(body + " ", sign(Webhook, body)));
  test(`another secret of ${name} is refused`, () => refused(body, sign(Webhook, body, { secret: outSecret })));
  test(`an hour-old signature of ${name} is refused`, () =>
    refused(body, sign(Webhook, body, { at: new Date(Date.now() - 3600e3) })));
  test(`a signature of ${name} for another id is refused`, () =>
    refused(body, { ...sign(Webhook, body), "webhook-id": "msg_other" }));
}
