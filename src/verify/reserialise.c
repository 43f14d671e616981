#include "verify/reserialise.h"

#include "json/json.h"

static const char *const blanks_texts[] = {
    [BLANKS_NONE] = "without the whitespace between its tokens",
    [BLANKS_SPACED] = "with one blank behind each comma and colon",
    [BLANKS_INDENT_2] = "indented by 2",
    [BLANKS_INDENT_4] = "indented by 4",
};

static const char *const escapes_texts[] = {
    [ESCAPES_KEPT] = "",
    [ESCAPES_SLASH_PLAIN] = ", and with / not escaped",
    [ESCAPES_SLASH] = ", and with / escaped as \\/",
    [ESCAPES_ASCII] = ", and with letters beyond ASCII escaped as \\uXXXX",
    [ESCAPES_UTF8] = ", and with \\uXXXX written out in UTF-8",
};

const char *json_blanks_text(enum json_blanks blanks)
{
    return blanks_texts[blanks];
}

const char *json_escapes_text(enum json_escapes escapes)
{
    return escapes_texts[escapes];
}

/* The code point at `at`, which is valid UTF-8; gives its length. */
static size_t read_utf8(const char *at, uint32_t *point)
{
    const uint8_t *u = (const uint8_t *)at;
    if (u[0] < 0xe0)
        return *point = (u[0] & 0x1fU) << 6 | (u[1] & 0x3fU), 2;
    if (u[0] < 0xf0)
        return *point = (u[0] & 0x0fU) << 12 | (u[1] & 0x3fU) << 6 | (u[2] & 0x3fU), 3;
    *point = (u[0] & 0x07U) << 18 | (u[1] & 0x3fU) << 12 | (u[2] & 0x3fU) << 6 | (u[3] & 0x3fU);
    return 4;
}

static void put_escaped(uint32_t point, struct buf *out)
{
    if (point < 0x10000) {
        buf_putf(out, "\\u%04x", point);
        return;
    }
    point -= 0x10000;
    buf_putf(out, "\\u%04x\\u%04x", 0xd800 + (point >> 10), 0xdc00 + (point & 0x3ff));
}

static void put_utf8(uint32_t point, struct buf *out)
{
    if (point < 0x800) {
        buf_putc(out, (char)(0xc0 | point >> 6));
    } else if (point < 0x10000) {
        buf_putc(out, (char)(0xe0 | point >> 12));
        buf_putc(out, (char)(0x80 | (point >> 6 & 0x3f)));
    } else {
        buf_putc(out, (char)(0xf0 | point >> 18));
        buf_putc(out, (char)(0x80 | (point >> 12 & 0x3f)));
        buf_putc(out, (char)(0x80 | (point >> 6 & 0x3f)));
    }
    buf_putc(out, (char)(0x80 | (point & 0x3f)));
}

/* Four hex digits behind "\u"; `at` is inside valid JSON. */
static uint32_t read_escape(const char *at)
{
    uint8_t two[2];
    return hex_decode(bytes_of(at + 2, 4), two, 2) ? (uint32_t)two[0] << 8 | two[1] : 0;
}

/* One "\uXXXX", or a pair of them, as UTF-8 where it may be; gives the bytes taken. */
static size_t undo_escape(struct bytes text, struct buf *out)
{
    uint32_t point = read_escape(text.at);
    bool high = point >= 0xd800 && point < 0xdc00;
    if (high && text.len >= 12 && text.at[6] == '\\' && text.at[7] == 'u') {
        uint32_t low = read_escape(text.at + 6);
        if (low >= 0xdc00 && low < 0xe000) {
            put_utf8(0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00), out);
            return 12;
        }
    }
    if (point < 0x80 || (point >= 0xd800 && point < 0xe000))
        buf_put(out, text.at, 6);
    else
        put_utf8(point, out);
    return 6;
}

/* What stands at `text` inside a string; gives the bytes taken. */
static size_t put_char(struct bytes text, enum json_escapes escapes, struct buf *out)
{
    char c = text.at[0];
    if (c == '\\') {
        if (text.at[1] == '/' && escapes == ESCAPES_SLASH_PLAIN)
            return buf_putc(out, '/'), 2;
        if (text.at[1] == 'u' && escapes == ESCAPES_UTF8)
            return undo_escape(text, out);
        return buf_put(out, text.at, 2), 2;
    }
    if (c == '/' && escapes == ESCAPES_SLASH)
        return buf_puts(out, "\\/"), 1;
    if ((uint8_t)c >= 0x80 && escapes == ESCAPES_ASCII) {
        uint32_t point;
        size_t len = read_utf8(text.at, &point);
        put_escaped(point, out);
        return len;
    }
    return buf_putc(out, c), 1;
}

/* With its quotes; gives the bytes taken. */
static size_t put_string(struct bytes text, enum json_escapes escapes, struct buf *out)
{
    size_t at = 1;
    buf_putc(out, '"');
    while (text.at[at] != '"')
        at += put_char(bytes_of(text.at + at, text.len - at), escapes, out);
    buf_putc(out, '"');
    return at + 1;
}

static void new_line(enum json_blanks blanks, size_t depth, struct buf *out)
{
    if (blanks != BLANKS_INDENT_2 && blanks != BLANKS_INDENT_4)
        return;
    buf_putc(out, '\n');
    for (size_t i = 0; i < depth * (blanks == BLANKS_INDENT_2 ? 2 : 4); i++)
        buf_putc(out, ' ');
}

bool reserialise(struct bytes body, enum json_blanks blanks, enum json_escapes escapes, struct buf *out)
{
    if (!json_walk(body, NULL, NULL))
        return false;
    size_t depth = 0;
    bool opened = false; /* the token before was an opening bracket */
    for (size_t i = 0; i < body.len;) {
        char c = body.at[i];
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            i++;
            continue;
        }
        bool closes = c == '}' || c == ']';
        depth -= closes;
        if (opened != closes) /* the first member of something, or the end behind its last */
            new_line(blanks, depth, out);
        opened = c == '{' || c == '[';
        depth += opened;
        if (c == '"') {
            i += put_string(bytes_of(body.at + i, body.len - i), escapes, out);
            continue;
        }
        buf_putc(out, c);
        i++;
        if (c == ',' && blanks == BLANKS_SPACED)
            buf_putc(out, ' ');
        else if (c == ',')
            new_line(blanks, depth, out);
        else if (c == ':' && blanks != BLANKS_NONE)
            buf_putc(out, ' ');
    }
    return true;
}
