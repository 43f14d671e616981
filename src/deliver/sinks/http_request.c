/* The head of a request: what the gateway says about the hook, its signature, configured headers, and the
 * provider's own. One place, so that one rule holds for all: a line is a line, whatever bytes a hook or a key
 * brings. */
#include <stdlib.h>
#include <string.h>

#include "deliver/sinks/http_priv.h"
#include "util/digest.h"
#include "util/jsonw.h"
#include "util/mem.h"

/* Never forwarded (contract, section 5): credentials of the provider's side, and what belongs to one
 * connection. */
static const char *const never_forwarded[] = {
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "x-gitlab-token",
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "expect",
    "content-type", /* sent once, from the envelope */
};
/* Never configured: who sends the message frames it. */
static const char *const never_set[] = {
    "content-length", "connection",        "keep-alive", "proxy-connection", "te",
    "trailer",        "transfer-encoding", "upgrade",    "expect",
};

static bool is_one_of(struct bytes name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_eq_nocase(name, bytes_str(names[i])))
            return true;
    return false;
}

void http_shape_init(struct http_shape *shape, const struct sink_options *options)
{
    shape->options = options;
    shape->prefix = mem_format("x-%s-", options->header_prefix);
    shape->prefix_len = strlen(shape->prefix);
    shape->is_ankusa = strcmp(options->header_prefix, "ankusa") == 0;
    shape->start = NULL;
}

void http_shape_free(struct http_shape *shape)
{
    free(shape->prefix);
    free(shape->start);
}

/* '_' for '-' too: to a receiver behind CGI, WSGI or Rack both are HTTP_X_LANEGATE_SEQ. */
static bool starts_alike(struct bytes name, struct bytes prefix)
{
    if (name.len < prefix.len)
        return false;
    for (size_t i = 0; i < prefix.len; i++) {
        struct bytes one = bytes_of(name.at + i, 1), other = bytes_of(prefix.at + i, 1);
        bool dashes = (*one.at == '-' || *one.at == '_') && (*other.at == '-' || *other.at == '_');
        if (!dashes && !bytes_eq_nocase(one, other))
            return false;
    }
    return true;
}

/* Names under which a receiver must be able to trust what it reads. */
static bool is_reserved(const struct http_shape *shape, struct bytes name)
{
    return starts_alike(name, BYTES("x-lanegate-")) || starts_alike(name, BYTES("x-ankusa-")) ||
           starts_alike(name, bytes_of(shape->prefix, shape->prefix_len)) ||
           (shape->options->secret_count > 0 && starts_alike(name, BYTES("webhook-")));
}

bool http_header_is_ours(const struct http_shape *shape, struct bytes name)
{
    return is_reserved(shape, name) || is_one_of(name, never_set, sizeof never_set / sizeof never_set[0]);
}

/* Is it named by one of the provider's own Connection headers? Those end at the first hop too. */
static bool is_nominated(const struct envelope *envelope, struct bytes name)
{
    for (size_t i = 0; i < envelope->header_count; i++)
        if (bytes_eq_nocase(envelope->headers[i].name, BYTES("connection")) &&
            bytes_list_has(envelope->headers[i].value, name))
            return true;
    return false;
}

static bool is_configured(const struct sink_options *options, struct bytes name)
{
    for (size_t i = 0; i < options->header_count; i++)
        if (bytes_eq_nocase(name, bytes_str(options->headers[i].name)))
            return true;
    return false;
}

/* The first line of a request over a plain connection, and Host, unless that is configured. */
void http_shape_plain(struct http_shape *shape, const char *target, const char *authority)
{
    const struct sink_options *options = shape->options;
    shape->start = is_configured(options, BYTES("host"))
                       ? mem_format("%s %s HTTP/1.1\r\n", options->method ? options->method : "POST", target)
                       : mem_format("%s %s HTTP/1.1\r\nHost: %s\r\n",
                                    options->method ? options->method : "POST", target, authority);
}

static bool is_forwarded(const struct http_shape *shape, const struct envelope *envelope, struct bytes name)
{
    const struct sink_options *options = shape->options;
    if (is_one_of(name, never_forwarded, sizeof never_forwarded / sizeof never_forwarded[0]) ||
        is_reserved(shape, name) || is_configured(options, name) || is_nominated(envelope, name))
        return false;
    return !options->forward_headers || is_one_of(name, options->forward_headers, options->forward_count);
}

/* -- lines
 * ------------------------------------------------------------------------------------------------------- */

static void begin(struct http_request *request)
{
    if (request->plain)
        return;
    if (request->count == request->size) {
        request->size = request->size ? request->size * 2 : 64;
        request->starts = mem_resize(request->starts, request->size * sizeof *request->starts);
        request->list = mem_resize(request->list, request->size * sizeof *request->list);
    }
    request->starts[request->count++] = request->text.len;
}

