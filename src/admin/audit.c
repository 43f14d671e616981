/* GET /v1/audit: what people did, newest first. */
#include "admin/admin_priv.h"

/* One line more than the page is asked for, to know whether there is a next one. */
struct page {
    struct ask *ask;
    size_t written;
    bool more;
    uint64_t last_id;
};

static void write_count(struct jsonw *w, const char *name, int64_t count)
{
    if (count >= 0)
        jsonw_int(w, name, count);
    else
        jsonw_null(w, name);
}

static bool write_line(void *ctx, const struct store_audit_view *view)
{
    struct page *page = ctx;
    if (page->written == page->ask->query.limit) {
        page->more = true;
        return false;
    }
    page->written++;
    page->last_id = view->id;

    struct jsonw *w = &page->ask->json;
    jsonw_object(w, NULL);
    jsonw_uint(w, "id", view->id);
    jsonw_int(w, "at", view->at_ms);
    jsonw_str(w, "who", view->line.who);
    jsonw_str(w, "what", view->line.what);
    jsonw_bytes(w, "target", view->line.target);
    jsonw_bytes(w, "reason", view->line.reason);
    write_count(w, "matched", view->line.matched);
    write_count(w, "done", view->line.done);
    jsonw_end_object(w);
    return true;
}

void get_audit(struct ask *ask)
{
    const struct query *query = &ask->query;
    struct store_audit_filter filter = {.who = query->who,
                                        .what = query->what,
                                        .since_ms = query->since_ms,
                                        .until_ms = query->until_ms,
                                        .before_id = query->cursor.seq,
                                        .limit = query->limit + 1};
    struct page page = {.ask = ask};
    jsonw_object(&ask->json, NULL);
    jsonw_array(&ask->json, "lines");
    enum status status = store_list_audit(ask->reader, &filter, write_line, &page);
    jsonw_end_array(&ask->json);
    ask_next_cursor(ask, CURSOR_AUDIT, page.more ? &(struct cursor){.seq = page.last_id} : NULL);
    jsonw_end_object(&ask->json);
    if (status != STATUS_OK)
        ask_store_failed(ask, status);
}
