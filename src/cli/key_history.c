#include "cli/key_history.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/hook_fetch.h"
#include "cli/key_gate.h"
#include "cli/show.h"
#include "util/jsonw.h"
#include "util/vec.h"

/* One hook in a lane. */
struct take {
    struct lane_id lane;
    char *key; /* percent-encoded; NULL: the keyless lane. Owned */
};

struct tally {
    const struct key_history *history;
    struct client *client;
    VEC(struct take) takes;
    VEC(int64_t) times_ns;
    struct key_counts counts;
    size_t read, filtered, compared;
    size_t missing[MISSING_REASON_COUNT];
    struct {
        const char *key;
        size_t count;
    } largest[KEY_HISTORY_LARGEST];
    char *trouble; /* what the first failing script said */
    bool nondeterministic;
};

/* ---- one hook ---- */

/* The lane that the gateway gave it for this sink; NULL when it has no row there. */
static const json_t *row_of(const json_t *hook, const char *sink)
{
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(hook, "rows"), i, row)
    {
        if (strcmp(show_text(row, "sink"), sink) == 0)
            return row;
    }
    return NULL;
}

static void compare(struct tally *tally, const struct order_lane *lane, const json_t *hook)
{
    const struct key_subject *subject = tally->history->subject;
    const json_t *row = row_of(hook, subject->source->sinks[subject->sink].name);
    if (!row)
        return;
    char hex[2 * LANE_ID_SIZE + 1] = "";
    if (lane->ordered)
        hex_encode(lane->lane.bytes, LANE_ID_SIZE, hex);
    tally->compared++;
    tally->counts.changed += strcmp(hex, show_text(row, "lane")) != 0;
}

static void count(struct tally *tally, const struct key_finding *found)
{
    const struct order_lane *lane = &found->lane;
    tally->counts.hooks++;
    tally->missing[lane->missing]++;
    tally->counts.missing += lane->missing != MISSING_NOTHING;
    tally->counts.unordered += lane->unordered_by_word;
    tally->counts.errors += found->script.missing == MISSING_SCRIPT_ERROR;
    tally->counts.breaches += found->script.missing == MISSING_SCRIPT_BREACH;
    tally->nondeterministic |= found->script.nondeterministic;
    if (found->scripted)
        VEC_PUSH(&tally->times_ns, found->script.cost.time_ns);
    if (found->script.error && *found->script.error && !tally->trouble)
        tally->trouble = strdup(found->script.error);
    if (!lane->ordered)
        return;
    struct take take = {.lane = lane->lane};
    struct buf key = {0};
    percent_encode(&key, lane->key);
    take.key = lane->key.at ? key.at : NULL;
    if (!take.key)
        buf_free(&key);
    VEC_PUSH(&tally->takes, take);
}

static int take_hook(struct tally *tally, const char *id)
{
    struct envelope *envelope = NULL;
    json_t *hook = NULL;
    int code = hook_fetch(tally->client, id, &envelope, &hook);
    if (code != CLI_OK)
        return code;
    struct key_finding found;
    key_subject_find(tally->history->subject, envelope, tally->read < KEY_HISTORY_PROBED, &found);
    tally->read++;
    if (found.lane.filtered) {
        tally->filtered++;
    } else {
        count(tally, &found);
        compare(tally, &found.lane, hook);
    }
    envelope_unref(envelope);
    json_decref(hook);
    return CLI_OK;
}

/* ---- all of them ---- */

static void show_progress(const struct tally *tally, size_t total, bool done)
{
    enum { WIDTH = 40 };
    if (!isatty(STDERR_FILENO) || !total)
        return;
    size_t filled = tally->read * WIDTH / total;
    fprintf(stderr, "\r[%.*s%*s] %zu of %zu hooks%s", (int)filled, "########################################",
            (int)(WIDTH - filled), "", tally->read, total, done ? "\n" : "");
}

static int take_all(struct tally *tally)
{
    const struct key_history *history = tally->history;
    struct buf path = {0};
    char since[24];
    json_t *list = NULL;
    snprintf(since, sizeof since, "%lld", (long long)(history->since_ms > 1 ? history->since_ms : 1));
    buf_puts(&path, "/v1/hooks");
    client_query(&path, "source", bytes_str(history->subject->source->name));
    client_query(&path, "since", bytes_str(since));
    int code = client_list(tally->client, path.at, "hooks", history->limit, NULL, &list);
    buf_free(&path);
    const json_t *hooks = json_object_get(list, "hooks");
    size_t total = json_array_size(hooks);
    for (size_t i = 0; code == CLI_OK && i < total; i++) {
        if (i % 64 == 0)
            show_progress(tally, total, false);
        code = take_hook(tally, show_text(json_array_get(hooks, i), "id"));
    }
    if (code == CLI_OK)
        show_progress(tally, total, true);
    json_decref(list);
    return code;
}

