#include "store_rig.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

char *rig_make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = mem_format("%s/lanegate-spec-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(dir) != NULL);
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void rig_remove_dir(char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(dir);
}

static void copy_file(const char *from_dir, const char *to_dir, const char *name)
{
    char *from = mem_format("%s/%s", from_dir, name), *to = mem_format("%s/%s", to_dir, name);
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
    char block[65536];
    for (size_t n; in && (n = fread(block, 1, sizeof block, in)) > 0;)
        CHECK(out && fwrite(block, 1, n, out) == n);
    if (in)
        fclose(in);
    if (out)
        CHECK(fclose(out) == 0);
    free(from);
    free(to);
}

char *rig_copy_dir(const char *dir)
{
    char *copy = rig_make_dir();
    copy_file(dir, copy, "store.db");
    copy_file(dir, copy, "store.db-wal");
    return copy;
}

struct store_options rig_options(const char *dir)
{
    return (struct store_options){
        .data_dir = dir,
        .max_batch = 1024,
        .max_batch_bytes = 8 << 20,
        .max_queue = 10000,
        .max_queue_bytes = 256 << 20,
        .commit_timeout_ms = 15000,
        .retention_ms = 7 * 86400000LL,
        .pen_retention_ms = 7 * 86400000LL,
        .max_dedupe_keys = 2000000,
    };
}

struct store *rig_open(const struct store_options *options)
{
    struct error err = {""};
    struct store *store;
    if (store_open(options, &store, &err) != STATUS_OK) {
        fprintf(stderr, "store_open: %s\n", err.text);
        abort();
    }
    return store;
}

struct store *rig_start(const struct store_options *options)
{
    struct error err = {""};
    struct store *store = rig_open(options);
    if (store_start(store, &err) != STATUS_OK) {
        fprintf(stderr, "store_start: %s\n", err.text);
        abort();
    }
    return store;
}

static void done(struct store_hook *hook, enum status status)
{
    struct rig_hook *rig = LIST_OWNER(hook, struct rig_hook, hook);
    rig->status = status;
    rig->seq = status == STATUS_OK ? hook->envelope->seq : 0;
    __atomic_fetch_add(&rig->done, 1, __ATOMIC_RELEASE);
}

struct rig_hook *rig_hook_new(size_t body_len)
{
    static const struct header headers[] = {
        {BYTES("Host"), BYTES("127.0.0.1:4000")},
        {BYTES("User-Agent"), BYTES("Shopify-Captain-Hook")},
        {BYTES("Content-Type"), BYTES("application/json")},
        {BYTES("X-Shopify-Topic"), BYTES("orders/create")},
        {BYTES("X-Shopify-Hmac-Sha256"), BYTES("x+mT0R1PkP1Y2yqfVzLbm5UnrjX8W0B6d6yM8hXb0Pk=")},
    };
    struct rig_hook *rig = mem_zalloc(sizeof *rig);
    struct envelope *envelope = envelope_new(body_len + 1024);
    envelope->received_at_ms = clock_unix_ms();
    envelope->id = uuid_new(envelope->received_at_ms);
    envelope->tenant = BYTES("default");
    envelope->source = BYTES("shop");
    envelope->method = BYTES("POST");
    envelope->path = BYTES("/webhooks/shop");
    envelope->remote_ip = BYTES("127.0.0.1");
    envelope->content_type = BYTES("application/json");
    envelope->headers = headers;
    envelope->header_count = sizeof headers / sizeof headers[0];
    char *body = arena_alloc(envelope->arena, body_len);
    memset(body, 'b', body_len);
    envelope->body = bytes_of(body, body_len);
    rig->hook.envelope = envelope;
    rig->hook.rows = rig->rows;
    rig->hook.done = done;
    return rig;
}

void rig_hook_row(struct rig_hook *rig, uint32_t sink, const char *key)
{
    CHECK(rig->hook.row_count < sizeof rig->rows / sizeof rig->rows[0]);
    struct store_row *row = &rig->rows[rig->hook.row_count++];
    *row = (struct store_row){.sink = sink, .ordered = key != NULL, .key = bytes_str(key)};
    if (key)
        memcpy(row->lane, key, strnlen(key, sizeof row->lane));
}

void rig_hook_free(struct rig_hook *rig)
{
    envelope_unref(rig->hook.envelope);
    free(rig);
}

bool rig_wait_done(struct rig_hook *rig)
{
    return RIG_WAIT(__atomic_load_n(&rig->done, __ATOMIC_ACQUIRE) > 0);
}

enum status rig_commit(struct store *store, struct rig_hook *rig)
{
    enum status status = store_commit(store, &rig->hook);
    if (status != STATUS_OK)
        return status;
    CHECK(rig_wait_done(rig));
    return rig->status;
}

uint64_t rig_put(struct store *store, uint32_t sink, size_t body_len)
{
    struct rig_hook *rig = rig_hook_new(body_len);
    rig_hook_row(rig, sink, NULL);
    rig_commit(store, rig);
    uint64_t seq = rig->seq;
    rig_hook_free(rig);
    return seq;
}

uint64_t rig_put_many(struct store *store, uint32_t sink, size_t body_len, size_t count)
{
    struct rig_hook **hooks = mem_alloc(count * sizeof *hooks);
    for (size_t i = 0; i < count; i++) {
        hooks[i] = rig_hook_new(body_len);
        rig_hook_row(hooks[i], sink, NULL);
        CHECK(store_commit(store, &hooks[i]->hook) == STATUS_OK);
    }
    uint64_t first = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(rig_wait_done(hooks[i]) && hooks[i]->status == STATUS_OK);
        first = first == 0 ? hooks[i]->seq : first;
        CHECK(hooks[i]->seq == first + i);
        rig_hook_free(hooks[i]);
    }
    free(hooks);
    return first;
}

void rig_change(struct store *store, uint64_t seq, uint32_t sink, enum row_state state, const char *cls)
{
    struct store_change *change = store_change_new();
    change->seq = seq;
    change->sink = sink;
    change->state = state;
    change->cls = cls;
    change->attempts = 1;
    change->at_ms = clock_unix_ms();
    struct list changes = LIST_INIT(changes);
    list_append(&changes, &change->node);
    store_changes(store, &changes);
}
