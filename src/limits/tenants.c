/* Which limit a tenant has: the API's, else the file's, else the default. Hooks read one table that is made
 * anew at each change and never changed; there are few changes. */
#include <stdlib.h>
#include <string.h>

#include "limits/limits_priv.h"
#include "util/check.h"
#include "util/mem.h"

/* Open addressing, half full at most. */
struct tenant_table {
    struct pace otherwise;
    size_t places; /* a power of two */
    struct place {
        uint64_t key;
        bool used;
        struct pace pace;
    } at[];
};

static void table_free(void *ctx, void *table)
{
    (void)ctx;
    free(table);
}

static struct place *place_of(struct tenant_table *table, uint64_t key)
{
    size_t at = key & (table->places - 1);
    while (table->at[at].used && table->at[at].key != key)
        at = (at + 1) & (table->places - 1);
    return &table->at[at];
}

static void put_all(struct tenant_table *table, const struct own_limit *limits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t key = limits_key(bytes_str(limits[i].tenant));
        *place_of(table, key) = (struct place){.key = key, .used = true, .pace = pace_of(limits[i].limit)};
    }
}

static void publish(struct tenants *tenants)
{
    size_t places = 2;
    while (places < 2 * (tenants->file.len + tenants->api.len))
        places *= 2;
    struct tenant_table *table = mem_zalloc(sizeof *table + places * sizeof table->at[0]);
    table->places = places;
    table->otherwise = pace_of(tenants->otherwise);
    put_all(table, tenants->file.at, tenants->file.len);
    put_all(table, tenants->api.at, tenants->api.len);
    bool any = table->otherwise.every_ns > 0 || tenants->file.len + tenants->api.len > 0;
    current_set(&tenants->current, table);
    atomic_store(&tenants->any, any);
}

static struct own_limit *find(struct own_limit *limits, size_t count, struct bytes tenant)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_eq(bytes_str(limits[i].tenant), tenant))
            return &limits[i];
    return NULL;
}

static void clear_file(struct tenants *tenants)
{
    VEC_EACH (own, &tenants->file)
        free(own->tenant);
    VEC_FREE(&tenants->file);
}

void tenants_open(struct tenants *tenants)
{
    CHECK(pthread_mutex_init(&tenants->lock, NULL) == 0);
    current_init(&tenants->current, table_free, NULL);
    publish(tenants);
}

void tenants_close(struct tenants *tenants)
{
    clear_file(tenants);
    VEC_EACH (own, &tenants->api)
        free(own->tenant);
    VEC_FREE(&tenants->api);
    current_close(&tenants->current);
    pthread_mutex_destroy(&tenants->lock);
}

struct pace tenants_pace(struct tenants *tenants, uint64_t key)
{
    struct current_hold *hold = current_take(&tenants->current);
    struct tenant_table *table = hold->value;
    const struct place *place = place_of(table, key);
    struct pace pace = place->used ? place->pace : table->otherwise;
    current_drop(&tenants->current, hold);
    return pace;
}

void limits_configure(struct limits *limits, struct limit otherwise, const struct limits_tenant *own,
                      size_t count)
{
    struct tenants *tenants = &limits->tenants;
    pthread_mutex_lock(&tenants->lock);
    clear_file(tenants);
    tenants->otherwise = otherwise;
    for (size_t i = 0; i < count; i++)
        VEC_PUSH(&tenants->file, ((struct own_limit){mem_strdup(own[i].name), own[i].limit}));
    publish(tenants);
    pthread_mutex_unlock(&tenants->lock);
}

void limits_restore(struct limits *limits, const struct limits_tenant *put, size_t count)
{
    struct tenants *tenants = &limits->tenants;
    pthread_mutex_lock(&tenants->lock);
    CHECK(tenants->api.len == 0);
    for (size_t i = 0; i < count; i++)
        VEC_PUSH(&tenants->api, ((struct own_limit){mem_strdup(put[i].name), put[i].limit}));
    publish(tenants);
    pthread_mutex_unlock(&tenants->lock);
}

bool limits_put(struct limits *limits, struct bytes tenant, struct limit limit)
{
    struct tenants *tenants = &limits->tenants;
    pthread_mutex_lock(&tenants->lock);
    struct own_limit *own = find(tenants->api.at, tenants->api.len, tenant);
    bool fits = own || tenants->api.len < LIMITS_PUT_MAX;
    if (!own && fits) {
        own = VEC_ADD(&tenants->api);
        own->tenant = mem_format("%.*s", BYTES_ARG(tenant));
    }
    if (fits) {
        own->limit = limit;
        publish(tenants);
    }
    pthread_mutex_unlock(&tenants->lock);
    return fits;
}

bool limits_drop(struct limits *limits, struct bytes tenant)
{
    struct tenants *tenants = &limits->tenants;
    pthread_mutex_lock(&tenants->lock);
    struct own_limit *own = find(tenants->api.at, tenants->api.len, tenant);
    if (own) {
        free(own->tenant);
        *own = tenants->api.at[--tenants->api.len];
        publish(tenants);
    }
    pthread_mutex_unlock(&tenants->lock);
    return own != NULL;
}

const char *limit_origin_name(enum limit_origin origin)
{
    static const char *const names[] = {NULL, "default", "file", "api"};
    CHECK(origin <= LIMIT_FROM_API);
    return names[origin];
}

void limits_look(struct limits *limits, struct bytes tenant, int64_t now_ns, struct limits_look *out)
{
    struct tenants *tenants = &limits->tenants;
    pthread_mutex_lock(&tenants->lock);
    const struct own_limit *api = find(tenants->api.at, tenants->api.len, tenant);
    const struct own_limit *file = find(tenants->file.at, tenants->file.len, tenant);
    enum limit_origin otherwise = tenants->otherwise.rate > 0 ? LIMIT_FROM_DEFAULT : LIMIT_FROM_NOTHING;
    *out = (struct limits_look){.without_api = file ? file->limit : tenants->otherwise};
    out->limit = api ? api->limit : out->without_api;
    out->origin = api ? LIMIT_FROM_API : file ? LIMIT_FROM_FILE : otherwise;
    pthread_mutex_unlock(&tenants->lock);
    if (out->limit.rate > 0)
        out->available =
            buckets_level(limits->of[LIMIT_TENANT], limits_key(tenant), pace_of(out->limit), now_ns);
}
