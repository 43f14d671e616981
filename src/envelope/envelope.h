/* The noun of the program: one accepted hook, byte for byte, plus its envelope. Everything in it lives in one
 * arena. It is written by one thread (ingest, or the codec) and immutable from the moment it is shared;
 * references are counted atomically, so any thread may hold and drop one. */
#ifndef ENVELOPE_ENVELOPE_H
#define ENVELOPE_ENVELOPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/buf.h"
#include "util/bytes.h"
#include "util/status.h"
#include "util/uuid.h"

enum verification { VERIFICATION_SKIPPED, VERIFICATION_OK, VERIFICATION_FAILED };

/* "skipped", "ok", "failed". */
const char *verification_name(enum verification verification);

struct header {
    struct bytes name;  /* as sent */
    struct bytes value; /* without blanks at its ends */
};

struct envelope {
    atomic_uint refs;
    struct arena *arena; /* owns all bytes below, and this struct */

    struct uuid id;
    uint64_t seq; /* 0 until it is committed; set once by the store's writer, before anyone else sees it */
    int64_t received_at_ms; /* unix */
    struct bytes tenant, source;
    struct bytes method;
    struct bytes path;         /* the raw target before '?' */
    struct bytes query;        /* the raw target after '?'; absent when there is none */
    struct bytes content_type; /* absent when there is none */
    struct bytes remote_ip;    /* text, v4-mapped shown as v4 */
    struct bytes dedupe_key;   /* absent when there is none */
    struct bytes client_cert;  /* SHA-256 of the client's certificate (TLS), 64 hex digits; absent without */
    enum verification verification;
    const struct header *headers; /* in order of arrival, repeated ones repeated */
    size_t header_count;
    struct bytes body; /* exact; empty, never absent */
};

/* One reference, the caller's. All fields zero; fill them with memory of `arena`. */
struct envelope *envelope_new(size_t size_hint);
struct envelope *envelope_ref(struct envelope *envelope);
void envelope_unref(struct envelope *envelope); /* NULL is fine */

/* The first header of that name in any case; absent when there is none. */
struct bytes envelope_header(const struct envelope *envelope, struct bytes name);

/* Leaves only headers of these names (any case), in their order. While it has one owner. */
void envelope_keep_headers(struct envelope *envelope, const struct bytes *names, size_t count);

/* Bytes it holds in memory. */
size_t envelope_size(const struct envelope *envelope);

/* The stored form, version 1: everything but seq, id, received_at, tenant, source and body, which the store
 * keeps in columns of their own. Layout in codec.c. */
void envelope_encode(const struct envelope *envelope, struct buf *out);
/* The same, in memory of an arena: the envelope's own will do, while only one thread uses it. */
struct bytes envelope_encode_in(const struct envelope *envelope, struct arena *arena);

/* What the store keeps beside the encoded head. Borrowed for the call; the result copies everything. */
struct envelope_parts {
    struct uuid id;
    uint64_t seq;
    int64_t received_at_ms;
    struct bytes tenant, source;
    struct bytes head;
    struct bytes body;
};

/* OK with a new envelope (one reference, the caller's), or CORRUPT when the head does not decode. */
enum status envelope_decode(const struct envelope_parts *parts, struct envelope **out);

#endif
