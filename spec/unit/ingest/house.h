/* A room with some sources in it, without a store: for what needs none. */
#ifndef SPEC_INGEST_HOUSE_H
#define SPEC_INGEST_HOUSE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/ingest_priv.h"

struct house {
    struct metrics *metrics;
    struct ingest *ingest;
};

static inline bool house_ready(void *ctx)
{
    (void)ctx;
    return true;
}

/* `sources` are borrowed until house_close. */
static inline struct house house_open(const char *prefix, bool tenant_in_path,
                                      const struct ingest_source *sources, size_t count)
{
    struct house house = {.metrics = metrics_new()};
    struct ingest_options options = {
        .metrics = house.metrics,
        .rules = {.prefix = prefix,
                  .tenant_in_path = tenant_in_path,
                  .sources = sources,
                  .source_count = count},
        .ready = house_ready,
    };
    struct error err;
    assert_int_equal(ingest_open(&options, &house.ingest, &err), STATUS_OK);
    return house;
}

/* Nothing is set anew in these tests, so that the table stays. */
static inline const struct table *house_table(const struct house *house)
{
    struct current_hold *hold = current_take(&house->ingest->tables);
    const struct table *table = hold->value;
    current_drop(&house->ingest->tables, hold);
    return table;
}

static inline void house_close(struct house *house)
{
    ingest_close(house->ingest);
    metrics_free(house->metrics);
}

#endif
