/* The inside of the room: specs made ready for resolving, and one hook on its way through them. */
#ifndef ORDER_ORDER_PRIV_H
#define ORDER_ORDER_PRIV_H

#include "order/order.h"

/* A spec and where its value is among what a walk finds. */
struct key {
    const struct key_spec *spec;
    size_t slot;             /* KEY_JSON */
    const struct key *items; /* KEY_FIRST: spec->item_count of them */
};

struct filter {
    const struct filter_spec *spec;
    size_t slot; /* by JSON */
};

struct sink {
    const struct order_sink *options;
    const struct key *key;       /* NULL: none */
    const struct filter *filter; /* NULL: none */
    struct lane_id keyless;      /* of an ordered sink */
};

struct order_plan {
    struct arena *arena; /* owns all of it but `paths` */
    struct order_options options;
    const struct sink *sinks;
    const struct key *dedupe; /* NULL: none */
    struct json_paths *paths; /* of every key, filter and dedupe spec, a slot each; NULL: nothing asks */
};

/* One hook. The body is read when the first value of it is asked for. */
struct resolution {
    const struct order_plan *plan;
    const struct envelope *envelope;
    struct arena *arena;
    enum { BODY_UNREAD, BODY_JSON, BODY_NOT_JSON, BODY_TOO_LARGE } body;
    struct json_found *found; /* when BODY_JSON: one a slot */
};

/* What one key spec gave. */
struct key_result {
    enum missing_reason missing; /* MISSING_NOTHING: there is a key, or `unordered` */
    enum json_kind found;        /* what stood at the path */
    bool unordered;              /* a script put the hook outside the lanes */
    struct bytes key;            /* not stamped yet; borrowed from the envelope or the arena */
};

/* native.c */
void resolution_read_body(struct resolution *resolution);
struct key_result key_from_header(const struct resolution *resolution, struct bytes name);
struct key_result key_from_headers(const struct resolution *resolution, const struct key_spec *spec);
struct key_result key_from_json(struct resolution *resolution, size_t slot, bool integers);
/* A string found without a lone surrogate: its bytes, in the body or the arena. */
struct bytes found_text(const struct json_found *found, struct arena *arena);

/* filter.c */
bool filter_takes(const struct filter *filter, struct resolution *resolution);
bool glob_matches(struct bytes glob, struct bytes text);

/* lane_id.c: a key over `max` bytes as "sha256:" and hex, else a copy. */
struct bytes stamp(struct bytes key, size_t max, struct arena *arena);

#endif
