#include "cli/order_against.h"

#include <string.h>

#include "cli/lane_name.h"
#include "cli/show.h"
#include "util/mem.h"
#include "util/vec.h"

/* Called delivered, and not in the log when we looked. */
struct miss {
    struct order_row row;
    struct lane_id lane;
    bool in_lane;
};

struct order_against {
    const struct cli_verb *verb;
    struct client *client;
    json_t *answer; /* of /v1/sinks: owns the names */
    VEC(struct taken_sink) sinks;
    struct order_taken *taken;
    VEC(struct miss) misses;
    VEC(struct order_row) missing, undelivered; /* as listed */
    struct order_against_report report;
};

/* -- which sinks
 * ------------------------------------------------------------------------------------------------- */

static bool want(struct order_against *against, const struct lane_name *name)
{
    bool found = false;
    VEC_EACH (sink, &against->sinks) {
        if (strcmp(sink->source, name->source) == 0 && (!name->sink || strcmp(sink->name, name->sink) == 0))
            sink->wanted = found = true;
    }
    return found;
}

static int want_only(struct order_against *against, const struct arg_list *only)
{
    int code = CLI_OK;
    for (size_t i = 0; code == CLI_OK && i < only->len; i++) {
        struct lane_name name;
        if (!lane_name_parse(only->items[i], &name))
            return cli_usage(against->verb, "--sink must be SOURCE/SINK, got \"%s\"", only->items[i]);
        if (name.has_key)
            code = cli_usage(against->verb, "--sink takes no key, got \"%s\"", only->items[i]);
        else if (!want(against, &name))
            code = cli_usage(against->verb, "the gateway has no sink \"%s\"", only->items[i]);
        lane_name_free(&name);
    }
    return code;
}

int order_against_open(const struct cli_verb *verb, struct client *client, const struct arg_list *only,
                       struct order_against **out)
{
    json_t *answer;
    int code = client_get_list(client, "/v1/sinks", "sinks", &answer);
    if (code != CLI_OK)
        return code;
    struct order_against *against = mem_zalloc(sizeof *against);
    against->verb = verb;
    against->client = client;
    against->answer = answer;
    size_t i;
    const json_t *sink;
    json_array_foreach(json_object_get(answer, "sinks"), i, sink)
    {
        bool sends = strcmp(show_text(sink, "type"), "log") != 0;
        VEC_PUSH(&against->sinks, ((struct taken_sink){.source = show_text(sink, "source"),
                                                       .name = show_text(sink, "sink"),
                                                       .wanted = only->len == 0 && sends}));
    }
    against->taken = order_taken_new(against->sinks.at, against->sinks.len);
    code = want_only(against, only);
    if (code != CLI_OK) {
        order_against_close(against);
        return code;
    }
    *out = against;
    return CLI_OK;
}

void order_against_close(struct order_against *against)
{
    if (!against)
        return;
    order_taken_free(against->taken);
    VEC_FREE(&against->sinks);
    VEC_FREE(&against->misses);
    VEC_FREE(&against->missing);
    VEC_FREE(&against->undelivered);
    json_decref(against->answer);
    free(against);
}

struct order_taken *order_against_taken(struct order_against *against)
{
    return against->taken;
}

/* -- one hook alone
 * ---------------------------------------------------------------------------------------------- */

static const struct taken_sink *find_sink(struct order_against *against, const char *source, const char *name)
{
    VEC_EACH (sink, &against->sinks) {
        if (strcmp(sink->source, source) == 0 && strcmp(sink->name, name) == 0)
            return sink;
    }
    return NULL;
}

static bool is_taken(struct order_against *against, const struct miss *miss)
{
    size_t sink = (size_t)(miss->row.sink - against->sinks.at);
    return order_taken_in(against->taken, &miss->row.id, miss->in_lane ? &miss->lane : NULL) ||
           order_taken_by(against->taken, &miss->row.id, sink);
}

