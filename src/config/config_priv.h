/* How a configuration is put together out of the tree that script gives. Private to this room. */
#ifndef CONFIG_CONFIG_PRIV_H
#define CONFIG_CONFIG_PRIV_H

#include "config/config.h"
#include "script/script.h"

/* While a configuration is being made. */
struct loading {
    struct config *config;
    enum config_mode mode;
    const struct value *lines; /* path -> line */
    struct buf *faults;
    size_t fault_count;
    bool scripts_failed; /* reported once, not for every key */
};

/* "config.lua:14: sources.shop: text" and a line feed. */
void config_fault(struct loading *loading, const char *path, const char *text);

/* judges.c: what deliver and verify say to single values. */
extern const struct script_judges config_judges;

/* sections.c: everything but the sources. */
void config_fill_sections(struct loading *loading);
/* sources.c: sources with their sinks, verifiers and plans. Faults are what the checks could not see. */
void config_fill_sources(struct loading *loading);
void config_close_sources(struct config *config);

/* limits.c: behind both of these. A limit that is not set, or false, has no rate. */
void config_fill_limits(struct loading *loading);
struct limit config_limit(const struct value *limit);

/* keys.c: NULL for a nil tree. */
const struct key_spec *config_key(const struct value *tree, struct arena *arena);
const struct filter_spec *config_filter(const struct value *tree, struct arena *arena);

/* scripts.c: opens the set when the first key needs it, and makes `key` callable. False after a fault. */
bool config_add_script(struct loading *loading, const struct key_spec *key, const char *path);

/* verifiers.c: of a source, out of its `verify`; a fault where it can't be. */
void config_make_verifier(struct loading *loading, struct config_source *source, const struct value *verify);

/* values.c: lists of a tree as arrays in the arena. */
const char *const *config_strings(const struct value *list, struct arena *arena); /* NULL-terminated */
const struct bytes *config_texts(const struct value *list, struct arena *arena);
struct ip_ranges config_ranges(const struct value *list, struct arena *arena); /* judged by the checks */
struct ip_gate config_gate(const struct value *addresses, struct arena *arena);
bool config_is(const struct value *map, const char *name, const char *word);

#endif
