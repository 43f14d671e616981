// Node's usual webhook endpoint: fastify takes the hook, BullMQ keeps it in Redis, 201 once it is there. One process a core,
// which is how Node uses several. Usage: node fastify.js PORT REDIS_PORT PROCESSES
import cluster from "node:cluster";
import { Queue } from "bullmq";
import fastify from "fastify";

const [port, redisPort, processes] = process.argv.slice(2).map(Number);

async function serve() {
  // BullMQ, "Going to production": a producer in a web request fails fast instead of waiting for Redis.
  const connection = { host: "127.0.0.1", port: redisPort, enableOfflineQueue: true, maxRetriesPerRequest: 1 };
  const queue = new Queue("hooks", {
    connection,
    // Tried again as Lanegate would; a finished job leaves nothing behind, the documentation's advice for busy queues.
    defaultJobOptions: { attempts: 10, backoff: { type: "exponential", delay: 100 }, removeOnComplete: true },
  });
  await queue.waitUntilReady();

  const app = fastify({ logger: false, bodyLimit: 25 << 20 });
  // The exact bytes are what a signature is over, so nobody parses them here: also the cheapest for the peer.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (request, body, done) => done(null, body));
  app.post("/webhooks/:source", async (request, reply) => {
    const job = await queue.add(request.params.source, {
      path: request.url,
      received_at: Date.now(),
      remote_ip: request.ip,
      headers: request.headers,
      body: request.body,
    });
    reply.code(201);
    return { id: job.id, status: "accepted" };
  });
  await app.listen({ host: "127.0.0.1", port, backlog: 4096 });
}

if (cluster.isPrimary && processes > 1) {
  for (let i = 0; i < processes; i++) cluster.fork();
  // A worker that dies is a broken bench, not something to mend.
  cluster.on("exit", () => process.exit(1));
  process.on("SIGTERM", () => process.exit(0));
} else {
  await serve();
}
