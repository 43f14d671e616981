#include "admin/routes.h"

#include <stdbool.h>
#include <stdio.h>

#include "admin/admin_priv.h"
#include "util/check.h"

enum {
    OPEN = 0,
    READ = ADMIN_SCOPE_READ,
    PAYLOAD = ADMIN_SCOPE_PAYLOAD,
    OPERATE = ADMIN_SCOPE_OPERATE,
    CONFIG = ADMIN_SCOPE_CONFIG,

    LANE_PAUSE = QUERY_REASON | QUERY_SOURCE | QUERY_SINK | QUERY_KEY,
    LANES_FILTERS = QUERY_TENANT | QUERY_SOURCE | QUERY_SINK | QUERY_KEY | QUERY_LANE_STATE | QUERY_SORT |
                    QUERY_LIMIT | QUERY_LANES_CURSOR,
    HOOKS_FILTERS = QUERY_TENANT | QUERY_SOURCE | QUERY_SINCE | QUERY_UNTIL | QUERY_DEDUPE_KEY |
                    QUERY_ROW_STATE | QUERY_LIMIT | QUERY_HOOKS_CURSOR,
    DEAD_FILTERS = QUERY_TENANT | QUERY_SOURCE | QUERY_SINK | QUERY_KEY | QUERY_LANE | QUERY_CLASS |
                   QUERY_SINCE | QUERY_UNTIL | QUERY_HOOK | QUERY_LIMIT | QUERY_DEAD_CURSOR,
    DEAD_ACT = (DEAD_FILTERS & ~QUERY_LIMIT) | QUERY_REASON | QUERY_DRY_RUN | QUERY_ALL,
    HEAD_ACT = QUERY_REASON | QUERY_EXPECT_HEAD,
    KEY_TEST = QUERY_SOURCE | QUERY_SINK | QUERY_HOOK | QUERY_RAW,
    EVENT_FILTERS =
        QUERY_TENANT | QUERY_SOURCE | QUERY_SINK | QUERY_KEY | QUERY_LANE | QUERY_EVENT | QUERY_AFTER,
    PEN_FILTERS = QUERY_TENANT | QUERY_SOURCE | QUERY_HOOK | QUERY_FAILURE | QUERY_SINCE | QUERY_UNTIL |
                  QUERY_PEN_CURSOR,
    PEN_ACT = PEN_FILTERS | QUERY_REASON | QUERY_DRY_RUN | QUERY_ALL,
    REPLAY_ASK = QUERY_TENANT | QUERY_SOURCE | QUERY_SINK | QUERY_SINCE | QUERY_UNTIL | QUERY_RATE |
                 QUERY_MAX_LAG | QUERY_DRY_RUN | QUERY_ALL | QUERY_REASON | QUERY_FROM | QUERY_FAILURE,
    REPLAYS_FILTERS = QUERY_REPLAY_STATE | QUERY_LIMIT,
    REPLAY_SET = QUERY_REPLAY_STATE | QUERY_RATE | QUERY_REASON,
    LIMIT_PUT = QUERY_LIMIT_RATE | QUERY_BURST | QUERY_REASON,
    AUDIT_FILTERS = QUERY_WHO | QUERY_WHAT | QUERY_SINCE | QUERY_UNTIL | QUERY_LIMIT | QUERY_AUDIT_CURSOR,
};

