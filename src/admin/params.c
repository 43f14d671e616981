/* The table of what can be asked for: one row each, with how its value is read. */
#include "admin/params.h"

#include <string.h>

#include "admin/moment.h"
#include "events/events.h"
#include "limits/limits.h"
#include "replay/replay.h"
#include "store/store.h"
#include "util/buf.h"
#include "util/clock.h"
#include "util/units.h"
#include "verify/verify.h"

static bool name_into(struct bytes *field, struct bytes value)
{
    *field = value;
    return query_is_name(value);
}

static bool parse_tenant(struct query *query, struct bytes value)
{
    return name_into(&query->tenant, value);
}

static bool parse_source(struct query *query, struct bytes value)
{
    return name_into(&query->source, value);
}

static bool parse_sink(struct query *query, struct bytes value)
{
    return name_into(&query->sink, value);
}

static bool parse_class(struct query *query, struct bytes value)
{
    query->cls = value;
    return dead_class_known(value.at, value.len);
}

static bool parse_key(struct query *query, struct bytes value)
{
    query->key = value;
    return true;
}

static bool parse_dedupe_key(struct query *query, struct bytes value)
{
    query->dedupe_key = value;
    return value.len > 0;
}

static bool word_into(struct bytes *field, struct bytes value)
{
    *field = value;
    return value.len > 0 && value.len <= QUERY_WORD_MAX;
}

static bool parse_who(struct query *query, struct bytes value)
{
    return word_into(&query->who, value);
}

static bool parse_what(struct query *query, struct bytes value)
{
    return word_into(&query->what, value);
}

static bool parse_reason(struct query *query, struct bytes value)
{
    query->reason = value;
    return value.len <= QUERY_REASON_MAX;
}

static bool bool_into(bool *field, struct bytes value)
{
    *field = bytes_eq(value, BYTES("true"));
    return *field || bytes_eq(value, BYTES("false"));
}

static bool parse_forget(struct query *query, struct bytes value)
{
    return bool_into(&query->forget, value);
}

static bool parse_dry_run(struct query *query, struct bytes value)
{
    return bool_into(&query->dry_run, value);
}

static bool parse_all(struct query *query, struct bytes value)
{
    return bool_into(&query->all, value);
}

static bool parse_expect_head(struct query *query, struct bytes value)
{
    int64_t seq = 0;
    query->has_head_id = uuid_parse(value, &query->head_id);
    bool is_seq = units_parse_u63(value, &seq) && seq > 0;
    query->head_seq = (uint64_t)seq;
    return query->has_head_id || is_seq;
}

static bool parse_for(struct query *query, struct bytes value)
{
    return units_parse_ms(value, &query->for_ms) && query->for_ms > 0 && query->for_ms <= QUERY_FOR_MAX_MS;
}

static bool parse_rate(struct query *query, struct bytes value)
{
    return units_parse_u63(value, &query->rate) && query->rate >= 1 && query->rate <= REPLAY_RATE_MAX;
}

static bool parse_limit_rate(struct query *query, struct bytes value)
{
    return units_parse_decimal(value, &query->limit_rate) && query->limit_rate >= LIMIT_RATE_MIN &&
           query->limit_rate <= LIMIT_RATE_MAX;
}

static bool parse_burst(struct query *query, struct bytes value)
{
    return units_parse_u63(value, &query->burst) && query->burst >= 1 && query->burst <= LIMIT_BURST_MAX;
}

static bool parse_max_lag(struct query *query, struct bytes value)
{
    return units_parse_ms(value, &query->max_lag_ms) && query->max_lag_ms > 0 &&
           query->max_lag_ms <= QUERY_FOR_MAX_MS;
}

static bool parse_replay_state(struct query *query, struct bytes value)
{
    for (int state = REPLAY_RUNNING; state <= REPLAY_CANCELLED; state++)
        if (bytes_eq(value, bytes_str(replay_state_name((enum replay_state)state)))) {
            query->replay_state = state;
            return true;
        }
    return false;
}

static bool parse_replays_cursor(struct query *query, struct bytes value)
{
    return cursor_parse(CURSOR_REPLAYS, value, &query->cursor);
}

static bool parse_hook(struct query *query, struct bytes value)
{
    query->has_hook = uuid_parse(value, &query->hook);
    return query->has_hook;
}

static bool parse_audit_cursor(struct query *query, struct bytes value)
{
    return cursor_parse(CURSOR_AUDIT, value, &query->cursor);
}

