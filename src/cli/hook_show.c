#include "cli/hook_show.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "cli/show.h"
#include "util/units.h"

static void line(FILE *out, const char *label, const char *text)
{
    fprintf(out, "%-13s ", label);
    print_harmless(out, *text ? text : "-");
    fputc('\n', out);
}

static void print_headers(const json_t *hook, FILE *out)
{
    size_t i;
    const json_t *header;
    fputs("headers\n", out);
    json_array_foreach(json_object_get(hook, "headers"), i, header)
    {
        const char *name = json_string_value(json_array_get(header, 0));
        const char *value = json_string_value(json_array_get(header, 1));
        fputs("  ", out);
        print_harmless(out, name ? name : "");
        fputs(": ", out);
        print_harmless(out, value ? value : "(hidden: needs the scope payload)");
        fputc('\n', out);
    }
}

static const struct grid_column columns[] = {{"SINK", false},  {"KEY", false},    {"LANE", false},
                                             {"STATE", false}, {"CLASS", false},  {"ATTEMPTS", true},
                                             {"DUE IN", true}, {"CHANGED", true}, {"LAST ERROR", false}};

static void print_rows(const json_t *hook, FILE *out)
{
    struct grid *table = grid_new(columns, sizeof columns / sizeof columns[0]);
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(hook, "rows"), i, row)
    {
        show_cell_text(table, row, "sink");
        show_cell_text(table, row, "key");
        show_cell_text(table, row, "lane");
        show_cell_text(table, row, "state");
        show_cell_text(table, row, "class");
        show_cell_int(table, row, "attempts");
        show_cell_due(table, show_int(row, "due_at"));
        show_cell_age(table, show_int(row, "changed_at"));
        show_cell_text(table, row, "last_error");
    }
    fputs("\ndeliveries\n", out);
    if (i)
        grid_print(table, out, grid_width(out));
    else
        fputs("none: every sink's filter left this hook out\n", out);
    grid_free(table);
}

static const struct grid_column attempt_columns[] = {{"SINK", false},    {"ATTEMPT", true}, {"AT", false},
                                                     {"CLASS", false},   {"TOOK", true},    {"REASON", false},
                                                     {"RESPONSE", false}};

/* Text on one line; of other bytes, that there were some. */
static void cell_response(struct grid *table, const json_t *attempt)
{
    const char *encoding = show_text(attempt, "response_encoding");
    if (strcmp(encoding, "base64") == 0)
        grid_cell(table, "(no text; base64 %s)", show_text(attempt, "response"));
    else
        grid_cell(table, "%s", show_text(attempt, "response"));
}

void hook_show_attempts(const json_t *attempts, FILE *out)
{
    struct grid *table = grid_new(attempt_columns, sizeof attempt_columns / sizeof attempt_columns[0]);
    size_t i;
    const json_t *attempt;
    json_array_foreach(json_object_get(attempts, "attempts"), i, attempt)
    {
        show_cell_text(table, attempt, "sink");
        show_cell_int(table, attempt, "attempt");
        show_cell_time(table, show_int(attempt, "at"));
        show_cell_text(table, attempt, "class");
        grid_cell(table, "%lld ms", (long long)(show_int(attempt, "duration_us") / 1000));
        show_cell_text(table, attempt, "reason");
        cell_response(table, attempt);
    }
    if (i > 0) {
        fputs("\nlast failures\n", out);
        grid_print(table, out, grid_width(out));
    }
    grid_free(table);
}

void hook_show(const json_t *hook, FILE *out)
{
    struct buf request = {0};
    const char *query = json_string_value(json_object_get(hook, "query"));
    char text[32];
    buf_putf(&request, "%s %s%s%s", show_text(hook, "method"), show_text(hook, "path"), query ? "?" : "",
             query ? query : "");

    line(out, "id", show_text(hook, "id"));
    snprintf(text, sizeof text, "%lld", (long long)show_int(hook, "seq"));
    line(out, "seq", text);
    line(out, "tenant", show_text(hook, "tenant"));
    line(out, "source", show_text(hook, "source"));
    show_time(show_int(hook, "received_at"), text);
    line(out, "received", text);
    line(out, "from", show_text(hook, "remote_ip"));
    line(out, "request", request.at);
    line(out, "content type", show_text(hook, "content_type"));
    units_format_bytes(show_int(hook, "size"), text);
    line(out, "size", text);
    line(out, "verification", show_text(hook, "verification"));
    line(out, "dedupe key", show_text(hook, "dedupe_key"));
    print_headers(hook, out);
    print_rows(hook, out);
    buf_free(&request);
}

void hook_show_head(const json_t *hook, size_t body_len, FILE *out)
{
    const char *query = json_string_value(json_object_get(hook, "query"));
    fprintf(out, "%s %s%s%s HTTP/1.1\r\n", show_text(hook, "method"), show_text(hook, "path"),
            query ? "?" : "", query ? query : "");
    bool has_length = false;
    size_t i;
    const json_t *header;
    json_array_foreach(json_object_get(hook, "headers"), i, header)
    {
        const char *name = json_string_value(json_array_get(header, 0));
        const char *value = json_string_value(json_array_get(header, 1));
        if (!name || strcasecmp(name, "transfer-encoding") == 0)
            continue;
        has_length = has_length || strcasecmp(name, "content-length") == 0;
        fprintf(out, "%s: %s\r\n", name, value ? value : "");
    }
    if (!has_length)
        fprintf(out, "Content-Length: %zu\r\n", body_len);
    fputs("\r\n", out);
}
