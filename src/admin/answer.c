/* The ways to answer: refusals, and the members that several resources write. */
#include <inttypes.h>

#include <string.h>

#include "admin/admin_priv.h"

static void begin(struct ask *ask, int status, const char *code)
{
    ask->status = status;
    ask->type = NULL;
    buf_clear(&ask->body);
    ask->json = jsonw_on(&ask->body);
    jsonw_object(&ask->json, NULL);
    jsonw_str(&ask->json, "error", code);
}

void ask_refuse(struct ask *ask, int status, const char *code)
{
    begin(ask, status, code);
    jsonw_end_object(&ask->json);
}

void ask_refuse_with(struct ask *ask, int status, const char *code, const char *name, const char *text)
{
    begin(ask, status, code);
    jsonw_str(&ask->json, name, text);
    jsonw_end_object(&ask->json);
}

void ask_refuse_filter(struct ask *ask, const struct query_fault *fault)
{
    begin(ask, 400, fault->code);
    bool in_body = strstr(fault->code, "filter") == NULL;
    if (fault->filter.len)
        jsonw_bytes_percent(&ask->json, in_body ? "member" : "filter", fault->filter);
    jsonw_str(&ask->json, "expected", fault->expected);
    jsonw_end_object(&ask->json);
}

void ask_not_found(struct ask *ask, const char *what)
{
    ask_refuse_with(ask, 404, "not_found", "what", what);
}

void ask_not_found_of(struct ask *ask, const char *what, const char *expected)
{
    begin(ask, 404, "not_found");
    jsonw_str(&ask->json, "what", what);
    jsonw_str(&ask->json, "expected", expected);
    jsonw_end_object(&ask->json);
}

void ask_store_failed(struct ask *ask, enum status status)
{
    if (status == STATUS_CORRUPT)
        ask_refuse(ask, 500, "store_corrupt");
    else
        ask_refuse(ask, 503, "store_unavailable");
}

void ask_next_cursor(struct ask *ask, enum cursor_kind kind, const struct cursor *next)
{
    char text[CURSOR_TEXT];
    if (next)
        cursor_format(kind, *next, text);
    jsonw_str(&ask->json, "next_cursor", next ? text : NULL);
}

void ask_lane_id(struct ask *ask, const char *name, const uint8_t lane[16])
{
    char text[2 * 16 + 1];
    hex_encode(lane, 16, text);
    jsonw_str(&ask->json, name, text);
}

void ask_time(struct ask *ask, const char *name, int64_t unix_ms)
{
    if (unix_ms > 0)
        jsonw_int(&ask->json, name, unix_ms);
    else
        jsonw_null(&ask->json, name);
}

void ask_audit(struct ask *ask, const char *what, struct bytes target, int64_t matched, int64_t done)
{
    store_audit(ask->admin->options.store, &(struct store_audit){.who = ask->who,
                                                                 .what = what,
                                                                 .target = target,
                                                                 .reason = ask->query.reason,
                                                                 .matched = matched,
                                                                 .done = done});
}
