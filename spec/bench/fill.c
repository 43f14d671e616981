/* Fills a data directory through the store room with hooks that are owed to one ordered sink, as a gateway
 * whose receiver was down would leave it.
 *
 *     bench_fill DIR SOURCE SINK ROWS LANES [body bytes=128]
 *
 * Hook n has the key cus_ and n % LANES in seven digits. One row a hook. Prints how long it took. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order/order.h"
#include "store/store.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

enum { OUTSTANDING = 16384, KEY_SIZE = 16 };

/* A hook that is on its way, and its row. */
struct slot {
    struct store_hook hook;
    struct store_row row;
    char key[KEY_SIZE];
    struct slot *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static struct slot *slots_free;
static size_t slots_out;

static void put_slot(struct slot *slot)
{
    slot->next = slots_free;
    slots_free = slot;
}

static struct slot *take_slot(void)
{
    pthread_mutex_lock(&lock);
    while (!slots_free)
        pthread_cond_wait(&freed, &lock);
    struct slot *slot = slots_free;
    slots_free = slot->next;
    slots_out++;
    pthread_mutex_unlock(&lock);
    return slot;
}

static void done(struct store_hook *hook, enum status status)
{
    if (status != STATUS_OK) {
        fprintf(stderr, "fill: a hook was answered %s\n", status_name(status));
        exit(1);
    }
    envelope_unref(hook->envelope);
    pthread_mutex_lock(&lock);
    put_slot(LIST_OWNER(hook, struct slot, hook));
    slots_out--;
    pthread_cond_signal(&freed);
    pthread_mutex_unlock(&lock);
}

static void ignore(void *ctx, struct store_hook *const *hooks, size_t count)
{
    (void)ctx, (void)hooks, (void)count;
}

static struct envelope *make_hook(const char *source, const char *key, size_t body_len)
{
    static const struct header headers[] = {
        {BYTES("Host"), BYTES("127.0.0.1:4000")},
        {BYTES("Content-Type"), BYTES("application/json")},
        {BYTES("User-Agent"), BYTES("bench")},
    };
    struct envelope *envelope = envelope_new(body_len + 512);
    envelope->received_at_ms = clock_unix_ms();
    envelope->id = uuid_new(envelope->received_at_ms);
    envelope->tenant = BYTES("default");
    envelope->source = bytes_str(source);
    envelope->method = BYTES("POST");
    envelope->path = BYTES("/webhooks/demo");
    envelope->remote_ip = BYTES("127.0.0.1");
    envelope->content_type = BYTES("application/json");
    envelope->headers = headers;
    envelope->header_count = sizeof headers / sizeof headers[0];
    char *body = arena_alloc(envelope->arena, body_len);
    memset(body, ' ', body_len);
    int len = snprintf(body, body_len, "{\"data\":{\"object\":{\"customer\":\"%s\"}}}", key);
    CHECK(len > 0 && (size_t)len < body_len);
    body[len] = ' ';
    envelope->body = bytes_of(body, body_len);
    return envelope;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: bench_fill DIR SOURCE SINK ROWS LANES [body bytes]\n");
        return 2;
    }
    const char *source = argv[2], *sink_name = argv[3];
    uint64_t rows = strtoull(argv[4], NULL, 10), lanes = strtoull(argv[5], NULL, 10);
    size_t body_len = argc > 6 ? strtoul(argv[6], NULL, 10) : 128;
    struct store_options options = {
        .data_dir = argv[1],
        .max_batch = OUTSTANDING / 4, /* larger than a gateway's: it is the syncs that take long */
        .max_batch_bytes = 64 << 20,
        .max_queue = OUTSTANDING,
        .max_queue_bytes = 1 << 30,
        .commit_timeout_ms = 60000,
        .retention_ms = 7 * 86400000LL,
        .committed = ignore,
    };
    struct store *store;
    struct error err = {""};
    uint32_t sink;
    if (lanes == 0 || store_open(&options, &store, &err) != STATUS_OK ||
        store_sink_id(store, source, sink_name, &sink, &err) != STATUS_OK ||
        store_start(store, &err) != STATUS_OK) {
        fprintf(stderr, "fill: %s\n", err.text);
        return 1;
    }
    struct slot *slots = mem_zalloc(OUTSTANDING * sizeof *slots);
    for (size_t i = 0; i < OUTSTANDING; i++)
        put_slot(&slots[i]);

    int64_t began_us = clock_mono_us();
    for (uint64_t n = 0; n < rows; n++) {
        struct slot *slot = take_slot();
        int len = snprintf(slot->key, sizeof slot->key, "cus_%07u", (unsigned)(n % lanes));
        struct bytes key = bytes_of(slot->key, (size_t)len);
        struct lane_id lane = lane_id_of(bytes_str(source), bytes_str(sink_name), key);
        slot->row = (struct store_row){.sink = sink, .ordered = true, .key = key};
        memcpy(slot->row.lane, lane.bytes, sizeof slot->row.lane);
        slot->hook = (struct store_hook){.envelope = make_hook(source, slot->key, body_len),
                                         .rows = &slot->row,
                                         .row_count = 1,
                                         .done = done};
        enum status status = store_commit(store, &slot->hook);
        if (status != STATUS_OK) {
            fprintf(stderr, "fill: store_commit: %s\n", status_name(status));
            return 1;
        }
    }
    pthread_mutex_lock(&lock);
    while (slots_out > 0)
        pthread_cond_wait(&freed, &lock);
    pthread_mutex_unlock(&lock);
    double took_s = (double)(clock_mono_us() - began_us) / 1e6;
    store_stop(store);
    store_close(store);
    printf("filled %llu rows in %llu lanes: %.1f s, %.0f a second\n", (unsigned long long)rows,
           (unsigned long long)(lanes < rows ? lanes : rows), took_s, (double)rows / took_s);
    free(slots);
    return 0;
}
