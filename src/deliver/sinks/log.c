/* The log sink: says that a hook came this far, never what was in it. Always ok. */
#include <stdlib.h>

#include "deliver/deliver_priv.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/mem.h"

struct sink_log {
    struct sink base;
    const char *name;
};

static enum status log_check(const struct sink_options *options, const struct egress_rules *egress,
                             struct error *err)
{
    (void)options, (void)egress, (void)err; /* nothing about it can be wrong */
    return STATUS_OK;
}

static enum status log_open(struct deliver *deliver, const struct sink_options *options, struct sink **out,
                            struct error *err)
{
    (void)err;
    struct sink_log *sink = mem_zalloc(sizeof *sink);
    sink_init(&sink->base, &sink_type_log, deliver, options);
    sink->name = options->name;
    *out = &sink->base;
    return STATUS_OK;
}

static void log_close(struct sink *base)
{
    free(base);
}

static void log_start(struct sink *base, unsigned loop, struct attempt *attempt)
{
    (void)loop;
    const struct envelope *envelope = attempt->envelope;
    char id[UUID_TEXT];
    uuid_format(&envelope->id, id);
    attempt->outcome = (struct outcome){.cls = OUTCOME_OK};
    int64_t started_us = clock_mono_us();
    log_event(LOG_INFO, "delivery", LOG_STR("id", id), LOG_INT("seq", envelope->seq),
              LOG_BYTES("tenant", envelope->tenant), LOG_BYTES("source", envelope->source),
              LOG_STR("sink", ((struct sink_log *)base)->name),
              LOG_BYTES("key", attempt->ordered ? attempt->key : BYTES_NONE),
              LOG_INT("attempt", attempt->number), LOG_INT("body_bytes", envelope->body.len));
    attempt->outcome.duration_us = clock_mono_us() - started_us;
    attempt_finish(attempt);
}

const struct sink_type sink_type_log = {
    .name = "log",
    .check = log_check,
    .open = log_open,
    .close = log_close,
    .start = log_start,
};
