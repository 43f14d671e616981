/* The walk against jansson, on bodies made from a seed.
 *
 *     fuzz_json_diff [SEED [SECONDS [BODIES]]]        0 means no bound
 *
 * Both must agree on what is JSON and on every value picked, the walk without SSE2 and the walk without paths
 * too. Where jansson and the contract part ways, the body is rewritten without that feature and both must
 * agree on the rest; anything else ends the run with the body in hex, exit code 1. The kinds are in
 * json_diff.h. */
#include "json_diff.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/check.h"
#include "util/clock.h"
#include "json/json.h"
#include "json/tree.h"

enum { PATHS = 6 };

/* The same walk, built without SSE2 (CMakeLists.txt). */
bool json_walk_scalar(struct bytes body, const struct json_paths *paths, struct json_found *found);

struct question {
    struct buf texts[PATHS];
    struct bytes segments[PATHS][JSON_PATH_SEGMENTS_MAX];
    struct json_path paths[PATHS];
    struct json_paths *prepared;
};

static void ask(struct question *q, struct random *random)
{
    for (size_t i = 0; i < PATHS; i++) {
        make_path(random, &q->texts[i]);
        q->paths[i].segments = q->segments[i];
        CHECK(json_path_split(buf_bytes(&q->texts[i]), q->segments[i], &q->paths[i].segment_count, NULL) ==
              STATUS_OK);
    }
    q->prepared = json_paths_new(q->paths, PATHS);
}

static void unask(struct question *q)
{
    json_paths_free(q->prepared);
    for (size_t i = 0; i < PATHS; i++)
        buf_free(&q->texts[i]);
}

static json_t *oracle_read(struct bytes body, json_error_t *err)
{
    return json_loadb(body.at, body.len, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, err);
}

static const json_t *oracle_find(const json_t *at, const struct json_path *path)
{
    for (size_t i = 0; at && i < path->segment_count; i++) {
        struct bytes s = path->segments[i];
        if (json_is_array(at)) {
            bool plain = s.len == 1 || (s.len < 9 && s.at[0] != '0');
            for (size_t k = 0; k < s.len; k++)
                plain = plain && s.at[k] >= '0' && s.at[k] <= '9';
            at = plain ? json_array_get(at, (size_t)strtoul(s.at, NULL, 10)) : NULL;
        } else {
            at = json_object_getn(at, s.at, s.len);
        }
    }
    return at;
}

static bool same_value(const struct json_found *found, const json_t *value)
{
    if (!value)
        return found->kind == JSON_KIND_ABSENT;
    switch (json_typeof(value)) {
    case JSON_STRING: {
        if (found->kind != JSON_KIND_STRING || found->lone_surrogate)
            return false;
        char *text = malloc(found->raw.len + 1);
        size_t len = json_string_decode(found, text);
        bool same =
            bytes_eq(bytes_of(text, len), bytes_of(json_string_value(value), json_string_length(value)));
        free(text);
        return same;
    }
    case JSON_REAL: {
        char *text = strndup(found->raw.at ? found->raw.at : "", found->raw.len);
        bool same = found->kind == JSON_KIND_NUMBER && strtod(text, NULL) == json_real_value(value) &&
                    found->integer == !strpbrk(text, ".eE");
        free(text);
        return same;
    }
    case JSON_TRUE:
        return found->kind == JSON_KIND_TRUE;
    case JSON_FALSE:
        return found->kind == JSON_KIND_FALSE;
    case JSON_NULL:
        return found->kind == JSON_KIND_NULL;
    case JSON_OBJECT:
        return found->kind == JSON_KIND_OBJECT;
    case JSON_ARRAY:
        return found->kind == JSON_KIND_ARRAY;
    default:
        return false;
    }
}

static bool same_finds(const struct json_found *a, const struct json_found *b)
{
    for (size_t i = 0; i < PATHS; i++)
        if (a[i].kind != b[i].kind || a[i].raw.at != b[i].raw.at || a[i].raw.len != b[i].raw.len ||
            a[i].escaped != b[i].escaped || a[i].lone_surrogate != b[i].lone_surrogate ||
            a[i].integer != b[i].integer)
            return false;
    return true;
}

struct answers {
    bool ours, theirs;  /* is it JSON? */
    bool agree;         /* on that, and on every pick */
    bool too_deep;      /* jansson's reason */
    const char *broken; /* our own walks differ among each other */
};

