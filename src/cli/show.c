#include "cli/show.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/units.h"

void show_json(const json_t *document)
{
    json_dumpf(document, stdout, JSON_COMPACT);
    fputc('\n', stdout);
}

const char *show_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

int64_t show_int(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

void show_cell_text(struct grid *table, const json_t *object, const char *name)
{
    grid_cell(table, "%s", show_text(object, name));
}

void show_cell_int(struct grid *table, const json_t *object, const char *name)
{
    grid_cell(table, "%lld", (long long)show_int(object, name));
}

void show_cell_age(struct grid *table, int64_t since_ms)
{
    char text[32] = "";
    int64_t age_ms = clock_unix_ms() - since_ms;
    if (since_ms)
        units_format_ms(age_ms > 0 ? age_ms : 0, text);
    grid_cell(table, "%s", text);
}

void show_cell_due(struct grid *table, int64_t at_ms)
{
    char text[32] = "";
    int64_t wait_ms = at_ms - clock_unix_ms();
    if (at_ms && wait_ms > 0)
        units_format_ms(wait_ms, text);
    grid_cell(table, "%s", !at_ms || wait_ms > 0 ? text : "now");
}

void show_time(int64_t at_ms, char out[32])
{
    time_t s = at_ms / 1000;
    struct tm tm;
    if (!gmtime_r(&s, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%SZ", &tm))
        snprintf(out, 32, "%lld", (long long)at_ms);
}

void show_cell_time(struct grid *table, int64_t at_ms)
{
    char text[32] = "";
    if (at_ms)
        show_time(at_ms, text);
    grid_cell(table, "%s", text);
}

void show_cell_bytes(struct grid *table, int64_t bytes)
{
    char text[32];
    units_format_bytes(bytes, text);
    grid_cell(table, "%s", text);
}

void show_cell_lane(struct grid *table, const json_t *entry)
{
    const char *key = show_text(entry, "key");
    grid_cell(table, "%s/%s%s%s", show_text(entry, "source"), show_text(entry, "sink"), *key ? "/" : "", key);
}

const char *show_moment(const char *text, char buffer[24])
{
    int64_t ago_ms;
    if (!text || !units_parse_ms(bytes_str(text), &ago_ms))
        return text;
    int64_t at_ms = clock_unix_ms() - ago_ms;
    snprintf(buffer, 24, "%lld", (long long)(at_ms > 1 ? at_ms : 1));
    return buffer;
}

void show_list(const struct grid *table, const json_t *answer, const char *array, const char *many)
{
    size_t shown = json_array_size(json_object_get(answer, array));
    const json_t *total = json_object_get(answer, "total");
    const char *next = show_text(answer, "next_cursor");
    if (shown)
        grid_print(table, stdout, grid_width(stdout));
    fflush(stdout);
    if (!shown)
        fprintf(stderr, "no %s\n", many);
    else if (*next && total)
        fprintf(stderr, "%zu of %lld %s; --cursor %s goes on\n", shown, (long long)json_integer_value(total),
                many, next);
    else if (*next)
        fprintf(stderr, "%zu %s, and there are more; --cursor %s goes on\n", shown, many, next);
}

static int fetch(const struct listing *listing, struct client *client, json_t **answer)
{
    if (listing->whole)
        return client_get_list(client, listing->path, listing->array, answer);
    return client_list(client, listing->path, listing->array, listing->limit, listing->cursor, answer);
}

int show_listing(const struct listing *listing)
{
    if (!listing->whole && listing->limit < 1)
        return cli_usage(listing->verb, "--limit must be at least 1");
    struct client *client = NULL;
    json_t *answer = NULL;
    int code = client_open(listing->verb, listing->where, &client);
    if (code != CLI_OK)
        return code;
    code = fetch(listing, client, &answer);
    client_close(client);
    if (code != CLI_OK)
        return code;
    if (listing->json)
        show_json(answer);
    else
        listing->print(answer);
    json_decref(answer);
    return CLI_OK;
}

/* What is shown begins at the top of an empty screen. */
static void print_anew(const struct listing *listing, const json_t *answer)
{
    char now[32];
    show_time(clock_unix_ms(), now);
    printf("\x1b[H\x1b[2J%s  lanegate %s, every second; Ctrl-C ends it\n\n", now, listing->verb->name);
    listing->print(answer);
    fflush(stdout);
}

int show_watched(const struct listing *listing)
{
    enum { EVERY_US = 1000 * 1000, LINES_BESIDE = 6 };
    unsigned lines = grid_height(stdout);
    if (!lines || listing->json)
        return cli_usage(listing->verb,
                         "--watch is for a terminal; elsewhere ask again and again with --json");
    struct listing seen = *listing;
    seen.limit = lines > LINES_BESIDE ? lines - LINES_BESIDE : 1;
    struct client *client = NULL;
    int code = client_open(listing->verb, listing->where, &client);
    for (bool first = true; code == CLI_OK; first = false) {
        json_t *answer = NULL;
        int asked = fetch(&seen, client, &answer);
        if (asked == CLI_OK)
            print_anew(&seen, answer);
        else if (first || asked != CLI_UNREACHABLE)
            code = asked; /* one that is restarting comes back */
        json_decref(answer);
        usleep(EVERY_US);
    }
    client_close(client);
    return code;
}
