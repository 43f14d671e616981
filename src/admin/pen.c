/* GET /v1/quarantine: what failed verification, oldest first; one of them whole; and what people do to them:
 * POST /v1/quarantine/release and /discard. A call does at most PEN_MOST and tells where the next goes on. */
#include <stdio.h>
#include <stdlib.h>

#include "admin/admin_priv.h"
#include "replay/replay.h"
#include "util/mem.h"

enum { PEN_MOST = REPLAY_RELEASE_MAX };

struct picked {
    struct store_pen_view entries[PEN_MOST];
    size_t count;
};

static struct store_pen_filter filter_of(const struct ask *ask, size_t limit)
{
    const struct query *query = &ask->query;
    return (struct store_pen_filter){.tenant = query->tenant.at,
                                     .source = query->source.at,
                                     .failure = query->failure,
                                     .hook = query->has_hook ? &query->hook : NULL,
                                     .since_ms = query->since_ms,
                                     .until_ms = query->until_ms,
                                     .after_id = query->cursor.seq,
                                     .limit = limit};
}

static void put_entry(struct ask *ask, const struct store_pen_view *entry)
{
    struct jsonw *w = &ask->json;
    char id[UUID_TEXT];
    uuid_format(&entry->hook, id);
    jsonw_str(w, "id", id);
    jsonw_str(w, "tenant", entry->tenant);
    jsonw_str(w, "source", entry->source);
    jsonw_bytes(w, "reason", entry->reason);
    ask_time(ask, "received_at", entry->received_at_ms);
    jsonw_uint(w, "size", entry->size);
}

static bool write_entry(void *ctx, const struct store_pen_view *entry)
{
    struct ask *ask = ctx;
    jsonw_object(&ask->json, NULL);
    put_entry(ask, entry);
    jsonw_end_object(&ask->json);
    return true;
}

static void put_next(struct ask *ask, const struct store_pen_filter *filter, bool end)
{
    ask_next_cursor(ask, CURSOR_PEN, end ? NULL : &(struct cursor){.seq = filter->after_id});
}

static bool count_one(void *ctx, const struct store_pen_view *entry)
{
    (void)entry;
    ++*(uint64_t *)ctx;
    return true;
}

/* How many match, over all pages. The index has nothing but ids, so that a filter looks at every entry:
 * beyond PEN_COUNT_LOOKS slices of the walk nobody gets a number, and the list says null. */
static void put_total(struct ask *ask)
{
    enum { PEN_COUNT_LOOKS = 32 };
    enum { NO_FILTERS = QUERY_LIMIT | QUERY_PEN_CURSOR };
    if (!(ask->query.given & ~(uint64_t)NO_FILTERS)) {
        jsonw_uint(&ask->json, "total", store_pen_sums(ask->admin->options.store, NULL, NULL));
        return;
    }
    struct store_pen_filter filter = filter_of(ask, SIZE_MAX);
    filter.after_id = 0;
    uint64_t total = 0;
    bool end = false;
    enum status status = STATUS_OK;
    for (int look = 0; look < PEN_COUNT_LOOKS && status == STATUS_OK && !end; look++)
        status = store_walk_pen(ask->reader, &filter, count_one, &total, &end);
    if (end && status == STATUS_OK)
        jsonw_uint(&ask->json, "total", total);
    else
        jsonw_null(&ask->json, "total");
}

void get_pen(struct ask *ask)
{
    struct store_pen_filter filter = filter_of(ask, ask->query.limit);
    bool end = true;
    jsonw_object(&ask->json, NULL);
    jsonw_array(&ask->json, "entries");
    enum status status = store_walk_pen(ask->reader, &filter, write_entry, ask, &end);
    jsonw_end_array(&ask->json);
    put_total(ask);
    put_next(ask, &filter, end);
    jsonw_end_object(&ask->json);
    if (status != STATUS_OK)
        ask_store_failed(ask, status);
}

/* ---- one ---- */

