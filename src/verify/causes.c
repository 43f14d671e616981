/* Why did it fail? Each usual mistake is undone in turn, and the very check that refused is asked again. What
 * passes then is a likely cause; several may. Nothing here prints a secret or a signature. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/mem.h"
#include "util/units.h"
#include "verify/coding.h"
#include "verify/recipe.h"
#include "verify/reserialise.h"

struct trial {
    const struct verifier *verifier;
    const struct envelope *envelope;
    int64_t now_ms; /* the signature's own, where it has a time */
    struct verify_trace before;
    struct verify_cause *causes;
    size_t count;
};

__attribute__((format(printf, 3, 4))) static void tell(struct trial *trial, const char *code,
                                                       const char *format, ...)
{
    if (trial->count == VERIFY_CAUSES_MAX)
        return;
    struct verify_cause *cause = &trial->causes[trial->count++];
    cause->code = code;
    va_list args;
    va_start(args, format);
    vsnprintf(cause->text, sizeof cause->text, format, args);
    va_end(args);
}

static bool passes_with(const struct trial *trial, const struct envelope *envelope,
                        const struct secrets *secrets)
{
    struct verify_trace trace = {0};
    const struct attempt attempt = {
        .envelope = envelope, .now_ms = trial->now_ms, .secrets = secrets, .trace = &trace};
    return trial->verifier->row->scheme->check(trial->verifier->key, &attempt).verification ==
           VERIFICATION_OK;
}

static bool passes(const struct trial *trial, const struct envelope *envelope)
{
    return passes_with(trial, envelope, &trial->verifier->secrets);
}

/* -- the clock ---------------------------------------------------------------------------------------- */

static void try_clock(struct trial *trial, int64_t now_ms)
{
    const struct verify_trace *before = &trial->before;
    int64_t apart_ms;
    if (!before->has_timestamp || __builtin_sub_overflow(now_ms, before->timestamp_ms, &apart_ms) ||
        (apart_ms <= before->tolerance_ms && apart_ms >= -before->tolerance_ms))
        return;
    trial->now_ms = before->timestamp_ms;
    char apart[32], tolerance[32];
    units_format_ms(apart_ms < 0 ? -(apart_ms + 1) : apart_ms, apart);
    units_format_ms(before->tolerance_ms, tolerance);
    int64_t day_ms = 86400000, in_s = before->timestamp_ms / 1000;
    if (in_s > now_ms - day_ms && in_s < now_ms + day_ms)
        tell(trial, "ts_unit",
             "the time stamp is in milliseconds, but is read as seconds (ts_unit = \"ms\")");
    else if (passes(trial, trial->envelope))
        tell(trial, "clock",
             "the signature is right, but its time stamp is %s %s and tolerance_ms allows %s: an old capture "
             "(judge "
             "it with --at %lld), or a clock that is wrong, here or at the sender",
             apart, apart_ms < 0 ? "ahead" : "old", tolerance, (long long)(before->timestamp_ms / 1000));
}

/* -- the secret --------------------------------------------------------------------------------------- */

static struct bytes without_prefix(struct bytes text)
{
    static const struct bytes prefixes[] = {BYTES("v1,whsec_"), BYTES("whsec_")};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (bytes_starts(text, prefixes[i]))
            return bytes_of(text.at + prefixes[i].len, text.len - prefixes[i].len);
    return text;
}

static bool as_text(struct bytes text, struct buf *out)
{
    return buf_putb(out, text), true;
}

static bool as_text_without_prefix(struct bytes text, struct buf *out)
{
    return buf_putb(out, without_prefix(text)), true;
}

static bool as_base64(struct bytes text, struct buf *out)
{
    return coding_read_secret(CODING_BASE64, without_prefix(text), out);
}

static bool as_hex(struct bytes text, struct buf *out)
{
    return coding_read_secret(CODING_HEX, without_prefix(text), out);
}

static bool with_prefix(struct bytes text, struct buf *out)
{
    return buf_puts(out, "whsec_"), buf_putb(out, text), true;
}

static bool without_quotes(struct bytes text, struct buf *out)
{
    bool quoted =
        text.len > 2 && (text.at[0] == '"' || text.at[0] == '\'') && text.at[text.len - 1] == text.at[0];
    if (quoted)
        buf_put(out, text.at + 1, text.len - 2);
    return quoted;
}

