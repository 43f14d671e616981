/* Into the pen, and out of it. What failed verification is stored as it came, for a person to look at; who
 * lets it go has it verified again, and only then is it a hook. */
#include "ingest/ingest_priv.h"

#include <string.h>

#include "util/check.h"
#include "util/clock.h"
#include "util/jsonw.h"

/* ---- in ---- */

void answer_quarantined(struct http_exchange *exchange, const char *reason)
{
    struct buf body = {0};
    struct jsonw w = jsonw_on(&body);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "status", "quarantined");
    jsonw_str(&w, "reason", reason);
    jsonw_end_object(&w);
    http_answer(exchange, &(struct http_answer){.status = 202, .body = buf_bytes(&body)});
    buf_free(&body);
}

/* ---- out ---- */

struct leaving {
    struct store_hook hook;
    struct batch *batch;
    enum status status;
};

struct batch {
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t waiting;
};

/* The store's writer thread. */
static void left(struct store_hook *hook, enum status status)
{
    struct leaving *leaving = LIST_OWNER(hook, struct leaving, hook);
    struct batch *batch = leaving->batch;
    leaving->status = status;
    pthread_mutex_lock(&batch->lock);
    if (--batch->waiting == 0)
        pthread_cond_signal(&batch->done);
    pthread_mutex_unlock(&batch->lock);
}

static struct entry *entry_of(const struct table *table, const struct envelope *envelope)
{
    struct entry *entry = entry_find(table, envelope->source);
    bool owns = entry && (entry->source->shared || bytes_eq(entry->tenant, envelope->tenant));
    return owns ? entry : NULL;
}

/* What has become of the signature since; true when it is good. */
static bool verify_again(const struct table *table, struct ingest_release *release)
{
    const struct entry *entry = entry_of(table, release->envelope);
    release->outcome = RELEASE_NO_SOURCE;
    release->reason = "source_gone";
    if (!entry)
        return false;
    struct verify_result verified =
        verify(entry->source->verifier, release->envelope, release->envelope->received_at_ms);
    release->outcome = RELEASE_FAILED_AGAIN;
    release->reason = verified.reason;
    if (verified.verification == VERIFICATION_FAILED)
        return false;
    release->envelope->verification = verified.verification;
    release->outcome = RELEASE_VERIFIED;
    return true;
}

static struct leaving *let_go(struct ingest *ingest, const struct table *table,
                              struct ingest_release *release, uint32_t replay, struct batch *batch)
{
    struct envelope *envelope = release->envelope;
    const struct entry *entry = entry_of(table, envelope);
    struct leaving *leaving = arena_zalloc(envelope->arena, sizeof *leaving);
    *leaving = (struct leaving){
        .hook = {.envelope = envelope, .done = left, .pen_id = release->pen_id, .replay = replay},
        .batch = batch};
    hook_keep_stored(envelope, entry->source);
    hook_resolve(entry, &leaving->hook);
    pthread_mutex_lock(&batch->lock);
    batch->waiting++;
    pthread_mutex_unlock(&batch->lock);
    enum status status = store_commit(ingest->options.store, &leaving->hook);
    if (status != STATUS_OK)
        left(&leaving->hook, status);
    return leaving;
}

static void judge(struct ingest *ingest, const struct table *table, struct ingest_release *release,
                  const struct leaving *leaving)
{
    const struct entry *entry = entry_of(table, release->envelope);
    if (leaving->status == STATUS_NOT_FOUND) {
        release->outcome = RELEASE_GONE;
    } else if (leaving->status != STATUS_OK) {
        release->outcome = RELEASE_REFUSED;
        release->reason = leaving->status == STATUS_IO ? refusal_code(REFUSE_STORE_UNAVAILABLE)
                                                       : refusal_code(refusal_of(leaving->status));
    } else {
        bool twin = leaving->hook.twin.found;
        release->outcome = twin ? RELEASE_DUPLICATE : RELEASE_DONE;
        counter_add(twin ? entry->duplicate : entry->released, 1);
        if (!twin)
            publish_accepted(ingest, release->envelope, clock_unix_ms());
    }
}

void ingest_release(struct ingest *ingest, struct ingest_release *releases, size_t count, uint32_t replay,
                    bool dry_run)
{
    CHECK(count <= INGEST_RELEASE_MAX);
    struct leaving *leaving[INGEST_RELEASE_MAX] = {NULL};
    struct current_hold *hold = current_take(&ingest->tables); /* one configuration for all of it */
    const struct table *table = hold->value;
    struct batch batch = {.waiting = 0};
    CHECK(pthread_mutex_init(&batch.lock, NULL) == 0 && pthread_cond_init(&batch.done, NULL) == 0);
    for (size_t i = 0; i < count; i++)
        if (verify_again(table, &releases[i]) && !dry_run)
            leaving[i] = let_go(ingest, table, &releases[i], replay, &batch);
    pthread_mutex_lock(&batch.lock);
    while (batch.waiting > 0)
        pthread_cond_wait(&batch.done, &batch.lock);
    pthread_mutex_unlock(&batch.lock);
    for (size_t i = 0; i < count; i++)
        if (leaving[i])
            judge(ingest, table, &releases[i], leaving[i]);
    pthread_cond_destroy(&batch.done);
    pthread_mutex_destroy(&batch.lock);
    current_drop(&ingest->tables, hold);
}
