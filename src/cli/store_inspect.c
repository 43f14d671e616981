/* lanegate store inspect: what is in a store that nobody serves. */
#include <stdio.h>

#include "cli/args.h"
#include "cli/show.h"
#include "cli/store_tools.h"
#include "util/units.h"

/* ---- JSON: one array a kind ---- */

static const char *const arrays[] = {
    [SIGHT_SOURCE] = "sources", [SIGHT_SINK] = "sinks",     [SIGHT_LANE] = "lanes",
    [SIGHT_DEAD] = "dead",      [SIGHT_PEN] = "quarantine", [SIGHT_STOPPED] = "stopped",
};
enum { KINDS = sizeof arrays / sizeof arrays[0] };

struct sights {
    struct buf text[KINDS]; /* members of each array */
};

static void write_states(struct jsonw *w, const uint64_t states[])
{
    for (int state = ROW_PENDING; state <= ROW_DISCARDED; state++)
        jsonw_uint(w, row_state_name((enum row_state)state), states[state]);
}

static void take_sight(void *ctx, const struct store_sight *sight)
{
    struct buf *text = &((struct sights *)ctx)->text[sight->kind];
    struct jsonw w = jsonw_on(text);
    w.need_comma = text->len > 0;
    jsonw_object(&w, NULL);
    if (sight->tenant)
        jsonw_str(&w, "tenant", sight->tenant);
    jsonw_str(&w, "source", sight->source);
    if (sight->sink)
        jsonw_str(&w, "sink", sight->sink);
    switch (sight->kind) {
    case SIGHT_SOURCE:
        jsonw_uint(&w, "hooks", sight->hooks);
        store_write_time(&w, "oldest_at", sight->oldest_ms);
        store_write_time(&w, "newest_at", sight->newest_ms);
        break;
    case SIGHT_SINK:
        write_states(&w, sight->states);
        store_write_time(&w, "oldest_pending_at", sight->oldest_ms);
        break;
    case SIGHT_LANE:
        jsonw_bool(&w, "ordered", sight->ordered);
        jsonw_bytes_percent(&w, "key", sight->key);
        jsonw_uint(&w, "depth", sight->hooks);
        jsonw_uint(&w, "head_seq", sight->head_seq);
        jsonw_bool(&w, "held", sight->held);
        store_write_time(&w, "oldest_at", sight->oldest_ms);
        break;
    case SIGHT_DEAD:
        jsonw_str(&w, "class", sight->cls);
        jsonw_uint(&w, "rows", sight->hooks);
        store_write_time(&w, "oldest_dead_at", sight->oldest_ms);
        break;
    case SIGHT_PEN:
        jsonw_uint(&w, "hooks", sight->hooks);
        jsonw_uint(&w, "bytes", sight->bytes);
        store_write_time(&w, "oldest_at", sight->oldest_ms);
        break;
    case SIGHT_STOPPED:
        jsonw_str(&w, "by", sight->cls);
        store_write_time(&w, "since", sight->oldest_ms);
        break;
    }
    jsonw_end_object(&w);
}

static void write_json(const struct store_view *view, const struct sights *sights, struct buf *text)
{
    struct jsonw w = jsonw_on(text);
    jsonw_object(&w, NULL);
    store_write_id(&w, "epoch", &view->epoch);
    jsonw_int(&w, "layout", view->layout);
    jsonw_int(&w, "database_bytes", view->database_bytes);
    jsonw_int(&w, "log_bytes", view->log_bytes);
    jsonw_uint(&w, "hooks", view->hooks);
    jsonw_uint(&w, "last_seq", view->next_seq ? view->next_seq - 1 : 0);
    store_write_time(&w, "oldest_at", view->oldest_ms);
    store_write_time(&w, "newest_at", view->newest_ms);
    jsonw_object(&w, "rows");
    write_states(&w, view->states);
    jsonw_end_object(&w);
    jsonw_uint(&w, "lanes_total", view->lanes);
    jsonw_uint(&w, "quarantine_hooks", view->pen_hooks);
    jsonw_uint(&w, "quarantine_bytes", view->pen_bytes);
    jsonw_uint(&w, "dedupe_keys", view->dedupe_keys);
    jsonw_uint(&w, "audit_lines", view->audit_lines);
    jsonw_uint(&w, "replays_running", view->replays_running);
    jsonw_uint(&w, "replays_paused", view->replays_paused);
    store_write_time(&w, "backup_at", view->backup_ms);
    store_write_time(&w, "restored_at", view->restored_ms);
    for (size_t i = 0; i < KINDS; i++) {
        jsonw_array(&w, arrays[i]);
        jsonw_raw(&w, NULL, buf_bytes(&sights->text[i]));
        jsonw_end_array(&w);
    }
    jsonw_end_object(&w);
}

