#include "cli/delivery.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/digest.h"
#include "util/jsonw.h"
#include "util/units.h"

static int64_t unix_minus_mono_us;

static void set_clock(void)
{
    unix_minus_mono_us = clock_unix_ms() * 1000 - clock_mono_us();
}

int64_t delivery_clock_us(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_clock);
    return clock_mono_us() + unix_minus_mono_us;
}

/* The value of x-PREFIX-NAME; absent when there is none. */
static struct bytes header(const struct http_request *request, const char *prefix, const char *name)
{
    char full[128];
    int len = snprintf(full, sizeof full, "x-%s-%s", prefix, name);
    for (size_t i = 0; i < request->header_count; i++)
        if (bytes_eq_nocase(request->headers[i].name, bytes_of(full, (size_t)len)))
            return request->headers[i].value;
    return BYTES_NONE;
}

struct delivery *delivery_read(const struct http_request *request, const char *prefix)
{
    struct arena *arena = arena_new(1024);
    struct delivery *d = arena_zalloc(arena, sizeof *d);
    d->arena = arena;
    d->started_us = delivery_clock_us();
    d->exchange = request->exchange;
    d->path = arena_copy(arena, request->target);
    const struct {
        const char *name;
        struct bytes *to;
    } wanted[] = {
        {"source", &d->source},
        {"tenant", &d->tenant},
        {"lane", &d->lane},
        {"epoch", &d->epoch},
        {"seq", &d->seq},
        {"previous-seq", &d->previous_seq},
        {"skipped", &d->skipped},
        {"replay-id", &d->replay_id},
        {"id", &d->id},
        {"attempt", &d->attempt},
        {"idempotency-key", &d->idempotency_key},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        *wanted[i].to = arena_copy(arena, header(request, prefix, wanted[i].name));
    if (d->id.at && !d->tenant.at)
        d->tenant = BYTES("default"); /* not named under the prefix "ankusa" */
    d->late = bytes_eq(header(request, prefix, "late"), BYTES("true"));

    struct bytes key = header(request, prefix, "ordering-key");
    struct buf decoded = {0};
    buf_put(&decoded, "", 0); /* an empty key is a key */
    if (key.at && !percent_decode(&decoded, key)) {
        buf_clear(&decoded);
        buf_putb(&decoded, key);
    }
    d->key = key.at ? arena_copy(arena, buf_bytes(&decoded)) : BYTES_NONE;
    buf_free(&decoded);

    uint8_t digest[SHA256_SIZE];
    sha256(&request->body, 1, digest);
    hex_encode(digest, sizeof digest, d->body_sha256);
    struct bytes said = header(request, prefix, "body-sha256");
    d->intact = !said.at || bytes_eq_nocase(said, bytes_str(d->body_sha256));
    return d;
}

void delivery_free(struct delivery *d)
{
    arena_free(d->arena);
}

/* A header that should be a number, as one; null when it is none. */
static void put_number(struct jsonw *w, const char *name, struct bytes text)
{
    int64_t n;
    if (text.at && units_parse_u63(text, &n))
        jsonw_int(w, name, n);
    else
        jsonw_null(w, name);
}

void delivery_write_json(const struct delivery *d, struct buf *out)
{
    struct jsonw w = jsonw_on(out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "event", "delivery");
    jsonw_int(&w, "ts", d->finished_us / 1000);
    jsonw_bytes(&w, "source", d->source);
    jsonw_bytes(&w, "tenant", d->tenant);
    jsonw_bytes_percent(&w, "key", d->key);
    jsonw_bytes(&w, "lane", d->lane);
    jsonw_bytes(&w, "epoch", d->epoch);
    put_number(&w, "seq", d->seq);
    put_number(&w, "previous_seq", d->previous_seq);
    put_number(&w, "skipped", d->skipped);
    jsonw_bool(&w, "late", d->late);
    jsonw_bytes(&w, "replay_id", d->replay_id);
    jsonw_bytes(&w, "id", d->id);
    jsonw_bytes(&w, "idempotency_key", d->idempotency_key);
    put_number(&w, "attempt", d->attempt);
    jsonw_int(&w, "status", d->status);
    jsonw_int(&w, "started_ms", d->started_us / 1000);
    jsonw_int(&w, "finished_ms", d->finished_us / 1000);
    jsonw_int(&w, "service_us", d->finished_us - d->started_us);
    jsonw_str(&w, "body_sha256", d->body_sha256);
    jsonw_bool(&w, "intact", d->intact);
    jsonw_bytes(&w, "path", d->path);
    jsonw_end_object(&w);
    buf_putc(out, '\n');
}

/* "12:00:01.123  stripe cus_1  seq 42  attempt 1  -> 200 (3 ms)" */
void delivery_write_text(const struct delivery *d, struct buf *out)
{
    time_t s = (time_t)(d->started_us / 1000000);
    struct tm tm;
    localtime_r(&s, &tm);
    buf_putf(out, "%02d:%02d:%02d.%03d  ", tm.tm_hour, tm.tm_min, tm.tm_sec,
             (int)(d->started_us / 1000 % 1000));
    percent_encode(out, d->source.at ? d->source : d->path);
    if (d->key.at) {
        buf_putc(out, ' ');
        percent_encode(out, d->key);
    }
    if (d->seq.at)
        buf_puts(out, "  seq "), percent_encode(out, d->seq);
    if (d->attempt.at)
        buf_puts(out, "  attempt "), percent_encode(out, d->attempt);
    if (d->late)
        buf_puts(out, "  late");
    if (d->replay_id.at)
        buf_puts(out, "  replay");
    if (!d->intact)
        buf_puts(out, "  BODY DIFFERS FROM ITS DIGEST");
    char took[32];
    units_format_ms((d->finished_us - d->started_us) / 1000, took);
    if (d->status)
        buf_putf(out, "  -> %d (%s)\n", d->status, took);
    else
        buf_putf(out, "  -> no answer (%s)\n", took);
}
