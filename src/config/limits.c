/* rate_limits, quarantine's rate, and who shares the queue with whom. */
#include <string.h>

#include "config/config_priv.h"

struct limit config_limit(const struct value *limit)
{
    if (limit->kind != VALUE_MAP) /* not set, or false */
        return (struct limit){.rate = 0};
    return (struct limit){.rate = value_get(limit, "rate")->number, .burst = value_int(limit, "burst", 1)};
}

static void fill_tenants(struct config *config, const struct value *map)
{
    struct limits_tenant *tenants = arena_zalloc(config->arena, (map->len + 1) * sizeof *tenants);
    for (size_t i = 0; i < map->len; i++)
        tenants[i] = (struct limits_tenant){.name = map->names[i].at, .limit = config_limit(&map->items[i])};
    config->limited_tenants = tenants;
    config->limited_tenant_count = map->len;
}

/* Two names, or any that a URL brings. */
static bool has_many_tenants(const struct config *config)
{
    bool many = false;
    for (size_t i = 0; i < config->source_count; i++)
        many |=
            config->sources[i].shared || strcmp(config->sources[i].tenant, config->sources[0].tenant) != 0;
    return many;
}

void config_fill_limits(struct loading *loading)
{
    struct config *config = loading->config;
    const struct value *limits = value_get(config->root, "rate_limits");
    const struct value *quarantine = value_get(config->root, "quarantine");
    config->tenant_limit = config_limit(value_get(limits, "default"));
    config->address_limit = config_limit(value_get(limits, "address"));
    config->failed_signatures = config_limit(value_get(limits, "failed_signatures"));
    config->pen_limit = config_limit(quarantine); /* it has both members */
    config->many_tenants = has_many_tenants(config);
    fill_tenants(config, value_get(limits, "tenants"));
}
