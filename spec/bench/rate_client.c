/* Posts JSON hooks over kept connections, as fast as answers come or at a fixed rate.
 *
 *     bench_rate_client [-c connections=128] [-r hooks a second=0: closed loop] [-s seconds=5] [-b body
 * bytes=1024]
 *                       [-l lanes=100000] [-k first lane=0] ADDRESS:PORT PATH
 *
 * At a fixed rate the loop is open: hook n is due at start + n / rate whatever became of the others, and
 * waits for a free connection when there is none. Its latency counts from when it was due, so a server that
 * stalls is charged for all that it kept waiting (no coordinated omission). What is due before the end is
 * sent after it, for up to DRAIN_US. Each body says when it was due, on the machine's monotonic clock, for
 * bench_receiver. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "histogram.h"
#include "util/clock.h"
#include "util/mem.h"

enum {
    ANSWER_MAX = 8192,
    EVENTS = 256,
    HEAD_MAX = 512,
    BODY_MIN = 128,
    DRAIN_US = 10 * 1000 * 1000,
};

struct connection {
    int fd;
    bool busy;
    int64_t due_us;
    char *request; /* the same bytes each time, but for the digits */
    size_t request_len, sent;
    char answer[ANSWER_MAX];
    size_t answer_len;
    struct connection *next_idle;
};

static struct sockaddr_in server;
static const char *address, *path;
static unsigned connection_count = 128, lanes = 100000, first_lane;
static double rate, seconds = 5;
static size_t body_len = 1024;

static int epoll;
static struct connection *connections, *idle;
static size_t id_at, due_at, key_at; /* where the digits of a request are */
static uint64_t started, answered, refused, failed;
static int64_t begin_us, end_us;
static struct histogram latencies;

__attribute__((noreturn)) static void give_up(const char *what)
{
    fprintf(stderr, "rate_client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void put_digits(char *to, size_t width, uint64_t n)
{
    for (size_t i = width; i-- > 0; n /= 10)
        to[i] = (char)('0' + n % 10);
}

enum { ID_DIGITS = 12, DUE_DIGITS = 16, KEY_DIGITS = 7 };

static char *make_request(size_t *len)
{
    char *request = mem_zalloc(HEAD_MAX + body_len + 1);
    int head = snprintf(request, HEAD_MAX,
                        "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n",
                        path, address, body_len);
    if (head < 0 || head >= HEAD_MAX)
        give_up("a path that long");
    int text =
        snprintf(request + head, body_len + 1,
                 "{\"id\":\"evt_%012d\",\"sent_us\":1%015d,\"data\":{\"object\":{\"customer\":\"cus_%07d\"}},"
                 "\"pad\":\"",
                 0, 0, 0);
    *len = (size_t)head + body_len;
    memset(request + head + text, 'x', body_len - (size_t)text);
    memcpy(request + *len - 2, "\"}", 2);
    id_at = (size_t)(strstr(request, "evt_") - request) + 4;
    due_at = (size_t)(strstr(request, "sent_us\":") - request) + 9;
    key_at = (size_t)(strstr(request, "cus_") - request) + 4;
    return request;
}

static void dial(struct connection *connection)
{
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connection->fd < 0)
        give_up("socket");
    int on = 1;
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(connection->fd, (struct sockaddr *)&server, sizeof server) != 0 && errno != EINPROGRESS)
        give_up("connect");
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = connection};
    epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event);
}

static void rest(struct connection *connection)
{
    connection->busy = false;
    connection->sent = connection->answer_len = 0;
    connection->next_idle = idle;
    idle = connection;
}

/* The request in flight is lost, and counted as such. */
static void redial(struct connection *connection)
{
    close(connection->fd);
    dial(connection);
    if (!connection->busy)
        return;
    failed++;
    rest(connection);
}

static void push(struct connection *connection)
{
    while (connection->busy && connection->sent < connection->request_len) {
        ssize_t n = send(connection->fd, connection->request + connection->sent,
                         connection->request_len - connection->sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN && errno != ENOTCONN && errno != EINPROGRESS)
                redial(connection);
            return;
        }
        connection->sent += (size_t)n;
    }
}

static void start(int64_t due_us)
{
    struct connection *connection = idle;
    idle = connection->next_idle;
    connection->busy = true;
    connection->due_us = due_us;
    put_digits(connection->request + id_at, ID_DIGITS, started);
    put_digits(connection->request + due_at, DUE_DIGITS, 1000000000000000u + (uint64_t)due_us);
    put_digits(connection->request + key_at, KEY_DIGITS, first_lane + started * 7919 % lanes);
    started++;
    push(connection);
}

/* Length of the whole answer in the buffer, 0 when it is not complete. */
static size_t answer_end(struct connection *connection)
{
    connection->answer[connection->answer_len] = '\0';
    char *head_end = strstr(connection->answer, "\r\n\r\n");
    if (!head_end)
        return 0;
    char *length = strcasestr(connection->answer, "\r\ncontent-length:");
    if (!length || length > head_end) {
        fprintf(stderr, "rate_client: an answer without a length:\n%s\n", connection->answer);
        exit(1);
    }
    size_t all = (size_t)(head_end + 4 - connection->answer) + strtoul(length + 17, NULL, 10);
    return connection->answer_len >= all ? all : 0;
}

