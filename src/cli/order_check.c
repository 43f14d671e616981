/* Entries are kept, sorted by (lane, start), and each lane is walked once.
 *
 * A lane is {tenant, source, lane id, epoch}: seqs compare only within one epoch, and the lane id stands for
 * the sink too. Four things are asked of it:
 *   - first deliveries ascend, but for those that say they are late, and replays;
 *   - the deliveries of one replay ascend among themselves;
 *   - previous_seq, where it is given, was delivered here before;
 *   - an attempt begins only when the one before it has ended, unless the gateway had given up on that one:
 * then an attempt of the same seq has begun in between. */
#include "cli/order_check.h"
#include "cli/order_taken.h"
#include "json/tree.h" /* before jsonw.h, which has a name in common with it */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/hash.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/status.h"
#include "util/vec.h"

struct entry {
    uint64_t line;
    uint32_t lane, replay;           /* numbers of names; replay 0: none */
    uint64_t seq, previous_seq;      /* previous_seq 0: not told */
    int64_t started_ms, finished_ms; /* unix; 0: not told */
    bool ok, answered, late;
};

/* Names to small numbers, from 1. */
struct names {
    struct name {
        char *text;
        uint32_t number;
    } * slots;
    size_t size, count;
};

struct order_check {
    VEC(struct entry) entries;
    struct names lanes, replays;
    struct order_taken *taken; /* borrowed; NULL: nobody asks */
    uint64_t lines;
    struct order_report report;
};

static uint32_t number_of(struct names *names, const char *text)
{
    if (names->count * 2 >= names->size) {
        struct names old = *names;
        names->size = old.size ? old.size * 2 : 64;
        names->slots = mem_zalloc(names->size * sizeof *names->slots);
        for (size_t i = 0; i < old.size; i++) {
            if (!old.slots[i].text)
                continue;
            size_t at = hash_bytes(bytes_str(old.slots[i].text)) & (names->size - 1);
            while (names->slots[at].text)
                at = (at + 1) & (names->size - 1);
            names->slots[at] = old.slots[i];
        }
        free(old.slots);
    }
    size_t at = hash_bytes(bytes_str(text)) & (names->size - 1);
    while (names->slots[at].text && strcmp(names->slots[at].text, text) != 0)
        at = (at + 1) & (names->size - 1);
    if (!names->slots[at].text)
        names->slots[at] = (struct name){mem_strdup(text), (uint32_t)++names->count};
    return names->slots[at].number;
}

static const char *name_of(const struct names *names, uint32_t number)
{
    for (size_t i = 0; i < names->size; i++)
        if (names->slots[i].text && names->slots[i].number == number)
            return names->slots[i].text;
    return "?";
}

static void names_free(struct names *names)
{
    for (size_t i = 0; i < names->size; i++)
        free(names->slots[i].text);
    free(names->slots);
}

struct order_check *order_check_new(void)
{
    return mem_zalloc(sizeof(struct order_check));
}

void order_check_free(struct order_check *check)
{
    if (!check)
        return;
    VEC_FREE(&check->entries);
    names_free(&check->lanes);
    names_free(&check->replays);
    free(check);
}

void order_check_tell(struct order_check *check, struct order_taken *taken)
{
    check->taken = taken;
}

static void problem(struct order_check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void problem(struct order_check *check, const char *format, ...)
{
    struct order_report *report = &check->report;
    if (report->problems++ == 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(report->problem, sizeof report->problem, format, args);
        va_end(args);
    }
}

/* -- reading
 * ----------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static int64_t int_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void tell(struct order_taken *taken, const json_t *object)
{
    struct buf key = {0};
    buf_put(&key, "", 0); /* an empty key is a key */
    if (percent_decode(&key, bytes_str(text_of(object, "key"))))
        order_taken_add(taken, bytes_str(text_of(object, "id")), bytes_str(text_of(object, "source")),
                        bytes_str(text_of(object, "lane")), buf_bytes(&key));
    buf_free(&key);
}

