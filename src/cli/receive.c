/* lanegate receive: a receiver for drills. It writes down what it gets, and can be told to fail, hang or
 * delay, per key, at the start and while it runs. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/drill.h"
#include "cli/later.h"
#include "http/http.h"
#include "util/clock.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "util/units.h"

struct receive {
    const char *prefix;
    bool json, quiet;
    FILE *log;            /* NULL: none */
    pthread_mutex_t lock; /* of the two outputs */
    struct drill *drill;
    struct later *later;
};

/* -- deliveries
 * -------------------------------------------------------------------------------------------------- */

/* Written before it is answered: what the gateway holds for delivered is in the log. Takes the delivery. */
static void finish(struct receive *receive, struct delivery *delivery, int status)
{
    struct buf line = {0};
    struct http_exchange *exchange = delivery->exchange;
    delivery->status = status;
    pthread_mutex_lock(&receive->lock);
    delivery->finished_us = delivery_clock_us();
    if (receive->log) {
        delivery_write_json(delivery, &line);
        fwrite(line.at, 1, line.len, receive->log);
        fflush(receive->log);
        buf_clear(&line);
    }
    if (!receive->quiet) {
        (receive->json ? delivery_write_json : delivery_write_text)(delivery, &line);
        fwrite(line.at, 1, line.len, stdout);
        fflush(stdout);
    }
    pthread_mutex_unlock(&receive->lock);
    buf_free(&line);
    delivery_free(delivery);
    if (status)
        http_answer(exchange, &(struct http_answer){.status = status, .body = BYTES("{}")});
    else
        http_drop(exchange);
}

static void answer_late(void *ctx, struct delivery *delivery)
{
    finish(ctx, delivery, delivery->status);
}

static void give_up(void *ctx, struct delivery *delivery)
{
    finish(ctx, delivery, 0);
}

/* On the one loop, as commands are: what hangs by a rule is in `later` before the rule can be healed. */
static void take_delivery(struct receive *receive, const struct http_request *request)
{
    struct delivery *delivery = delivery_read(request, receive->prefix);
    struct drill_order order = drill_ask(receive->drill, delivery->key);
    delivery->status = order.status;
    if (order.hang)
        delivery->due_us = 0;
    else if (order.delay_us)
        delivery->due_us = clock_mono_us() + order.delay_us;
    if (order.hang || order.delay_us)
        later_add(receive->later, delivery);
    else
        finish(receive, delivery, order.status);
}

/* -- being told what to do
 * --------------------------------------------------------------------------------------- */

static void answer_json(struct http_exchange *exchange, int status, struct bytes body)
{
    http_answer(exchange, &(struct http_answer){.status = status, .body = body});
}

/* A parameter of a query, percent-decoded into `out`; false when it is not there. */
static bool parameter(struct bytes query, const char *name, struct buf *out)
{
    struct bytes wanted = bytes_str(name);
    while (query.len > 0) {
        const char *end = memchr(query.at, '&', query.len);
        size_t len = end ? (size_t)(end - query.at) : query.len;
        struct bytes pair = bytes_of(query.at, len);
        if (pair.len > wanted.len && pair.at[wanted.len] == '=' && bytes_starts(pair, wanted)) {
            buf_clear(out);
            buf_put(out, "", 0);
            return percent_decode(out, bytes_of(pair.at + wanted.len + 1, pair.len - wanted.len - 1));
        }
        len += end != NULL;
        query = bytes_of(query.at + len, query.len - len);
    }
    return false;
}

static bool is_status(int64_t n)
{
    return n >= 200 && n <= 999;
}

static void show_drill(struct receive *receive, struct http_exchange *exchange)
{
    struct buf body = {0};
    drill_show(receive->drill, &body);
    answer_json(exchange, 200, buf_bytes(&body));
    buf_free(&body);
}