static void end(struct http_request *request)
{
    if (request->plain)
        buf_put(&request->text, "\r\n", 2);
    else
        buf_putc(&request->text, 0);
}

/* "x-lanegate-NAME: value"; request data is percent-encoded. */
static void ours(struct http_request *request, const struct http_shape *shape, const char *name,
                 struct bytes value)
{
    begin(request);
    buf_put(&request->text, shape->prefix, shape->prefix_len);
    buf_puts(&request->text, name);
    buf_puts(&request->text, ": ");
    percent_encode(&request->text, value);
    end(request);
}

static void ours_number(struct http_request *request, const struct http_shape *shape, const char *name,
                        uint64_t n)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    ours(request, shape, name, bytes_of(text, (size_t)len));
}

static void ours_uuid(struct http_request *request, const struct http_shape *shape, const char *name,
                      const struct uuid *id)
{
    char text[UUID_TEXT];
    uuid_format(id, text);
    ours(request, shape, name, bytes_str(text));
}

/* As it is, for bytes that were checked. libcurl writes an empty header for "name;" only. */
static void verbatim(struct http_request *request, struct bytes name, struct bytes value)
{
    begin(request);
    buf_putb(&request->text, name);
    if (value.len > 0) {
        buf_puts(&request->text, ": ");
        buf_putb(&request->text, value);
    } else {
        buf_putc(&request->text, request->plain ? ':' : ';');
    }
    end(request);
}

/* Keeps libcurl from adding one of its own. */
static void suppress(struct http_request *request, const char *name)
{
    if (request->plain)
        return;
    begin(request);
    buf_puts(&request->text, name);
    buf_putc(&request->text, ':');
    end(request);
}

/* A provider's header. Ingest let through 0x20-0x7E and tab only, and for such a value nothing changes here;
 * whatever else an older store may hold is encoded or left out, never sent raw. */
static void forward(struct http_request *request, const struct header *header)
{
    struct bytes value = bytes_trim(header->value);
    if (!bytes_is_token(header->name))
        return;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        if ((c >= 0x20 && c <= 0x7e) || c == '\t')
            continue;
        begin(request);
        buf_putb(&request->text, header->name);
        buf_puts(&request->text, ": ");
        percent_encode(&request->text, value);
        end(request);
        return;
    }
    verbatim(request, header->name, value);
}

/* -- groups of headers
 * ------------------------------------------------------------------------------------------- */

static void put_idempotency_key(struct http_request *request, const struct http_shape *shape,
                                const struct envelope *envelope)
{
    if (!envelope->dedupe_key.at) {
        ours_uuid(request, shape, "idempotency-key", &envelope->id);
        return;
    }
    begin(request);
    buf_put(&request->text, shape->prefix, shape->prefix_len);
    buf_puts(&request->text, "idempotency-key: ");
    buf_putb(&request->text, envelope->tenant); /* tenant and source are names of configuration's alphabet */
    buf_putc(&request->text, ':');
    buf_putb(&request->text, envelope->source);
    buf_putc(&request->text, ':');
    percent_encode(&request->text, envelope->dedupe_key);
    end(request);
    ours(request, shape, "dedupe-key", envelope->dedupe_key);
}

/* Consumers of Ankusa know a source without a tenant by the header's absence, and a hook that was taken
 * although it failed verification by a flag beside the word. */
static void put_identity(struct http_request *request, const struct http_shape *shape,
                         const struct attempt *attempt)
{
    const struct envelope *envelope = attempt->envelope;
    uint8_t digest[SHA256_SIZE];
    char hex[2 * SHA256_SIZE + 1];
    sha256(&envelope->body, 1, digest);
    hex_encode(digest, sizeof digest, hex);

    ours_uuid(request, shape, "id", &envelope->id);
    ours(request, shape, "source", envelope->source);
    if (!shape->is_ankusa || !bytes_eq(envelope->tenant, BYTES("default")))
        ours(request, shape, "tenant", envelope->tenant);
    put_idempotency_key(request, shape, envelope);
    ours_number(request, shape, "received-at", (uint64_t)envelope->received_at_ms);
    ours_number(request, shape, "attempt", attempt->number);
    ours(request, shape, "verification", bytes_str(verification_name(envelope->verification)));
    if (shape->is_ankusa && envelope->verification == VERIFICATION_FAILED)
        ours(request, shape, "verification-flagged", BYTES("true"));
    ours(request, shape, "body-sha256", bytes_of(hex, 2 * SHA256_SIZE));
    if (attempt->replayed)
        ours_uuid(request, shape, "replay-id", &attempt->replay_id);
}

