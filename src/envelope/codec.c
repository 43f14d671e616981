/* The stored form of an envelope's head.
 *
 *     u8      version: 1
 *     u8      verification
 *     u8      which of the seven texts below are there, lowest bit first
 *     text    method, path, query, content_type, remote_ip, dedupe_key, client_cert (those that
 *             are there)
 *     varint  number of headers
 *     text    name, value (of each)
 *
 * A text is a varint length and its bytes. A varint is little-endian in groups of 7 bits, at most 5 bytes and
 * as short as it can be, so that a value has one form only. Nothing may follow the last header. */
#include "envelope/envelope.h"

#include "util/check.h"

enum { VERSION = 1, TEXTS = 7, VARINT_MAX = 5 };

/* Each member once, in stored order: writer and reader walk the same list. */
static void texts_of(struct envelope *envelope, struct bytes *texts[TEXTS])
{
    texts[0] = &envelope->method;
    texts[1] = &envelope->path;
    texts[2] = &envelope->query;
    texts[3] = &envelope->content_type;
    texts[4] = &envelope->remote_ip;
    texts[5] = &envelope->dedupe_key;
    texts[6] = &envelope->client_cert;
}

static char *put_varint(char *at, uint32_t n)
{
    while (n >= 0x80) {
        *at++ = (char)(n | 0x80);
        n >>= 7;
    }
    *at++ = (char)n;
    return at;
}

static char *put_text(char *at, struct bytes text)
{
    at = put_varint(at, (uint32_t)text.len);
    if (text.len > 0)
        memcpy(at, text.at, text.len);
    return at + text.len;
}

/* What it takes at most: every length as if it needed a whole varint. */
static size_t most_bytes(const struct envelope *envelope)
{
    struct bytes *texts[TEXTS];
    texts_of((struct envelope *)envelope, texts);
    size_t most = 3 + VARINT_MAX;
    for (unsigned i = 0; i < TEXTS; i++)
        most += VARINT_MAX + texts[i]->len;
    for (size_t i = 0; i < envelope->header_count; i++)
        most += 2 * VARINT_MAX + envelope->headers[i].name.len + envelope->headers[i].value.len;
    CHECK(most < UINT32_MAX);
    return most;
}

/* Behind the last byte written. */
static char *write_head(const struct envelope *envelope, char *at)
{
    struct bytes *texts[TEXTS];
    texts_of((struct envelope *)envelope, texts);
    uint8_t present = 0;
    for (unsigned i = 0; i < TEXTS; i++)
        present |= (uint8_t)((texts[i]->at != NULL) << i);

    *at++ = VERSION;
    *at++ = (char)envelope->verification;
    *at++ = (char)present;
    for (unsigned i = 0; i < TEXTS; i++) {
        if (texts[i]->at)
            at = put_text(at, *texts[i]);
    }
    at = put_varint(at, (uint32_t)envelope->header_count);
    for (size_t i = 0; i < envelope->header_count; i++) {
        at = put_text(at, envelope->headers[i].name);
        at = put_text(at, envelope->headers[i].value);
    }
    return at;
}

void envelope_encode(const struct envelope *envelope, struct buf *out)
{
    size_t most = most_bytes(envelope);
    char *start = buf_extend(out, most);
    if (!start)
        return;
    char *end = write_head(envelope, start);
    out->len -= most - (size_t)(end - start);
    *end = 0;
}

struct bytes envelope_encode_in(const struct envelope *envelope, struct arena *arena)
{
    char *start = arena_alloc(arena, most_bytes(envelope));
    char *end = write_head(envelope, start);
    return bytes_of(start, (size_t)(end - start));
}

/* What is left to read. The first odd thing sets `bad`; later reads give zeros and empty texts. */
struct cursor {
    const char *at;
    size_t left;
    bool bad;
};

static uint8_t get_byte(struct cursor *in)
{
    if (in->bad || in->left == 0) {
        in->bad = true;
        return 0;
    }
    in->left--;
    return (uint8_t)*in->at++;
}

static uint32_t get_varint(struct cursor *in)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < VARINT_MAX; i++) {
        uint8_t byte = get_byte(in);
        n |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            in->bad |= (i > 0 && byte == 0) || n > UINT32_MAX;
            return in->bad ? 0 : (uint32_t)n;
        }
    }
    in->bad = true;
    return 0;
}

static struct bytes get_text(struct cursor *in)
{
    uint32_t len = get_varint(in);
    if (in->bad || len > in->left) {
        in->bad = true;
        return BYTES("");
    }
    struct bytes text = bytes_of(in->at, len);
    in->at += len;
    in->left -= len;
    return text;
}

enum status envelope_decode(const struct envelope_parts *parts, struct envelope **out)
{
    struct bytes body = parts->body.at ? parts->body : BYTES("");
    /* Headers cost a struct each: with few and short ones as much as the text itself, and more. */
    struct envelope *envelope = envelope_new(parts->head.len * 2 + body.len + 256);
    struct arena *arena = envelope->arena;
    envelope->id = parts->id;
    envelope->seq = parts->seq;
    envelope->received_at_ms = parts->received_at_ms;
    envelope->tenant = arena_copy(arena, parts->tenant);
    envelope->source = arena_copy(arena, parts->source);
    envelope->body = arena_copy(arena, body);

    /* One copy of the head; every text below points into it. */
    struct bytes head = arena_copy(arena, parts->head);
    struct cursor in = {head.at, head.len, false};
    in.bad |= get_byte(&in) != VERSION;
    uint8_t verification = get_byte(&in);
    in.bad |= verification > VERIFICATION_FAILED;
    envelope->verification = (enum verification)verification;
    uint8_t present = get_byte(&in);
    in.bad |= present >> TEXTS != 0;

    struct bytes *texts[TEXTS];
    texts_of(envelope, texts);
    for (unsigned i = 0; i < TEXTS; i++) {
        if (present & 1 << i)
            *texts[i] = get_text(&in);
    }

    uint32_t count = get_varint(&in);
    if (in.bad || count > in.left / 2) /* a header is two lengths at least: memory stays in proportion */
        goto corrupt;
    struct header *headers = arena_alloc(arena, count * sizeof *headers);
    for (uint32_t i = 0; i < count; i++) {
        headers[i].name = get_text(&in);
        headers[i].value = get_text(&in);
    }
    if (in.bad || in.left > 0)
        goto corrupt;
    envelope->headers = headers;
    envelope->header_count = count;
    *out = envelope;
    return STATUS_OK;

corrupt:
    envelope_unref(envelope);
    *out = NULL;
    return STATUS_CORRUPT;
}