static void take(struct order_check *check, const json_t *object)
{
    struct order_report *report = &check->report;
    int64_t status = int_of(object, "status");
    struct entry entry = {
        .line = check->lines,
        .seq = (uint64_t)int_of(object, "seq"),
        .previous_seq = (uint64_t)int_of(object, "previous_seq"),
        .started_ms = int_of(object, "started_ms"),
        .finished_ms = int_of(object, "finished_ms"),
        .ok = status >= 200 && status <= 299,
        .answered = status != 0,
        .late = json_is_true(json_object_get(object, "late")),
    };
    report->attempts++;
    if (!entry.ok)
        report->failed++;
    else if (check->taken)
        tell(check->taken, object);
    if (!*text_of(object, "lane")) {
        report->unordered += entry.ok;
        return;
    }
    if (entry.seq == 0) {
        problem(check, "line %llu: a delivery of a lane without a seq", (unsigned long long)check->lines);
        return;
    }
    char *lane = mem_format("tenant %s, source %s, key %s (lane %s, epoch %s)", text_of(object, "tenant"),
                            text_of(object, "source"), text_of(object, "key"), text_of(object, "lane"),
                            text_of(object, "epoch"));
    entry.lane = number_of(&check->lanes, lane);
    free(lane);
    if (*text_of(object, "replay_id"))
        entry.replay = number_of(&check->replays, text_of(object, "replay_id"));
    VEC_PUSH(&check->entries, entry);
}

void order_check_line(struct order_check *check, struct bytes line)
{
    check->lines++;
    if (line.len == 0)
        return;
    json_error_t error;
    json_t *object = json_loadb(line.at, line.len, 0, &error);
    if (!json_is_object(object))
        problem(check, "line %llu: not a JSON object: a log with holes proves nothing",
                (unsigned long long)check->lines);
    else if (*text_of(object, "event") && strcmp(text_of(object, "event"), "delivery") != 0)
        ; /* what else a receiver has to say */
    else if (!json_is_integer(json_object_get(object, "status")))
        problem(check, "line %llu: no delivery as a receiver writes it: it has no status",
                (unsigned long long)check->lines);
    else
        take(check, object);
    json_decref(object);
}

/* -- one lane
 * ---------------------------------------------------------------------------------------------------- */

/* What was delivered in a lane so far, as (seq, line), in order of delivery. */
struct delivered {
    VEC(const struct entry *) all; /* sorted by seq */
    const struct entry *last;      /* in time */
    const struct entry *before;    /* the last of another seq than `last` */
    const struct entry *highest;   /* of those on time */
};