static void judge_row(struct order_against *against, const json_t *hook, const json_t *row)
{
    struct order_against_report *report = &against->report;
    const struct taken_sink *sink = find_sink(against, show_text(hook, "source"), show_text(row, "sink"));
    if (!sink || !sink->wanted) /* another receiver's, or of a sink that is gone */
        return;
    struct miss miss = {.row = {.seq = (uint64_t)show_int(hook, "seq"), .sink = sink}};
    uuid_parse(bytes_str(show_text(hook, "id")), &miss.row.id);
    const char *state = show_text(row, "state");
    snprintf(miss.row.state, sizeof miss.row.state, "%s", state);
    if (strcmp(state, "done") == 0) {
        report->delivered++;
        miss.in_lane = hex_decode(bytes_str(show_text(row, "lane")), miss.lane.bytes, sizeof miss.lane.bytes);
        if (!is_taken(against, &miss))
            VEC_PUSH(&against->misses, miss);
        return;
    }
    report->undelivered++;
    report->dead += strcmp(state, "dead") == 0 || strcmp(state, "held") == 0;
    if (against->undelivered.len < ORDER_LISTED_MAX)
        VEC_PUSH(&against->undelivered, miss.row);
}

static int judge_alone(struct order_against *against, const char *id)
{
    char *path = mem_format("/v1/hooks/%s", id);
    json_t *hook;
    int code = client_get(against->client, path, &hook);
    free(path);
    if (code != CLI_OK)
        return code;
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(hook, "rows"), i, row) judge_row(against, hook, row);
    json_decref(hook);
    return CLI_OK;
}

/* -- a page of them
 * ---------------------------------------------------------------------------------------------- */

/* The sinks of a source: how many, how many of them wanted, and how many of those took this hook. */
struct share {
    size_t sinks, wanted, took;
};

static struct share share_of(struct order_against *against, const char *source, const struct uuid *id)
{
    struct share share = {0};
    VEC_EACH (sink, &against->sinks) {
        if (strcmp(sink->source, source) != 0)
            continue;
        share.sinks++;
        share.wanted += sink->wanted;
        share.took += sink->wanted && order_taken_by(against->taken, id, (size_t)(sink - against->sinks.at));
    }
    return share;
}

static int judge(struct order_against *against, const json_t *hook)
{
    struct order_against_report *report = &against->report;
    const char *id_text = show_text(hook, "id");
    uint64_t rows = (uint64_t)show_int(hook, "rows"), done = (uint64_t)show_int(hook, "done");
    struct uuid id;
    if (!uuid_parse(bytes_str(id_text), &id))
        return CLI_OK;
    struct share share = share_of(against, show_text(hook, "source"), &id);
    if (share.wanted == 0)
        return CLI_OK;
    report->hooks++;
    if (rows == 0)
        return CLI_OK;
    if (done == rows && share.took == share.wanted && rows >= share.wanted) {
        report->delivered += share.wanted;
        return CLI_OK;
    }
    if (share.sinks == 1 && rows == 1 && done == 0 && against->undelivered.len == ORDER_LISTED_MAX) {
        report->undelivered++; /* one more of many: counted, not named */
        report->dead += show_int(hook, "dead") > 0;
        return CLI_OK;
    }
    return judge_alone(against, id_text);
}

/* Pages go from the newest hook down, so what comes in meanwhile moves nothing. */
int order_against_ask(struct order_against *against)
{
    char *cursor = NULL;
    int code;
    do {
        struct buf path = {0};
        json_t *page;
        buf_puts(&path, "/v1/hooks");
        client_query(&path, "limit", BYTES("1000"));
        client_query(&path, "cursor", bytes_str(cursor));
        code = client_get_list(against->client, path.at, "hooks", &page);
        buf_free(&path);
        free(cursor);
        cursor = NULL;
        if (code != CLI_OK)
            break;
        size_t i;
        const json_t *hook;
        json_array_foreach(json_object_get(page, "hooks"), i, hook)
        {
            code = judge(against, hook);
            if (code != CLI_OK)
                break;
        }
        const char *next = json_string_value(json_object_get(page, "next_cursor"));
        cursor = next ? mem_strdup(next) : NULL;
        json_decref(page);
    } while (code == CLI_OK && cursor);
    free(cursor);
    return code;
}

void order_against_finish(struct order_against *against, struct order_against_report *report)
{
    VEC_EACH (miss, &against->misses) {
        if (is_taken(against, miss))
            continue;
        against->report.missing++;
        if (against->missing.len < ORDER_LISTED_MAX)
            VEC_PUSH(&against->missing, miss->row);
    }
    *report = against->report;
    report->missing_rows = against->missing.at;
    report->missing_listed = against->missing.len;
    report->undelivered_rows = against->undelivered.at;
    report->undelivered_listed = against->undelivered.len;
}