static int by_lane(const void *a, const void *b)
{
    return memcmp(&((const struct take *)a)->lane, &((const struct take *)b)->lane, sizeof(struct lane_id));
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void note_lane(struct tally *tally, const char *key, size_t size)
{
    size_t i = KEY_HISTORY_LARGEST;
    for (; i > 0 && tally->largest[i - 1].count < size; i--)
        if (i < KEY_HISTORY_LARGEST)
            tally->largest[i] = tally->largest[i - 1];
    if (i < KEY_HISTORY_LARGEST) {
        tally->largest[i].key = key;
        tally->largest[i].count = size;
    }
}

static void sum_up(struct tally *tally)
{
    if (tally->times_ns.len)
        qsort(tally->times_ns.at, tally->times_ns.len, sizeof tally->times_ns.at[0], by_number);
    if (tally->takes.len)
        qsort(tally->takes.at, tally->takes.len, sizeof tally->takes.at[0], by_lane);
    for (size_t i = 0, end; i < tally->takes.len; i = end) {
        for (end = i + 1; end < tally->takes.len && by_lane(&tally->takes.at[i], &tally->takes.at[end]) == 0;
             end++)
            ;
        tally->counts.lanes++;
        note_lane(tally, tally->takes.at[i].key, end - i);
    }
    tally->counts.largest = (double)tally->largest[0].count;
}

static int64_t percentile(const struct tally *tally, unsigned percent)
{
    size_t n = tally->times_ns.len;
    return n ? tally->times_ns.at[(n - 1) * percent / 100] : 0;
}

/* ---- what is printed ---- */

static double share(const struct tally *tally, double count)
{
    return tally->counts.hooks > 0 ? 100 * count / tally->counts.hooks : 0;
}

static void print_text(const struct tally *tally)
{
    const struct key_counts *counts = &tally->counts;
    printf("hooks      %zu, %.0f of them for this sink\n", tally->read, counts->hooks);
    printf("lanes      %.0f\n", counts->lanes);
    for (size_t i = 0; i < KEY_HISTORY_LARGEST && tally->largest[i].count; i++)
        printf("%s %6zu  %5.1f%%  %s\n", i ? "          " : "largest   ", tally->largest[i].count,
               share(tally, (double)tally->largest[i].count),
               tally->largest[i].key ? tally->largest[i].key : "(keyless)");
    printf("missing    %.0f (%.1f%%)", counts->missing, share(tally, counts->missing));
    for (int reason = MISSING_NOTHING + 1; reason < MISSING_REASON_COUNT; reason++)
        if (tally->missing[reason])
            printf("  %s %zu", missing_reason_name((enum missing_reason)reason), tally->missing[reason]);
    printf("\nunordered  %.0f (%.1f%%)\n", counts->unordered, share(tally, counts->unordered));
    if (tally->times_ns.len)
        printf("cost       p50 %.1f us, p99 %.1f us a call, counted exactly\n",
               (double)percentile(tally, 50) / 1000, (double)percentile(tally, 99) / 1000);
    printf("changed    %.0f of %zu would be in another lane than they were given\n", counts->changed,
           tally->compared);
    fflush(stdout);
    if (tally->trouble) {
        print_harmless(stderr, tally->trouble);
        fputc('\n', stderr);
    }
}

static void print_json(const struct tally *tally, const char *failed)
{
    const struct key_counts *counts = &tally->counts;
    struct buf out = {0};
    struct jsonw json = jsonw_on(&out);
    jsonw_object(&json, NULL);
    jsonw_uint(&json, "read", tally->read);
    jsonw_uint(&json, "hooks", (uint64_t)counts->hooks);
    jsonw_uint(&json, "lanes", (uint64_t)counts->lanes);
    jsonw_array(&json, "largest");
    for (size_t i = 0; i < KEY_HISTORY_LARGEST && tally->largest[i].count; i++) {
        jsonw_object(&json, NULL);
        jsonw_str(&json, "key", tally->largest[i].key);
        jsonw_uint(&json, "hooks", tally->largest[i].count);
        jsonw_double(&json, "share", share(tally, (double)tally->largest[i].count) / 100);
        jsonw_end_object(&json);
    }
    jsonw_end_array(&json);
    jsonw_object(&json, "missing");
    for (int reason = MISSING_NOTHING + 1; reason < MISSING_REASON_COUNT; reason++)
        jsonw_uint(&json, missing_reason_name((enum missing_reason)reason), tally->missing[reason]);
    jsonw_end_object(&json);
    jsonw_uint(&json, "unordered", (uint64_t)counts->unordered);
    jsonw_uint(&json, "changed", (uint64_t)counts->changed);
    jsonw_uint(&json, "compared", tally->compared);
    jsonw_object(&json, "time_ns");
    jsonw_int(&json, "p50", percentile(tally, 50));
    jsonw_int(&json, "p99", percentile(tally, 99));
    jsonw_end_object(&json);
    jsonw_bool(&json, "nondeterministic", tally->nondeterministic);
    jsonw_str(&json, "error", tally->trouble);
    jsonw_str(&json, "failed", failed);
    jsonw_end_object(&json);
    puts(out.at);
    buf_free(&out);
}

static int report(struct tally *tally)
{
    const struct key_history *history = tally->history;
    char term[128];
    const char *failed = NULL;
    sum_up(tally);
    if (tally->nondeterministic)
        failed = "nondeterministic";
    else if (history->gate && key_gate_fails(history->gate, &tally->counts, term, sizeof term))
        failed = term;
    if (history->json)
        print_json(tally, failed);
    else
        print_text(tally);
    if (failed)
        fprintf(stderr, "lanegate key: %s\n", failed);
    return failed ? CLI_FAILED : CLI_OK;
}

int key_history(const struct key_history *history)
{
    struct tally tally = {.history = history};
    if (history->limit < 1)
        return cli_usage(&verb_key, "--limit must be at least 1");
    int code = client_open(&verb_key, history->where, &tally.client);
    if (code == CLI_OK)
        code = take_all(&tally);
    client_close(tally.client);
    if (code == CLI_OK)
        code = report(&tally);
    VEC_EACH (take, &tally.takes)
        free(take->key);
    VEC_FREE(&tally.takes);
    VEC_FREE(&tally.times_ns);
    free(tally.trouble);
    return code;
}
