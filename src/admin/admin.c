/* A request on its way through the room: host, route, token, scope, filters, resource, answer. */
#include "admin/admin_priv.h"

#include <stdlib.h>

#include "admin/access.h"
#include "admin/feed.h"
#include "admin/worker.h"
#include "util/check.h"
#include "util/mem.h"

static void rules_free(void *ctx, void *value)
{
    (void)ctx;
    struct admin_rules rules = *(struct admin_rules *)value;
    free(value);
    if (rules.released)
        rules.released(rules.of);
}

void admin_set(struct admin *admin, const struct admin_rules *rules)
{
    struct admin_rules *copy = mem_alloc(sizeof *copy);
    *copy = *rules;
    current_set(&admin->current, copy);
}

static void close_workers(struct admin *admin)
{
    for (int i = 0; i < WORK_KINDS; i++)
        worker_close(admin->workers[i]);
}

enum status admin_open(const struct admin_options *options, struct admin **out, struct error *err)
{
    CHECK(options->store && options->lanes && options->metrics && options->config_json &&
          options->not_ready && options->resolve && options->reload);
    struct store_reader *reader;
    enum status status = store_reader_open(options->store, &reader, err);
    if (status != STATUS_OK)
        return status;
    struct admin *admin = mem_zalloc(sizeof *admin);
    for (int i = 0; i < WORK_KINDS && status == STATUS_OK; i++)
        status = worker_open(options->store, &admin->workers[i], err);
    if (status != STATUS_OK) {
        close_workers(admin);
        store_reader_close(reader);
        free(admin);
        return status;
    }
    admin->options = *options;
    admin->reader = reader;
    pthread_mutex_init(&admin->rekeyed_lock, NULL);
    admin->feed = feed_open(options->events);
    admin->on_loopback = access_listens_on_loopback(options->listen, options->listen_count);
    admin->options.listen = NULL; /* was borrowed for this call */
    current_init(&admin->current, rules_free, NULL);
    admin_set(admin, &options->rules);
    *out = admin;
    return STATUS_OK;
}

void admin_drain(struct admin *admin)
{
    for (int i = 0; i < WORK_KINDS; i++)
        worker_drain(admin->workers[i]);
}

void admin_close(struct admin *admin)
{
    if (!admin)
        return;
    close_workers(admin);
    feed_close(admin->feed);
    store_reader_close(admin->reader);
    current_close(&admin->current);
    pthread_mutex_destroy(&admin->rekeyed_lock);
    free(admin);
}

/* The one header of that name; absent when there is none or more than one. */
static struct bytes only_header(const struct http_request *request, struct bytes name)
{
    struct bytes found = BYTES_NONE;
    for (size_t i = 0; i < request->header_count; i++)
        if (bytes_eq_nocase(request->headers[i].name, name)) {
            if (found.at)
                return BYTES_NONE;
            found = request->headers[i].value;
        }
    return found;
}

static bool has_header(const struct http_request *request, struct bytes name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (bytes_eq_nocase(request->headers[i].name, name))
            return true;
    return false;
}

static bool host_is_fine(struct ask *ask)
{
    bool check = ask->rules->token_count == 0 && ask->admin->on_loopback; /* see access.h */
    if (!check || access_host_is_loopback(only_header(ask->request, BYTES("host"))))
        return true;
    ask_refuse_with(ask, 403, "host_denied", "expected",
                    "a Host of localhost or a loopback address; other names need admin.tokens");
    return false;
}

/* Whoever has no token must not be a web page of somebody else's: browsers say where a page is from, programs
 * don't. */
static bool origin_is_fine(struct ask *ask)
{
    const struct http_request *request = ask->request;
    struct bytes method = request->method, origin = only_header(request, BYTES("origin"));
    bool looks = bytes_eq(method, BYTES("GET")) || bytes_eq(method, BYTES("HEAD"));
    if (looks || ask->rules->token_count > 0 || !has_header(request, BYTES("origin")) ||
        access_origin_is_own(origin, only_header(request, BYTES("host"))))
        return true;
    ask_refuse_with(ask, 403, "origin_denied", "expected", "no Origin, or this server's own");
    return false;
}

