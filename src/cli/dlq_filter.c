#include "cli/dlq_filter.h"

#include "cli/lane_name.h"
#include "cli/show.h"
#include "util/uuid.h"

static bool is_id(const char *text)
{
    struct uuid id;
    return text && uuid_parse(bytes_str(text), &id);
}

bool dlq_filter_any(const struct dlq_filter *filter)
{
    return filter->named || filter->tenant || filter->source || filter->sink || filter->lane ||
           filter->class || filter->since || filter->until;
}

int dlq_filter_read(int argc, char **argv, const struct arg *args, struct dlq_filter *filter,
                    struct buf *path)
{
    size_t count;
    int code = cli_args(&verb_dlq, argc, argv, args, &filter->named, 1, &count);
    if (code != CLI_OK)
        return code;
    const char *named = filter->named;
    bool id = is_id(named);
    struct lane_name name = {0};
    if (named && !id && (filter->source || filter->sink || filter->lane))
        return cli_usage(&verb_dlq, "either %s or --source, --sink and --lane", named);
    if (named && !id && !lane_name_parse(named, &name))
        return cli_usage(&verb_dlq, "a lane is named source/sink/key, got \"%s\"", named);

    char since_ms[24], until_ms[24];
    client_query(path, "tenant", bytes_str(filter->tenant));
    client_query(path, "source", bytes_str(name.source ? name.source : filter->source));
    client_query(path, "sink", bytes_str(name.sink ? name.sink : filter->sink));
    client_query(path, "key", name.has_key ? buf_bytes(&name.key) : BYTES_NONE);
    client_query(path, "hook", id ? bytes_str(named) : BYTES_NONE);
    client_query(path, "lane", bytes_str(filter->lane));
    client_query(path, "class", bytes_str(filter->class));
    client_query(path, "since", bytes_str(show_moment(filter->since, since_ms)));
    client_query(path, "until", bytes_str(show_moment(filter->until, until_ms)));
    lane_name_free(&name);
    return CLI_OK;
}