static bool with_line_feed(struct bytes text, struct buf *out)
{
    return buf_putb(out, text), buf_putc(out, '\n'), true;
}

static const struct reading {
    const char *code;
    bool (*read)(struct bytes text, struct buf *out);
    const char *text;
} readings[] = {
    {"secret_is_text", as_text, "its own text, as it stands, is the key: it must not be decoded"},
    {"secret_prefix", as_text_without_prefix, "the key is the text behind its prefix, not decoded"},
    {"secret_is_base64", as_base64, "the key is what its base64 stands for: it must be decoded"},
    {"secret_is_hex", as_hex, "the key is what its hex digits stand for: they must be decoded"},
    {"secret_prefix", with_prefix, "the key has \"whsec_\" in front, which was left out"},
    {"secret_is_quoted", without_quotes, "the quotes around it do not belong to it"},
    {"secret_line_feed", with_line_feed, "the sender's secret has a line feed at its end"},
};

static bool key_fits(const struct trial *trial, struct buf key)
{
    struct secrets one = {.count = 1, .at = {key}};
    return passes_with(trial, trial->envelope, &one);
}

static void try_secret(struct trial *trial, struct bytes text, size_t number)
{
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        struct buf key = {0};
        bool fits = readings[i].read(text, &key) && key.len && key_fits(trial, key);
        if (key.at)
            explicit_bzero(key.at, key.size);
        buf_free(&key);
        if (!fits)
            continue;
        tell(trial, readings[i].code, "secret %zu would fit, read otherwise: %s", number, readings[i].text);
        return;
    }
}

static void try_secrets(struct trial *trial)
{
    const struct value *option = value_get(trial->verifier->options, "secret");
    if (!trial->verifier->secrets.count)
        return;
    if (option->kind == VALUE_STRING)
        try_secret(trial, option->string, 1);
    for (size_t i = 0; option->kind == VALUE_LIST && i < option->len; i++)
        try_secret(trial, option->items[i].string, i + 1);
}

/* -- the body ----------------------------------------------------------------------------------------- */

static bool body_passes(const struct trial *trial, struct bytes body)
{
    struct envelope changed = *trial->envelope;
    changed.body = body;
    return !bytes_eq(body, trial->envelope->body) && passes(trial, &changed);
}

static bool try_ends(struct trial *trial)
{
    struct bytes body = trial->envelope->body, cut = body;
    struct buf more = {0};
    while (cut.len && (cut.at[cut.len - 1] == '\n' || cut.at[cut.len - 1] == '\r'))
        cut.len--;
    bool found = body_passes(trial, cut);
    if (found)
        tell(trial, "body_line_feed",
             "the body would match without the line feed at its end: an editor or a shell "
             "added it");
    buf_putb(&more, body);
    buf_putc(&more, '\n');
    if (!found && body_passes(trial, buf_bytes(&more))) {
        found = true;
        tell(trial, "body_line_feed", "the body would match with a line feed at its end, which was lost");
    }
    buf_free(&more);
    return found;
}

/* "\r\n" to "\n", or the reverse. */
static bool try_line_ends(struct trial *trial, bool dos)
{
    struct bytes body = trial->envelope->body;
    struct buf changed = {0};
    for (size_t i = 0; i < body.len; i++) {
        bool pair = body.at[i] == '\r' && i + 1 < body.len && body.at[i + 1] == '\n';
        if (pair)
            i++;
        if (dos && body.at[i] == '\n')
            buf_putc(&changed, '\r');
        buf_putc(&changed, body.at[i]);
    }
    bool found = body_passes(trial, buf_bytes(&changed));
    if (found)
        tell(trial, "body_line_ends", "the body would match with %s at the ends of its lines",
             dos ? "CR LF" : "LF alone");
    buf_free(&changed);
    return found;
}

static bool try_reserialised(struct trial *trial, enum json_blanks blanks, enum json_escapes escapes)
{
    struct buf body = {0};
    bool found = reserialise(trial->envelope->body, blanks, escapes, &body) && !body.overflow &&
                 body_passes(trial, buf_bytes(&body));
    if (found)
        tell(trial, "body_reserialised",
             "the body was parsed and written anew: it would match %s%s. Keep the bytes as they came",
             json_blanks_text(blanks), json_escapes_text(escapes));
    buf_free(&body);
    return found;
}

