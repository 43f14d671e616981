// The real binary in a folder of its own, and a receiver that remembers what it was sent.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const binary = process.env.LANEGATE_BIN;

// Polls until `check` gives something, for at most `seconds`.
export async function waitFor(what, check, seconds = 30) {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resume) => setTimeout(resume, 10));
  }
}

// Starts a gateway with these sources (Lua text) and resolves when it is ready.
export async function startGateway(sources) {
  if (!binary) throw new Error("set LANEGATE_BIN to the lanegate binary");
  const folder = await mkdtemp(join(tmpdir(), "lanegate-npm-"));
  const config = `return {
    data_dir = "data",
    log = { level = "info", format = "json" },
    http = { listen = "127.0.0.1:0", threads = 2 },
    admin = { listen = "127.0.0.1:0" },
    store = { min_free_bytes = "16MiB" },
    egress = { allow_private = { "127.0.0.1/32" }, allow_http = true },
    sources = { ${sources} },
  }`;
  await writeFile(join(folder, "config.lua"), config);

  const child = spawn(binary, ["serve", "--config", join(folder, "config.lua")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const log = [];
  process.once("exit", () => child.kill("SIGKILL")); // a test that failed early leaves nothing behind
  const ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
  createInterface({ input: child.stderr }).on("line", (line) => log.push(line));
  child.unref(); // and is not waited for
  child.stderr.unref();

  const address = (event) => {
    const line = log.find((text) => text.includes(`"event":"${event}"`));
    return line && JSON.parse(line).address;
  };
  const gateway = {
    async post(source, body, headers = {}) {
      const answer = await fetch(`http://${gateway.ingest}/webhooks/${source}`, { method: "POST", body, headers });
      return { status: answer.status, json: JSON.parse(await answer.text()) };
    },
    // The sum of a metric's series that have all these labels.
    async metric(name, labels = {}) {
      const text = await (await fetch(`http://${gateway.admin}/metrics`)).text();
      const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
      return text
        .split("\n")
        .filter((line) => line.match(/^[^{ ]+/)?.[0] === `lanegate_${name}`)
        .filter((line) => wanted.every((label) => line.includes(label)))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
    },
    async stop() {
      child.ref();
      child.kill("SIGTERM");
      const end = await ended;
      await rm(folder, { recursive: true, force: true });
      if (end.code !== 0) throw new Error(`the gateway ended with ${JSON.stringify(end)}\n${log.join("\n")}`);
    },
  };

  try {
    await waitFor("the gateway to be ready", async () => {
      if (child.exitCode !== null) throw new Error("it ended at once");
      gateway.ingest = address("ingest_listening");
      gateway.admin = address("admin_listening");
      if (!gateway.ingest || !gateway.admin) return false;
      const ready = await fetch(`http://${gateway.admin}/ready`).catch(() => null);
      return ready?.status === 200;
    });
  } catch (error) {
    child.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
    throw new Error(`${error.message}:\n${log.join("\n")}`);
  }
  return gateway;
}

// A receiver that answers 200 and keeps { headers, body } of every hook, in the order of arrival.
export async function startReceiver() {
  const hooks = [];
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      hooks.push({ headers: request.headers, body: Buffer.concat(chunks) });
      response.end();
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  server.unref(); // a test that failed before its end must not keep the process waiting
  return {
    hooks,
    url: `http://127.0.0.1:${server.address().port}/hooks`,
    stop: () => new Promise((closed) => (server.closeAllConnections(), server.close(closed))),
  };
}
