#include "http/head.h"

#include <string.h>

/* A byte of a token (RFC 9110, 5.6.2) and a byte of a header value that every receiver takes. */
enum { TOKEN = 1, VALUE = 2 };
static const unsigned char kind_of[256] = {
    ['\t'] = VALUE,
    [' '] = VALUE,
    ['!'] = TOKEN | VALUE,
    ['"'] = VALUE,
    ['#'] = TOKEN | VALUE,
    ['$'] = TOKEN | VALUE,
    ['%'] = TOKEN | VALUE,
    ['&'] = TOKEN | VALUE,
    ['\''] = TOKEN | VALUE,
    ['('] = VALUE,
    [')'] = VALUE,
    ['*'] = TOKEN | VALUE,
    ['+'] = TOKEN | VALUE,
    [','] = VALUE,
    ['-'] = TOKEN | VALUE,
    ['.'] = TOKEN | VALUE,
    ['/'] = VALUE,
    ['0' ... '9'] = TOKEN | VALUE,
    [':' ... '@'] = VALUE,
    ['A' ... 'Z'] = TOKEN | VALUE,
    ['[' ... ']'] = VALUE,
    ['^' ... '`'] = TOKEN | VALUE,
    ['a' ... 'z'] = TOKEN | VALUE,
    ['{'] = VALUE,
    ['|'] = TOKEN | VALUE,
    ['}'] = VALUE,
    ['~'] = TOKEN | VALUE,
};

static bool all_are(struct bytes text, unsigned char kind)
{
    for (size_t i = 0; i < text.len; i++)
        if (!(kind_of[(unsigned char)text.at[i]] & kind))
            return false;
    return true;
}

static bool all_digits(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return text.len > 0;
}

/* Takes one line with its CR LF off the front of `raw`; false when there is none that ends so. */
static bool next_line(struct bytes *raw, struct bytes *line)
{
    const char *lf = raw->len ? memchr(raw->at, '\n', raw->len) : NULL;
    if (!lf || lf == raw->at || lf[-1] != '\r')
        return false;
    *line = bytes_of(raw->at, (size_t)(lf - raw->at) - 1);
    size_t taken = (size_t)(lf - raw->at) + 1;
    *raw = bytes_of(raw->at + taken, raw->len - taken);
    return true;
}

/* Raw bytes over 0x7F pass: some senders put them into a query, and it is stored as it came. */
static bool is_target(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] <= 0x20 || text.at[i] == 0x7f)
            return false;
    return text.len > 0;
}

/* "METHOD target HTTP/1.x" with single blanks. */
static bool request_line(struct bytes line, struct head *head, bool *is_1_0)
{
    const char *end = line.at + line.len;
    const char *first = line.len ? memchr(line.at, ' ', line.len) : NULL;
    const char *second = first ? memchr(first + 1, ' ', (size_t)(end - first - 1)) : NULL;
    if (!second)
        return false;
    struct bytes version = bytes_of(second + 1, (size_t)(end - second - 1));
    head->method = bytes_of(line.at, (size_t)(first - line.at));
    head->target = bytes_of(first + 1, (size_t)(second - first - 1));
    *is_1_0 = bytes_eq(version, BYTES("HTTP/1.0"));
    return head->method.len > 0 && all_are(head->method, TOKEN) && is_target(head->target) &&
           version.len == 8 && bytes_starts(version, BYTES("HTTP/1."));
}

enum taken_name { NOT_TAKEN = -1, HOST, LENGTH, CODING, EXPECT, UPGRADE, TAKEN_COUNT };
static const struct bytes taken_names[TAKEN_COUNT] = {
    [HOST] = {"Host", 4},     [LENGTH] = {"Content-Length", 14}, [CODING] = {"Transfer-Encoding", 17},
    [EXPECT] = {"Expect", 6}, [UPGRADE] = {"Upgrade", 7},
};

static enum taken_name which_taken(struct bytes name)
{
    enum taken_name maybe;
    switch (name.len) {
    case 4:
        maybe = HOST;
        break;
    case 6:
        maybe = EXPECT;
        break;
    case 7:
        maybe = UPGRADE;
        break;
    case 14:
        maybe = LENGTH;
        break;
    case 17:
        maybe = CODING;
        break;
    default:
        return NOT_TAKEN;
    }
    return bytes_eq_nocase(name, taken_names[maybe]) ? maybe : NOT_TAKEN;
}

/* "name: value" with the name a token that the colon follows at once. Does not look into the value. */
static bool split(struct bytes line, struct http_header *header)
{
    const char *colon = memchr(line.at, ':', line.len);
    if (!colon)
        return false;
    header->name = bytes_of(line.at, (size_t)(colon - line.at));
    header->value = bytes_trim(bytes_of(colon + 1, line.len - header->name.len - 1));
    return header->name.len > 0 && all_are(header->name, TOKEN);
}

enum head_verdict head_check(struct bytes raw, struct head *head)
{
    struct bytes line, length = BYTES_NONE, coding = BYTES_NONE, expect = BYTES_NONE;
    unsigned seen[TAKEN_COUNT] = {0};
    bool is_1_0, invalid = false;

    head->header_count = 0;
    head->culprit = 0;
    if (!next_line(&raw, &line))
        return HEAD_BAD;
    if (line.len == 0 && !next_line(&raw, &line)) /* one empty line in front is forgiven (RFC 9112, 2.2) */
        return HEAD_BAD;
    if (!request_line(line, head, &is_1_0))
        return HEAD_BAD;

    for (;;) {
        if (!next_line(&raw, &line))
            return HEAD_BAD;
        if (line.len == 0)
            break;
        if (head->header_count == HEAD_HEADERS_MAX)
            return HEAD_BAD;
        struct http_header *header = &head->headers[head->header_count];
        if (!split(line, header))
            return HEAD_BAD;
        if (!invalid && !all_are(header->value, VALUE)) {
            invalid = true;
            head->culprit = head->header_count;
        }
        enum taken_name taken = which_taken(header->name);
        head->taken[head->header_count++] = taken != NOT_TAKEN;
        if (taken == NOT_TAKEN)
            continue;
        header->name = taken_names[taken];
        seen[taken]++;
        if (taken == LENGTH)
            length = header->value;
        else if (taken == CODING)
            coding = header->value;
        else if (taken == EXPECT)
            expect = header->value;
    }

    head->chunked = seen[CODING] > 0;
    if (seen[LENGTH] > 1 || seen[CODING] > 1 || (seen[LENGTH] && seen[CODING]))
        return HEAD_BAD;
    if (seen[LENGTH] && !all_digits(length))
        return HEAD_BAD;
    if (seen[CODING] && (is_1_0 || !bytes_eq_nocase(coding, BYTES("chunked"))))
        return HEAD_BAD;
    if (seen[HOST] > 1 || (!is_1_0 && !seen[HOST]))
        return HEAD_BAD;
    if (invalid)
        return HEAD_INVALID_HEADER;
    if (seen[EXPECT] && !bytes_eq_nocase(expect, BYTES("100-continue")))
        return HEAD_UNKNOWN_EXPECT;
    return HEAD_OK;
}