static bool pick(void *ctx, const struct store_pen_view *entry)
{
    struct picked *picked = ctx;
    picked->entries[picked->count] = *entry;
    picked->entries[picked->count++].reason = BYTES_NONE; /* borrowed */
    return true;
}

enum status ask_pen_find(struct ask *ask, const struct uuid *hook, uint64_t *id)
{
    struct picked one = {.count = 0};
    struct store_pen_filter filter = {.hook = hook, .limit = 1};
    bool end;
    enum status status = store_walk_pen(ask->reader, &filter, pick, &one, &end);
    if (status != STATUS_OK || one.count == 0)
        return status == STATUS_OK ? STATUS_NOT_FOUND : status;
    *id = one.entries[0].id;
    return STATUS_OK;
}

static struct envelope *named(struct ask *ask)
{
    struct uuid hook;
    uint64_t id;
    struct envelope *envelope = NULL;
    enum status status = uuid_parse(ask->parts[0], &hook) ? STATUS_OK : STATUS_NOT_FOUND;
    if (status == STATUS_OK)
        status = ask_pen_find(ask, &hook, &id);
    if (status == STATUS_OK)
        status = store_read_pen(ask->reader, id, &envelope);
    if (status == STATUS_NOT_FOUND)
        ask_not_found(ask, "hook in quarantine");
    else if (status != STATUS_OK)
        ask_store_failed(ask, status);
    return envelope;
}

void get_penned(struct ask *ask)
{
    struct envelope *envelope = named(ask);
    if (!envelope)
        return;
    jsonw_object(&ask->json, NULL);
    ask_write_envelope(ask, envelope);
    jsonw_end_object(&ask->json);
    envelope_unref(envelope);
}

void get_penned_body(struct ask *ask)
{
    struct envelope *envelope = named(ask);
    if (!envelope)
        return;
    ask->type = "application/octet-stream";
    ask->body.max = envelope->body.len + 1;
    buf_putb(&ask->body, envelope->body);
    envelope_unref(envelope);
}

/* ---- acts ---- */

struct tally {
    uint64_t matched, done, duplicates, failed, verified;
    const char *stopped;
};

static bool is_bounded(struct ask *ask)
{
    enum { NO_FILTERS = QUERY_REASON | QUERY_DRY_RUN | QUERY_ALL | QUERY_PEN_CURSOR };
    if (ask->query.all || ask->query.dry_run || (ask->query.given & ~(uint64_t)NO_FILTERS))
        return true;
    ask_refuse_filter(ask, &(struct query_fault){"bad_filter", BYTES("all"),
                                                 "true where no filter is: all of the quarantine is meant"});
    return false;
}

static void put_word(struct buf *out, const char *name, struct bytes value)
{
    if (!value.at)
        return;
    buf_putf(out, "%s%s=", out->len ? " " : "", name);
    percent_encode(out, value);
}

static void audit(struct ask *ask, const char *what, const struct tally *tally)
{
    const struct query *query = &ask->query;
    struct buf target = {0};
    char hook[UUID_TEXT], since[32], until[32];
    uuid_format(&query->hook, hook);
    snprintf(since, sizeof since, "%lld", (long long)query->since_ms);
    snprintf(until, sizeof until, "%lld", (long long)query->until_ms);
    put_word(&target, "tenant", query->tenant);
    put_word(&target, "source", query->source);
    put_word(&target, "hook", query->has_hook ? bytes_str(hook) : BYTES_NONE);
    put_word(&target, "failure", query->failure);
    put_word(&target, "since", query->since_ms ? bytes_str(since) : BYTES_NONE);
    put_word(&target, "until", query->until_ms ? bytes_str(until) : BYTES_NONE);
    if (!target.len)
        buf_puts(&target, "all");
    ask_audit(ask, what, buf_bytes(&target), (int64_t)tally->matched, (int64_t)tally->done);
    buf_free(&target);
}

