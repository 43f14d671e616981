#include "house.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../http/wire.h"
#include "order/order.h"
#include "util/clock.h"
#include "util/mem.h"

/* A port where every connection is refused, for as long as the socket is open. */
static int hold_closed_port(char address[32])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&at, sizeof at));
    assert_int_equal(0, getsockname(fd, (struct sockaddr *)&at, &len));
    snprintf(address, 32, "http://127.0.0.1:%d/", ntohs(at.sin_port));
    return fd;
}

static void committed(void *ctx, struct store_hook *const *hooks, size_t count)
{
    struct house *house = ctx;
    lanes_committed(house->lanes, hooks, count);
}

static void open_store(struct house *house)
{
    const struct store_options options = {.data_dir = house->dir,
                                          .max_batch = 64,
                                          .max_batch_bytes = 1 << 20,
                                          .max_queue = 64,
                                          .max_queue_bytes = 1 << 20,
                                          .commit_timeout_ms = 15000,
                                          .retention_ms = 3600000,
                                          .min_free_bytes = 1,
                                          .committed = committed,
                                          .ctx = house,
                                          .metrics = house->metrics};
    struct error err = {""};
    if (store_open(&options, &house->store, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void add_sink(struct house *house, size_t i, const char *type, const char *name, const char *url,
                     uint32_t max_attempts)
{
    static const int refused[] = {400};
    const bool ordered = i != HOUSE_LOG;
    const struct sink_options transport = {.type = type,
                                           .source = "demo",
                                           .name = name,
                                           .header_prefix = "lanegate",
                                           .url = url,
                                           .method = "POST",
                                           .timeout_ms = 5000,
                                           .refused = refused,
                                           .refused_count = 1};
    struct lanes_sink *sink = &house->lanes_sinks[i];
    struct error err = {""};
    *sink = (struct lanes_sink){.source = "demo", .name = name, .ordered = ordered};
    sink->policy = (struct sched_policy){
        .concurrency = 8,
        .retry = {.base_ms = 3600000, .max_ms = 3600000, .max_attempts = max_attempts},
        .breaker = {.failures = 1000, .open_ms = 5000, .max_open_ms = 60000},
        .on_refused = ON_DEAD_SKIP,
        .on_exhausted = ON_DEAD_SKIP,
    };
    if (store_sink_id(house->store, "demo", name, &sink->id, &err) != STATUS_OK ||
        sink_open(house->deliver, &transport, &sink->sink, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    house->admin_sinks[i] = (struct admin_sink){
        .id = sink->id, .source = "demo", .name = name, .type = type, .ordered = ordered, .concurrency = 8};
}

static void open_lanes(struct house *house)
{
    static struct ip_range loopback;
    static char url[32]; /* borrowed by the sinks; one house is open at a time */
    struct error err = {""};
    assert_int_equal(STATUS_OK, ip_range_parse("127.0.0.0/8", &loopback, &err));
    const struct deliver_options deliver = {.threads = 1,
                                            .egress = {.allow_private = {&loopback, 1}, .allow_http = true}};
    assert_int_equal(STATUS_OK, deliver_open(&deliver, &house->deliver, &err));
    house->closed_port = hold_closed_port(url);
    add_sink(house, HOUSE_LOG, "log", "log", NULL, 0);
    add_sink(house, HOUSE_GONE, "http", "gone", url, 0);
    add_sink(house, HOUSE_DEAD, "http", "dead", url, 1);

    const struct lanes_options lanes = {.store = house->store,
                                        .deliver = house->deliver,
                                        .sinks = house->lanes_sinks,
                                        .sink_count = HOUSE_SINKS,
                                        .concurrency = 16,
                                        .max_inflight_bytes = 1 << 20,
                                        .max_pending_bytes = 64 << 20,
                                        .attempt_timeout_ms = 5000,
                                        .metrics = house->metrics};
    if (lanes_open(&lanes, &house->lanes, &err) != STATUS_OK ||
        lanes_start(house->lanes, &err) != STATUS_OK || store_start(house->store, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void pass_gate(struct house *house)
{
    pthread_mutex_lock(&house->gate_lock);
    while (house->gate_shut) {
        house->at_gate = true;
        pthread_cond_broadcast(&house->gate);
        pthread_cond_wait(&house->gate, &house->gate_lock);
    }
    house->at_gate = false;
    pthread_mutex_unlock(&house->gate_lock);
}

void house_gate(struct house *house, bool shut)
{
    pthread_mutex_lock(&house->gate_lock);
    house->gate_shut = shut;
    pthread_cond_broadcast(&house->gate);
    pthread_mutex_unlock(&house->gate_lock);
}

void house_wait_at_gate(struct house *house)
{
    pthread_mutex_lock(&house->gate_lock);
    while (!house->at_gate)
        pthread_cond_wait(&house->gate, &house->gate_lock);
    pthread_mutex_unlock(&house->gate_lock);
}

/* Every hook's key is its body. */
static void resolve(void *ctx, const struct admin_sink *sink, const struct envelope *envelope,
                    struct arena *arena, struct order_lane *out)
{
    pass_gate(ctx);
    struct bytes key = order_key_stamp(envelope->body, arena);
    *out = (struct order_lane){
        .ordered = true, .key = key, .lane = lane_id_of(bytes_str(sink->source), bytes_str(sink->name), key)};
}

static void config_json(void *ctx, struct buf *out)
{
    (void)ctx;
    buf_puts(out, "{\"data_dir\":\"data\"}");
}

static void reload(void *ctx, struct admin_reload *asked)
{
    struct house *house = ctx;
    asked->done(asked, &house->reloaded);
}

static size_t not_ready(void *ctx, const char **reasons, size_t max)
{
    struct house *house = ctx;
    const char *reason = house->reason;
    if (!reason || !max)
        return 0;
    reasons[0] = reason;
    return 1;
}

static void open_admin(struct house *house, const struct admin_token *tokens, size_t token_count)
{
    static const char *const listen[] = {"127.0.0.1:0"};
    const struct admin_options options = {.store = house->store,
                                          .lanes = house->lanes,
                                          .metrics = house->metrics,
                                          .events = house->events,
                                          .rules = {.tokens = tokens,
                                                    .token_count = token_count,
                                                    .sinks = house->admin_sinks,
                                                    .sink_count = HOUSE_SINKS,
                                                    .of = house},
                                          .listen = listen,
                                          .listen_count = 1,
                                          .config_json = config_json,
                                          .not_ready = not_ready,
                                          .resolve = resolve,
                                          .reload = reload,
                                          .ctx = house};
    struct error err = {""};
    if (admin_open(&options, &house->admin, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    const struct http_options http = {.listen = listen,
                                      .listen_count = 1,
                                      .threads = 1,
                                      .name = "admin",
                                      .max_body_bytes = 1 << 20,
                                      .max_buffered_bytes = 8 << 20,
                                      .header_timeout_ms = 10000,
                                      .body_timeout_ms = 10000,
                                      .idle_timeout_ms = 10000,
                                      .max_connections = 100,
                                      .handler = admin_handle,
                                      .ctx = house->admin};
    if (http_open(&http, &house->server, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

void house_open(struct house *house, const struct admin_token *tokens, size_t token_count)
{
    memset(house, 0, sizeof *house);
    pthread_mutex_init(&house->gate_lock, NULL);
    pthread_cond_init(&house->gate, NULL);
    snprintf(house->dir, sizeof house->dir, "/tmp/lanegate-admin-XXXXXX");
    assert_non_null(mkdtemp(house->dir));
    house->metrics = metrics_new();
    house->events = events_open();
    open_store(house);
    open_lanes(house);
    open_admin(house, tokens, token_count);
}

void house_close(struct house *house)
{
    admin_drain(house->admin);
    lanes_quiesce(house->lanes);
    http_close(house->server);
    admin_close(house->admin);
    deliver_stop(house->deliver, clock_mono_ms() + 5000);
    lanes_stop(house->lanes);
    store_stop(house->store);
    lanes_close(house->lanes);
    for (size_t i = 0; i < HOUSE_SINKS; i++)
        sink_close(house->lanes_sinks[i].sink);
    deliver_close(house->deliver);
    store_close(house->store);
    events_close(house->events);
    metrics_free(house->metrics);
    close(house->closed_port);
    pthread_cond_destroy(&house->gate);
    pthread_mutex_destroy(&house->gate_lock);
    char *remove = mem_format("rm -rf '%s'", house->dir);
    assert_int_equal(0, system(remove));
    free(remove);
}

/* ---- hooks ---- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    enum status status;
};

static void on_done(struct store_hook *hook, enum status status)
{
    struct waiter *waiter = hook->ctx;
    pthread_mutex_lock(&waiter->lock);
    waiter->is_done = true;
    waiter->status = status;
    pthread_cond_signal(&waiter->done);
    pthread_mutex_unlock(&waiter->lock);
}

static struct envelope *envelope_of(struct bytes key, struct bytes body)
{
    struct envelope *envelope = envelope_new(1024);
    struct header *headers = arena_alloc(envelope->arena, 2 * sizeof *headers);
    headers[0] = (struct header){BYTES("X-Entity-Id"), BYTES("as sent")};
    headers[1] = (struct header){BYTES("Authorization"), BYTES("Bearer provider-secret")};
    envelope->received_at_ms = clock_unix_ms();
    envelope->id = uuid_new(envelope->received_at_ms);
    envelope->tenant = BYTES("default");
    envelope->source = BYTES("demo");
    envelope->method = BYTES("POST");
    envelope->path = BYTES("/webhooks/demo");
    envelope->query = BYTES("x=1");
    envelope->content_type = BYTES("text/html");
    envelope->remote_ip = BYTES("127.0.0.1");
    envelope->dedupe_key = key.at ? arena_copy(envelope->arena, key) : BYTES_NONE;
    envelope->headers = headers;
    envelope->header_count = 2;
    envelope->body = arena_copy(envelope->arena, body);
    return envelope;
}

void house_take(struct house *house, struct bytes key, struct bytes body, char id[UUID_TEXT])
{
    struct envelope *envelope = envelope_of(key, body);
    struct store_row rows[HOUSE_SINKS];
    for (size_t i = 0; i < HOUSE_SINKS; i++) {
        const struct lanes_sink *sink = &house->lanes_sinks[i];
        struct lane_id lane = lane_id_of(BYTES("demo"), bytes_str(sink->name), key);
        rows[i] = (struct store_row){.sink = sink->id, .ordered = sink->ordered, .key = key};
        memcpy(rows[i].lane, lane.bytes, sizeof lane.bytes);
    }
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, STATUS_OK};
    struct store_hook hook = {
        .envelope = envelope, .rows = rows, .row_count = HOUSE_SINKS, .done = on_done, .ctx = &waiter};
    uuid_format(&envelope->id, id);
    assert_int_equal(STATUS_OK, store_commit(house->store, &hook));
    pthread_mutex_lock(&waiter.lock);
    while (!waiter.is_done)
        pthread_cond_wait(&waiter.done, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    assert_int_equal(STATUS_OK, waiter.status);
    envelope_unref(envelope);
}

/* ---- asking ---- */

void house_ask(struct house *house, const char *method, const char *target, const char *headers,
               struct house_answer *answer)
{
    struct wire_reply reply = {0};
    const char *more = headers ? headers : "";
    const char *host = strstr(more, "Host: ") ? "" : "Host: localhost\r\n";
    char *request = mem_format("%s %s HTTP/1.1\r\n%s%s\r\n", method, target, host, more);
    int fd = wire_connect(house->server);
    wire_send(fd, bytes_str(request));
    wire_read(fd, &reply, false);
    close(fd);
    free(request);
    *answer = (struct house_answer){.status = reply.status, .head = reply.head, .body = reply.body};
    answer->json = json_loadb(reply.body.at ? reply.body.at : "", reply.body.len, 0, NULL);
}

void house_answer_free(struct house_answer *answer)
{
    json_decref(answer->json);
    buf_free(&answer->head);
    buf_free(&answer->body);
}

bool house_answer_has(const struct house_answer *answer, const char *line)
{
    return answer->head.at && strcasestr(answer->head.at, line);
}

json_t *house_get(struct house *house, const char *target)
{
    struct house_answer answer;
    house_ask(house, "GET", target, NULL, &answer);
    if (answer.status != 200 || !answer.json)
        fail_msg("%s: %d %s", target, answer.status, answer.body.at ? answer.body.at : "");
    json_t *json = json_incref(answer.json);
    house_answer_free(&answer);
    return json;
}

void house_wait_total(struct house *house, const char *target, long long n)
{
    int64_t deadline_ms = clock_mono_ms() + 10000;
    for (;;) {
        json_t *answer = house_get(house, target);
        long long total = json_integer_value(json_object_get(answer, "total"));
        json_decref(answer);
        if (total == n)
            return;
        if (clock_mono_ms() > deadline_ms)
            fail_msg("%s: total is %lld, not %lld", target, total, n);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}