/* clang-format off */
static const struct route routes[] = {
    {"GET", "/health",                  OPEN,    0,             get_health},
    {"GET", "/ready",                   OPEN,    0,             get_ready},
    {"GET", "/metrics",                 READ,    0,             get_metrics},
    {"GET", "/v1/config",               READ,    0,             get_config},
    {"POST", "/v1/reload",              CONFIG,  QUERY_REASON,  post_reload},
    {"GET", "/v1/store",                READ,    0,             get_store},
    {"GET", "/v1/sinks",                READ,    0,             get_sinks},
    {"GET", "/v1/lanes",                READ,    LANES_FILTERS, get_lanes},
    {"GET", "/v1/lanes/{tenant}/{lane}", READ,   0,             get_lane},
    {"POST", "/v1/lanes/{tenant}/{lane}/pause",  OPERATE, LANE_PAUSE,   post_lane_pause},
    {"POST", "/v1/lanes/{tenant}/{lane}/resume", OPERATE, QUERY_REASON, post_lane_resume},
    {"POST", "/v1/lanes/{tenant}/{lane}/retry",  OPERATE, HEAD_ACT,     post_lane_retry},
    {"POST", "/v1/lanes/{tenant}/{lane}/skip",   OPERATE, HEAD_ACT,     post_lane_skip},
    {"POST", "/v1/sinks/{source}/{sink}/pause",  OPERATE, QUERY_REASON | QUERY_FOR,     post_sink_pause},
    {"POST", "/v1/sinks/{source}/{sink}/resume", OPERATE, QUERY_REASON,                 post_sink_resume},
    {"POST", "/v1/sinks/{source}/{sink}/retry",  OPERATE, QUERY_REASON,                 post_sink_retry},
    {"POST", "/v1/sinks/{source}/{sink}/rekey",  OPERATE, QUERY_REASON | QUERY_DRY_RUN, post_rekey},
    {"GET", "/v1/hooks",                READ,    HOOKS_FILTERS, get_hooks},
    {"GET", "/v1/hooks/{id}",           READ,    0,             get_hook},
    {"GET", "/v1/hooks/{id}/body",      PAYLOAD, 0,             get_hook_body},
    {"GET", "/v1/hooks/{id}/attempts",  READ,    0,             get_attempts},
    {"DELETE", "/v1/hooks/{id}",        OPERATE, QUERY_REASON,  delete_hook},
    {"GET", "/v1/dlq",                  READ,    DEAD_FILTERS,  get_dead},
    {"POST", "/v1/dlq/replay",          OPERATE, DEAD_ACT,      post_dead_replay},
    {"POST", "/v1/dlq/discard",         OPERATE, DEAD_ACT | QUERY_FORGET, post_dead_discard},
    {"POST", "/v1/keys/test",           PAYLOAD, KEY_TEST,      post_key_test},
    {"GET", "/v1/events",               READ,    EVENT_FILTERS, get_events},
    {"GET", "/v1/quarantine",           READ,    PEN_FILTERS | QUERY_LIMIT, get_pen},
    {"GET", "/v1/quarantine/{id}",      READ,    0,             get_penned},
    {"GET", "/v1/quarantine/{id}/body", PAYLOAD, 0,             get_penned_body},
    {"POST", "/v1/quarantine/release",  OPERATE, PEN_ACT,       post_pen_release},
    {"POST", "/v1/quarantine/discard",  OPERATE, PEN_ACT,       post_pen_discard},
    {"POST", "/v1/replays",             OPERATE, REPLAY_ASK,    post_replay},
    {"GET", "/v1/replays",              READ,    REPLAYS_FILTERS | QUERY_REPLAYS_CURSOR, get_replays},
    {"GET", "/v1/replays/{id}",         READ,    0,             get_replay},
    {"PATCH", "/v1/replays/{id}",       OPERATE, REPLAY_SET,    patch_replay},
    {"GET", "/v1/tenants/{tenant}/rate-limit",    READ,    0,            get_rate_limit},
    {"PUT", "/v1/tenants/{tenant}/rate-limit",    OPERATE, LIMIT_PUT,    put_rate_limit},
    {"DELETE", "/v1/tenants/{tenant}/rate-limit", OPERATE, QUERY_REASON, delete_rate_limit},
    {"GET", "/v1/audit",                READ,    AUDIT_FILTERS, get_audit},
};
/* clang-format on */
enum { ROUTE_COUNT = sizeof routes / sizeof routes[0] };

/* Up to the next slash, which is left in place. */
static struct bytes segment(struct bytes text)
{
    const char *slash = text.len ? memchr(text.at, '/', text.len) : NULL;
    return bytes_of(text.at, slash ? (size_t)(slash - text.at) : text.len);
}

static struct bytes after(struct bytes text, size_t len)
{
    return bytes_of(text.at + len, text.len - len);
}

/* Both start with a slash wherever the loop begins; byte for byte but for braces. */
static bool matches(const char *pattern, struct bytes path, struct bytes parts[ROUTE_PARTS_MAX])
{
    struct bytes want = bytes_str(pattern);
    size_t count = 0;
    while (want.len && path.len) {
        if (want.at[0] != '/' || path.at[0] != '/')
            return false;
        want = after(want, 1);
        path = after(path, 1);
        struct bytes expected = segment(want), found = segment(path);
        if (expected.len && expected.at[0] == '{') {
            if (!found.len)
                return false;
            CHECK(count < ROUTE_PARTS_MAX);
            parts[count++] = found;
        } else if (!bytes_eq(expected, found)) {
            return false;
        }
        want = after(want, expected.len);
        path = after(path, found.len);
    }
    return want.len == 0 && path.len == 0;
}

const struct route *route_find(struct bytes method, struct bytes path, struct bytes parts[ROUTE_PARTS_MAX],
                               char allow[ROUTE_ALLOW_MAX])
{
    size_t len = 0;
    allow[0] = 0;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!matches(routes[i].pattern, path, parts))
            continue;
        if (bytes_eq(method, bytes_str(routes[i].method)))
            return &routes[i];
        len +=
            (size_t)snprintf(allow + len, ROUTE_ALLOW_MAX - len, "%s%s", len ? ", " : "", routes[i].method);
        CHECK(len < ROUTE_ALLOW_MAX);
    }
    return NULL;
}
