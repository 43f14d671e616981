/* The table of sink types, and attempts on their way to the loops. */
#include "deliver/deliver.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deliver/deliver_priv.h"
#include "deliver/loop.h"
#include "util/check.h"
#include "util/mem.h"

static const struct sink_type *const types[] = {
    &sink_type_http,
    &sink_type_log,
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

const char *const *sink_type_names(void)
{
    static const char *names[TYPE_COUNT + 1];
    for (size_t i = 0; i < TYPE_COUNT; i++)
        names[i] = types[i]->name;
    return names;
}

static const struct sink_type *type_find(const char *name, struct error *err)
{
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (strcmp(types[i]->name, name) == 0)
            return types[i];
    error_set(err, STATUS_INVALID, "type: no sink is called \"%.60s\"", name);
    return NULL;
}

enum status sink_options_check(const struct sink_options *options, const struct egress_rules *egress,
                               struct error *err)
{
    const struct sink_type *type = type_find(options->type, err);
    return type ? type->check(options, egress, err) : STATUS_INVALID;
}

enum status sink_open(struct deliver *deliver, const struct sink_options *options, struct sink **out,
                      struct error *err)
{
    enum status status = sink_options_check(options, &atomic_load(&deliver->egress)->rules, err);
    if (status != STATUS_OK)
        return status;
    return type_find(options->type, err)->open(deliver, options, out, err);
}

struct sink *sink_ref(struct sink *sink)
{
    atomic_fetch_add_explicit(&sink->refs, 1, memory_order_relaxed);
    return sink;
}

void sink_close(struct sink *sink)
{
    if (!sink || atomic_fetch_sub_explicit(&sink->refs, 1, memory_order_acq_rel) != 1)
        return;
    void (*released)(void *ctx) = sink->released;
    void *ctx = sink->ctx;
    sink->type->close(sink);
    if (released)
        released(ctx);
}

void sink_init(struct sink *sink, const struct sink_type *type, struct deliver *deliver,
               const struct sink_options *options)
{
    *sink = (struct sink){
        .type = type, .deliver = deliver, .refs = 1, .released = options->released, .ctx = options->ctx};
    for (int cls = 0; deliver->metrics && cls < OUTCOME_CLASS_COUNT; cls++)
        sink->duration[cls] = metrics_series3(deliver->metrics, METRIC_DISPATCH_ATTEMPT_DURATION,
                                              options->source, options->name, outcome_class_name(cls));
}

void attempt_finish(struct attempt *attempt)
{
    struct series *duration = attempt->sink->duration[attempt->outcome.cls];
    if (duration)
        histogram_observe(duration, (double)attempt->outcome.duration_us / 1e6);
    attempt->done(attempt);
}

void attempt_turn_away(struct attempt *attempt)
{
    attempt->outcome = (struct outcome){0};
    outcome_set(&attempt->outcome, OUTCOME_TRANSIENT, "shutting down");
    attempt->outcome.cut_off = true;
    attempt_finish(attempt);
}

static void curl_start(void)
{
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

void deliver_set_egress(struct deliver *deliver, const struct egress_rules *rules)
{
    size_t size = rules->allow_private.len * sizeof *rules->allow_private.at;
    struct egress_copy *copy = mem_alloc(sizeof *copy + size);
    copy->rules = *rules;
    copy->rules.allow_private.at = (const struct ip_range *)(copy + 1);
    if (size)
        memcpy(copy + 1, rules->allow_private.at, size);
    copy->older = atomic_load(&deliver->egress);
    while (!atomic_compare_exchange_weak(&deliver->egress, &copy->older, copy))
        ;
}

enum status deliver_open(const struct deliver_options *options, struct deliver **out, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CHECK(options->threads >= 1);
    pthread_once(&once, curl_start);

    struct deliver *deliver = mem_zalloc(sizeof *deliver);
    deliver_set_egress(deliver, &options->egress);
    deliver->metrics = options->metrics;
    deliver->loops = mem_zalloc(options->threads * sizeof(struct loop *));
    CHECK(pthread_mutex_init(&deliver->gate, NULL) == 0);

    for (; deliver->threads < options->threads; deliver->threads++) {
        enum status status = loop_open(deliver, deliver->threads, &deliver->loops[deliver->threads], err);
        if (status != STATUS_OK) {
            deliver_close(deliver);
            return status;
        }
    }
    *out = deliver;
    return STATUS_OK;
}

void deliver_on_round(struct deliver *deliver, deliver_round round, void *ctx)
{
    CHECK(!atomic_load(&deliver->has_round));
    deliver->round = round;
    deliver->round_ctx = ctx;
    atomic_store_explicit(&deliver->has_round, true, memory_order_release);
}

void deliver_stop(struct deliver *deliver, int64_t deadline_ms)
{
    pthread_mutex_lock(&deliver->gate);
    bool first = !deliver->stopped;
    deliver->stopped = true;
    pthread_mutex_unlock(&deliver->gate);
    if (!first)
        return;
    for (unsigned i = 0; i < deliver->threads; i++)
        loop_stop(deliver->loops[i], deadline_ms);
    for (unsigned i = 0; i < deliver->threads; i++)
        loop_join(deliver->loops[i]);
}

void deliver_close(struct deliver *deliver)
{
    if (!deliver)
        return;
    deliver_stop(deliver, 0);
    for (unsigned i = 0; i < deliver->threads; i++)
        loop_close(deliver->loops[i]);
    pthread_mutex_destroy(&deliver->gate);
    for (struct egress_copy *copy = deliver->egress, *older; copy; copy = older) {
        older = copy->older;
        free(copy);
    }
    free(deliver->loops);
    free(deliver);
}

/* A batch is dealt out one by one, beginning where the last one ended. */
static void deal(struct deliver *deliver, struct list *attempts)
{
    enum { HANDS_MAX = 256 };
    struct list hands[HANDS_MAX];
    unsigned count = deliver->threads < HANDS_MAX ? deliver->threads : HANDS_MAX;
    for (unsigned i = 0; i < count; i++)
        list_init(&hands[i]);
    unsigned next = atomic_load_explicit(&deliver->next, memory_order_relaxed);
    struct list *node;
    while ((node = list_pop(attempts)))
        list_append(&hands[next++ % count], node);
    atomic_store_explicit(&deliver->next, next % count, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++)
        loop_post(deliver->loops[i], &hands[i]);
}

void deliver_start(struct deliver *deliver, struct list *attempts)
{
    pthread_mutex_lock(&deliver->gate);
    bool stopped = deliver->stopped;
    if (!stopped)
        deal(deliver, attempts);
    pthread_mutex_unlock(&deliver->gate);
    if (!stopped)
        return;
    struct list *node;
    while ((node = list_pop(attempts)))
        attempt_turn_away(LIST_OWNER(node, struct attempt, node));
}
