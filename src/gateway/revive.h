/* Brings dead letters back when their provider sends them again. A thread of its own: whoever asks is the
 * store's writer, which may not wait for lanes, nor for itself. */
#ifndef GATEWAY_REVIVE_H
#define GATEWAY_REVIVE_H

#include "ingest/ingest.h"
#include "lanes/lanes.h"
#include "store/store.h"

struct reviver;

enum { REVIVALS_MAX = 1000 }; /* waiting; beyond it they are refused */

enum status reviver_open(struct store *store, struct lanes *lanes, struct reviver **out, struct error *err);
/* Those that wait are done first. Before the store and lanes are closed. NULL is fine. */
void reviver_close(struct reviver *reviver);

/* Any thread, never blocks. False when too many wait. */
bool reviver_ask(struct reviver *reviver, struct ingest_revival *revival);

#endif
