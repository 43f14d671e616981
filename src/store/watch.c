/* Long work tells how far it is, and can be stopped. */
#include "store/tools_priv.h"
#include "util/clock.h"

enum { TELL_US = 100000, STEPS_OF_SQLITE = 20000 };

bool watching_tick(struct watching *watching)
{
    int64_t now_us = clock_mono_us();
    if (watching->stopped || now_us < watching->next_us || !watching->watch->step)
        return !watching->stopped;
    watching->next_us = now_us + TELL_US;
    watching->stopped =
        !watching->watch->step(watching->watch->ctx, watching->what, watching->done, watching->total);
    return !watching->stopped;
}

static int from_sqlite(void *ctx)
{
    return !watching_tick(ctx);
}

void watching_begin(struct watching *watching, const struct store_watch *watch, struct db *db)
{
    *watching = (struct watching){.watch = watch};
    if (db)
        sqlite3_progress_handler(db->handle, STEPS_OF_SQLITE, from_sqlite, watching);
}

void watching_end(struct db *db)
{
    sqlite3_progress_handler(db->handle, 0, NULL, NULL);
}

void watching_phase(struct watching *watching, const char *what, uint64_t total)
{
    watching->what = what;
    watching->done = 0;
    watching->total = total;
    watching->next_us = 0; /* the beginning is news */
}
