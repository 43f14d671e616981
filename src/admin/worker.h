/* A thread for what takes long: looks at every dead letter, or dry runs and rekey. It has a store reader of
 * its own, so that the loop goes on answering. One ask at a time, in the order they came; WORKER_WAITING_MAX
 * wait. */
#ifndef ADMIN_WORKER_H
#define ADMIN_WORKER_H

#include "store/store.h"
#include "util/status.h"

enum { WORKER_WAITING_MAX = 16 };

struct ask;
struct worker;

/* Opens a reader and starts the thread. Nothing is left open on failure. */
enum status worker_open(struct store *store, struct worker **out, struct error *err);
/* Hands over an ask with its `work`, which answers it; answers 503 itself when too many wait ("busy") or it
 * is about to end ("draining"). The ask is gone. */
void worker_take(struct worker *worker, struct ask *ask);
/* Whoever waits, and whoever comes, is answered "draining"; what is under way ends. Returns at once. Any
 * thread. */
void worker_drain(struct worker *worker);
/* Waits for what is under way. NULL is fine. */
void worker_close(struct worker *worker);

#endif