/* What the request may do; false when it was refused because nobody knows. */
static bool who_asks(struct ask *ask)
{
    const struct admin_rules *rules = ask->rules;
    ask->scopes = SCOPES_ALL;
    ask->who = "local";
    if (rules->token_count == 0)
        return true;
    ask->scopes = access_scopes(rules->tokens, rules->token_count,
                                only_header(ask->request, BYTES("authorization")), &ask->who);
    if (ask->scopes)
        return true;
    ask->ask_for_token = true;
    ask_refuse_with(ask, 401, "unauthorized", "expected",
                    "Authorization: Bearer and a token of admin.tokens");
    return false;
}

static bool filters_are_fine(struct ask *ask, uint64_t allowed)
{
    struct query_fault fault;
    struct bytes method = ask->request->method;
    bool looks = bytes_eq(method, BYTES("GET")) || bytes_eq(method, BYTES("HEAD"));
    if (query_parse(ask->request->query, allowed, ask->arena, &ask->query, &fault) &&
        (looks || query_parse_body(ask->request->body, allowed, ask->arena, &ask->query, &fault)))
        return ask_names_are_there(ask);
    ask_refuse_filter(ask, &fault);
    return false;
}

static void decide(struct ask *ask)
{
    if (!host_is_fine(ask) || !origin_is_fine(ask))
        return;
    char allow[ROUTE_ALLOW_MAX];
    const struct route *route = route_find(ask->request->method, ask->request->path, ask->parts, allow);
    bool open = route && route->scope == 0;
    /* Without a token nobody learns which paths there are. */
    if (!open && !who_asks(ask))
        return;
    if (!route && allow[0]) {
        ask->allow = arena_strdup(ask->arena, allow);
        ask_refuse(ask, 405, "method_not_allowed");
    } else if (!route) {
        ask_not_found(ask, "path");
    } else if (!open && !(ask->scopes & route->scope)) {
        ask_refuse_with(ask, 403, "forbidden", "scope", access_scope_name(route->scope));
    } else if (filters_are_fine(ask, route->filters)) {
        route->run(ask);
    }
}

static void ask_end(struct ask *ask)
{
    buf_free(&ask->body);
    current_drop(&ask->admin->current, ask->hold);
    arena_free(ask->arena); /* and the ask in it */
}

void ask_finish(struct ask *ask)
{
    if (ask->body.overflow)
        ask_refuse(ask, 500, "answer_too_large");
    struct http_header headers[4];
    size_t count = 0;
    headers[count++] = (struct http_header){BYTES("cache-control"), BYTES("no-store")};
    headers[count++] = (struct http_header){BYTES("x-content-type-options"), BYTES("nosniff")};
    if (ask->allow)
        headers[count++] = (struct http_header){BYTES("allow"), bytes_str(ask->allow)};
    if (ask->ask_for_token)
        headers[count++] = (struct http_header){BYTES("www-authenticate"), BYTES("Bearer")};
    http_answer(ask->exchange, &(struct http_answer){.status = ask->status,
                                                     .type = ask->type,
                                                     .body = buf_bytes(&ask->body),
                                                     .headers = headers,
                                                     .header_count = count});
    ask_end(ask);
}

static void hand_over(struct ask *ask)
{
    for (size_t i = 0; i < ROUTE_PARTS_MAX; i++)
        ask->parts[i] = arena_copy(ask->arena, ask->parts[i]);
    ask->request = NULL; /* ends with this call */
    worker_take(ask->admin->workers[ask->kind], ask);
}

void ask_work(struct ask *ask, enum work_kind kind, void (*work)(struct ask *ask))
{
    ask->kind = kind;
    ask->work = work;
    ask->later = hand_over;
}

void admin_handle(void *ctx, const struct http_request *request)
{
    CHECK(request->loop == 0); /* one loop, one reader */
    struct admin *admin = ctx;
    struct arena *arena = arena_new(4096);
    struct ask *ask = arena_zalloc(arena, sizeof *ask);
    *ask = (struct ask){.admin = admin,
                        .hold = current_take(&admin->current),
                        .request = request,
                        .exchange = request->exchange,
                        .reader = admin->reader,
                        .status = 200,
                        .arena = arena};
    ask->rules = ask->hold->value;
    ask->json = jsonw_on(&ask->body);
    decide(ask);
    if (ask->later)
        ask->later(ask);
    else if (ask->streams)
        ask_end(ask);
    else
        ask_finish(ask);
}