static void try_body(struct trial *trial)
{
    if (try_ends(trial) || try_line_ends(trial, true) || try_line_ends(trial, false))
        return;
    for (int escapes = 0; escapes < ESCAPES_COUNT; escapes++)
        for (int blanks = 0; blanks < BLANKS_COUNT; blanks++)
            if (try_reserialised(trial, (enum json_blanks)blanks, (enum json_escapes)escapes))
                return;
}

/* -- the header --------------------------------------------------------------------------------------- */

static bool lowered(struct bytes value, struct buf *out)
{
    size_t from = 0;
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] == '=' && i + 1 < value.len && value.at[i + 1] != '=')
            from = i;
    for (size_t i = 0; i < value.len; i++)
        buf_putc(out, i >= from && value.at[i] >= 'A' && value.at[i] <= 'Z' ? (char)(value.at[i] + 32)
                                                                            : value.at[i]);
    return true;
}

static bool without_blanks(struct bytes value, struct buf *out)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] != ' ' && value.at[i] != '\t')
            buf_putc(out, value.at[i]);
    return true;
}

static bool from_base64url(struct bytes value, struct buf *out)
{
    size_t start = 0; /* behind a prefix such as "sha256=" */
    for (size_t i = 0; i + 1 < value.len; i++)
        if (value.at[i] == '=' && value.at[i + 1] != '=')
            start = i + 1;
    size_t digits = 0;
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        buf_putc(out, i < start ? c : c == '-' ? '+' : c == '_' ? '/' : c);
        digits += i >= start && c != '=';
    }
    if (value.len && value.at[value.len - 1] != '=')
        while (digits++ % 4)
            buf_putc(out, '=');
    return true;
}

/* The last part of the value, read in one coding and written in the other. */
static bool recoded(struct bytes value, enum coding from, struct buf *out)
{
    size_t start = 0;
    for (size_t i = 0; i + 1 < value.len; i++)
        if (value.at[i] == '=' && value.at[i + 1] != '=')
            start = i + 1;
    struct buf raw = {0};
    bool good = coding_read(from, bytes_of(value.at + start, value.len - start), &raw) && raw.len;
    if (good) {
        buf_put(out, value.at, start);
        coding_write(from == CODING_HEX ? CODING_BASE64 : CODING_HEX, buf_bytes(&raw), out);
    }
    buf_free(&raw);
    return good;
}

static bool from_hex(struct bytes value, struct buf *out)
{
    return recoded(value, CODING_HEX, out);
}

static bool from_base64(struct bytes value, struct buf *out)
{
    return recoded(value, CODING_BASE64, out);
}

static const struct spelling {
    const char *code;
    bool (*spell)(struct bytes value, struct buf *out);
    const char *text;
} spellings[] = {
    {"hex_case", lowered, "its hex digits are in upper case, where the scheme has lower case"},
    {"header_blanks", without_blanks, "there are blanks inside it"},
    {"base64url", from_base64url,
     "it is written in base64url, or without its padding, where the scheme has base64"},
    {"signature_is_hex", from_hex, "it is in hex, where base64 is expected"},
    {"signature_is_base64", from_base64, "it is in base64, where hex is expected"},
};

static const char *const prefixes[] = {"sha256=", "sha1=", "sha512=", "v0=", "v1=", "v1,"};

/* Does it pass with this value in the header of the signature? */
static bool header_passes(const struct trial *trial, struct bytes value)
{
    struct envelope changed = *trial->envelope;
    struct header *headers = mem_alloc((changed.header_count + 1) * sizeof *headers);
    for (size_t i = 0; i < changed.header_count; i++) {
        headers[i] = changed.headers[i];
        if (bytes_eq_nocase(headers[i].name, trial->before.header))
            headers[i].value = value;
    }
    changed.headers = headers;
    bool good = passes(trial, &changed);
    free(headers);
    return good;
}

static void try_prefixes(struct trial *trial, struct bytes value)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        struct bytes prefix = bytes_str(prefixes[i]);
        struct buf more = {0};
        buf_putb(&more, prefix);
        buf_putb(&more, value);
        if (header_passes(trial, buf_bytes(&more)))
            tell(trial, "prefix_missing", "the header would match with \"%s\" in front", prefixes[i]);
        else if (bytes_starts(value, prefix) &&
                 header_passes(trial, bytes_of(value.at + prefix.len, value.len - prefix.len)))
            tell(trial, "prefix_unexpected", "the header would match without \"%s\" in front (prefix)",
                 prefixes[i]);
        buf_free(&more);
    }
}

