/* What the rooms that use a value say to it at load. Nothing is kept open. */
#include "config/config_priv.h"

enum { SCRATCH = 1024 };

static enum status judge_url(const char *url, bool is_proxy, const char *const *allow_private,
                             bool allow_http, struct error *err)
{
    struct arena *arena = arena_new(SCRATCH);
    size_t count = 0;
    while (allow_private[count])
        count++;
    struct ip_range *ranges = arena_zalloc(arena, (count + 1) * sizeof *ranges);
    struct egress_rules rules = {.allow_private = {ranges, count}, .allow_http = allow_http};

    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = ip_range_parse(allow_private[i], &ranges[i], err);
    if (status == STATUS_OK)
        status = is_proxy ? egress_proxy_check(url, &rules, err) : egress_url_check(url, &rules, err);
    arena_free(arena);
    return status;
}

static enum status judge_range(const char *text, struct error *err)
{
    struct ip_range range;
    return ip_range_parse(text, &range, err);
}

static enum status judge_secret(struct bytes text, struct error *err)
{
    struct bytes key;
    struct arena *arena = arena_new(SCRATCH);
    enum status status = sink_secret_decode(text, arena, &key, err);
    if (status == STATUS_OK)
        explicit_bzero((void *)key.at, key.len);
    arena_free(arena);
    return status;
}

static enum status judge_verify(const struct value *options, struct error *err)
{
    struct verifier *verifier = NULL;
    enum status status = verifier_new(options, NULL, &verifier, err);
    if (status == STATUS_OK)
        verifier_free(verifier);
    return status;
}

static enum status judge_tls(const char *cert, const char *key, const char *client_ca, struct error *err)
{
    return http_tls_check(&(struct http_tls_options){.cert = cert, .key = key, .client_ca = client_ca}, err);
}

const struct script_judges config_judges = {
    .url = judge_url,
    .range = judge_range,
    .secret = judge_secret,
    .verify = judge_verify,
    .tls = judge_tls,
};