static void take_command(struct receive *receive, const struct http_request *request)
{
    struct bytes verb = bytes_of(request->path.at + 7, request->path.len - 7); /* behind "/_drill" */
    struct buf key_text = {0}, value = {0};
    bool has_key = parameter(request->query, "key", &key_text);
    struct bytes key = has_key ? buf_bytes(&key_text) : BYTES_NONE;
    const char *fault = NULL;
    int64_t n = 0;

    if (bytes_eq(request->method, BYTES("GET")) && verb.len == 0) {
        show_drill(receive, request->exchange);
        goto out;
    }
    if (!bytes_eq(request->method, BYTES("POST"))) {
        answer_json(request->exchange, 405, BYTES("{\"error\":\"method_not_allowed\"}"));
        goto out;
    }
    bool done = true;
    if (bytes_eq(verb, BYTES("/heal"))) {
        drill_heal(receive->drill, key);
        later_heal(receive->later, key);
    } else if (bytes_eq(verb, BYTES("/fail"))) {
        if (!has_key || !parameter(request->query, "status", &value) ||
            !units_parse_u63(buf_bytes(&value), &n) || !is_status(n))
            fault = "{\"error\":\"needs key and a status from 200 to 999\"}";
        else
            done = drill_fail(receive->drill, key, (int)n);
    } else if (bytes_eq(verb, BYTES("/delay"))) {
        if (!has_key || !parameter(request->query, "ms", &value) || !units_parse_u63(buf_bytes(&value), &n) ||
            n > 86400000)
            fault = "{\"error\":\"needs key and ms, at most a day\"}";
        else
            done = drill_delay(receive->drill, key, n, n);
    } else if (bytes_eq(verb, BYTES("/hang"))) {
        if (!has_key)
            fault = "{\"error\":\"needs key\"}";
        else
            done = drill_hang(receive->drill, key);
    } else {
        answer_json(request->exchange, 404, BYTES("{\"error\":\"not_found\"}"));
        goto out;
    }
    if (fault)
        answer_json(request->exchange, 400, bytes_str(fault));
    else if (!done)
        answer_json(request->exchange, 409, BYTES("{\"error\":\"too many keys, or too long a one\"}"));
    else
        show_drill(receive, request->exchange);

out:
    buf_free(&key_text);
    buf_free(&value);
}

static void on_request(void *ctx, const struct http_request *request)
{
    struct bytes drill = BYTES("/_drill");
    bool command = bytes_starts(request->path, drill) &&
                   (request->path.len == drill.len || request->path.at[drill.len] == '/');
    (command ? take_command : take_delivery)(ctx, request);
}

/* -- the verb
 * ---------------------------------------------------------------------------------------------------- */

/* "KEY=VALUE", split at the last '='; the key is decoded. */
static bool split(const char *text, struct buf *key, const char **value)
{
    const char *equals = strrchr(text, '=');
    if (!equals)
        return false;
    struct bytes raw = bytes_of(text, (size_t)(equals - text));
    buf_clear(key);
    buf_put(key, "", 0);
    if (!percent_decode(key, raw)) {
        buf_clear(key);
        buf_putb(key, raw);
    }
    *value = equals + 1;
    return true;
}

/* "200ms", or "0ms..5ms". */
static bool span(const char *text, int64_t *least_ms, int64_t *most_ms)
{
    const char *dots = strstr(text, "..");
    size_t len = dots ? (size_t)(dots - text) : strlen(text);
    if (!units_parse_ms(bytes_of(text, len), least_ms))
        return false;
    *most_ms = *least_ms;
    return !dots || (units_parse_ms(bytes_str(dots + 2), most_ms) && *most_ms >= *least_ms);
}

static int tell(struct drill *drill, const struct arg_list *fail, const struct arg_list *delay,
                const struct arg_list *hang)
{
    struct buf key = {0};
    const char *value;
    int code = CLI_OK;
    int64_t n, most;
    for (size_t i = 0; code == CLI_OK && i < fail->len; i++) {
        if (!split(fail->items[i], &key, &value) || !units_parse_u63(bytes_str(value), &n) || !is_status(n))
            code = cli_usage(&verb_receive, "--fail must be KEY=STATUS, got \"%s\"", fail->items[i]);
        else if (!drill_fail(drill, buf_bytes(&key), (int)n))
            code = cli_usage(&verb_receive, "too many keys, or too long a one");
    }
    for (size_t i = 0; code == CLI_OK && i < delay->len; i++) {
        if (!split(delay->items[i], &key, &value) || !span(value, &n, &most))
            code = cli_usage(&verb_receive,
                             "--delay must be KEY=DURATION such as A=200ms or A=0ms..5ms, got \"%s\"",
                             delay->items[i]);
        else if (!drill_delay(drill, buf_bytes(&key), n, most))
            code = cli_usage(&verb_receive, "too many keys, or too long a one");
    }
    for (size_t i = 0; code == CLI_OK && i < hang->len; i++) {
        buf_clear(&key);
        buf_put(&key, "", 0);
        if (!percent_decode(&key, bytes_str(hang->items[i]))) {
            buf_clear(&key);
            buf_puts(&key, hang->items[i]);
        }
        if (!drill_hang(drill, buf_bytes(&key)))
            code = cli_usage(&verb_receive, "too many keys, or too long a one");
    }
    buf_free(&key);
    return code;
}

static void say_listening(const struct receive *receive, const char *address)
{
    if (receive->json)
        printf("{\"event\":\"listening\",\"address\":\"%s\"}\n", address);
    else
        printf("listening on %s; curl -X POST '%s/_drill/fail?key=A&status=503' makes key A fail, "
               "/_drill/heal?key=A "
               "heals it\n",
               address, address);
    fflush(stdout);
}

/* Until SIGTERM or SIGINT, which every thread has blocked. */
static void wait_for_end(const sigset_t *ends)
{
    int signal_number;
    while (sigwait(ends, &signal_number) != 0)
        ;
}

