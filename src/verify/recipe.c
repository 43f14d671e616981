#include "verify/recipe.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/check.h"
#include "util/mem.h"

/* -- from facts and options to a form ------------------------------------------------------------------- */

enum status read_url(const struct value *options, struct bytes *url, struct error *err)
{
    const struct value *option = value_get(options, "url");
    struct bytes text = option->kind == VALUE_STRING ? option->string : BYTES_NONE;
    bool good = bytes_starts(text, BYTES("https://")) || bytes_starts(text, BYTES("http://"));
    const char *host = good ? (const char *)memchr(text.at, '/', text.len) + 2 : NULL;
    for (size_t i = 0; good && i < text.len; i++)
        good = text.at[i] > ' ' && text.at[i] < 0x7f && text.at[i] != '?' && text.at[i] != '#';
    good = good && host < text.at + text.len && *host != '/' &&
           memchr(host, '/', (size_t)(text.at + text.len - host));
    if (!good)
        return error_set(err, STATUS_INVALID,
                         "url: must be the address that the provider posts to, such as "
                         "\"https://hooks.example.com/webhooks/shop\", without a query");
    *url = text;
    return STATUS_OK;
}

/* A copy behind the others; `at` moves on. */
static struct bytes keep(char **at, const char *text)
{
    size_t len = text ? strlen(text) : 0;
    struct bytes kept = bytes_of(*at, len);
    if (len)
        memcpy(*at, text, len);
    *at += len;
    return kept;
}

static void keep_texts(struct form *out, const struct recipe *recipe)
{
    const char *const texts[] = {recipe->header, recipe->prefix, recipe->separators, recipe->ts_header,
                                 recipe->ts_entry};
    size_t size = 1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        size += texts[i] ? strlen(texts[i]) : 0;
    char *at = out->copies = mem_alloc(size);
    out->header = keep(&at, recipe->header);
    out->prefix = keep(&at, recipe->prefix);
    out->separators = keep(&at, recipe->separators);
    out->ts_header = keep(&at, recipe->ts_header);
    out->ts_entry = keep(&at, recipe->ts_entry);
}

static void prepare_json(struct form *out, const char *path)
{
    struct bytes segments[JSON_PATH_SEGMENTS_MAX];
    struct json_path split = {.segments = segments};
    CHECK(json_path_split(bytes_str(path), segments, &split.segment_count, NULL) == STATUS_OK);
    out->ts_json = json_paths_new(&split, 1);
}

enum status form_open(struct form *out, const struct recipe *recipe, const struct value *options,
                      struct error *err)
{
    *out = (struct form){
        .coding = recipe->coding, .digest = recipe->digest, .ts_unit_ms = recipe->ts_in_ms ? 1 : 1000};
    keep_texts(out, recipe);
    bool timed = recipe->ts_header || recipe->ts_entry || recipe->ts_json;
    struct error why;
    enum status status = template_open(&out->signs, bytes_str(recipe->signs), &why);
    if (status != STATUS_OK)
        error_set(err, status, "template: must be a text such as \"{ts}.{body}\"; %s", why.text);
    if (status == STATUS_OK && template_has(&out->signs, PLACE_TS) != (timed && !recipe->ts_json))
        status = error_set(err, STATUS_INVALID,
                           timed ? "template: must hold {ts}; a time stamp that is not signed can be changed"
                                 : "template: holds {ts}, which needs ts_header or ts_field");
    if (status == STATUS_OK && template_has(&out->signs, PLACE_URL))
        status = read_url(options, &out->url, err);
    if (status == STATUS_OK && !timed && value_get(options, "tolerance_ms")->kind != VALUE_NIL)
        status = error_set(err, STATUS_INVALID,
                           "tolerance_ms: needs a time stamp to judge, but there is none here");
    if (status == STATUS_OK)
        status = read_tolerance(options, recipe->tolerance_ms ? recipe->tolerance_ms : TOLERANCE_MS,
                                &out->tolerance_ms, err);
    if (status == STATUS_OK && recipe->ts_json)
        prepare_json(out, recipe->ts_json);
    if (status != STATUS_OK)
        form_close(out);
    return status;
}

void form_close(struct form *form)
{
    free(form->copies);
    template_close(&form->signs);
    json_paths_free(form->ts_json);
    *form = (struct form){0};
}

/* -- the options of the generic schemes -------------------------------------------------------------------
 */

/* What ends a signature in a list: blanks, commas and semicolons, but for those that its own marks hold. */
static void read_separators(struct recipe *out, struct recipe_scratch *scratch)
{
    size_t count = 0;
    for (const char *c = ", ;"; *c; c++)
        if (!(out->prefix && strchr(out->prefix, *c)) && !(out->ts_entry && strchr(out->ts_entry, *c)))
            scratch->separators[count++] = *c;
    scratch->separators[count] = 0;
    out->separators = scratch->separators;
}

static enum status read_word(const struct value *options, const char *name, const char *const words[2],
                             bool otherwise, bool *second, struct error *err)
{
    const char *word = value_str(options, name, words[otherwise]);
    *second = strcmp(word, words[1]) == 0;
    if (*second || strcmp(word, words[0]) == 0)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "%s: must be \"%s\" or \"%s\"", name, words[0], words[1]);
}

