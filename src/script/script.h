/* The LuaJIT host. Nobody outside this room sees a lua_State. Here: evaluating configuration. Functions that
 * users write are behind keys.h. */
#ifndef SCRIPT_SCRIPT_H
#define SCRIPT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "util/arena.h"
#include "util/bytes.h"
#include "util/status.h"
#include "util/value.h"

/* What other rooms judge, lent to the checks, so that their faults come in one report with all others and
 * with their lines. Each gives OK, or another status and in `err` the words that go behind the option's path
 * ("must be
 * ..., got ..."), without a secret. */
struct script_judges {
    /* May deliveries go there? `allow_private` is NULL-terminated and holds ranges that `range` accepts. */
    enum status (*url)(const char *url, bool is_proxy, const char *const *allow_private, bool allow_http,
                       struct error *err);
    enum status (*range)(const char *text, struct error *err);             /* egress.allow_private */
    enum status (*secret)(struct bytes text, struct error *err);           /* of a sink */
    enum status (*verify)(const struct value *options, struct error *err); /* "secret: must be ..." */
    /* Files in PEM; `client_ca` may be NULL. "key: ..." */
    enum status (*tls)(const char *cert, const char *key, const char *client_ca, struct error *err);
};

struct script_config_options {
    const char *path; /* config.lua */
    bool resolve;     /* false: env and file helpers give placeholders (client verbs, check --offline) */
    const struct script_judges *judges;
};

/* What came of a configuration file: either a normalised tree with every default filled in and every unit
 * turned to a number, or the list of all its faults, one line each ("config.lua:14: sources...: must be ...,
 * got ..."). Owned by `arena`, given by the caller. */
struct script_config {
    const struct value *root; /* NULL when there are faults */
    const struct value
        *shown; /* root as it may be shown: what the schema does not mark as public is "(set)" */
    const struct value *lines; /* a map from the paths of tables ("sources.shop.verify") to lines, for whoever
                                  finds more faults */
    const char *const *faults;
    size_t fault_count;
};

/* OK with either result; IO when the file can't be read (err says which and why). Any thread; a state of its
 * own. */
enum status script_load_config(const struct script_config_options *options, struct arena *arena,
                               struct script_config *out, struct error *err);

/* config/README.md's text, generated from the schema. */
enum status script_config_reference(struct arena *arena, struct bytes *markdown, struct error *err);

#endif
