// Requests that the providers' own libraries sign, or call genuine, are taken by the gateway; the same ones with a
// byte changed, another secret or an old time are refused by both.
import assert from "node:assert/strict";
import { createHmac, createSign, generateKeyPairSync, sign as signBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { LinearWebhookClient } from "@linear/sdk/webhooks";
import * as octokit from "@octokit/webhooks-methods";
import { Paddle } from "@paddle/paddle-node-sdk";
import { EventWebhook } from "@sendgrid/eventwebhook";
import { verifySlackRequest } from "@slack/bolt/dist/receivers/verify-request.js";
import discord from "discord-interactions";
import Stripe from "stripe";
import twilio from "twilio";

import { startGateway } from "./support.js";

const secret = "a secret that both sides know";
const twilioUrl = "https://hooks.example.com/webhooks/twilio";
const discordKeys = generateKeyPairSync("ed25519");
const sendgridKeys = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
const discordKey = discordKeys.publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("hex");
const sendgridKey = sendgridKeys.publicKey.export({ type: "spki", format: "der" }).toString("base64");

const stripe = new Stripe("sk_test_none");
const paddle = new Paddle("key");
const seconds = () => Math.floor(Date.now() / 1000);
const hmac = (text, encoding = "hex", key = secret) => createHmac("sha256", key).update(text).digest(encoding);
const form = (body) => Object.fromEntries(new URLSearchParams(body));
// A library says no by throwing, or by false.
const says = async (call) => {
  try {
    return (await call()) !== false;
  } catch {
    return false;
  }
};

// sign(body, at in seconds): headers. accepts(body, headers): what the provider's library says.
const providers = {
  stripe: {
    timed: true,
    sign: (payload, timestamp, key = secret) => ({
      "stripe-signature": stripe.webhooks.generateTestHeaderString({ payload, secret: key, timestamp }),
    }),
    accepts: (body, headers) => stripe.webhooks.signature.verifyHeader(body, headers["stripe-signature"], secret, 300),
  },
  github: {
    sign: async (body, _, key = secret) => ({ "x-hub-signature-256": await octokit.sign(key, body) }),
    accepts: (body, headers) => octokit.verify(secret, body, headers["x-hub-signature-256"]),
  },
  twilio: {
    body: "From=%2B15017122661&Body=Gr%C3%BC%C3%9Fe+%26+more&NumMedia=0",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    sign: (body, _, key = secret) => ({
      "x-twilio-signature": twilio.getExpectedTwilioSignature(key, twilioUrl, form(body)),
    }),
    accepts: (body, headers) => twilio.validateRequest(secret, headers["x-twilio-signature"], twilioUrl, form(body)),
  },
  slack: {
    timed: true,
    sign: (body, at, key = secret) => ({
      "x-slack-request-timestamp": String(at),
      "x-slack-signature": "v0=" + hmac(`v0:${at}:${body}`, "hex", key),
    }),
    accepts: (body, headers) => verifySlackRequest({ signingSecret: secret, body, headers }),
  },
  discord: {
    sign: (body, at, key = discordKeys.privateKey) => ({
      "x-signature-timestamp": String(at),
      "x-signature-ed25519": signBytes(null, Buffer.from(at + body), key).toString("hex"),
    }),
    other: generateKeyPairSync("ed25519").privateKey,
    accepts: (body, headers) =>
      discord.verifyKey(body, headers["x-signature-ed25519"], headers["x-signature-timestamp"], discordKey),
  },
  sendgrid: {
    sign: (body, at, key = sendgridKeys.privateKey) => ({
      "x-twilio-email-event-webhook-timestamp": String(at),
      "x-twilio-email-event-webhook-signature": createSign("sha256").update(at + body).sign(key, "base64"),
    }),
    other: generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey,
    accepts: (body, headers) => {
      const webhook = new EventWebhook();
      return webhook.verifySignature(
        webhook.convertPublicKeyToECDSA(sendgridKey),
        body,
        headers["x-twilio-email-event-webhook-signature"],
        headers["x-twilio-email-event-webhook-timestamp"],
      );
    },
  },
  paddle: {
    timed: true,
    sign: (body, at, key = secret) => ({ "paddle-signature": `ts=${at};h1=${hmac(`${at}:${body}`, "hex", key)}` }),
    accepts: (body, headers) => paddle.webhooks.isSignatureValid(body, secret, headers["paddle-signature"]),
  },
  linear: {
    sign: (body, _, key = secret) => ({ "linear-signature": hmac(body, "hex", key) }),
    body: JSON.stringify({ type: "Issue", text: "Grüße ✓", webhookTimestamp: Date.now() }),
    accepts: (body, headers) =>
      new LinearWebhookClient(secret).verify(
        Buffer.from(body),
        headers["linear-signature"],
        JSON.parse(body).webhookTimestamp,
      ),
  },
};

let gateway;

before(async () => {
  const options = {
    discord: `public_key = "${discordKey}"`,
    sendgrid: `public_key = "${sendgridKey}"`,
  };
  const sources = Object.keys(providers).map(
    (name) => `${name} = { ${name === "twilio" ? `url = "${twilioUrl}",` : ""}
      verify = { type = "${name}", ${options[name] ?? `secret = "${secret}"`} }, sinks = { { type = "log" } } },`,
  );
  gateway = await startGateway(sources.join("\n"));
});

after(() => gateway?.stop());

for (const [name, provider] of Object.entries(providers)) {
  const body = provider.body ?? JSON.stringify({ by: name, text: "Grüße ✓" });
  // Both are asked, and must agree.
  const ask = async (sent, headers) => {
    const all = { "content-type": "application/json", ...provider.headers, ...headers };
    const answer = await gateway.post(name, sent, all);
    assert.equal(await says(() => provider.accepts(sent, all)), answer.status === 201, `${name}: ${answer.status}`);
    return answer;
  };
  const refused = async (sent, headers) => {
    const answer = await ask(sent, headers);
    assert.equal(answer.status, 401);
    assert.equal(answer.json.error, "verification_failed");
  };

  test(`a hook of ${name} is taken`, async () => {
    assert.equal((await ask(body, await provider.sign(body, seconds()))).status, 201);
  });

  test(`one of ${name} that was tampered with is refused`, async () => {
    const headers = await provider.sign(body, seconds());
    await refused(body.replace(/[a-z](?=[^a-z]*$)/, "_"), headers);
    await refused(body, await provider.sign(body, seconds(), provider.other ?? "another secret"));
  });

  if (provider.timed)
    test(`an old one of ${name} is refused`, async () => {
      await refused(body, await provider.sign(body, seconds() - 310));
    });
}