static void count_release(struct ask *ask, const struct replay_release *release, struct tally *tally)
{
    switch (release->outcome) {
    case REPLAY_RELEASE_VERIFIED:
        tally->verified++;
        break;
    case REPLAY_RELEASE_TWIN:
        tally->duplicates++;
        tally->done++;
        break;
    case REPLAY_RELEASE_DONE:
        tally->done++;
        break;
    case REPLAY_RELEASE_FAILED:
        tally->failed++;
        if (!ask->query.dry_run)
            store_pen_reason(ask->admin->options.store, release->pen_id, release->reason);
        break;
    case REPLAY_RELEASE_GONE:
        break;
    case REPLAY_RELEASE_STOPPED:
        tally->stopped = release->reason;
        break;
    }
}

static enum status release(struct ask *ask, const struct picked *picked, struct tally *tally)
{
    const struct admin_options *options = &ask->admin->options;
    struct replay_release *all = mem_zalloc(PEN_MOST * sizeof *all);
    size_t count = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < picked->count && status == STATUS_OK; i++) {
        all[count].pen_id = picked->entries[i].id;
        status = store_read_pen(ask->reader, all[count].pen_id, &all[count].envelope);
        count += status == STATUS_OK;
        if (status == STATUS_NOT_FOUND) /* somebody was faster */
            status = STATUS_OK;
    }
    if (status == STATUS_OK && count > 0)
        options->release(options->ctx, all, count, 0, ask->query.dry_run);
    for (size_t i = 0; i < count; i++) {
        if (status == STATUS_OK)
            count_release(ask, &all[i], tally);
        envelope_unref(all[i].envelope);
    }
    free(all);
    return status;
}

static enum status discard(struct ask *ask, const struct picked *picked, struct tally *tally)
{
    for (size_t i = 0; i < picked->count && !ask->query.dry_run; i++) {
        store_pen_discard(ask->admin->options.store, picked->entries[i].id);
        tally->done++;
    }
    return STATUS_OK;
}

static void act_on_pen(struct ask *ask, const char *what,
                       enum status (*act)(struct ask *ask, const struct picked *picked, struct tally *tally))
{
    struct picked *picked = mem_zalloc(sizeof *picked);
    struct store_pen_filter filter = filter_of(ask, PEN_MOST);
    struct tally tally = {0};
    bool end = true, releases = act == release;
    enum status status = STATUS_OK;
    if (!is_bounded(ask))
        goto out;
    if (!store_flush(ask->admin->options.store))
        status = STATUS_UNAVAILABLE;
    if (status == STATUS_OK)
        status = store_walk_pen(ask->reader, &filter, pick, picked, &end);
    if (status == STATUS_OK)
        status = act(ask, picked, &tally);
    tally.matched = picked->count;
    if (status == STATUS_OK && !ask->query.dry_run && picked->count > 0) {
        audit(ask, what, &tally);
        status = store_flush(ask->admin->options.store) ? STATUS_OK : STATUS_UNAVAILABLE;
    }
    if (status != STATUS_OK) {
        ask_store_failed(ask, status);
        goto out;
    }
    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    if (ask->query.dry_run)
        jsonw_bool(w, "dry_run", true);
    jsonw_uint(w, "matched", tally.matched);
    jsonw_uint(w, "done", tally.done);
    if (releases && ask->query.dry_run)
        jsonw_uint(w, "verified", tally.verified);
    if (releases) {
        jsonw_uint(w, "duplicates", tally.duplicates);
        jsonw_uint(w, "failed", tally.failed);
        jsonw_str(w, "stopped", tally.stopped);
    }
    put_next(ask, &filter, end);
    jsonw_end_object(w);

out:
    free(picked);
}

void post_pen_release(struct ask *ask)
{
    act_on_pen(ask, "quarantine.release", release);
}

void post_pen_discard(struct ask *ask)
{
    act_on_pen(ask, "quarantine.discard", discard);
}