static bool parse_lane(struct query *query, struct bytes value)
{
    query->has_lane = true;
    return hex_decode(value, query->lane, sizeof query->lane);
}

/* A moment, or an age: so long ago. */
static bool moment_into(int64_t *unix_ms, struct bytes *age, struct bytes value)
{
    int64_t ago_ms;
    if (!units_parse_ms(value, &ago_ms))
        return moment_parse(value, unix_ms);
    *age = value;
    *unix_ms = clock_unix_ms() - ago_ms;
    if (*unix_ms < 1)
        *unix_ms = 1;
    return value.len <= QUERY_AGE_MAX;
}

static bool parse_since(struct query *query, struct bytes value)
{
    return moment_into(&query->since_ms, &query->since_age, value);
}

static bool parse_until(struct query *query, struct bytes value)
{
    return moment_into(&query->until_ms, &query->until_age, value);
}

static bool parse_from(struct query *query, struct bytes value)
{
    for (int from = REPLAY_FROM_HOOKS; from <= REPLAY_FROM_PEN; from++)
        if (bytes_eq(value, bytes_str(replay_from_name((enum replay_from)from)))) {
            query->from = (enum replay_from)from;
            return true;
        }
    return false;
}

static bool parse_lane_state(struct query *query, struct bytes value)
{
    for (int state = 0; state < LANE_STATE_COUNT; state++)
        if (bytes_eq(value, bytes_str(lane_state_name(state)))) {
            query->lane_state = state;
            return true;
        }
    return false;
}

static bool parse_row_state(struct query *query, struct bytes value)
{
    for (int state = ROW_PENDING; state <= ROW_DISCARDED; state++)
        if (bytes_eq(value, bytes_str(row_state_name(state)))) {
            query->row_state = state;
            return true;
        }
    return false;
}

static bool parse_sort(struct query *query, struct bytes value)
{
    query->sort = bytes_eq(value, BYTES("depth")) ? LANE_SORT_DEPTH : LANE_SORT_AGE;
    return query->sort == LANE_SORT_DEPTH || bytes_eq(value, BYTES("age"));
}

static bool parse_limit(struct query *query, struct bytes value)
{
    int64_t n;
    if (!units_parse_u63(value, &n) || n < 1 || n > QUERY_LIMIT_MAX)
        return false;
    query->limit = (size_t)n;
    return true;
}

static bool parse_lanes_cursor(struct query *query, struct bytes value)
{
    return cursor_parse(CURSOR_LANES, value, &query->cursor);
}

static bool parse_hooks_cursor(struct query *query, struct bytes value)
{
    return cursor_parse(CURSOR_HOOKS, value, &query->cursor);
}

static bool parse_dead_cursor(struct query *query, struct bytes value)
{
    return cursor_parse(CURSOR_DEAD, value, &query->cursor);
}

static bool parse_pen_cursor(struct query *query, struct bytes value)
{
    return cursor_parse(CURSOR_PEN, value, &query->cursor);
}

static bool parse_failure(struct query *query, struct bytes value)
{
    query->failure = value;
    for (const char *const *reason = verify_reasons(); *reason; reason++)
        if (bytes_eq(value, bytes_str(*reason)))
            return true;
    return false;
}

#define A_NAME "a name: 1 to 64 letters, digits, _ or -"
#define A_MOMENT "unix milliseconds, a time like 2026-07-01T12:00:00Z, or an age like 2h"
#define A_CURSOR "next_cursor of an earlier answer of this list"
#define STATE_WORD(id, name) " " name

static bool parse_event(struct query *query, struct bytes value)
{
    struct bytes item;
    while (bytes_next_item(&value, &item)) {
        enum event_kind kind;
        if (!event_kind_parse(item, &kind))
            return false;
        query->event_kinds |= 1U << kind;
    }
    return true;
}

static bool parse_after(struct query *query, struct bytes value)
{
    query->after = value;
    return true;
}

static bool parse_raw(struct query *query, struct bytes value)
{
    query->raw = value;
    return true;
}

#define EVENT_WORD(id, name) " " name
#define CLASS_WORD(name) " " name

