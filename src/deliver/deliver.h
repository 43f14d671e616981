/* Workers that make attempts: M loops, each with its own connections. Takes attempts, gives outcomes; knows neither
 * the store nor lanes. */
#ifndef DELIVER_DELIVER_H
#define DELIVER_DELIVER_H

#include "deliver/sink.h"
#include "metrics/metrics.h"

/* Where connections may go. Judged at the address actually connected to, at every connection. */
struct egress_cidr {
    uint8_t address[16]; /* v4 as v4-mapped */
    unsigned prefix_len; /* 0..128, of the mapped form */
};
struct egress_rules {
    const struct egress_cidr *allow_private;
    size_t allow_count;
    bool allow_http;
};
/* "10.0.0.0/8", "::1/128", "127.0.0.1"; INVALID with a sentence. */
enum status egress_cidr_parse(const char *text, struct egress_cidr *out, struct error *err);

struct deliver_options {
    unsigned threads; /* at least 1 */
    struct egress_rules egress; /* copied */
    struct metrics *metrics; /* may be NULL */
};

enum status deliver_open(const struct deliver_options *options, struct deliver **out, struct error *err);
/* Starts no new attempt, ends the running ones as transient ("shutting down") when `deadline_ms` (util/clock.h,
 * monotonic) has passed, joins the loops. Every attempt's done() was called when it returns. */
void deliver_stop(struct deliver *deliver, int64_t deadline_ms);
void deliver_close(struct deliver *deliver); /* after its sinks */

enum status sink_open(struct deliver *deliver, const struct sink_options *options, struct sink **out,
                      struct error *err);
void sink_close(struct sink *sink);

/* Any thread; never blocks. Attempts (a list of attempt.node) are spread over the loops; one wake a batch. */
void deliver_start(struct deliver *deliver, struct list *attempts);

/* The names of all types, NULL-terminated. */
const char *const *sink_type_names(void);

#endif
