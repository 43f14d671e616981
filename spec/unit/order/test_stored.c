/* Rule 4: a hook that went through the store resolves to the lanes it got at ingest. Sources and hooks from a
 * seed; a failure prints it. */
#include "order_support.h"

#include "random.h"
#include "util/buf.h"

enum { SOURCES = 300, HOOKS = 30, SINKS_MAX = 5, DEPTH_MAX = 3 };

static const char *const names[] = {"x-shop", "X-Shop", "x-empty", "X-Other", "x-none"};
static const char *const texts[] = {
    "",
    "7",
    "cus_1",
    "caf\xc3\xa9",
    "a b",
    "invoice.paid",
    "*",
    "%2f",
    "a key that is longer than one hundred and twenty-eight bytes, which is where keys are "
    "hashed instead of kept, so it must go on for a while"};
static const char *const paths[] = {"id",          "data.id", "data.items.0", "data.items.1.id", "type",
                                    "none.at.all", "0"};
static const char *const globs[] = {"*", "invoice.*", "cus_*", "7", "true", "x*y"};
static const char *const values[] = {"\"cus_1\"",
                                     "\"\"",
                                     "17",
                                     "-0.5",
                                     "true",
                                     "null",
                                     "\"a\\u0000b\"",
                                     "\"\\ud800\"",
                                     "\"invoice.paid\"",
                                     "{\"id\":\"deep\"}",
                                     "[\"first\",{\"id\":\"second\"}]",
                                     "\"caf\\u00e9\"",
                                     "\"\xf0\x9f\x98\x80\"",
                                     "820982911946154508123"};

#define PICK(random, list) (list)[random_below(random, sizeof(list) / sizeof *(list))]

static void make_key(struct random *random, struct arena *arena, int depth, struct key_spec *key)
{
    size_t kind = random_below(random, depth < DEPTH_MAX ? 4 : 3);
    *key = (struct key_spec){.kind = (enum key_kind)kind};
    switch (key->kind) {
    case KEY_HEADER:
        key->header = bytes_str(PICK(random, names));
        break;
    case KEY_JSON:
        key->path = path_of(PICK(random, paths), arena);
        key->integers = random_once_in(random, 2);
        break;
    case KEY_HEADERS: /* of dedupe alone */
        break;
    case KEY_SCRIPT:
        key->module = "m";
        key->function = PICK(random, names);
        break;
    case KEY_FIRST: {
        key->item_count = 1 + random_below(random, 3);
        struct key_spec *items = arena_zalloc(arena, key->item_count * sizeof *items);
        for (size_t i = 0; i < key->item_count; i++)
            make_key(random, arena, depth + 1, &items[i]);
        key->items = items;
        break;
    }
    }
}

static struct filter_spec *make_filter(struct random *random, struct arena *arena)
{
    struct filter_spec *only = arena_zalloc(arena, sizeof *only);
    struct bytes *list = arena_alloc(arena, 2 * sizeof *list);
    list[0] = bytes_str(PICK(random, globs));
    list[1] = bytes_str(PICK(random, globs));
    *only = (struct filter_spec){.by_header = random_once_in(random, 2),
                                 .header = bytes_str(PICK(random, names)),
                                 .path = path_of(PICK(random, paths), arena),
                                 .globs = list,
                                 .glob_count = 1 + random_below(random, 2)};
    return only;
}

/* A script as one may be: its key is made of a header and the envelope. */
static enum missing_reason script(void *ctx, const struct key_spec *spec, const struct envelope *envelope,
                                  struct arena *arena, struct bytes *key, bool *unordered)
{
    (void)ctx;
    struct bytes value = envelope_header(envelope, bytes_str(spec->function));
    if (!value.at)
        return MISSING_SCRIPT_ERROR;
    *unordered = bytes_eq(value, BYTES("*"));
    struct buf text = {0};
    buf_putf(&text, "%.*s:%.*s:%.*s", BYTES_ARG(envelope->method), BYTES_ARG(envelope->path),
             BYTES_ARG(value));
    *key = arena_copy(arena, buf_bytes(&text));
    buf_free(&text);
    return MISSING_NOTHING;
}

static struct order_options make_source(struct random *random, struct arena *arena)
{
    static const char *const sink_names[SINKS_MAX] = {"a", "b", "c", "d", "e"};
    static const struct key_engine engine = {.resolve = script};
    size_t count = 1 + random_below(random, SINKS_MAX);
    struct order_sink *sinks = arena_zalloc(arena, count * sizeof *sinks);
    for (size_t i = 0; i < count; i++) {
        sinks[i].name = bytes_str(sink_names[i]);
        sinks[i].ordered = !random_once_in(random, 4);
        if (random_once_in(random, 2))
            sinks[i].only = make_filter(random, arena);
        if (!sinks[i].ordered)
            continue;
        sinks[i].missing_is_unordered = random_once_in(random, 3);
        if (!random_once_in(random, 5)) {
            struct key_spec *key = arena_zalloc(arena, sizeof *key);
            make_key(random, arena, 0, key);
            sinks[i].key = key;
        }
    }
    struct key_spec *dedupe = arena_zalloc(arena, sizeof *dedupe);
    *dedupe = (struct key_spec){.kind = random_once_in(random, 2) ? KEY_HEADER : KEY_JSON,
                                .header = bytes_str(PICK(random, names)),
                                .path = path_of(PICK(random, paths), arena)};
    return (struct order_options){.source = SOURCE,
                                  .sinks = sinks,
                                  .sink_count = count,
                                  .dedupe = random_once_in(random, 2) ? dedupe : NULL,
                                  .json_max_bytes = random_once_in(random, 4) ? 30 : 1 << 20,
                                  .engine = &engine};
}

