/* A configuration file in a folder of its own. */
#ifndef SPEC_CONFIG_FIXTURE_H
#define SPEC_CONFIG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"
#include "util/buf.h"

struct fixture {
    char dir[64];
    char path[96];
    struct config *config;
    struct buf faults;
};

static inline int fixture_open(void **ctx)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->dir, "/tmp/lanegate-config-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/config.lua", f->dir);
    *ctx = f;
    return 0;
}

static inline int fixture_close(void **ctx)
{
    struct fixture *f = *ctx;
    config_unref(f->config);
    buf_free(&f->faults);
    unlink(f->path);
    rmdir(f->dir);
    free(f);
    return 0;
}

static inline enum status fixture_load(struct fixture *f, enum config_mode mode, const char *text)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    config_unref(f->config);
    f->config = NULL;
    buf_clear(&f->faults);
    return config_load(f->path, mode, &f->config, &f->faults);
}

static inline void fixture_load_good(struct fixture *f, enum config_mode mode, const char *text)
{
    if (fixture_load(f, mode, text) != STATUS_OK)
        fail_msg("%s", f->faults.at);
}

/* `lines`: each fault without the file's path, ending in a line feed. */
static inline void fixture_load_bad(struct fixture *f, enum config_mode mode, const char *text,
                                    const char *lines)
{
    struct buf expected = {0};
    assert_int_equal(fixture_load(f, mode, text), STATUS_INVALID);
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1)
        buf_putf(&expected, "%s%.*s\n", f->path, (int)(end - lines), lines);
    assert_string_equal(f->faults.at, expected.at);
    buf_free(&expected);
}

#endif
