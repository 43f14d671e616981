/* What a provider asks before it sends anything, answered in the receiver's place. Such a request is answered
 * from memory and never stored. Everything that goes back is bounded printable ASCII, sent as plain text that
 * no browser takes for anything else: the question may come from anybody. */
#ifndef INGEST_HANDSHAKE_H
#define INGEST_HANDSHAKE_H

#include "ingest/ingest_priv.h"
#include "json/json.h"

/* What is prepared for a source at open; NULL without a handshake. */
struct handshake;
struct handshake *handshake_open(const struct ingest_source *source);
void handshake_close(struct handshake *handshake); /* NULL is fine */

/* Questions that carry their own proof or none (meta, graph): before verification. True when answered; false
 * when this is a hook, or asks nothing. */
bool handshake_unsigned(const struct entry *entry, const struct http_request *request);
/* Those that are signed as hooks are (slack, zoom): behind verification that did not fail. */
bool handshake_signed(const struct entry *entry, const struct envelope *envelope,
                      struct http_exchange *exchange);

#endif
