// The receivers of config/receivers that need what a bare machine has not: the same flow that the tests run for the other.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

for (const language of ["python", "javascript"])
  test(`the receiver in ${language}`, async () => {
    const env = {
      ...process.env,
      LANEGATE_RECIPES: language,
      LUA_PATH: here("..") + "?.lua;;", // "?" is no character of a URL
      NODE_PATH: here("node_modules"), // where receiver.js finds its SQLite
    };
    const child = spawn("busted", ["--lua=luajit", "-o", "TAP", here("../flow/recipe_spec.lua")], { env });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
    const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
    assert.equal(code, 0, said);
    assert.match(said, /^ok 1 /m);
  });
