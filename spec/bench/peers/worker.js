// The other half: BullMQ's worker posts each job to the receiver. BullMQ has no ordered groups (they are part of its paid
// edition), so jobs run side by side and no order is kept: less than Lanegate does, to the peer's advantage.
// Usage: node worker.js RECEIVER REDIS_PORT CONCURRENCY
import { Worker } from "bullmq";
import { Pool } from "undici";

const [receiver, redisPort, concurrency] = process.argv.slice(2);
const pool = new Pool(`http://${receiver}`, { connections: Number(concurrency) });

const worker = new Worker(
  "hooks",
  async (job) => {
    const headers = { "content-type": job.data.headers["content-type"], "x-id": job.id };
    const { statusCode, body } = await pool.request({ path: "/hooks", method: "POST", headers, body: job.data.body });
    await body.dump();
    if (statusCode >= 300) throw new Error(`answered ${statusCode}`);
  },
  // BullMQ, "Going to production": workers wait for Redis for ever.
  {
    connection: { host: "127.0.0.1", port: Number(redisPort), maxRetriesPerRequest: null },
    concurrency: Number(concurrency),
    removeOnComplete: { count: 0 },
  },
);
worker.on("error", (error) => console.error(error.message));
await worker.waitUntilReady();
console.log("ready");