static void pull(struct connection *connection)
{
    for (;;) {
        ssize_t n = recv(connection->fd, connection->answer + connection->answer_len,
                         ANSWER_MAX - 1 - connection->answer_len, 0);
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return;
        if (n <= 0) {
            redial(connection);
            return;
        }
        connection->answer_len += (size_t)n;
        if (!connection->busy || answer_end(connection) == 0)
            continue;
        if (connection->answer[9] == '2') {
            answered++;
            histogram_add(&latencies, clock_mono_us() - connection->due_us);
        } else {
            refused++;
        }
        rest(connection);
    }
}

static int64_t next_due_us(void)
{
    return begin_us + (int64_t)((double)started * 1e6 / rate);
}

/* Starts what is due. Gives how long nothing will be: -1 until an answer comes. */
static int64_t start_due(int64_t now_us)
{
    if (rate <= 0) {
        while (idle && now_us < end_us)
            start(clock_mono_us());
        return end_us - now_us;
    }
    while (next_due_us() <= now_us && next_due_us() < end_us && idle)
        start(next_due_us());
    return !idle ? -1 : next_due_us() < end_us ? next_due_us() - now_us : end_us - now_us;
}

static bool over(int64_t now_us)
{
    bool owed = rate > 0 && next_due_us() < end_us;
    bool flying = answered + refused + failed < started;
    return now_us >= end_us && ((!owed && !flying) || now_us >= end_us + DRAIN_US);
}

static void run(void)
{
    struct epoll_event events[EVENTS];
    begin_us = clock_mono_us();
    end_us = begin_us + (int64_t)(seconds * 1e6);
    for (int64_t now_us = begin_us; !over(now_us); now_us = clock_mono_us()) {
        int64_t wait_us = start_due(now_us);
        if (wait_us < 0 || now_us >= end_us)
            wait_us = 100000;
        struct timespec timeout = {wait_us / 1000000, wait_us % 1000000 * 1000};
        int n = epoll_pwait2(epoll, events, EVENTS, &timeout, NULL);
        for (int i = 0; i < n; i++) {
            push(events[i].data.ptr);
            pull(events[i].data.ptr);
        }
    }
}

static void usage(void)
{
    fprintf(stderr,
            "usage: bench_rate_client [-c connections] [-r rate] [-s seconds] [-b body bytes] [-l lanes] "
            "[-k first lane] ADDRESS:PORT PATH\n");
    exit(2);
}

static void read_options(int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "c:r:s:b:l:k:")) != -1;) {
        switch (option) {
        case 'c':
            connection_count = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'r':
            rate = strtod(optarg, NULL);
            break;
        case 's':
            seconds = strtod(optarg, NULL);
            break;
        case 'b':
            body_len = strtoul(optarg, NULL, 10);
            break;
        case 'l':
            lanes = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'k':
            first_lane = (unsigned)strtoul(optarg, NULL, 10);
            break;
        default:
            usage();
        }
    }
    if (argc - optind != 2 || connection_count == 0 || lanes == 0 || body_len < BODY_MIN)
        usage();
    address = argv[optind];
    path = argv[optind + 1];
    char host[64];
    unsigned port;
    if (sscanf(address, "%63[^:]:%u", host, &port) != 2 || inet_pton(AF_INET, host, &server.sin_addr) != 1)
        usage();
    server.sin_family = AF_INET;
    server.sin_port = htons((uint16_t)port);
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    prctl(PR_SET_TIMERSLACK, 1);
    epoll = epoll_create1(0);
    connections = mem_zalloc(connection_count * sizeof *connections);
    for (unsigned i = 0; i < connection_count; i++) {
        connections[i].request = make_request(&connections[i].request_len);
        dial(&connections[i]);
        rest(&connections[i]);
    }
    run();

    uint64_t flying = started - answered - refused - failed;
    uint64_t unsent = 0;
    if (rate > 0)
        for (; next_due_us() < end_us; started++)
            unsent++;
    printf("rate %.1f answered %llu refused %llu failed %llu unsent %llu p50_us %lld p99_us %lld p999_us "
           "%lld max_us %lld\n",
           (double)answered * 1e6 / (double)(clock_mono_us() - begin_us), (unsigned long long)answered,
           (unsigned long long)refused, (unsigned long long)(failed + flying), (unsigned long long)unsent,
           (long long)histogram_at(&latencies, 0.5), (long long)histogram_at(&latencies, 0.99),
           (long long)histogram_at(&latencies, 0.999), (long long)latencies.max_us);
    for (unsigned i = 0; i < connection_count; i++) {
        close(connections[i].fd);
        free(connections[i].request);
    }
    free(connections);
    close(epoll);
    return answered == 0 || failed + flying + unsent > 0 ? 1 : 0;
}
