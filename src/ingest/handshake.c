#include "ingest/handshake.h"

#include <stdlib.h>

#include "util/digest.h"
#include "util/form_fields.h"
#include "util/jsonw.h"
#include "util/mem.h"

/* A question is small: beyond this it is a hook. And the longest text that is sent back. */
enum { QUESTION_MAX = 64 * 1024, ANSWER_MAX = 2048, ZOOM_TOKEN_MAX = 128 };

struct handshake {
    struct json_paths *paths; /* slack, zoom: what kind of request it is, and the text to answer */
};

static struct json_paths *paths_of(struct bytes kind, struct bytes outer, struct bytes inner)
{
    const struct bytes nested[] = {outer, inner};
    const struct json_path paths[] = {
        {.segments = &kind, .segment_count = 1},
        {.segments = outer.at ? nested : &nested[1], .segment_count = outer.at ? 2 : 1}};
    return json_paths_new(paths, 2);
}

struct handshake *handshake_open(const struct ingest_source *source)
{
    if (source->handshake == INGEST_NO_HANDSHAKE)
        return NULL;
    struct handshake *handshake = mem_zalloc(sizeof *handshake);
    if (source->handshake == INGEST_SLACK)
        handshake->paths = paths_of(BYTES("type"), BYTES_NONE, BYTES("challenge"));
    if (source->handshake == INGEST_ZOOM)
        handshake->paths = paths_of(BYTES("event"), BYTES("payload"), BYTES("plainToken"));
    return handshake;
}

void handshake_close(struct handshake *handshake)
{
    if (!handshake)
        return;
    json_paths_free(handshake->paths);
    free(handshake);
}

/* -- answers ------------------------------------------------------------------------------------------ */

static bool is_printable(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < ' ' || text.at[i] > '~')
            return false;
    return text.len > 0 && text.len <= ANSWER_MAX;
}

static void answer(const struct entry *entry, struct http_exchange *exchange, const char *type,
                   struct bytes body)
{
    static const struct http_header nosniff = {{"x-content-type-options", 22}, {"nosniff", 7}};
    counter_add(entry->handshakes, 1);
    http_answer(exchange,
                &(struct http_answer){
                    .status = 200, .type = type, .body = body, .headers = &nosniff, .header_count = 1});
}

static void answer_text(const struct entry *entry, struct http_exchange *exchange, struct bytes text)
{
    if (is_printable(text)) {
        answer(entry, exchange, "text/plain; charset=utf-8", text);
        return;
    }
    counter_add(entry->refused[REFUSE_BAD_REQUEST], 1);
    refuse(exchange, REFUSE_BAD_REQUEST, NULL);
}

/* -- meta and graph ------------------------------------------------------------------------------------- */

/* Compared by digest: how long it takes tells nothing about a token, not even its length. */
static bool is_token(const struct ingest_source *source, struct bytes given)
{
    uint8_t theirs[SHA256_SIZE], ours[SHA256_SIZE];
    bool good = false;
    sha256(&given, 1, theirs);
    for (size_t i = 0; i < source->verify_token_count; i++) {
        sha256(&source->verify_tokens[i], 1, ours);
        good |= bytes_eq_constant_time(bytes_of(ours, sizeof ours), bytes_of(theirs, sizeof theirs));
    }
    return good;
}

/* developers.facebook.com/docs/graph-api/webhooks/getting-started, "Verification Requests":
 * GET ?hub.mode=subscribe&hub.challenge=...&hub.verify_token=..., answered with the challenge. */
static bool answer_meta(const struct entry *entry, const struct http_request *request)
{
    struct buf mode = {0}, token = {0}, challenge = {0};
    bool asks = bytes_eq(request->method, BYTES("GET")) &&
                form_field(request->query, BYTES("hub.mode"), &mode) &&
                bytes_eq(buf_bytes(&mode), BYTES("subscribe")) &&
                form_field(request->query, BYTES("hub.verify_token"), &token) &&
                form_field(request->query, BYTES("hub.challenge"), &challenge);
    if (asks && is_token(entry->source, buf_bytes(&token))) {
        answer_text(entry, request->exchange, buf_bytes(&challenge));
    } else if (asks) {
        counter_add(entry->refused[REFUSE_VERIFICATION_FAILED], 1);
        refuse(request->exchange, REFUSE_VERIFICATION_FAILED,
               &(struct refusal_detail){.name = "reason", .value = BYTES("bad_token")});
    }
    buf_free(&mode);
    buf_free(&token);
    buf_free(&challenge);
    return asks;
}