/* ---- for people: tables of the same document ---- */

static void cell(struct grid *table, const json_t *entry, const char *name)
{
    const json_t *value = json_object_get(entry, name);
    size_t len = strlen(name);
    if (json_is_integer(value) && len > 3 && strcmp(name + len - 3, "_at") == 0)
        show_cell_time(table, json_integer_value(value));
    else if (json_is_integer(value) && len >= 5 && strcmp(name + len - 5, "bytes") == 0)
        show_cell_bytes(table, json_integer_value(value));
    else if (json_is_integer(value) && strcmp(name, "since") == 0)
        show_cell_time(table, json_integer_value(value));
    else if (json_is_integer(value))
        show_cell_int(table, entry, name);
    else if (json_is_boolean(value))
        grid_cell(table, "%s", json_is_true(value) ? "yes" : "no");
    else
        show_cell_text(table, entry, name);
}

/* Members in order, under titles that are their names. */
static void print_table(const json_t *document, const char *array, const char *title,
                        const struct grid_column *columns, const char *const *names, size_t count)
{
    json_t *entries = json_object_get(document, array), *entry;
    size_t at;
    if (json_array_size(entries) == 0)
        return;
    struct grid *table = grid_new(columns, count);
    json_array_foreach(entries, at, entry) for (size_t i = 0; i < count; i++) cell(table, entry, names[i]);
    printf("\n%s\n", title);
    grid_print(table, stdout, grid_width(stdout));
    grid_free(table);
}

#define TABLE(document, array, title, columns, ...)                                                          \
    do {                                                                                                     \
        static const char *const table_names[] = {__VA_ARGS__};                                              \
        _Static_assert(sizeof table_names / sizeof table_names[0] == sizeof columns / sizeof columns[0],     \
                       "a name a column");                                                                   \
        print_table(document, array, title, columns, table_names, sizeof columns / sizeof columns[0]);       \
    } while (0)

static void print_tables(const json_t *document, const char *lanes_title)
{
    static const struct grid_column sources[] = {
        {"TENANT", false}, {"SOURCE", false}, {"HOOKS", true}, {"OLDEST", false}, {"NEWEST", false}};
    static const struct grid_column sinks[] = {
        {"SOURCE", false}, {"SINK", false}, {"PENDING", true},   {"DONE", true},
        {"DEAD", true},    {"HELD", true},  {"DISCARDED", true}, {"OLDEST PENDING", false}};
    static const struct grid_column lanes[] = {{"TENANT", false}, {"SOURCE", false},  {"SINK", false},
                                               {"KEY", false},    {"ORDERED", false}, {"DEPTH", true},
                                               {"HEAD", true},    {"HELD", false},    {"OLDEST", false}};
    static const struct grid_column dead[] = {
        {"SOURCE", false}, {"SINK", false}, {"CLASS", false}, {"ROWS", true}, {"OLDEST DIED", false}};
    static const struct grid_column pen[] = {
        {"SOURCE", false}, {"HOOKS", true}, {"SIZE", true}, {"OLDEST", false}};
    static const struct grid_column stopped[] = {
        {"BY", false}, {"SOURCE", false}, {"SINK", false}, {"TENANT", false}, {"SINCE", false}};
    TABLE(document, "sources", "hooks", sources, "tenant", "source", "hooks", "oldest_at", "newest_at");
    TABLE(document, "sinks", "rows", sinks, "source", "sink", "pending", "done", "dead", "held", "discarded",
          "oldest_pending_at");
    TABLE(document, "lanes", lanes_title, lanes, "tenant", "source", "sink", "key", "ordered", "depth",
          "head_seq", "held", "oldest_at");
    TABLE(document, "dead", "dead letters", dead, "source", "sink", "class", "rows", "oldest_dead_at");
    TABLE(document, "quarantine", "quarantine", pen, "source", "hooks", "bytes", "oldest_at");
    TABLE(document, "stopped", "paused, or with an open breaker", stopped, "by", "source", "sink", "tenant",
          "since");
}