static void try_header(struct trial *trial)
{
    struct bytes value = envelope_header(trial->envelope, trial->before.header);
    if (!trial->before.header.at || trial->before.header_count != 1)
        return;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        struct buf other = {0};
        bool fits = spellings[i].spell(value, &other) && header_passes(trial, buf_bytes(&other));
        buf_free(&other);
        if (!fits)
            continue;
        tell(trial, spellings[i].code, "the signature would match, but %s", spellings[i].text);
        return;
    }
    try_prefixes(trial, value);
}

/* -- the scheme --------------------------------------------------------------------------------------- */

/* A copy of the options with one text put in or changed; shares all else. */
static struct verifier *reopened(const struct trial *trial, const char *name, const char *text,
                                 struct value *map, struct value *items, struct bytes *names)
{
    const struct value *options = trial->verifier->options;
    size_t count = 0;
    for (size_t i = 0; i < options->len; i++) {
        if (bytes_eq(options->names[i], bytes_str(name)))
            continue;
        names[count] = options->names[i];
        items[count++] = options->items[i];
    }
    names[count] = bytes_str(name);
    items[count++] = (struct value){.kind = VALUE_STRING, .string = bytes_str(text)};
    *map = (struct value){.kind = VALUE_MAP, .len = count, .items = items, .names = names};
    struct verifier *verifier = NULL;
    return verifier_new(map, NULL, &verifier, NULL) == STATUS_OK ? verifier : NULL;
}

static void try_option(struct trial *trial, const char *name, const char *text)
{
    size_t size = trial->verifier->options->len + 1;
    struct value map, *items = mem_alloc(size * sizeof *items);
    struct bytes *names = mem_alloc(size * sizeof *names);
    struct verifier *verifier = reopened(trial, name, text, &map, items, names);
    if (verifier && verify(verifier, trial->envelope, trial->now_ms).verification == VERIFICATION_OK)
        tell(trial, "other_option", "it would match with %s = \"%s\"", name, text);
    verifier_free(verifier);
    free(items);
    free(names);
}

static void try_options(struct trial *trial)
{
    static const char *const algorithms[] = {"sha1", "sha256", "sha384", "sha512"};
    static const char *const templates[] = {"{ts}.{body}", "{ts}:{body}", "{ts}{body}", "{body}{ts}",
                                            "v0:{ts}:{body}"};
    if (value_get(trial->verifier->options, "header")->kind != VALUE_STRING)
        return;
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        try_option(trial, "algorithm", algorithms[i]);
    for (size_t i = 0; trial->before.has_timestamp && i < sizeof templates / sizeof *templates; i++)
        try_option(trial, "template", templates[i]);
}

/* The header of another provider says whose hook it is. */
static void try_other_schemes(struct trial *trial)
{
    for (size_t i = 0; i < scheme_row_count; i++) {
        const struct scheme_row *row = &scheme_rows[i];
        if (!row->facts || row == trial->verifier->row ||
            bytes_eq_nocase(bytes_str(row->facts->header), trial->before.header) ||
            !envelope_header(trial->envelope, bytes_str(row->facts->header)).at)
            continue;
        tell(trial, "other_scheme", "the request carries %s, as hooks of verify = { type = \"%s\" } do",
             row->facts->header, row->name);
    }
    if (envelope_header(trial->envelope, BYTES("x-hub-signature")).at &&
        bytes_eq_nocase(trial->before.fault_header, BYTES("x-hub-signature-256")))
        tell(trial, "other_option",
             "the request carries the old SHA-1 signature alone (algorithm = \"sha1\")");
}

size_t verify_causes(const struct verifier *verifier, const struct envelope *envelope, int64_t now_ms,
                     struct verify_cause causes[VERIFY_CAUSES_MAX])
{
    struct trial trial = {.verifier = verifier, .envelope = envelope, .now_ms = now_ms, .causes = causes};
    if (verify_traced(verifier, envelope, now_ms, &trial.before).verification != VERIFICATION_FAILED)
        return 0;
    try_clock(&trial, now_ms);
    if (trial.count == 0) {
        try_secrets(&trial);
        try_body(&trial);
        try_header(&trial);
        try_options(&trial);
    }
    if (trial.count == 0)
        try_other_schemes(&trial);
    return trial.count;
}
