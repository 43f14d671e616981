/* A store in a folder of its own with one reader, which a test may stop and start again. */
#ifndef SPEC_STORE_STAGE_H
#define SPEC_STORE_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store_rig.h"

static struct store_options options;
static struct store *store;
static struct store_reader *reader;
static char *dir;

static inline void start(void)
{
    struct error err;
    store = rig_start(&options);
    assert_int_equal(store_reader_open(store, &reader, &err), STATUS_OK);
}

static inline void stop(void)
{
    store_reader_close(reader);
    store_close(store);
}

static inline void stage_open(void)
{
    dir = rig_make_dir();
    options = rig_options(dir);
    start();
}

static inline int teardown(void **state)
{
    (void)state;
    stop();
    rig_remove_dir(dir);
    return 0;
}

#endif
