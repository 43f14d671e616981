/* POST /v1/reload: another thread reads the file and does what it says; the answer goes out from there, so
 * that whoever looks at this port meanwhile is not kept waiting. */
#include <string.h>

#include "admin/admin_priv.h"
#include "util/check.h"

struct reload {
    struct admin_reload asked;
    struct ask *ask;
};

static void write_lines(struct jsonw *w, const char *name, struct bytes lines)
{
    jsonw_array(w, name);
    while (lines.len) {
        const char *end = memchr(lines.at, '\n', lines.len);
        size_t len = end ? (size_t)(end - lines.at) : lines.len;
        jsonw_bytes(w, NULL, bytes_of(lines.at, len));
        size_t taken = len + (end ? 1 : 0);
        lines = bytes_of(lines.at + taken, lines.len - taken);
    }
    jsonw_end_array(w);
}

static void write_changed(struct jsonw *w, const char *name, const struct admin_reloaded *result)
{
    jsonw_array(w, name);
    for (size_t i = 0; i < result->changed_count; i++)
        jsonw_str(w, NULL, result->changed[i]);
    jsonw_end_array(w);
}

static void write_done(struct ask *ask, const struct admin_reloaded *result)
{
    jsonw_object(&ask->json, NULL);
    jsonw_bool(&ask->json, "reloaded", true);
    jsonw_uint(&ask->json, "generation", result->generation);
    write_changed(&ask->json, "changed", result);
    jsonw_end_object(&ask->json);
}

static void refuse(struct ask *ask, int status, const char *code, const struct admin_reloaded *result)
{
    ask->status = status;
    jsonw_object(&ask->json, NULL);
    jsonw_str(&ask->json, "error", code);
    jsonw_uint(&ask->json, "generation", result->generation);
    if (result->what == ADMIN_RELOAD_NEEDS_RESTART)
        write_changed(&ask->json, "needs_restart", result);
    write_lines(&ask->json, "faults", result->faults);
    jsonw_end_object(&ask->json);
}

static void answer(struct ask *ask, const struct admin_reloaded *result)
{
    switch (result->what) {
    case ADMIN_RELOADED:
        ask_audit(ask, "config.reload", BYTES_NONE, (int64_t)result->changed_count, -1);
        store_flush(ask->admin->options.store); /* it stands there when the answer comes */
        write_done(ask, result);
        return;
    case ADMIN_RELOAD_BAD_CONFIG:
        refuse(ask, 400, "bad_config", result);
        return;
    case ADMIN_RELOAD_HOOKS_OWED:
        refuse(ask, 409, "hooks_owed", result);
        return;
    case ADMIN_RELOAD_NEEDS_RESTART:
        refuse(ask, 409, "needs_restart", result);
        return;
    case ADMIN_RELOAD_FAILED:
        refuse(ask, 503, "reload_failed", result);
        return;
    case ADMIN_RELOAD_BUSY:
        ask_refuse(ask, 503, "busy");
        return;
    case ADMIN_RELOAD_DRAINING:
        ask_refuse(ask, 503, "draining");
        return;
    }
    UNREACHABLE();
}

static void done(struct admin_reload *asked, const struct admin_reloaded *result)
{
    struct ask *ask = LIST_OWNER(asked, struct reload, asked)->ask;
    answer(ask, result);
    ask_finish(ask);
}

static void begin(struct ask *ask)
{
    struct reload *reload = arena_zalloc(ask->arena, sizeof *reload);
    *reload = (struct reload){.asked = {.done = done}, .ask = ask};
    ask->query.reason = arena_copy(ask->arena, ask->query.reason);
    ask->request = NULL; /* ends with this call */
    const struct admin_options *options = &ask->admin->options;
    options->reload(options->ctx, &reload->asked); /* from here on the ask is another thread's */
}

void post_reload(struct ask *ask)
{
    ask->later = begin;
}
