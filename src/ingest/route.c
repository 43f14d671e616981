/* From the raw target to a source: {prefix}/{source}, or {prefix}/{tenant}/{source}. */
#include "ingest/ingest_priv.h"

#include <stdlib.h>

bool route_name_ok(struct bytes name)
{
    if (name.len < 1 || name.len > 64)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                     c == '-';
        if (!plain)
            return false;
    }
    return true;
}

static int by_name(const void *key, const void *entry)
{
    return bytes_cmp(*(const struct bytes *)key, ((const struct entry *)entry)->name);
}

struct entry *entry_find(const struct table *table, struct bytes name)
{
    return bsearch(&name, table->entries, table->rules.source_count, sizeof *table->entries, by_name);
}

/* Takes "/segment" off the front of `rest`; false when it does not start so. */
static bool segment(struct bytes *rest, struct bytes *out)
{
    if (!rest->len || rest->at[0] != '/')
        return false;
    const char *start = rest->at + 1, *end = rest->at + rest->len;
    const char *slash = memchr(start, '/', (size_t)(end - start));
    const char *stop = slash ? slash : end;
    *out = bytes_of(start, (size_t)(stop - start));
    *rest = bytes_of(stop, (size_t)(end - stop));
    return true;
}

struct route route_of(const struct table *table, struct bytes path)
{
    if (bytes_eq(path, BYTES("/health")))
        return (struct route){.kind = ROUTE_HEALTH};
    if (bytes_eq(path, BYTES("/ready")))
        return (struct route){.kind = ROUTE_READY};
    if (!bytes_starts(path, table->prefix))
        return (struct route){.kind = ROUTE_NOT_FOUND};

    struct bytes rest = bytes_of(path.at + table->prefix.len, path.len - table->prefix.len);
    struct bytes tenant = BYTES_NONE, source;
    bool whole =
        (!table->rules.tenant_in_path || segment(&rest, &tenant)) && segment(&rest, &source) && rest.len == 0;
    if (!whole || !source.len)
        return (struct route){.kind = ROUTE_NOT_FOUND};

    struct entry *entry = entry_find(table, source);
    if (!entry)
        return (struct route){.kind = ROUTE_UNKNOWN_SOURCE};
    if (!table->rules.tenant_in_path)
        return (struct route){.kind = ROUTE_HOOK, .entry = entry, .tenant = entry->tenant};
    if (entry->source->shared ? !route_name_ok(tenant) : !bytes_eq(tenant, entry->tenant))
        return (struct route){.kind = ROUTE_UNKNOWN_SOURCE};
    return (struct route){.kind = ROUTE_HOOK, .entry = entry, .tenant = tenant};
}
