#include "played.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "http/http.h"

enum { ROUTES_MAX = 8 };

static struct http_server *server;
static char url[64];

/* The script and the last request: of both threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const char *target;
    int status;
    struct bytes body;
} routes[ROUTES_MAX];
static size_t route_count;
static char last_target[512], last_authorization[64];

static void remember(const struct http_request *request)
{
    snprintf(last_target, sizeof last_target, "%.*s", BYTES_ARG(request->target));
    last_authorization[0] = 0;
    for (size_t i = 0; i < request->header_count; i++)
        if (bytes_eq_nocase(request->headers[i].name, BYTES("authorization")))
            snprintf(last_authorization, sizeof last_authorization, "%.*s",
                     BYTES_ARG(request->headers[i].value));
}

static void play(void *ctx, const struct http_request *request)
{
    (void)ctx;
    struct http_answer answer = {.status = 404, .body = BYTES("{\"error\":\"not_in_the_script\"}")};
    pthread_mutex_lock(&lock);
    remember(request);
    for (size_t i = 0; i < route_count; i++)
        if (bytes_eq(request->target, bytes_str(routes[i].target))) {
            answer.status = routes[i].status;
            answer.body = routes[i].body;
        }
    http_answer(request->exchange, &answer);
    pthread_mutex_unlock(&lock);
}

void played_start(void)
{
    static const char *const listen[] = {"127.0.0.1:0"};
    const struct http_options options = {.listen = listen,
                                         .listen_count = 1,
                                         .threads = 1,
                                         .name = "played",
                                         .max_body_bytes = 1 << 20,
                                         .max_buffered_bytes = 8 << 20,
                                         .header_timeout_ms = 10000,
                                         .body_timeout_ms = 10000,
                                         .idle_timeout_ms = 10000,
                                         .max_connections = 10,
                                         .handler = play};
    struct error err = {""};
    if (http_open(&options, &server, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    snprintf(url, sizeof url, "http://%s", http_address(server, 0));
}

void played_stop(void)
{
    http_close(server);
}

const char *played_url(void)
{
    return url;
}

void played_reset(void)
{
    unsetenv("LANEGATE_ADMIN");
    unsetenv("LANEGATE_TOKEN");
    pthread_mutex_lock(&lock);
    route_count = 0;
    pthread_mutex_unlock(&lock);
}

void played_on(const char *target, int status, struct bytes body)
{
    pthread_mutex_lock(&lock);
    assert_true(route_count < ROUTES_MAX);
    routes[route_count].target = target;
    routes[route_count].status = status;
    routes[route_count].body = body;
    route_count++;
    pthread_mutex_unlock(&lock);
}

void played_was_asked(const char *target, const char *authorization)
{
    pthread_mutex_lock(&lock);
    assert_string_equal(target, last_target);
    assert_string_equal(authorization, last_authorization);
    pthread_mutex_unlock(&lock);
}

/* ---- what is printed ---- */

struct ear {
    FILE *file;
    int fd, saved;
};
static struct ear out, err;

static struct ear redirect(FILE *stream, int fd)
{
    struct ear ear = {tmpfile(), fd, dup(fd)};
    assert_non_null(ear.file);
    fflush(stream);
    assert_true(dup2(fileno(ear.file), fd) >= 0);
    return ear;
}

static void give_back(struct ear *ear, FILE *stream, char *text, size_t size)
{
    fflush(stream);
    assert_true(dup2(ear->saved, ear->fd) >= 0);
    close(ear->saved);
    rewind(ear->file);
    text[fread(text, 1, size - 1, ear->file)] = 0;
    fclose(ear->file);
}

void played_listen(void)
{
    out = redirect(stdout, STDOUT_FILENO);
    err = redirect(stderr, STDERR_FILENO);
}

const struct heard *played_heard(void)
{
    static struct heard heard;
    give_back(&out, stdout, heard.out, sizeof heard.out);
    give_back(&err, stderr, heard.err, sizeof heard.err);
    return &heard;
}

int played_group_start(void **state)
{
    (void)state;
    played_start();
    return 0;
}

int played_group_stop(void **state)
{
    (void)state;
    played_stop();
    return 0;
}

int played_test_start(void **state)
{
    (void)state;
    played_reset();
    setenv("LANEGATE_ADMIN", played_url(), 1);
    return 0;
}

const struct heard *played_run(const struct cli_verb *verb, int expected, ...)
{
    char *argv[16] = {(char *)(uintptr_t)verb->name};
    int argc = 1;
    va_list words;
    va_start(words, expected);
    while ((argv[argc] = va_arg(words, char *)))
        assert_true(++argc < 16);
    va_end(words);
    played_listen();
    int code = verb->run(argc, argv);
    const struct heard *heard = played_heard();
    if (code != expected)
        fail_msg("exit %d\n%s%s", code, heard->out, heard->err);
    return heard;
}
