/* Everything but the sources: one function a section. Every default is in the tree already; what is optional
 * there is named here with what its absence means. */
#include "config/config_priv.h"

#include "util/check.h"

/* The admin port serves people and scrapers: small and fixed. */
enum {
    ADMIN_BODY_MAX = 1 << 20,
    ADMIN_BUFFERED_MAX = 16 << 20,
    ADMIN_CONNECTIONS_MAX = 1000,
    ADMIN_HEADER_TIMEOUT_MS = 10000,
    ADMIN_BODY_TIMEOUT_MS = 30000,
    ADMIN_IDLE_TIMEOUT_MS = 60000,
};

/* A number that has a default, so that it is there. */
static int64_t number(const struct value *section, const char *name)
{
    int64_t n = value_int(section, name, -1);
    CHECK(n >= 0);
    return n;
}

static void fill_top(struct config *config, const struct value *root)
{
    const struct value *log = value_get(root, "log");
    config->data_dir = value_str(root, "data_dir", NULL);
    config->drain_timeout_ms = number(root, "drain_timeout_ms");
    if (!log_level_parse(value_str(log, "level", "info"), &config->log_level))
        config->log_level = LOG_INFO; /* a placeholder */
    config->log_json = !config_is(log, "format", "text");
}

static bool asks_client(const struct value *root)
{
    const struct value *sources = value_get(root, "sources");
    for (size_t i = 0; i < sources->len; i++)
        if (config_is(value_get(&sources->items[i], "verify"), "type", "mtls"))
            return true;
    return false;
}

static const struct http_tls_options *tls_options(struct config *config, const struct value *root)
{
    const struct value *files = value_get(value_get(root, "http"), "tls");
    const char *cert = value_str(files, "cert", NULL);
    if (!cert)
        return NULL;
    struct http_tls_options *tls = arena_zalloc(config->arena, sizeof *tls);
    *tls = (struct http_tls_options){.cert = cert,
                                     .key = value_str(files, "key", NULL),
                                     .client_ca = value_str(files, "client_ca", NULL),
                                     .asks_client = asks_client(root)};
    return tls;
}

static void fill_http(struct config *config, const struct value *root)
{
    const struct value *http = value_get(root, "http");
    const struct value *listen = value_get(http, "listen");
    config->http = (struct http_options){
        .listen = config_strings(listen, config->arena),
        .listen_count = listen->len,
        .threads = (unsigned)number(http, "threads"),
        .name = "ingest",
        .max_body_bytes = (size_t)number(http, "max_body_bytes"),
        .max_buffered_bytes = (size_t)number(http, "max_buffered_bytes"),
        .header_timeout_ms = number(http, "header_timeout_ms"),
        .body_timeout_ms = number(http, "body_timeout_ms"),
        .idle_timeout_ms = number(http, "idle_timeout_ms"),
        .max_connections = (size_t)number(http, "max_connections"),
        .tls = tls_options(config, root),
    };
    config->prefix = value_str(http, "prefix", NULL);
    config->trusted_proxies = config_ranges(value_get(http, "trusted_proxies"), config->arena);
    config->gate = config_gate(value_get(root, "addresses"), config->arena);
    config->routing = config_is(http, "routing", "tenant_path") ? ROUTING_TENANT_PATH : ROUTING_PATH;
}

static unsigned scopes_of(const struct value *list)
{
    static const struct {
        struct bytes name;
        unsigned scope;
    } scopes[] = {
        {{"read", 4}, CONFIG_SCOPE_READ},
        {{"payload", 7}, CONFIG_SCOPE_PAYLOAD},
        {{"operate", 7}, CONFIG_SCOPE_OPERATE},
        {{"config", 6}, CONFIG_SCOPE_CONFIG},
    };
    unsigned out = 0;
    for (size_t i = 0; i < list->len; i++)
        for (size_t k = 0; k < sizeof scopes / sizeof *scopes; k++)
            if (bytes_eq(list->items[i].string, scopes[k].name))
                out |= scopes[k].scope;
    return out;
}