enum status recipe_read(const struct value *options, const struct recipe *defaults, struct recipe *out,
                        struct recipe_scratch *scratch, struct error *err)
{
    static const char *const codings[] = {"hex", "base64"}, *const units[] = {"s", "ms"};
    *out = *defaults;
    out->header = value_str(options, "header", defaults->header);
    out->prefix = value_str(options, "prefix", defaults->prefix);
    out->signs = value_str(options, "template", defaults->signs);
    out->ts_header = value_str(options, "ts_header", NULL);
    const char *field = value_str(options, "ts_field", NULL);
    if (!out->header)
        return error_set(err, STATUS_INVALID, "header: must be the header that holds the signature");
    if (field && out->ts_header)
        return error_set(err, STATUS_INVALID, "ts_field: must be alone, without ts_header");
    if (field) {
        int len = snprintf(scratch->ts_entry, sizeof scratch->ts_entry, "%s=", field);
        if (len < 2 || (size_t)len >= sizeof scratch->ts_entry)
            return error_set(err, STATUS_INVALID,
                             "ts_field: must be the name in front of \"=\", such as \"t\"");
        out->ts_entry = scratch->ts_entry;
    }
    read_separators(out, scratch);

    struct bytes digest = bytes_str(value_str(options, "algorithm", digest_name(defaults->digest)));
    if (!digest_named(digest, &out->digest))
        return error_set(err, STATUS_INVALID, "algorithm: must be one of sha1, sha256, sha384, sha512");
    bool base64;
    enum status status =
        read_word(options, "encoding", codings, defaults->coding == CODING_BASE64, &base64, err);
    if (status == STATUS_OK)
        status = read_word(options, "ts_unit", units, false, &out->ts_in_ms, err);
    out->coding = base64 ? CODING_BASE64 : CODING_HEX;
    return status;
}

/* -- checking a hook --------------------------------------------------------------------------------------
 */

/* The one entry that begins so; false with *result when there is none, or two. */
static bool one_entry(const struct form *form, const struct attempt *attempt, struct bytes list,
                      struct bytes *value, struct verify_result *result)
{
    size_t count = 0;
    for (struct bytes entry; (entry = next_entry(&list, form->separators)).at;) {
        if (!bytes_starts(entry, form->ts_entry))
            continue;
        *value = bytes_of(entry.at + form->ts_entry.len, entry.len - form->ts_entry.len);
        count++;
    }
    if (count == 1)
        return true;
    attempt->trace->fault_header = form->header;
    *result = verify_failed(REASON_MALFORMED);
    return false;
}

static bool find_timestamp(const struct form *form, const struct attempt *attempt, struct bytes signatures,
                           struct bytes *ts, struct verify_result *result)
{
    if (form->ts_header.len)
        return one_header(attempt, form->ts_header, ts, result);
    if (form->ts_entry.len)
        return one_entry(form, attempt, signatures, ts, result);
    struct json_found found;
    if (json_walk(attempt->envelope->body, form->ts_json, &found) && found.kind == JSON_KIND_NUMBER) {
        *ts = found.raw;
        return true;
    }
    *result = verify_failed(REASON_MALFORMED);
    return false;
}

static bool signed_headers_are_there(const struct form *form, const struct attempt *attempt,
                                     struct verify_result *result)
{
    struct bytes value;
    for (size_t i = 0; i < form->signs.count; i++)
        if (form->signs.parts[i].place == PLACE_HEADER &&
            !one_header(attempt, form->signs.parts[i].text, &value, result))
            return false;
    return true;
}

/* Every signature is judged, also behind one that fits. */
static struct verify_result judge_all(const struct form *form, const struct attempt *attempt,
                                      struct bytes list, const struct judge *judge)
{
    struct verify_trace *trace = attempt->trace;
    for (struct bytes entry; (entry = next_entry(&list, form->separators)).at;) {
        bool is_ts = form->ts_entry.len && bytes_starts(entry, form->ts_entry);
        if (is_ts)
            continue;
        if (!bytes_starts(entry, form->prefix)) {
            trace->strangers++;
            continue;
        }
        if (++trace->signatures > RECIPE_SIGNATURES_MAX) {
            trace->fault_header = form->header;
            return verify_failed(REASON_MALFORMED);
        }
        size_t secret =
            judge->fits(judge->ctx, bytes_of(entry.at + form->prefix.len, entry.len - form->prefix.len));
        if (secret && !trace->secret)
            trace->secret = secret;
    }
    return trace->secret ? verify_passed() : verify_failed(REASON_BAD_SIGNATURE);
}

struct verify_result form_check(const struct form *form, const struct attempt *attempt,
                                const struct judge *judge)
{
    struct bytes signatures, ts = BYTES_NONE;
    struct verify_result result;
    if (!signature_header(attempt, form->header, &signatures, &result))
        return result;
    if (form->ts_header.len || form->ts_entry.len || form->ts_json) {
        struct bytes where = form->ts_header.len ? form->ts_header
                             : form->ts_json     ? BYTES_NONE
                                                 : form->header;
        if (!find_timestamp(form, attempt, signatures, &ts, &result) ||
            !timestamp_fits(attempt, ts, form->ts_unit_ms, form->tolerance_ms, where, &result))
            return result;
    }
    if (!signed_headers_are_there(form, attempt, &result))
        return result;

    struct bytes parts[TEMPLATE_BYTES_MAX];
    size_t count = template_fill(&form->signs, attempt->envelope, form->url, ts, parts);
    judge->start(judge->ctx, parts, count);
    return judge_all(form, attempt, signatures, judge);
}
