#include "envelope/raw.h"

#include <stdlib.h>
#include <string.h>

enum { RAW_HEADERS_MAX = 1000 };

struct reading {
    struct bytes rest;
    size_t line; /* of the line taken last, from 1 */
    struct error *err;
};

/* The next line without its end; false when there is no line end any more. */
static bool take_line(struct reading *in, struct bytes *line)
{
    const char *end = in->rest.len ? memchr(in->rest.at, '\n', in->rest.len) : NULL;
    if (!end)
        return false;
    *line = bytes_of(in->rest.at, (size_t)(end - in->rest.at));
    in->rest = bytes_of(end + 1, in->rest.len - line->len - 1);
    if (line->len && line->at[line->len - 1] == '\r')
        line->len--;
    in->line++;
    return true;
}

/* "POST /webhooks/shop?a=b HTTP/1.1"; the version may be missing. */
static enum status read_request_line(struct reading *in, struct envelope *envelope)
{
    struct bytes line;
    if (!take_line(in, &line))
        return error_set(in->err, STATUS_INVALID,
                         "expected a raw HTTP request that begins with a line like \"POST /webhooks/shop "
                         "HTTP/1.1\", found no line");
    const char *blank = line.len ? memchr(line.at, ' ', line.len) : NULL;
    struct bytes method = blank ? bytes_of(line.at, (size_t)(blank - line.at)) : BYTES_NONE;
    struct bytes target = blank ? bytes_of(blank + 1, line.len - method.len - 1) : BYTES_NONE;
    const char *version = target.len ? memchr(target.at, ' ', target.len) : NULL;
    if (version &&
        !bytes_starts(bytes_of(version, (size_t)(target.at + target.len - version)), BYTES(" HTTP/")))
        target = BYTES_NONE;
    else if (version)
        target.len = (size_t)(version - target.at);
    if (!bytes_is_token(method) || target.len == 0 || target.at[0] != '/')
        return error_set(in->err, STATUS_INVALID,
                         "line 1: expected \"METHOD /path HTTP/1.1\", found \"%.60s\"",
                         arena_copy(envelope->arena, line).at);
    const char *mark = memchr(target.at, '?', target.len);
    size_t path_len = mark ? (size_t)(mark - target.at) : target.len;
    envelope->method = arena_copy(envelope->arena, method);
    envelope->path = arena_copy(envelope->arena, bytes_of(target.at, path_len));
    if (mark)
        envelope->query = arena_copy(envelope->arena, bytes_of(mark + 1, target.len - path_len - 1));
    return STATUS_OK;
}

static enum status read_header(struct reading *in, struct envelope *envelope, struct bytes line,
                               struct header *header)
{
    const char *colon = memchr(line.at, ':', line.len);
    struct bytes name = colon ? bytes_of(line.at, (size_t)(colon - line.at)) : BYTES_NONE;
    if (!bytes_is_token(name))
        return error_set(in->err, STATUS_INVALID, "line %zu: expected \"Name: value\", found \"%.60s\"",
                         in->line, arena_copy(envelope->arena, line).at);
    struct bytes value = bytes_trim(bytes_of(colon + 1, line.len - name.len - 1));
    *header = (struct header){arena_copy(envelope->arena, name), arena_copy(envelope->arena, value)};
    return STATUS_OK;
}

static enum status read_headers(struct reading *in, struct envelope *envelope)
{
    struct header *headers = arena_alloc(envelope->arena, RAW_HEADERS_MAX * sizeof *headers);
    size_t count = 0;
    struct bytes line;
    enum status status = STATUS_OK;
    while (take_line(in, &line) && line.len > 0) {
        if (count == RAW_HEADERS_MAX)
            return error_set(in->err, STATUS_INVALID, "more than %d headers", RAW_HEADERS_MAX);
        status = read_header(in, envelope, line, &headers[count++]);
        if (status != STATUS_OK)
            return status;
    }
    if (line.len > 0)
        return error_set(in->err, STATUS_INVALID, "expected an empty line behind the headers, found the end");
    envelope->headers = headers;
    envelope->header_count = count;
    envelope->content_type = envelope_header(envelope, BYTES("content-type"));
    return STATUS_OK;
}

static enum status read_body(struct reading *in, struct envelope *envelope)
{
    struct bytes length = envelope_header(envelope, BYTES("content-length")), body = in->rest;
    struct bytes coding = envelope_header(envelope, BYTES("transfer-encoding"));
    if (coding.at && !length.at)
        return error_set(
            in->err, STATUS_INVALID,
            "the body is sent with Transfer-Encoding: %s; write it plain, and leave that header out",
            coding.at);
    if (length.at) {
        char *end;
        unsigned long long bytes = strtoull(length.at, &end, 10);
        if (length.len == 0 || length.at[0] < '0' || length.at[0] > '9' || *end)
            return error_set(in->err, STATUS_INVALID, "expected a number as Content-Length, found \"%.60s\"",
                             length.at);
        size_t extra = body.len > bytes ? body.len - (size_t)bytes : 0;
        bool line_end = extra == 1 ? body.at[body.len - 1] == '\n'
                                   : extra == 2 && memcmp(body.at + body.len - 2, "\r\n", 2) == 0;
        if (body.len < bytes || (extra && !line_end))
            return error_set(
                in->err, STATUS_INVALID,
                "Content-Length says %llu bytes, the body has %zu; correct the header or leave it out", bytes,
                body.len);
        body.len -= extra;
    }
    envelope->body = arena_copy(envelope->arena, body.len ? body : BYTES(""));
    return STATUS_OK;
}

enum status envelope_from_raw(struct bytes raw, struct envelope **out, struct error *err)
{
    struct envelope *envelope = envelope_new(raw.len + 1024);
    struct reading in = {.rest = raw, .err = err};
    enum status status = read_request_line(&in, envelope);
    if (status == STATUS_OK)
        status = read_headers(&in, envelope);
    if (status == STATUS_OK)
        status = read_body(&in, envelope);
    if (status != STATUS_OK) {
        envelope_unref(envelope);
        envelope = NULL;
    }
    *out = envelope;
    return status;
}