static void put_order(struct http_request *request, const struct http_shape *shape,
                      const struct attempt *attempt)
{
    char lane[2 * sizeof attempt->lane + 1];
    hex_encode(attempt->lane, sizeof attempt->lane, lane);
    ours(request, shape, "ordering-key", attempt->key);
    ours(request, shape, "lane", bytes_str(lane));
    ours_uuid(request, shape, "epoch", &attempt->epoch);
    ours_number(request, shape, "seq", attempt->envelope->seq);
    if (attempt->previous_seq)
        ours_number(request, shape, "previous-seq", attempt->previous_seq);
    if (attempt->skipped)
        ours_number(request, shape, "skipped", attempt->skipped);
    if (attempt->late)
        ours(request, shape, "late", BYTES("true"));
}

/* Standard Webhooks: every secret signs, so that a receiver may change its own at leisure. */
static void put_signature(struct http_request *request, const struct http_shape *shape,
                          const struct envelope *envelope, int64_t unix_s)
{
    char id[UUID_TEXT], timestamp[24];
    uuid_format(&envelope->id, id);
    snprintf(timestamp, sizeof timestamp, "%lld", (long long)unix_s);
    const struct bytes signed_parts[] = {bytes_str(id), BYTES("."), bytes_str(timestamp), BYTES("."),
                                         envelope->body};

    verbatim(request, BYTES("webhook-id"), bytes_str(id));
    verbatim(request, BYTES("webhook-timestamp"), bytes_str(timestamp));
    begin(request);
    buf_puts(&request->text, "webhook-signature:");
    for (size_t i = 0; i < shape->options->secret_count; i++) {
        uint8_t mac[SHA256_SIZE];
        hmac_sha256(shape->options->secrets[i], signed_parts, sizeof signed_parts / sizeof signed_parts[0],
                    mac);
        buf_puts(&request->text, " v1,");
        base64_encode(&request->text, bytes_of(mac, sizeof mac));
    }
    end(request);
}

static void put_content_type(struct http_request *request, const struct http_shape *shape,
                             const struct envelope *envelope)
{
    if (is_configured(shape->options, BYTES("content-type")))
        return;
    if (envelope->content_type.at)
        forward(request, &(struct header){BYTES("content-type"), envelope->content_type});
    else
        suppress(request, "content-type");
}

/* Every line but those of the message's own frame. */
static void put_lines(struct http_request *request, const struct http_shape *shape,
                      const struct attempt *attempt, int64_t unix_s)
{
    const struct sink_options *options = shape->options;
    const struct envelope *envelope = attempt->envelope;
    bool names_agent = is_configured(options, BYTES("user-agent"));

    suppress(request, "expect");
    suppress(request, "accept");
    put_content_type(request, shape, envelope);
    put_identity(request, shape, attempt);
    if (attempt->ordered)
        put_order(request, shape, attempt);
    if (options->secret_count > 0)
        put_signature(request, shape, envelope, unix_s);
    for (size_t i = 0; i < options->header_count; i++)
        verbatim(request, bytes_str(options->headers[i].name),
                 bytes_trim(bytes_str(options->headers[i].value)));
    for (size_t i = 0; i < envelope->header_count; i++) {
        if (!is_forwarded(shape, envelope, envelope->headers[i].name))
            continue;
        forward(request, &envelope->headers[i]);
        names_agent |= bytes_eq_nocase(envelope->headers[i].name, BYTES("user-agent"));
    }
    if (!names_agent)
        verbatim(request, BYTES("User-Agent"), BYTES("lanegate/" LANEGATE_VERSION));
}

struct curl_slist *http_request_list(struct http_request *request, const struct http_shape *shape,
                                     const struct attempt *attempt, int64_t unix_s)
{
    request->plain = false;
    request->count = 0;
    buf_clear(&request->text);
    put_lines(request, shape, attempt, unix_s);
    for (size_t i = 0; i < request->count; i++) {
        request->list[i].data = request->text.at + request->starts[i];
        request->list[i].next = i + 1 < request->count ? &request->list[i + 1] : NULL;
    }
    return request->list;
}

struct bytes http_request_head(struct http_request *request, const struct http_shape *shape,
                               const struct attempt *attempt, int64_t unix_s)
{
    request->plain = true;
    buf_clear(&request->text);
    buf_puts(&request->text, shape->start);
    put_lines(request, shape, attempt, unix_s);
    buf_putf(&request->text, "Content-Length: %zu\r\n\r\n", attempt->envelope->body.len);
    return buf_bytes(&request->text);
}

void http_request_free(struct http_request *request)
{
    buf_free(&request->text);
    free(request->starts);
    free(request->list);
}
