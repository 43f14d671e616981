/* What a sink is: something that takes one attempt and reports an outcome. Lanes decides what an outcome
 * means. */
#ifndef DELIVER_SINK_H
#define DELIVER_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "envelope/envelope.h"
#include "util/list.h"
#include "util/status.h"

#define OUTCOME_CLASSES(X)                                                                                   \
    X(OK, "ok")                                                                                              \
    X(TRANSIENT, "transient")                                                                                \
    X(RETRY_AFTER, "retry_after")                                                                            \
    X(REFUSED, "refused")                                                                                    \
    X(CONFIG, "config")

enum outcome_class {
#define OUTCOME_ENUM(id, name) OUTCOME_##id,
    OUTCOME_CLASSES(OUTCOME_ENUM)
#undef OUTCOME_ENUM
        OUTCOME_CLASS_COUNT
};
const char *outcome_class_name(enum outcome_class cls);

struct outcome {
    enum outcome_class cls;
    int64_t retry_after_ms; /* class RETRY_AFTER */
    int http_status;        /* 0: no answer */
    bool cut_off;           /* ended because the process goes down: nobody answered, nothing is spent */
    bool timed_out;
    bool unreachable; /* connect, TLS or name failure, or a time-out: not an answer of the receiver */
    bool unsent;      /* certainly no byte of the request left: the receiver can't have applied it */
    int64_t duration_us;
    char reason[128];      /* "" when ok; "HTTP 503", "connection refused by 10.0.0.1:80", ... */
    struct bytes response; /* the start of a failed answer's body, at most SINK_RESPONSE_KEPT bytes; absent
                              when there was none. Valid until done() returns */
};
enum { SINK_RESPONSE_KEPT = 1024 };

/* One attempt. Made by lanes, handed to deliver_start, handed back by done(); lanes frees it. */
struct attempt {
    struct list node;          /* of whoever holds it */
    struct envelope *envelope; /* a reference that the attempt owns */
    struct sink *sink;
    uint32_t number; /* 1: the first */
    bool ordered;    /* the fields down to `late` are for ordered rows */
    uint8_t lane[16];
    struct bytes key; /* what the sink receives; memory of the attempt's maker, until done() */
    struct uuid epoch;
    uint64_t previous_seq; /* last ok of the lane; 0: not known */
    uint32_t skipped;      /* dead letters of the lane */
    bool late;
    bool replayed;
    struct uuid replay_id; /* when replayed */
    int64_t timeout_ms;    /* outer bound; 0: the sink's own alone */

    void (*done)(struct attempt *attempt); /* a deliver thread, or at once; `outcome` is filled */
    void *ctx;
    struct outcome outcome;
};

struct sink_header {
    const char *name, *value;
};

/* Everything configuration says about a sink's transport. What it points at is borrowed by the sink for its
 * life. */
struct sink_options {
    const char *type; /* "http" "log" */
    const char *source, *name;
    const char *header_prefix; /* "lanegate": headers are x-lanegate-* */

    /* http */
    const char *url;
    const char *method;
    const struct bytes *secrets; /* decoded key bytes, newest first; signs when there is one */
    size_t secret_count;
    const struct sink_header *headers;
    size_t header_count;
    const char *tls_ca, *tls_cert, *tls_key; /* paths or NULL */
    int64_t timeout_ms;
    const int *refused; /* statuses */
    size_t refused_count;
    const char *proxy;                  /* NULL: none, whatever the environment says */
    const char *const *forward_headers; /* names, or NULL: all but the forbidden ones */
    size_t forward_count;

    /* The sink is closed: what it borrowed may go. On the thread that closed it; NULL: nobody asks. */
    void (*released)(void *ctx);
    void *ctx;
};

struct deliver;
struct egress_rules;
struct sink;

/* One row of the table of sink types (deliver.c): what a new type must bring. */
struct sink_type {
    const char *name;
    /* INVALID or REFUSED with a sentence when the options can be seen to be refused (scheme, literal address,
     * unreadable file). Opens nothing. */
    enum status (*check)(const struct sink_options *options, const struct egress_rules *egress,
                         struct error *err);
    /* The options were checked. */
    enum status (*open)(struct deliver *deliver, const struct sink_options *options, struct sink **out,
                        struct error *err);
    void (*close)(struct sink *sink); /* no attempt is running */
    /* On a deliver loop. Ends in attempt->done() exactly once, now or later, within attempt->timeout_ms. */
    void (*start)(struct sink *sink, unsigned loop, struct attempt *attempt);
};

#endif
