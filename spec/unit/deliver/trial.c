#include "trial.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/check.h"

struct deliver *trial_room(void)
{
    static struct ip_range loopback;
    CHECK(ip_range_parse("127.0.0.0/8", &loopback, NULL) == STATUS_OK);
    struct deliver_options options = {.threads = 2,
                                      .egress = {.allow_private = {&loopback, 1}, .allow_http = true}};
    struct deliver *deliver;
    struct error err;
    CHECK(deliver_open(&options, &deliver, &err) == STATUS_OK);
    return deliver;
}

struct sink_options trial_options(unsigned port)
{
    static __thread char url[64];
    static const int refused[] = {400, 410, 413, 422};
    snprintf(url, sizeof url, "http://127.0.0.1:%u/hook", port);
    return (struct sink_options){.type = "http",
                                 .source = "stripe",
                                 .name = "billing",
                                 .header_prefix = "lanegate",
                                 .url = url,
                                 .method = "POST",
                                 .timeout_ms = 30000,
                                 .refused = refused,
                                 .refused_count = 4};
}

struct envelope *trial_envelope(const struct header *headers, size_t count, struct bytes body)
{
    struct envelope *e = envelope_new(1024);
    CHECK(uuid_parse(BYTES("01890a5d-ac96-774b-bcce-b302099a8057"), &e->id));
    e->seq = 42;
    e->received_at_ms = 1700000000123;
    e->tenant = arena_copy(e->arena, BYTES("acme"));
    e->source = arena_copy(e->arena, BYTES("stripe"));
    e->method = arena_copy(e->arena, BYTES("POST"));
    e->path = arena_copy(e->arena, BYTES("/webhooks/stripe"));
    e->verification = VERIFICATION_OK;
    struct header *copies = arena_alloc(e->arena, (count + 1) * sizeof *copies);
    for (size_t i = 0; i < count; i++) {
        copies[i] =
            (struct header){arena_copy(e->arena, headers[i].name), arena_copy(e->arena, headers[i].value)};
        if (bytes_eq_nocase(copies[i].name, BYTES("content-type")))
            e->content_type = copies[i].value;
    }
    e->headers = copies;
    e->header_count = count;
    e->body = arena_copy(e->arena, body);
    return e;
}

static void on_done(struct attempt *attempt)
{
    struct trial *trial = attempt->ctx;
    pthread_mutex_lock(&trial->lock);
    CHECK(!trial->ended);
    if (attempt->outcome.response.at)
        memcpy(trial->response, attempt->outcome.response.at, attempt->outcome.response.len);
    trial->ended = true;
    pthread_cond_signal(&trial->changed);
    pthread_mutex_unlock(&trial->lock);
}

void trial_init(struct trial *trial, struct sink *sink, struct envelope *envelope)
{
    memset(trial, 0, sizeof *trial);
    pthread_mutex_init(&trial->lock, NULL);
    pthread_cond_init(&trial->changed, NULL);
    trial->attempt.envelope = envelope;
    trial->attempt.sink = sink;
    trial->attempt.number = 1;
    trial->attempt.timeout_ms = 30000;
    trial->attempt.done = on_done;
    trial->attempt.ctx = trial;
}

void trial_start(struct trial *trial, struct deliver *deliver)
{
    struct list attempts = LIST_INIT(attempts);
    trial->ended = false;
    list_append(&attempts, &trial->attempt.node);
    deliver_start(deliver, &attempts);
}

const struct outcome *trial_wait(struct trial *trial)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 60;
    pthread_mutex_lock(&trial->lock);
    while (!trial->ended)
        CHECK(pthread_cond_timedwait(&trial->changed, &trial->lock, &deadline) == 0);
    pthread_mutex_unlock(&trial->lock);
    return &trial->attempt.outcome;
}

void trial_end(struct trial *trial)
{
    envelope_unref(trial->attempt.envelope);
    pthread_mutex_destroy(&trial->lock);
    pthread_cond_destroy(&trial->changed);
}

struct outcome trial_once(struct deliver *deliver, const struct sink_options *options)
{
    struct sink *sink;
    struct error err;
    if (sink_open(deliver, options, &sink, &err) != STATUS_OK)
        fprintf(stderr, "%s\n", err.text), check_failed(__FILE__, __LINE__, "the sink opens");
    struct trial trial;
    trial_init(&trial, sink, trial_envelope(NULL, 0, BYTES("{\"a\":1}")));
    trial_start(&trial, deliver);
    struct outcome outcome = *trial_wait(&trial);
    outcome.response = BYTES_NONE;
    trial_end(&trial);
    sink_close(sink);
    return outcome;
}