/* Where `seq` is in `all`, or would be. */
static size_t place_of(const struct delivered *done, uint64_t seq)
{
    size_t low = 0, high = done->all.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (done->all.at[middle]->seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool was_delivered(const struct delivered *done, uint64_t seq)
{
    size_t at = place_of(done, seq);
    return at < done->all.len && done->all.at[at]->seq == seq;
}

static void remember(struct delivered *done, const struct entry *entry)
{
    if (!was_delivered(done, entry->seq)) {
        size_t at = place_of(done, entry->seq);
        VEC_PUSH(&done->all, entry);
        memmove(&done->all.at[at + 1], &done->all.at[at], (done->all.len - 1 - at) * sizeof done->all.at[0]);
        done->all.at[at] = entry;
    }
    if (done->last && done->last->seq != entry->seq)
        done->before = done->last;
    done->last = entry;
}

/* The gateway names the last ok it knows of. It may not have heard of one that we answered, never the other
 * way. */
static void check_previous(struct order_check *check, const struct delivered *done, const struct entry *entry)
{
    if (!entry->previous_seq || !done->last)
        return;
    const struct entry *expected = done->last->seq == entry->seq ? done->before : done->last;
    if (!expected)
        return;
    if (entry->previous_seq == expected->seq)
        check->report.previous_right++;
    else if (was_delivered(done, entry->previous_seq) || entry->previous_seq < done->all.at[0]->seq)
        check->report.previous_fits++;
    else
        problem(check,
                "line %llu: seq %llu says that %llu was the delivery before it, which is not in this log; "
                "the one seen "
                "before is %llu (line %llu); %s",
                (unsigned long long)entry->line, (unsigned long long)entry->seq,
                (unsigned long long)entry->previous_seq, (unsigned long long)expected->seq,
                (unsigned long long)expected->line, name_of(&check->lanes, entry->lane));
}

static void check_order(struct order_check *check, struct delivered *done, const struct entry *entry)
{
    struct order_report *report = &check->report;
    if (!entry->ok)
        return;
    if (entry->replay) {
        report->replays++;
    } else if (was_delivered(done, entry->seq)) {
        report->repeats++;
    } else if (entry->late) {
        report->late++;
    } else {
        report->first++;
        if (done->highest && entry->seq < done->highest->seq)
            problem(check,
                    "line %llu: seq %llu is delivered for the first time behind seq %llu (line %llu); %s",
                    (unsigned long long)entry->line, (unsigned long long)entry->seq,
                    (unsigned long long)done->highest->seq, (unsigned long long)done->highest->line,
                    name_of(&check->lanes, entry->lane));
        else
            done->highest = entry;
    }
    remember(done, entry);
}

/* An attempt that overlaps a later one is cut off if the same seq was begun again meanwhile; then its end,
 * and an answer that nobody heard, mean nothing. What was delivered before says so too: the gateway begins
 * again after a crash. */
static bool is_given_up(const struct entry *first, const struct entry *next)
{
    for (const struct entry *between = first + 1; between <= next; between++)
        if (between->seq <= first->seq)
            return true;
    return false;
}

static void check_overlap(struct order_check *check, const struct entry *from, const struct entry *to)
{
    const struct entry *open = NULL; /* the one that ends last */
    for (const struct entry *entry = from; entry < to; entry++) {
        if (!entry->started_ms || !entry->finished_ms)
            continue;
        if (open && entry->started_ms < open->finished_ms) {
            if (is_given_up(open, entry)) {
                check->report.cut_off++;
                open = NULL;
            } else {
                problem(check,
                        "line %llu: seq %llu began %lld ms before seq %llu (line %llu) had its answer: two "
                        "of one lane at "
                        "once; %s",
                        (unsigned long long)entry->line, (unsigned long long)entry->seq,
                        (long long)(open->finished_ms - entry->started_ms), (unsigned long long)open->seq,
                        (unsigned long long)open->line, name_of(&check->lanes, entry->lane));
            }
        }
        if (entry->answered && (!open || entry->finished_ms >= open->finished_ms))
            open = entry;
    }
}

static void check_lane(struct order_check *check, const struct entry *from, const struct entry *to)
{
    struct delivered done = {0};
    for (const struct entry *entry = from; entry < to; entry++) {
        if (!entry->late && !entry->replay)
            check_previous(check, &done, entry);
        check_order(check, &done, entry);
    }
    check_overlap(check, from, to);
    VEC_FREE(&done.all);
}

/* -- all of them
 * ------------------------------------------------------------------------------------------------- */

static int by_number(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_lane_and_start(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->lane != y->lane)
        return by_number(x->lane, y->lane);
    if (x->started_ms != y->started_ms)
        return x->started_ms < y->started_ms ? -1 : 1;
    return by_number(x->line, y->line);
}

struct replayed {
    uint64_t *at;
    size_t len, size;
};

static int by_replay(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->replay != y->replay ? by_number(x->replay, y->replay) : by_lane_and_start(a, b);
}

static bool was_replayed(const struct replayed *replayed, uint64_t seq)
{
    size_t low = 0, high = replayed->len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (replayed->at[mid] < seq)
            low = mid + 1;
        else
            high = mid;
    }
    return low < replayed->len && replayed->at[low] == seq;
}

/* First deliveries of one replay in one lane ascend, whatever else goes on; behind a crash some come again.
 * Reorders the entries. */
static void check_replays(struct order_check *check)
{
    const struct entry *highest = NULL;
    struct replayed seen = {.at = NULL}; /* of this replay and lane: those that ascend */
    qsort(check->entries.at, check->entries.len, sizeof check->entries.at[0], by_replay);
    VEC_EACH (entry, &check->entries) {
        if (!entry->replay || !entry->ok)
            continue;
        bool another = !highest || highest->replay != entry->replay || highest->lane != entry->lane;
        if (another)
            seen.len = 0;
        if (another || entry->seq > highest->seq) {
            highest = entry;
            VEC_PUSH(&seen, entry->seq);
        } else if (!entry->late && !was_replayed(&seen, entry->seq))
            problem(check, "line %llu: replay %s delivers seq %llu behind seq %llu (line %llu); %s",
                    (unsigned long long)entry->line, name_of(&check->replays, entry->replay),
                    (unsigned long long)entry->seq, (unsigned long long)highest->seq,
                    (unsigned long long)highest->line, name_of(&check->lanes, entry->lane));
    }
    VEC_FREE(&seen);
}

void order_check_finish(struct order_check *check, struct order_report *report)
{
    if (check->entries.len)
        qsort(check->entries.at, check->entries.len, sizeof check->entries.at[0], by_lane_and_start);
    const struct entry *end = check->entries.at + check->entries.len, *next;
    for (const struct entry *from = check->entries.at; from < end; from = next) {
        for (next = from; next < end && next->lane == from->lane;)
            next++;
        check_lane(check, from, next);
        check->report.lanes++;
    }
    if (check->entries.len)
        check_replays(check);
    *report = check->report;
}