static int serve(struct receive *receive, const char *listen)
{
    struct http_options options = {.listen = &listen,
                                   .listen_count = 1,
                                   .threads = 1,
                                   .name = "receive",
                                   .max_body_bytes = 64 << 20,
                                   .max_buffered_bytes = 256 << 20,
                                   .header_timeout_ms = 10000,
                                   .body_timeout_ms = 60000,
                                   .idle_timeout_ms = 300000,
                                   .max_connections = 10000,
                                   .handler = on_request,
                                   .ctx = receive};
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, &before);
    receive->later = later_open(answer_late, give_up, receive);

    struct http_server *server;
    struct error err;
    int code = CLI_OK;
    if (http_open(&options, &server, &err) != STATUS_OK) {
        fprintf(stderr, "lanegate receive: %s\n", err.text);
        code = CLI_FAILED;
        later_stop(receive->later);
        goto close_later;
    }
    say_listening(receive, http_address(server, 0));
    wait_for_end(&ends);
    http_drain(server);
    later_stop(receive->later);
    for (int i = 0; i < 500 && !http_drained(server); i++)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    http_close(server);

close_later:
    later_close(receive->later);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static int run(int argc, char **argv)
{
    struct receive receive = {.prefix = "lanegate", .lock = PTHREAD_MUTEX_INITIALIZER};
    const char *listen = "127.0.0.1:4100", *log = NULL;
    struct arg_list fail = {0}, delay = {0}, hang = {0};
    int64_t fail_rate = 0, seed = 1;
    const struct arg args[] = {{"listen", ARG_TEXT, {.text = &listen}},
                               {"log", ARG_TEXT, {.text = &log}},
                               {"json", ARG_FLAG, {.flag = &receive.json}},
                               {"quiet", ARG_FLAG, {.flag = &receive.quiet}},
                               {"prefix", ARG_TEXT, {.text = &receive.prefix}},
                               {"fail", ARG_LIST, {.list = &fail}},
                               {"delay", ARG_LIST, {.list = &delay}},
                               {"hang", ARG_LIST, {.list = &hang}},
                               {"fail-rate", ARG_COUNT, {.number = &fail_rate}},
                               {"seed", ARG_COUNT, {.number = &seed}},
                               {0}};
    size_t count;
    int code = cli_args(&verb_receive, argc, argv, args, NULL, 0, &count);
    if (code == CLI_OK && fail_rate > 100)
        code = cli_usage(&verb_receive, "--fail-rate must be a percentage from 0 to 100");
    if (code != CLI_OK)
        goto free_lists;
    receive.drill = drill_new((unsigned)fail_rate, (uint64_t)seed);
    code = tell(receive.drill, &fail, &delay, &hang);
    if (code != CLI_OK)
        goto free_drill;
    if (log && !(receive.log = fopen(log, "ae"))) {
        fprintf(stderr, "lanegate receive: can't write %s: %s\n", log, strerror(errno));
        code = CLI_FAILED;
        goto free_drill;
    }
    code = serve(&receive, listen);
    if (receive.log && fclose(receive.log) != 0) {
        fprintf(stderr, "lanegate receive: can't write %s: %s\n", log, strerror(errno));
        code = CLI_FAILED;
    }

free_drill:
    drill_free(receive.drill);
free_lists:
    free(fail.items);
    free(delay.items);
    free(hang.items);
    return code;
}

const struct cli_verb verb_receive = {
    .name = "receive",
    .summary = "a receiver for drills: prints what it gets, fails, hangs or delays as told",
    .help = "usage: lanegate receive [options]\n"
            "\n"
            "Answers deliveries with 200 and prints a line for each. Keys are written as in "
            "x-lanegate-ordering-key; \"*\"\n"
            "stands for all.\n"
            "\n"
            "  --listen ADDRESS      default 127.0.0.1:4100; port 0 picks a free one\n"
            "  --log FILE            adds a JSON line a delivery, for `lanegate verify-order FILE`\n"
            "  --json                prints the same lines\n"
            "  --quiet               prints no deliveries\n"
            "  --prefix NAME         of the headers x-NAME-*; default lanegate\n"
            "  --fail KEY=STATUS     answers with this status, e.g. --fail A=503\n"
            "  --delay KEY=DURATION  answers after this time, e.g. --delay '*=200ms'; '*=0ms..5ms' draws one "
            "each time\n"
            "  --hang KEY            does not answer until healed\n"
            "  --fail-rate PERCENT   answers that many with 503, at random\n"
            "  --seed N              of that chance; the same seed fails the same ones\n"
            "\n"
            "While it runs:\n"
            "\n"
            "  POST /_drill/fail?key=A&status=503     POST /_drill/delay?key=A&ms=200\n"
            "  POST /_drill/hang?key=A                POST /_drill/heal?key=A (without a key: everything)\n"
            "  GET  /_drill                           what is set\n"
            "\n"
            "A delivery that hangs when it is healed, or at the end, has its connection closed without an "
            "answer.\n",
    .run = run,
};
