#include "json_diff.h"

/* Few names, so that duplicates and hits are common; some are the same name written another way. */
static const char *const names[] = {
    "a",          "b",          "id",          "data", "object",
    "0",          "1",          "00",          "",     "\\u0061",
    "d\\u0061ta", "caf\\u00e9", "caf\xc3\xa9", "a.b",  "\\ud83d\\ude00",
    "\\u0000",    "a\\u0000",   "\\ud800",     "\\/",  "a name that is longer than sixteen bytes"};
static const char *const wanted[] = {"a",
                                     "b",
                                     "id",
                                     "data",
                                     "object",
                                     "0",
                                     "1",
                                     "00",
                                     "2",
                                     "caf\xc3\xa9",
                                     "\xf0\x9f\x98\x80",
                                     "/",
                                     "a name that is longer than sixteen bytes"};
static const char *const texts[] = {"",
                                    "x",
                                    "cus_1",
                                    "\\n",
                                    "\\\"",
                                    "\\\\",
                                    "\\u00e9",
                                    "\xc3\xa9",
                                    "\xe2\x82\xac",
                                    "\xf0\x9f\x98\x80",
                                    "\\ud83d\\ude00",
                                    "\\ud83d",
                                    "\\ude00",
                                    "\\u0000",
                                    "\\ud800\\u0041",
                                    "\x7f",
                                    "some ordinary text that fills more than a block",
                                    "\\ud800\\ud800\\udc00"};
static const char *const numbers[] = {"0",
                                      "-0",
                                      "1",
                                      "-1",
                                      "12345678901234567890",
                                      "1.5",
                                      "-0.0",
                                      "1e5",
                                      "1E-5",
                                      "1e400",
                                      "-1e400",
                                      "1e-400",
                                      "0.1e+3",
                                      "9007199254740993",
                                      "2.2250738585072014e-308"};
static const char *const spaces[] = {" ", "\n", "\t", "\r\n", "    ", "                        "};
static const char *const damage[] = {"\"",
                                     "\\",
                                     "{",
                                     "}",
                                     "[",
                                     "]",
                                     ",",
                                     ":",
                                     "\\u",
                                     "\\u00",
                                     "\\ud800",
                                     "\xc3",
                                     "\x80",
                                     "\xed\xa0\x80",
                                     "\xf4\x90\x80\x80",
                                     "\xc0\xaf",
                                     "-",
                                     "+",
                                     ".",
                                     "e",
                                     "0",
                                     "1",
                                     "01",
                                     "null",
                                     "true",
                                     "tru",
                                     "\xef\xbb\xbf",
                                     " ",
                                     "\n",
                                     "\f",
                                     "/",
                                     "//",
                                     "'",
                                     "\"a\":",
                                     ",\"a\":1",
                                     "1e999",
                                     "\x1f",
                                     "\x7f"};

#define PICK(random, list) (list)[random_below(random, sizeof(list) / sizeof *(list))]

static void make_space(struct random *random, struct buf *out)
{
    if (random_once_in(random, 6))
        buf_puts(out, PICK(random, spaces));
}

static void make_string(struct random *random, struct buf *out)
{
    buf_putc(out, '"');
    for (size_t n = random_below(random, 4); n > 0; n--)
        buf_puts(out, PICK(random, texts));
    buf_putc(out, '"');
}

static void make_value(struct random *random, struct buf *out, int depth)
{
    size_t choice = random_below(random, depth > 6 ? 6 : 12);
    make_space(random, out);
    if (choice < 2) {
        make_string(random, out);
    } else if (choice < 4) {
        buf_puts(out, PICK(random, numbers));
    } else if (choice < 6) {
        buf_puts(out, random_once_in(random, 3) ? "null" : random_once_in(random, 2) ? "true" : "false");
    } else {
        bool object = choice < 10;
        buf_putc(out, object ? '{' : '[');
        for (size_t n = random_below(random, 5), i = 0; i < n; i++) {
            buf_puts(out, i ? "," : "");
            make_space(random, out);
            if (object) {
                buf_putf(out, "\"%s\"", PICK(random, names));
                make_space(random, out);
                buf_putc(out, ':');
            }
            make_value(random, out, depth + 1);
        }
        make_space(random, out);
        buf_putc(out, object ? '}' : ']');
    }
    make_space(random, out);
}

/* Around the bound on nesting. */
static void make_deep(struct random *random, struct buf *out)
{
    size_t levels = 2045 + random_below(random, 6);
    bool objects = random_once_in(random, 2);
    for (size_t i = 0; i < levels; i++)
        buf_puts(out, objects ? "{\"a\":" : "[");
    if (random_once_in(random, 2) || objects)
        buf_puts(out, random_once_in(random, 2) ? "1" : "{}");
    for (size_t i = 0; i < levels; i++)
        buf_putc(out, objects ? '}' : ']');
}

/* One edit: a byte flipped, something put in, something taken out, a piece doubled, the end cut off. */
static void damage_once(struct random *random, struct buf *body)
{
    struct buf old = *body;
    size_t at = random_below(random, old.len + 1), rest = old.len - at;
    size_t some = rest ? 1 + random_below(random, rest < 12 ? rest : 12) : 0;
    *body = (struct buf){0};
    buf_put(body, old.at ? old.at : "", at);
    switch (random_below(random, 6)) {
    case 0:
        if (rest > 0) {
            buf_putc(body, (char)(old.at[at] ^ 1 << random_below(random, 8)));
            some = 1;
        }
        break;
    case 1:
        buf_puts(body, PICK(random, damage));
        some = 0;
        break;
    case 2:
        buf_putc(body, (char)random_below(random, 256)); /* NUL is among them */
        some = 0;
        break;
    case 3:
        break; /* what `some` covers is left out */
    case 4:
        for (size_t i = 0; i < 2; i++)
            buf_put(body, old.at ? old.at + at : "", some);
        break;
    default:
        some = random_once_in(random, 3) ? rest : 0;
        break;
    }
    buf_put(body, old.at ? old.at + at + some : "", rest - some);
    buf_free(&old);
}

void make_body(struct random *random, struct buf *out)
{
    buf_clear(out);
    if (random_once_in(random, 30))
        buf_puts(out, "\xef\xbb\xbf");
    if (random_once_in(random, 400))
        make_deep(random, out);
    else
        make_value(random, out, 0);
    static const size_t edits[] = {0, 0, 1, 1, 1, 2, 3, 6};
    for (size_t n = PICK(random, edits); n > 0; n--)
        damage_once(random, out);
}

void make_path(struct random *random, struct buf *out)
{
    buf_clear(out);
    for (size_t n = 1 + random_below(random, 4), i = 0; i < n; i++)
        buf_putf(out, "%s%s", i ? "." : "", PICK(random, wanted));
}