static struct envelope *make_hook(struct random *random)
{
    struct envelope *e = envelope_new(512);
    e->id = uuid_new(1700000000000);
    e->seq = random_u64(random);
    e->received_at_ms = 1700000000000;
    e->tenant = BYTES("default");
    e->source = SOURCE;
    e->method = BYTES("POST");
    e->path = BYTES("/webhooks/shop");
    e->query = random_once_in(random, 2) ? BYTES("a=1") : BYTES_NONE;
    e->content_type = BYTES("application/json");
    e->remote_ip = BYTES("127.0.0.1");
    e->header_count = random_below(random, 6);
    struct header *headers = arena_zalloc(e->arena, 6 * sizeof *headers);
    for (size_t i = 0; i < e->header_count; i++)
        headers[i] = (struct header){bytes_str(PICK(random, names)), bytes_str(PICK(random, texts))};
    e->headers = headers;
    struct buf body = {0};
    if (random_once_in(random, 6))
        buf_puts(&body, PICK(random, texts));
    else
        buf_putf(&body, "{\"id\":%s,\"type\":%s,\"data\":{\"items\":%s,\"id\":%s}}", PICK(random, values),
                 PICK(random, values), PICK(random, values), PICK(random, values));
    e->body = arena_copy(e->arena, buf_bytes(&body));
    buf_free(&body);
    return e;
}

static struct envelope *through_the_store(const struct envelope *e)
{
    struct buf head = {0};
    envelope_encode(e, &head);
    struct envelope_parts parts = {.id = e->id,
                                   .seq = e->seq,
                                   .received_at_ms = e->received_at_ms,
                                   .tenant = e->tenant,
                                   .source = e->source,
                                   .head = buf_bytes(&head),
                                   .body = e->body};
    struct envelope *stored;
    assert_int_equal(envelope_decode(&parts, &stored), STATUS_OK);
    buf_free(&head);
    return stored;
}

static bool same(const struct order_lane *a, const struct order_lane *b)
{
    return a->filtered == b->filtered && a->ordered == b->ordered &&
           a->unordered_by_word == b->unordered_by_word && a->missing == b->missing && a->found == b->found &&
           !a->key.at == !b->key.at && bytes_eq(a->key, b->key) &&
           (!a->ordered || same_lane(a->lane, b->lane));
}

/* What must be true of any lane, whatever its source. */
static bool sound(const struct order_lane *lane, const struct order_sink *sink)
{
    bool in_lane = lane->ordered && !lane->filtered && !lane->unordered_by_word;
    if (lane->ordered)
        return in_lane && sink->ordered && lane->key.len <= ORDER_KEY_MAX &&
               (lane->key.at ? lane->key.len > 0 && lane->missing == MISSING_NOTHING
                             : lane->missing != MISSING_NOTHING || !sink->key) &&
               same_lane(lane->lane, lane_id_of(SOURCE, sink->name, lane->key));
    return !lane->key.at &&
           (lane->filtered ? !lane->unordered_by_word : lane->unordered_by_word == sink->ordered);
}

static void lanes_survive_the_store(void **state)
{
    (void)state;
    size_t keyed = 0, keyless = 0, filtered = 0, by_word = 0;
    for (uint64_t seed = 1; seed <= SOURCES; seed++) {
        struct random random = {seed};
        struct arena *arena = arena_new(4096);
        struct order_options options = make_source(&random, arena);
        struct order_plan *plan, *reloaded;
        assert_int_equal(order_plan_new(&options, &plan, NULL), STATUS_OK);
        assert_int_equal(order_plan_new(&options, &reloaded, NULL), STATUS_OK);
        for (int h = 0; h < HOOKS; h++) {
            struct envelope *e = make_hook(&random), *stored = through_the_store(e);
            struct order_lane before[SINKS_MAX], after[SINKS_MAX];
            struct bytes dedupe, dedupe_after;
            order_resolve(plan, e, e->arena, before, &dedupe);
            order_resolve(reloaded, stored, stored->arena, after, &dedupe_after);
            for (size_t i = 0; i < options.sink_count; i++) {
                if (!same(&before[i], &after[i]) || !sound(&before[i], &options.sinks[i]))
                    fail_msg("seed %d, hook %d, sink %zu: %.*s", (int)seed, h, i, BYTES_ARG(e->body));
                keyed += before[i].key.at != NULL;
                keyless += before[i].ordered && !before[i].key.at;
                filtered += before[i].filtered;
                by_word += before[i].unordered_by_word;
            }
            assert_int_equal(!dedupe.at, !dedupe_after.at);
            assert_true(bytes_eq(dedupe, dedupe_after));
            envelope_unref(stored);
            envelope_unref(e);
        }
        order_plan_free(plan);
        order_plan_free(reloaded);
        arena_free(arena);
    }
    /* The generator reaches every kind of answer often enough to mean something. */
    assert_true(keyed > 1000 && keyless > 1000 && filtered > 1000 && by_word > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lanes_survive_the_store)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