static void print(const struct store_view *view, const json_t *document)
{
    char epoch[UUID_TEXT], database[32], log[32], at[32], title[96];
    uuid_format(&view->epoch, epoch);
    units_format_bytes(view->database_bytes, database);
    units_format_bytes(view->log_bytes, log);
    printf("epoch %s, layout %d\n", epoch, view->layout);
    printf("database %s, log %s%s\n", database, log,
           view->log_bytes ? " (read too: keep both files together)" : "");
    if (view->backup_ms) {
        show_time(view->backup_ms, at);
        printf("a backup of %s\n", at);
    }
    if (view->restored_ms) {
        show_time(view->restored_ms, at);
        printf("restored from a backup at %s\n", at);
    }
    printf("%llu hooks, last seq %llu, %llu dedupe keys, %llu audit lines\n", (unsigned long long)view->hooks,
           (unsigned long long)(view->next_seq ? view->next_seq - 1 : 0),
           (unsigned long long)view->dedupe_keys, (unsigned long long)view->audit_lines);
    if (view->replays_running + view->replays_paused > 0)
        printf("replay jobs: %llu running, %llu paused\n", (unsigned long long)view->replays_running,
               (unsigned long long)view->replays_paused);
    size_t shown = json_array_size(json_object_get(document, "lanes"));
    snprintf(title, sizeof title, "what waits: the deepest %zu of %llu lanes", shown,
             (unsigned long long)view->lanes);
    print_tables(document, title);
}

/* ---- the verb ---- */

int store_inspect_run(int argc, char **argv)
{
    const char *config = NULL, *path = NULL;
    bool json = false;
    int64_t limit = 20;
    const struct arg args[] = {{"config", ARG_TEXT, {.text = &config}},
                               {"limit", ARG_COUNT, {.number = &limit}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    struct store_place place = {0};
    int code = cli_args(&verb_store, argc, argv, args, &path, 1, &count);
    if (code == CLI_OK)
        code = store_place_of(path, config, &place);
    if (code != CLI_OK) {
        store_place_free(&place);
        return code;
    }

    struct sights sights = {0};
    struct store_inspection ask = {
        .max_lanes = (size_t)limit, .each = take_sight, .ctx = &sights, .watch = store_watch_terminal()};
    struct store_view view;
    struct error err = {""};
    struct buf text = {0};
    enum status status = store_inspect(place.dir, &ask, &view, &err);
    store_watch_over();
    if (status == STATUS_OK) {
        write_json(&view, &sights, &text);
        json_t *document = json_loadb(text.at, text.len, 0, NULL);
        if (json)
            printf("%s\n", text.at);
        else
            print(&view, document);
        json_decref(document);
    } else {
        code = store_failed(status, &err);
        if (status == STATUS_BUSY)
            fputs("ask the gateway that serves it: lanegate store, lanegate lanes, lanegate dlq list\n",
                  stderr);
    }
    for (size_t i = 0; i < KINDS; i++)
        buf_free(&sights.text[i]);
    store_place_free(&place);
    buf_free(&text);
    return code;
}
