/* POSTs a second that one core makes: signed hooks of 1 KB over loopback. The receiver is another process, so
 * that this one's CPU time is that of delivering alone; "a core" is attempts per second of that time.
 *
 *     bench_deliver_post [threads=1] [concurrency=64] [seconds=3] [hanging=0]
 *
 * `hanging` attempts wait for an answer that never comes all the while: they should cost nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deliver/deliver.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
static atomic_bool ending;
static _Atomic uint64_t finished, failed;
static struct deliver *deliver;

static int listen_on_loopback(unsigned *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 4096) == 0);
    getsockname(fd, (struct sockaddr *)&at, &len);
    *port = ntohs(at.sin_port);
    return fd;
}

/* The cheapest receiver there is: a request of this bench arrives in one piece, and ends as its body does.
 * What comes to the deaf listener's backlog is never accepted. */
static void answer_all(int listener)
{
    static char text[64 << 10];
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                event.data.fd = accept(listener, NULL, NULL);
                epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
                continue;
            }
            ssize_t len = recv(fd, text, sizeof text, 0);
            if (len <= 0)
                close(fd);
            else if (text[len - 1] == '}' && send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0)
                close(fd);
        }
    }
}

static struct envelope *make_hook(void)
{
    struct envelope *e = envelope_new(4096);
    char *body = arena_alloc(e->arena, 1024);
    memset(body, 'x', 1024);
    body[1023] = '}';
    e->id = uuid_new(clock_unix_ms());
    e->seq = 1;
    e->tenant = BYTES("default");
    e->source = BYTES("stripe");
    e->content_type = BYTES("application/json");
    e->body = bytes_of(body, 1024);
    struct header *headers = arena_alloc(e->arena, 6 * sizeof *headers);
    headers[0] = (struct header){BYTES("Host"), BYTES("hooks.example")};
    headers[1] =
        (struct header){BYTES("User-Agent"), BYTES("Stripe/1.0 (+https://stripe.com/docs/webhooks)")};
    headers[2] = (struct header){BYTES("Content-Type"), e->content_type};
    headers[3] = (struct header){BYTES("Content-Length"), BYTES("1024")};
    headers[4] = (struct header){BYTES("Accept"), BYTES("*/*; q=0.5, application/xml")};
    headers[5] =
        (struct header){BYTES("Stripe-Signature"), BYTES("t=1700000000,v1=0123456789abcdef0123456789abcdef")};
    e->headers = headers;
    e->header_count = 6;
    return e;
}

static void on_done(struct attempt *attempt)
{
    if (attempt->outcome.cls != OUTCOME_OK)
        failed++;
    finished++;
    if (ending)
        return;
    struct list attempts = LIST_INIT(attempts);
    list_append(&attempts, &attempt->node);
    deliver_start(deliver, &attempts);
}

static void on_hung(struct attempt *attempt)
{
    (void)attempt;
}

static struct sink *open_sink(unsigned port, const char *path)
{
    static const struct bytes secret = BYTES("0123456789abcdef0123456789abcdef");
    struct sink_options options = {.type = "http",
                                   .source = "stripe",
                                   .name = path,
                                   .header_prefix = "lanegate",
                                   .url = mem_format("http://127.0.0.1:%u/%s", port, path),
                                   .method = "POST",
                                   .secrets = &secret,
                                   .secret_count = 1,
                                   .timeout_ms = 60000};
    struct sink *sink;
    struct error err = {""};
    if (sink_open(deliver, &options, &sink, &err) != STATUS_OK)
        fprintf(stderr, "%s\n", err.text), exit(1);
    return sink;
}

static struct attempt *start(struct sink *sink, unsigned count, void (*done)(struct attempt *))
{
    struct attempt *attempts = mem_zalloc(count * sizeof *attempts);
    struct list list = LIST_INIT(list);
    for (unsigned i = 0; i < count; i++) {
        attempts[i] = (struct attempt){.envelope = make_hook(),
                                       .sink = sink,
                                       .number = 1,
                                       .ordered = true,
                                       .key = BYTES("cus_0123456789"),
                                       .previous_seq = 1,
                                       .done = done};
        list_append(&list, &attempts[i].node);
    }
    deliver_start(deliver, &list);
    return attempts;
}

static double cpu_s(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static unsigned number(int argc, char **argv, int i, unsigned otherwise)
{
    return argc > i ? (unsigned)strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    unsigned threads = number(argc, argv, 1, 1), concurrency = number(argc, argv, 2, 64);
    unsigned seconds = number(argc, argv, 3, 3), hanging = number(argc, argv, 4, 0), port, deaf_port;
    int listener = listen_on_loopback(&port), deaf_listener = listen_on_loopback(&deaf_port);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    pid_t receiver = fork();
    if (receiver == 0)
        answer_all(listener);
    close(listener);

    struct ip_range loopback;
    ip_range_parse("127.0.0.0/8", &loopback, NULL);
    struct deliver_options options = {.threads = threads, .egress = {{&loopback, 1}, true}};
    CHECK(deliver_open(&options, &deliver, NULL) == STATUS_OK);
    struct sink *sink = open_sink(port, "hook"), *deaf = open_sink(deaf_port, "hang");
    struct attempt *hung = start(deaf, hanging, on_hung);
    struct attempt *attempts = start(sink, concurrency, on_done);

    sleep(1); /* warm */
    uint64_t before = finished;
    double before_cpu_s = cpu_s();
    int64_t before_us = clock_mono_us();
    sleep(seconds);
    uint64_t count = finished - before;
    double used_s = cpu_s() - before_cpu_s, passed_s = (double)(clock_mono_us() - before_us) / 1e6;
    ending = true;
    printf("threads %u, concurrency %u, hanging %u: %.0f POSTs/s, %.1f us of CPU each (%.0f POSTs/s a core), "
           "%llu "
           "failed\n",
           threads, concurrency, hanging, (double)count / passed_s, used_s * 1e6 / (double)count,
           (double)count / used_s, (unsigned long long)failed);

    deliver_stop(deliver, clock_mono_ms() + 200);
    for (unsigned i = 0; i < concurrency; i++)
        envelope_unref(attempts[i].envelope);
    for (unsigned i = 0; i < hanging; i++)
        envelope_unref(hung[i].envelope);
    free(attempts);
    free(hung);
    sink_close(sink);
    sink_close(deaf);
    deliver_close(deliver);
    kill(receiver, SIGKILL);
    waitpid(receiver, NULL, 0);
    close(deaf_listener);
    return failed ? 1 : 0;
}
