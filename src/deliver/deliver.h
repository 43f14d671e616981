/* Workers that make attempts: M loops, each with its own connections. Takes attempts, gives outcomes; knows
 * neither the store nor lanes. */
#ifndef DELIVER_DELIVER_H
#define DELIVER_DELIVER_H

#include "deliver/egress.h"
#include "deliver/sink.h"
#include "metrics/metrics.h"
#include "util/arena.h"

struct deliver_options {
    unsigned threads;           /* at least 1 */
    struct egress_rules egress; /* copied */
    struct metrics *metrics;    /* may be NULL; counts dispatch_attempt_duration_seconds and nothing else */
};

enum status deliver_open(const struct deliver_options *options, struct deliver **out, struct error *err);
/* `round` is called on each loop's thread at the end of each of its rounds, behind the done() of every
 * attempt that ended in it; several loops may call it at the same time. It must not block. What it gives to
 * deliver_start begins without a change of thread, as far as it falls to the loop that called: that is what
 * it is for. Once, before the first deliver_start; called until deliver_stop has returned and never after it.
 */
typedef void (*deliver_round)(void *ctx);
void deliver_on_round(struct deliver *deliver, deliver_round round, void *ctx);
/* New rules, copied. Any thread. They hold for every request that is sent from now on, also on a connection
 * that is open already; sinks that they refuse stay open and give outcomes of class config. */
void deliver_set_egress(struct deliver *deliver, const struct egress_rules *rules);
/* Starts no new attempt, ends the running ones as transient ("shutting down") when `deadline_ms`
 * (util/clock.h, monotonic) has passed, joins the loops. Every attempt's done() was called when it returns;
 * what deliver_start gets from now on is done at once, as transient. Sinks may still be closed. */
void deliver_stop(struct deliver *deliver, int64_t deadline_ms);
/* After its sinks. Stops at once when nobody has called deliver_stop. */
void deliver_close(struct deliver *deliver);

/* What can be seen to be wrong with a sink before anything is opened: type, url, headers, files. `err` says
 * it without the option's path, which the caller knows: "url: must ...". For the load of a configuration. */
enum status sink_options_check(const struct sink_options *options, const struct egress_rules *egress,
                               struct error *err);

/* Checks, then opens: one reference, the caller's. Options are copied, what they point at is borrowed for the
 * sink's life. */
enum status sink_open(struct deliver *deliver, const struct sink_options *options, struct sink **out,
                      struct error *err);
/* One more reference. Whoever makes attempts holds one for each that is under way. Any thread. */
struct sink *sink_ref(struct sink *sink);
/* Gives a reference back; the last one closes the sink. NULL is fine. Any thread. */
void sink_close(struct sink *sink);

/* Any thread; never blocks. Attempts (a list of attempt.node) are spread over the loops; one wake a batch. */
void deliver_start(struct deliver *deliver, struct list *attempts);

/* The names of all types, NULL-terminated. */
const char *const *sink_type_names(void);

/* A signing secret as configuration has it: "whsec_" and base64, else the text's own bytes. INVALID, with the
 * format it should have and never the secret, when it is empty or blank, has blanks or line breaks at its
 * ends, or does not decode. */
enum status sink_secret_decode(struct bytes text, struct arena *arena, struct bytes *key, struct error *err);

#endif