static const struct param params[] = {
    {"tenant", QUERY_TENANT, A_NAME, parse_tenant},
    {"source", QUERY_SOURCE, A_NAME, parse_source},
    {"sink", QUERY_SINK, A_NAME, parse_sink},
    {"key", QUERY_KEY, "a key, percent-encoded", parse_key},
    {"lane", QUERY_LANE, "a lane id: 32 hex digits", parse_lane},
    {"class", QUERY_CLASS, "one of:" DEAD_CLASSES(CLASS_WORD), parse_class},
    {"dedupe_key", QUERY_DEDUPE_KEY, "a key that is not empty, percent-encoded", parse_dedupe_key},
    {"since", QUERY_SINCE, A_MOMENT, parse_since},
    {"until", QUERY_UNTIL, A_MOMENT, parse_until},
    {"state", QUERY_LANE_STATE, "one of:" LANE_STATES(STATE_WORD), parse_lane_state},
    {"state", QUERY_ROW_STATE, "one of: pending done dead held discarded", parse_row_state},
    {"state", QUERY_REPLAY_STATE, "one of: running paused done cancelled", parse_replay_state},
    {"from", QUERY_FROM, "hooks or quarantine", parse_from},
    {"rate", QUERY_RATE, "hooks a second: a whole number from 1 to 100000", parse_rate},
    {"rate", QUERY_LIMIT_RATE, "hooks a second: a number from 0.001 to 1000000", parse_limit_rate},
    {"burst", QUERY_BURST, "hooks at once: a whole number from 1 to 1000000", parse_burst},
    {"max_lag", QUERY_MAX_LAG, "a duration such as 30s, a year at most", parse_max_lag},
    {"cursor", QUERY_REPLAYS_CURSOR, A_CURSOR, parse_replays_cursor},
    {"sort", QUERY_SORT, "one of: age depth", parse_sort},
    {"limit", QUERY_LIMIT, "a whole number from 1 to 1000", parse_limit},
    {"cursor", QUERY_LANES_CURSOR, A_CURSOR, parse_lanes_cursor},
    {"cursor", QUERY_HOOKS_CURSOR, A_CURSOR, parse_hooks_cursor},
    {"cursor", QUERY_DEAD_CURSOR, A_CURSOR, parse_dead_cursor},
    {"cursor", QUERY_AUDIT_CURSOR, A_CURSOR, parse_audit_cursor},
    {"cursor", QUERY_PEN_CURSOR, A_CURSOR, parse_pen_cursor},
    {"failure", QUERY_FAILURE, NULL, parse_failure},
    {"who", QUERY_WHO, "the name of a token, or local", parse_who},
    {"what", QUERY_WHAT, "an act such as dlq.replay", parse_what},
    {"reason", QUERY_REASON, "at most 1024 bytes, percent-encoded", parse_reason},
    {"dry_run", QUERY_DRY_RUN, "true or false", parse_dry_run},
    {"hook", QUERY_HOOK, "the id of a hook", parse_hook},
    {"all", QUERY_ALL, "true or false", parse_all},
    {"forget", QUERY_FORGET, "true or false", parse_forget},
    {"expect_head", QUERY_EXPECT_HEAD, "the id or the seq of a hook", parse_expect_head},
    {"event", QUERY_EVENT, "kinds joined by commas, of:" EVENT_KINDS(EVENT_WORD), parse_event},
    {"raw", QUERY_RAW, "a raw HTTP request", parse_raw},
    {"after", QUERY_AFTER, "the id of an event", parse_after},
    {"for", QUERY_FOR, "a duration such as 30s, 30m or 12h, a year at most", parse_for},
};
enum { PARAM_COUNT = sizeof params / sizeof params[0] };

const struct param *param_find(struct bytes name, uint64_t allowed)
{
    for (size_t i = 0; i < PARAM_COUNT; i++)
        if ((params[i].bit & allowed) && bytes_eq(name, bytes_str(params[i].name)))
            return &params[i];
    return NULL;
}

const char *param_names(uint64_t allowed, struct arena *arena)
{
    struct buf names = {0};
    for (size_t i = 0; i < PARAM_COUNT; i++)
        if (params[i].bit & allowed)
            buf_putf(&names, "%s%s", names.len ? " " : "one of: ", params[i].name);
    if (!names.len)
        buf_puts(&names, "no parameters");
    const char *copy = arena_copy(arena, buf_bytes(&names)).at;
    buf_free(&names);
    return copy;
}

const char *param_expected(const struct param *param, struct arena *arena)
{
    if (param->expected)
        return param->expected;
    struct buf words = {0};
    buf_puts(&words, "one of:");
    for (const char *const *reason = verify_reasons(); *reason; reason++)
        buf_putf(&words, " %s", *reason);
    const char *copy = arena_copy(arena, buf_bytes(&words)).at;
    buf_free(&words);
    return copy;
}
