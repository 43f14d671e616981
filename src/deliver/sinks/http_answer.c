#include "deliver/sinks/http_answer.h"

#include <stdlib.h>
#include <string.h>

#include "deliver/sinks/http_priv.h"
#include "util/clock.h"

enum {
    LENGTH_DIGITS_MAX = 18,
    CHUNK_DIGITS_MAX = 15,
    HEAD_KEPT_MAX = 4096, /* of the memory for heads that come in pieces */
};

/* What a head says about the end of its answer. */
struct framing {
    bool is_1_0, closes, stays; /* the version; what Connection asks for, or what is odd about the head */
    bool has_length, bad_length, has_coding, chunked;
    bool folds_badly; /* a folded line would change one of these */
    uint64_t length;
};

void answer_begin(struct answer *answer)
{
    struct buf head = answer->head;
    if (head.size > HEAD_KEPT_MAX)
        buf_free(&head);
    buf_clear(&head);
    *answer = (struct answer){.head = head};
}

void answer_free(struct answer *answer)
{
    buf_free(&answer->head);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.x NNN", and behind it whatever it likes. */
static bool status_line(struct bytes line, int *status, bool *is_1_0)
{
    if (line.len < 12 || !bytes_starts_nocase(line, BYTES("HTTP/1.")) || line.at[8] != ' ')
        return false;
    if (line.at[7] != '0' && line.at[7] != '1')
        return false;
    struct bytes rest = bytes_trim(bytes_of(line.at + 8, line.len - 8));
    if (rest.len < 3 || !is_digit(rest.at[0]) || !is_digit(rest.at[1]) || !is_digit(rest.at[2]))
        return false;
    if (rest.len > 3 && is_digit(rest.at[3]))
        return false;
    *status = 100 * (rest.at[0] - '0') + 10 * (rest.at[1] - '0') + (rest.at[2] - '0');
    *is_1_0 = line.at[7] == '0';
    return *status >= 100;
}

static bool parse_length(struct bytes text, uint64_t *length)
{
    *length = 0;
    size_t at = 0;
    while (at + 1 < text.len && text.at[at] == '0')
        at++;
    if (text.len == 0 || text.len - at > LENGTH_DIGITS_MAX)
        return false;
    for (; at < text.len; at++) {
        if (!is_digit(text.at[at]))
            return false;
        *length = 10 * *length + (uint64_t)(text.at[at] - '0');
    }
    return true;
}

/* More than once is fine when all say the same (RFC 9110, section 8.6). */
static void take_length(struct framing *framing, struct bytes value)
{
    struct bytes item;
    while (bytes_next_item(&value, &item)) {
        uint64_t length;
        if (!parse_length(bytes_trim(item), &length) || (framing->has_length && framing->length != length))
            framing->bad_length = true;
        framing->has_length = true;
        framing->length = length;
    }
}

/* The last coding decides whether the end can be seen; with anything but "chunked" alone we do not look for
 * another answer behind it. */
static void take_coding(struct framing *framing, struct bytes value)
{
    struct bytes last = BYTES_NONE, left = value;
    while (bytes_next_item(&left, &last))
        ;
    framing->chunked = bytes_eq_nocase(bytes_trim(last), BYTES("chunked"));
    if (framing->has_coding || !bytes_eq_nocase(value, BYTES("chunked")))
        framing->closes = true;
    framing->has_coding = true;
}

static bool take_header(struct framing *framing, struct http_seen *seen, struct bytes line)
{
    if (memchr(line.at, 0, line.len))
        return false;
    if (line.at[0] == ' ' || line.at[0] == '\t')
        return !framing->folds_badly;
    const char *colon = memchr(line.at, ':', line.len);
    if (!colon || colon == line.at)
        return false;
    struct bytes name = bytes_of(line.at, (size_t)(colon - line.at));
    struct bytes value = bytes_trim(bytes_of(colon + 1, line.len - name.len - 1));
    /* Some reader may take such a line for one that frames the answer. */
    if (!bytes_is_token(name) || memchr(line.at, '\r', line.len))
        framing->closes = true;
    framing->folds_badly = true;
    if (bytes_eq_nocase(name, BYTES("content-length"))) {
        take_length(framing, value);
    } else if (bytes_eq_nocase(name, BYTES("transfer-encoding"))) {
        take_coding(framing, value);
    } else if (bytes_eq_nocase(name, BYTES("connection"))) {
        framing->closes |= bytes_list_has(value, BYTES("close"));
        framing->stays |= bytes_list_has(value, BYTES("keep-alive"));
    } else {
        framing->folds_badly = false;
        if (bytes_eq_nocase(name, BYTES("retry-after")))
            seen->has_retry_after = http_retry_after_parse(value, clock_unix_ms(), &seen->retry_after_ms);
    }
    return true;
}

/* Takes one line and its LF off the front of `text`, which has one. */
static struct bytes next_line(struct bytes *text)
{
    const char *lf = memchr(text->at, '\n', text->len);
    size_t len = (size_t)(lf - text->at), skip = len + 1;
    struct bytes line = bytes_of(text->at, len);
    if (line.len && line.at[line.len - 1] == '\r')
        line.len--;
    *text = bytes_of(text->at + skip, text->len - skip);
    return line;
}

/* Where the body begins: behind the first empty line; 0 when that is not here. `from`: looked at before. */
static size_t head_length(struct bytes text, size_t from)
{
    from = from > 3 ? from - 3 : 0;
    const char *end = text.at + text.len;
    for (const char *at = text.at + from; (at = memchr(at, '\n', (size_t)(end - at))); at++) {
        if (end - at > 1 && at[1] == '\n')
            return (size_t)(at - text.at) + 2;
        if (end - at > 2 && at[1] == '\r' && at[2] == '\n')
            return (size_t)(at - text.at) + 3;
    }
    return 0;
}

static bool has_no_body(int status)
{
    return status == 101 || status == 204 || status == 304;
}

/* How the answer ends, now that its head is known (RFC 9112, section 6.3). */
static enum answer_state begin_body(struct answer *answer, const struct framing *framing)
{
    answer->keeps = !framing->closes && (!framing->is_1_0 || framing->stays) &&
                    !(framing->has_coding && (framing->has_length || framing->is_1_0));
    if (has_no_body(answer->status)) {
        /* 101: nobody asked for another protocol. 204: who announces a body may send one. */
        bool announced =
            framing->has_coding || framing->bad_length || (framing->length && answer->status != 304);
        answer->keeps &= answer->status != 101 && !announced;
        return ANSWER_COMPLETE;
    }
    if (framing->chunked) {
        answer->part = PART_CHUNK_SIZE;
        return ANSWER_GOES_ON;
    }
    if (framing->bad_length)
        return ANSWER_NOT_HTTP;
    if (framing->has_length && !framing->has_coding) {
        answer->part = PART_BODY;
        answer->left = framing->length;
        return answer->left ? ANSWER_GOES_ON : ANSWER_COMPLETE;
    }
    answer->keeps = false;
    answer->part = PART_UNTIL_CLOSE;
    return ANSWER_GOES_ON;
}

/* A whole head. An interim one (1xx) is followed by the next. */
static enum answer_state take_head(struct answer *answer, struct http_seen *seen, struct bytes head)
{
    struct framing framing = {.folds_badly = true};
    seen->has_retry_after = false;
    if (!status_line(next_line(&head), &answer->status, &framing.is_1_0))
        return ANSWER_NOT_HTTP;
    for (;;) {
        struct bytes line = next_line(&head);
        if (line.len == 0)
            break;
        if (!take_header(&framing, seen, line))
            return ANSWER_NOT_HTTP;
    }
    if (answer->status < 200 && answer->status != 101) {
        answer->status = 0;
        seen->has_retry_after = false;
        return ANSWER_GOES_ON;
    }
    return begin_body(answer, &framing);
}

/* What can be told of a head that is not whole: that it will never be one, and its status. */
static enum answer_state look_at_start(struct answer *answer, struct bytes start)
{
    struct bytes word = BYTES("HTTP/1.");
    bool is_1_0;
    if (start.len < word.len)
        word.len = start.len;
    if (!bytes_starts_nocase(start, word))
        return ANSWER_NOT_HTTP;
    if (answer->status == 0 && memchr(start.at, '\n', start.len) &&
        !status_line(next_line(&start), &answer->status, &is_1_0))
        return ANSWER_NOT_HTTP;
    return ANSWER_GOES_ON;
}

static enum answer_state take_of_head(struct answer *answer, struct http_seen *seen, struct bytes *bytes)
{
    size_t before = answer->head.len, len;
    struct bytes text = *bytes;
    if (before > 0) {
        buf_putb(&answer->head, *bytes);
        text = buf_bytes(&answer->head);
    }
    len = head_length(text, before);
    if (len == 0) {
        if (before == 0)
            buf_putb(&answer->head, *bytes);
        *bytes = bytes_of(bytes->at + bytes->len, 0);
        return look_at_start(answer, buf_bytes(&answer->head));
    }
    enum answer_state state = take_head(answer, seen, bytes_of(text.at, len));
    buf_clear(&answer->head);
    *bytes = bytes_of(bytes->at + (len - before), bytes->len - (len - before));
    return state;
}

static void keep_start(struct http_seen *seen, struct bytes body)
{
    size_t room = sizeof seen->response - seen->response_len;
    size_t kept = body.len < room ? body.len : room;
    memcpy(seen->response + seen->response_len, body.at, kept);
    seen->response_len += kept;
}

static void take_body(struct answer *answer, struct http_seen *seen, struct bytes *bytes)
{
    size_t len = bytes->len;
    if (answer->part != PART_UNTIL_CLOSE && len > answer->left)
        len = (size_t)answer->left;
    keep_start(seen, bytes_of(bytes->at, len));
    answer->left -= answer->part != PART_UNTIL_CLOSE ? len : 0;
    *bytes = bytes_of(bytes->at + len, bytes->len - len);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One byte of "1a;extension CR LF". */
static enum answer_state take_of_size(struct answer *answer, char c)
{
    int digit = answer->beyond_digits ? -1 : hex_value(c);
    if (digit >= 0) {
        answer->left = answer->left << 4 | (unsigned)digit;
        return ++answer->digits > CHUNK_DIGITS_MAX ? ANSWER_NOT_HTTP : ANSWER_GOES_ON;
    }
    bool ends_digits = c == ';' || c == '\r' || c == '\n' || c == ' ' || c == '\t';
    if (answer->digits == 0 || (!answer->beyond_digits && !ends_digits))
        return ANSWER_NOT_HTTP;
    answer->beyond_digits = true;
    if (c == '\n') {
        answer->part = answer->left ? PART_CHUNK : PART_TRAILER;
        answer->digits = 0;
        answer->beyond_digits = false;
    }
    return ANSWER_GOES_ON;
}

/* One byte of a trailer; an empty line is its end. */
static enum answer_state take_of_trailer(struct answer *answer, char c)
{
    if (c == '\n' && !answer->has_text)
        return ANSWER_COMPLETE;
    answer->has_text = c != '\n' && (answer->has_text || c != '\r');
    return ANSWER_GOES_ON;
}

/* One byte of the framing of chunks. */
static enum answer_state take_of_framing(struct answer *answer, char c)
{
    if (answer->behind_cr && c != '\n')
        answer->keeps = false; /* to some readers a line ended there */
    answer->behind_cr = c == '\r';
    switch (answer->part) {
    case PART_CHUNK_SIZE:
        return take_of_size(answer, c);
    case PART_CHUNK_END:
        if (c == '\n')
            answer->part = PART_CHUNK_SIZE;
        return c == '\n' || c == '\r' ? ANSWER_GOES_ON : ANSWER_NOT_HTTP;
    default:
        return take_of_trailer(answer, c);
    }
}

static enum answer_state take_part(struct answer *answer, struct http_seen *seen, struct bytes *bytes)
{
    switch (answer->part) {
    case PART_HEAD:
        return take_of_head(answer, seen, bytes);
    case PART_BODY:
        take_body(answer, seen, bytes);
        return answer->left ? ANSWER_GOES_ON : ANSWER_COMPLETE;
    case PART_UNTIL_CLOSE:
        take_body(answer, seen, bytes);
        return ANSWER_GOES_ON;
    case PART_CHUNK:
        take_body(answer, seen, bytes);
        if (answer->left == 0)
            answer->part = PART_CHUNK_END;
        return ANSWER_GOES_ON;
    default:
        *bytes = bytes_of(bytes->at + 1, bytes->len - 1);
        return take_of_framing(answer, bytes->at[-1]);
    }
}

enum answer_state answer_take(struct answer *answer, struct http_seen *seen, struct bytes bytes)
{
    enum answer_state state = ANSWER_GOES_ON;
    seen->received += bytes.len;
    while (state == ANSWER_GOES_ON && bytes.len > 0)
        state = take_part(answer, seen, &bytes);
    if (bytes.len > 0)
        answer->keeps = false;
    if (state == ANSWER_GOES_ON && seen->received > HTTP_RESPONSE_MAX)
        return answer->part == PART_HEAD ? ANSWER_HEAD_LARGE : ANSWER_CUT;
    return state;
}

enum answer_state answer_end(struct answer *answer)
{
    return answer->part == PART_UNTIL_CLOSE ? ANSWER_COMPLETE : ANSWER_GOES_ON;
}