static void fill_tokens(struct config *config, const struct value *list)
{
    struct config_token *tokens = arena_zalloc(config->arena, (list->len + 1) * sizeof *tokens);
    for (size_t i = 0; i < list->len; i++) {
        const struct value *token = &list->items[i];
        uint8_t *hash = arena_zalloc(config->arena, 32);
        /* Unresolved, it stays a hash that no token has. */
        if (hex_decode(value_get(token, "hash")->string, hash, 32))
            tokens[config->token_count++] = (struct config_token){
                .hash = bytes_of(hash, 32),
                .name = value_str(token, "name", NULL),
                .scopes = scopes_of(value_get(token, "scopes")),
            };
    }
    config->tokens = tokens;
}

static void fill_admin(struct config *config, const struct value *admin)
{
    const char **listen = arena_zalloc(config->arena, 2 * sizeof *listen);
    listen[0] = value_str(admin, "listen", NULL);
    config->admin = (struct http_options){
        .listen = listen,
        .listen_count = 1,
        .threads = 1,
        .name = "admin",
        .max_body_bytes = ADMIN_BODY_MAX,
        .max_buffered_bytes = ADMIN_BUFFERED_MAX,
        .header_timeout_ms = ADMIN_HEADER_TIMEOUT_MS,
        .body_timeout_ms = ADMIN_BODY_TIMEOUT_MS,
        .idle_timeout_ms = ADMIN_IDLE_TIMEOUT_MS,
        .max_connections = ADMIN_CONNECTIONS_MAX,
    };
    config->admin_auth_none = config_is(admin, "auth", "none");
    fill_tokens(config, value_get(admin, "tokens"));
}

static void fill_store(struct config *config, const struct value *store)
{
    config->store = (struct store_options){
        .data_dir = config->data_dir,
        .max_batch = (size_t)number(store, "max_batch"),
        .max_batch_bytes = (size_t)number(store, "max_batch_bytes"),
        .max_queue = (size_t)number(store, "max_queue"),
        .max_queue_bytes = (size_t)number(store, "max_queue_bytes"),
        .commit_timeout_ms = number(store, "commit_timeout_ms"),
        .retention_ms = number(store, "retention_ms"),
        .max_bytes = value_int(store, "max_bytes", 0),
        .min_free_bytes = number(store, "min_free_bytes"),
        .max_dedupe_keys = (size_t)number(store, "max_dedupe_keys"),
    };
}

/* Shared out: what one source is flooded with takes nothing from another. */
static void fill_quarantine(struct config *config, const struct value *quarantine,
                            const struct value *sources)
{
    int64_t users = 0;
    for (size_t i = 0; i < sources->len; i++)
        users += config_is(&sources->items[i], "on_verify_failure", "quarantine");
    config->pen_share_bytes = number(quarantine, "max_bytes") / (users > 0 ? users : 1);
    config->store.pen_retention_ms = number(quarantine, "retention_ms");
}

static void fill_dispatch(struct config *config, const struct value *dispatch)
{
    config->dispatch_concurrency = (unsigned)number(dispatch, "concurrency");
    config->max_inflight_bytes = (size_t)number(dispatch, "max_inflight_bytes");
    config->max_pending_bytes = (size_t)number(dispatch, "max_pending_bytes");
    config->attempt_timeout_ms = number(dispatch, "attempt_timeout_ms");
}

static void fill_egress(struct config *config, const struct value *egress)
{
    config->egress.allow_private = config_ranges(value_get(egress, "allow_private"), config->arena);
    config->egress.allow_http = value_bool(egress, "allow_http", false);
}

void config_fill_sections(struct loading *loading)
{
    struct config *config = loading->config;
    const struct value *root = config->root;
    fill_top(config, root);
    fill_http(config, root);
    fill_admin(config, value_get(root, "admin"));
    fill_store(config, value_get(root, "store"));
    fill_quarantine(config, value_get(root, "quarantine"), value_get(root, "sources"));
    fill_dispatch(config, value_get(root, "dispatch"));
    fill_egress(config, value_get(root, "egress"));
}