/* learn.microsoft.com/graph/change-notifications-delivery-webhooks, "notificationUrl validation": a POST with
 * ?validationToken=... and nothing in it, answered with the decoded token. SharePoint writes validationtoken.
 */
static bool answer_graph(const struct entry *entry, const struct http_request *request)
{
    struct buf token = {0};
    bool asks = request->body.len == 0 && (form_field(request->query, BYTES("validationToken"), &token) ||
                                           form_field(request->query, BYTES("validationtoken"), &token));
    if (asks)
        answer_text(entry, request->exchange, buf_bytes(&token));
    buf_free(&token);
    return asks;
}

bool handshake_unsigned(const struct entry *entry, const struct http_request *request)
{
    switch (entry->source->handshake) {
    case INGEST_META:
        return answer_meta(entry, request);
    case INGEST_GRAPH:
        return answer_graph(entry, request);
    default:
        return false;
    }
}

/* -- slack and zoom -------------------------------------------------------------------------------------- */

static bool is_text(const struct json_found *found)
{
    return found->kind == JSON_KIND_STRING && !found->lone_surrogate;
}

/* docs.slack.dev/reference/events/url_verification: answered with the challenge. */
static void answer_slack(const struct entry *entry, struct http_exchange *exchange, struct bytes challenge)
{
    answer_text(entry, exchange, challenge);
}

/* developers.zoom.us/docs/api/webhooks, "Validate your webhook endpoint": the token, and its HMAC-SHA256.
 * Whoever could choose any text here could have a hook of his own signed ("v0:time:body"): only a signed
 * question is answered, and only a token without colons. */
static void answer_zoom(const struct entry *entry, const struct envelope *envelope,
                        struct http_exchange *exchange, struct bytes token)
{
    char hex[65];
    bool plain = token.len > 0 && token.len <= ZOOM_TOKEN_MAX;
    for (size_t i = 0; plain && i < token.len; i++)
        plain = is_printable(bytes_of(token.at + i, 1)) && !strchr(":\"\\{} ", token.at[i]);
    if (!plain ||
        !verify_countersign(entry->source->verifier, envelope, envelope->received_at_ms, token, hex)) {
        counter_add(entry->refused[REFUSE_BAD_REQUEST], 1);
        refuse(exchange, REFUSE_BAD_REQUEST, NULL);
        return;
    }
    struct buf body = {0};
    struct jsonw w = jsonw_on(&body);
    jsonw_object(&w, NULL);
    jsonw_bytes(&w, "plainToken", token);
    jsonw_str(&w, "encryptedToken", hex);
    jsonw_end_object(&w);
    answer(entry, exchange, NULL, buf_bytes(&body));
    buf_free(&body);
}

bool handshake_signed(const struct entry *entry, const struct envelope *envelope,
                      struct http_exchange *exchange)
{
    enum ingest_handshake kind = entry->source->handshake;
    struct json_found found[2];
    if (!entry->handshake || !entry->handshake->paths || envelope->body.len > QUESTION_MAX ||
        !json_walk(envelope->body, entry->handshake->paths, found) || !is_text(&found[0]) ||
        !is_text(&found[1]))
        return false;
    char *text = arena_alloc(envelope->arena, found[0].raw.len + found[1].raw.len + 1);
    struct bytes asked = bytes_of(text, json_string_decode(&found[0], text));
    struct bytes word = kind == INGEST_SLACK ? BYTES("url_verification") : BYTES("endpoint.url_validation");
    if (!bytes_eq(asked, word))
        return false;
    char *at = text + asked.len;
    struct bytes challenge = bytes_of(at, json_string_decode(&found[1], at));
    if (kind == INGEST_SLACK)
        answer_slack(entry, exchange, challenge);
    else
        answer_zoom(entry, envelope, exchange, challenge);
    return true;
}