static struct answers answer(struct bytes body, const struct question *q)
{
    struct answers a = {0};
    struct json_found found[PATHS], scalar[PATHS];
    json_error_t err;
    a.ours = json_walk(body, q->prepared, found);
    if (json_walk(body, NULL, NULL) != a.ours)
        a.broken = "paths change what is JSON";
    if (json_walk_scalar(body, q->prepared, scalar) != a.ours || !same_finds(found, scalar))
        a.broken = "the walk without SSE2 differs";

    json_t *tree = oracle_read(body, &err);
    a.theirs = tree != NULL;
    a.too_deep = !tree && json_error_code(&err) == json_error_stack_overflow;
    a.agree = a.ours == a.theirs;
    for (size_t i = 0; tree && a.ours && i < PATHS; i++)
        a.agree = a.agree && same_value(&found[i], oracle_find(tree, &q->paths[i]));
    json_decref(tree);
    return a;
}

static uint64_t tally[KIND_COUNT];

/* NULL when the readers agree or differ as listed; otherwise what is wrong. */
static const char *judge(struct bytes body, const struct question *q)
{
    struct answers first = answer(body, q);
    if (first.broken || first.agree)
        return first.broken;

    struct buf neutral = {0};
    unsigned met = neutralise(body, &neutral);
    struct answers second = answer(buf_bytes(&neutral), q);
    buf_free(&neutral);

    const unsigned rewritten = met & ~(1u << KIND_DEPTH);
    const char *wrong = NULL;
    if (second.broken)
        wrong = second.broken;
    else if (first.ours && first.theirs)
        wrong = "another value was picked";
    else if ((met & 1 << KIND_DEPTH) && second.ours && second.too_deep)
        wrong = NULL;
    else if (!rewritten)
        wrong = first.ours ? "only the walk accepts it" : "only jansson accepts it";
    else if (!second.agree)
        wrong = "they differ in more than the listed kinds";
    else if (first.ours && !second.ours)
        wrong = "the walk accepts it for its listed kind only";
    else if (first.theirs && !(met & 1 << KIND_NUL_BYTE))
        wrong = "only jansson accepts it";
    for (int i = 0; i < KIND_COUNT; i++)
        tally[i] += met >> i & 1;
    return wrong;
}

/* Exactly as long as the body, so that a sanitizer sees a byte read too far. */
static struct bytes exact_copy(const struct buf *body)
{
    char *copy = malloc(body->len ? body->len : 1);
    memcpy(copy, body->at ? body->at : "", body->len);
    return bytes_of(copy, body->len);
}

static void report(const char *wrong, struct bytes body, const struct question *q, uint64_t seed, uint64_t n)
{
    printf("%s (seed %" PRIu64 ", body %" PRIu64 ")\nbody: ", wrong, seed, n);
    for (size_t i = 0; i < body.len; i++)
        printf("%02x", (unsigned char)body.at[i]);
    printf("\ntext: %.*s\n", BYTES_ARG(body));
    for (size_t i = 0; i < PATHS; i++)
        printf("path: %.*s\n", BYTES_ARG(buf_bytes(&q->texts[i])));
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int64_t seconds = argc > 2 ? strtoll(argv[2], NULL, 10) : 60;
    uint64_t most = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    struct random random = {seed};
    struct buf body = {0};
    uint64_t n = 0, valid = 0;
    const char *wrong = NULL;
    json_object_seed(1);

    for (int64_t start = clock_mono_ms(); !wrong && (!most || n < most); n++) {
        if (seconds && n % 256 == 0 && clock_mono_ms() - start >= seconds * 1000)
            break;
        struct question q = {0};
        ask(&q, &random);
        make_body(&random, &body);
        struct bytes copy = exact_copy(&body);
        valid += json_walk(copy, NULL, NULL);
        wrong = judge(copy, &q);
        if (wrong)
            report(wrong, copy, &q, seed, n);
        free((void *)copy.at);
        unask(&q);
    }
    buf_free(&body);

    printf("%" PRIu64 " bodies from seed %" PRIu64 ", %" PRIu64 " of them JSON\n", n, seed, valid);
    static const char *const kinds[] = {
#define KIND_TEXT(id, text) text,
        KINDS(KIND_TEXT)
#undef KIND_TEXT
    };
    for (int i = 0; i < KIND_COUNT; i++)
        printf("%10" PRIu64 "  %s\n", tally[i], kinds[i]);
    return wrong ? 1 : 0;
}
