/* GET /v1/hooks/{id}/attempts: the last failures of each of its rows, and how the receiver's answer began. */
#include "admin/admin_priv.h"
#include "util/digest.h"
#include "json/tree.h"

enum { KEPT = 1024, CUT_MOST = 3 }; /* a character that was cut in two has three bytes left at most */

/* The text without the character that its bound cut in two; absent when it is no text. */
static struct bytes text_of(struct bytes response)
{
    size_t most = response.len == KEPT ? CUT_MOST : 0;
    for (size_t cut = 0; cut <= most; cut++) {
        json_t *text = json_stringn(response.at, response.len - cut);
        json_decref(text);
        if (text)
            return bytes_of(response.at, response.len - cut);
    }
    return BYTES_NONE;
}

/* Text as it is, anything else in base64; null when there was none, or for whoever may not see payload. */
static void write_response(struct ask *ask, struct bytes response)
{
    struct jsonw *w = &ask->json;
    bool shown = response.at && (ask->scopes & ADMIN_SCOPE_PAYLOAD);
    struct bytes text = shown ? text_of(response) : BYTES_NONE;
    struct buf encoded = {0};
    if (shown && !text.at)
        base64_encode(&encoded, response);
    jsonw_bytes(w, "response", !shown ? BYTES_NONE : text.at ? text : buf_bytes(&encoded));
    jsonw_str(w, "response_encoding", !shown ? NULL : text.at ? "text" : "base64");
    buf_free(&encoded);
}

static bool write_attempt(void *ctx, const struct store_attempt_view *attempt)
{
    struct ask *ask = ctx;
    struct jsonw *w = &ask->json;
    jsonw_object(w, NULL);
    jsonw_str(w, "sink", attempt->sink_name);
    jsonw_uint(w, "attempt", attempt->attempt);
    ask_time(ask, "at", attempt->at_ms);
    jsonw_str(w, "class", attempt->cls);
    jsonw_int(w, "http_status", attempt->http_status);
    jsonw_int(w, "duration_us", attempt->duration_us);
    jsonw_bytes(w, "reason", attempt->reason);
    write_response(ask, attempt->response);
    jsonw_end_object(w);
    return true;
}

void get_attempts(struct ask *ask)
{
    uint64_t seq;
    if (!ask_hook(ask, &seq))
        return;
    jsonw_object(&ask->json, NULL);
    jsonw_array(&ask->json, "attempts");
    enum status status = store_attempts_of(ask->reader, seq, write_attempt, ask);
    jsonw_end_array(&ask->json);
    jsonw_end_object(&ask->json);
    if (status != STATUS_OK)
        ask_store_failed(ask, status);
}
