/* A row belongs to a sink's name. So a name that vanishes from the file would take its rows with it,
 * silently: the file must say where they go (`was`) or that they may go (`retire`). */
#include "gateway/guard.h"

#include <stdlib.h>
#include <string.h>

#include "order/order.h"
#include "util/check.h"
#include "util/log.h"
#include "util/vec.h"

struct guard {
    const struct config *config;
    struct buf *faults;
    size_t fault_count;
};

static bool is_retired(const struct config *config, const char *source, const char *sink)
{
    for (size_t i = 0; i < config->retired_count; i++)
        if (strcmp(config->retired[i].source, source) == 0 && strcmp(config->retired[i].sink, sink) == 0)
            return true;
    return false;
}

/* A sink of the file, or one that it tells about. */
static bool is_known(const struct config *config, const char *source, const char *sink)
{
    const struct config_source *found = config_source_find(config, bytes_str(source));
    for (size_t i = 0; found && i < found->sink_count; i++) {
        const struct config_sink *s = &found->sinks[i];
        if (strcmp(s->name, sink) == 0 || (s->was && strcmp(s->was, sink) == 0))
            return true;
    }
    return is_retired(config, source, sink);
}

static bool is_stranger(void *ctx, const char *source, const char *sink)
{
    const struct guard *guard = ctx;
    return !is_known(guard->config, source, sink);
}

static void refuse_orphans(void *ctx, const struct store_sink_rows *rows)
{
    struct guard *guard = ctx;
    const struct config *config = guard->config;
    if (rows->pending + rows->held == 0)
        return; /* dead letters are owed to nobody */
    bool source_gone = !config_source_find(config, bytes_str(rows->source));
    buf_putf(guard->faults, "%s: sources.%s: ", config->path, rows->source);
    buf_putf(guard->faults,
             source_gone
                 ? "is gone, and hooks are owed to its sink \"%s\" (%llu pending, %llu held): bring it back"
                 : "hooks are owed to a sink \"%s\" that is gone (%llu pending, %llu held): add was = \"%s\" "
                   "to the sink that took its place",
             rows->name, (unsigned long long)rows->pending, (unsigned long long)rows->held, rows->name);
    buf_putf(guard->faults, ", or add retire = { \"%s/%s\" } to make them dead letters\n", rows->source,
             rows->name);
    guard->fault_count++;
}

static void lane_of(struct bytes source, struct bytes sink, struct bytes key, uint8_t lane[16])
{
    struct lane_id id = lane_id_of(source, sink, key);
    memcpy(lane, id.bytes, sizeof id.bytes);
}

static enum status rename_sink(struct guard *guard, struct store *store, const struct config_source *source,
                               const struct config_sink *sink, struct error *err)
{
    bool renamed;
    enum status status =
        store_sink_rename(store, source->name, sink->was, sink->name, lane_of, &renamed, err);
    if (status == STATUS_REFUSED) {
        buf_putf(guard->faults, "%s: sources.%s.sinks.%s.was: the sink %s\n", guard->config->path,
                 source->name, sink->name, err->text);
        guard->fault_count++;
        return STATUS_OK; /* all faults in one run */
    }
    if (status == STATUS_OK && renamed)
        log_event(LOG_INFO, "sink_renamed", LOG_STR("source", source->name), LOG_STR("sink", sink->name),
                  LOG_STR("was", sink->was));
    return status;
}

static enum status rename_sinks(struct guard *guard, struct store *store, struct error *err)
{
    const struct config *config = guard->config;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *source = &config->sources[i];
        for (size_t k = 0; k < source->sink_count && status == STATUS_OK; k++)
            if (source->sinks[k].was)
                status = rename_sink(guard, store, source, &source->sinks[k], err);
    }
    return status;
}

static enum status retire_sinks(const struct config *config, struct store *store, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < config->retired_count && status == STATUS_OK; i++) {
        const struct config_retired *gone = &config->retired[i];
        bool source_gone = !config_source_find(config, bytes_str(gone->source));
        const char *cls = source_gone ? "source_gone" : "sink_gone";
        uint64_t hooks;
        status = store_sink_retire(store, gone->source, gone->sink, cls, &hooks, err);
        if (status == STATUS_OK && hooks > 0)
            log_event(LOG_WARN, "sink_retired", LOG_STR("source", gone->source), LOG_STR("sink", gone->sink),
                      LOG_STR("class", cls), LOG_INT("hooks", hooks));
    }
    return status;
}

enum status guard_rows(const struct config *config, struct store *store, struct buf *faults,
                       struct error *err)
{
    struct guard guard = {.config = config, .faults = faults};
    enum status status = store_count_rows(store, is_stranger, &guard, refuse_orphans, err);
    if (status == STATUS_OK && guard.fault_count == 0)
        status = rename_sinks(&guard, store, err);
    if (guard.fault_count > 0 && status == STATUS_OK)
        return error_set(err, STATUS_REFUSED, "hooks are owed to sinks that are gone");
    if (status == STATUS_OK)
        status = retire_sinks(config, store, err);
    return status;
}

/* ---- while it runs ---- */

/* The sink that was called so, or is; NULL: none. */
static const struct config_sink *sink_called(const struct config_source *source, const char *name, bool once)
{
    for (size_t i = 0; source && i < source->sink_count; i++) {
        const char *called = once ? source->sinks[i].was : source->sinks[i].name;
        if (called && strcmp(called, name) == 0)
            return &source->sinks[i];
    }
    return NULL;
}

static void refuse_rename(struct guard *guard, const struct store_sink_rows *rows,
                          const struct config_sink *heir)
{
    buf_putf(guard->faults,
             "%s: sources.%s.sinks.%s.was: hooks are owed to \"%s\" (%llu pending, %llu held), and giving "
             "them another name needs a restart\n",
             guard->config->path, rows->source, heir->name, rows->name, (unsigned long long)rows->pending,
             (unsigned long long)rows->held);
}

enum guard_answer guard_reload(const struct config *config, const struct store *store, struct lanes *lanes,
                               struct gone_sinks *gone, struct buf *faults)
{
    struct guard guard = {.config = config, .faults = faults};
    enum guard_answer answer = GUARD_FINE;
    size_t count = lanes_sinks(lanes, NULL, 0);
    struct lanes_sink_view *views = mem_zalloc((count + 1) * sizeof *views);
    count = lanes_sinks(lanes, views, count); /* only a reload adds any */
    for (size_t i = 0; i < count; i++) {
        struct store_sink_rows rows = {
            .sink = views[i].id, .pending = views[i].pending, .held = views[i].held};
        CHECK(store_sink_name(store, rows.sink, &rows.source, &rows.name));
        const struct config_source *source = config_source_find(config, bytes_str(rows.source));
        const struct config_sink *heir = sink_called(source, rows.name, true);
        if (sink_called(source, rows.name, false)) {
            continue;
        } else if (is_retired(config, rows.source, rows.name)) {
            VEC_PUSH(gone, ((struct lanes_gone){rows.sink, source ? "sink_gone" : "source_gone"}));
        } else if (heir && rows.pending + rows.held > 0) {
            refuse_rename(&guard, &rows, heir);
            answer = GUARD_NEEDS_RESTART;
        } else {
            refuse_orphans(&guard, &rows);
        }
    }
    free(views);
    return answer == GUARD_FINE && guard.fault_count > 0 ? GUARD_HOOKS_OWED : answer;
}
