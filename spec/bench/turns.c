/* Both ends of the bench of turns (keys.lua).
 *
 *     bench_turns receive MOST_US        a receiver that takes 0 to MOST_US for each hook, drawn from a fixed
 * seed bench_turns ask PORT KEYS HOOKS    a client that only waits its turn: a thread and a connection a key,
 * the next request when the answer is there. Nobody can be faster in order
 *
 * The receiver is one thread, so that its service time, from the whole request read to the answer written,
 * leaves out nothing of what it does. It prints its port, and on SIGTERM what it saw, in microseconds:
 *
 *     hooks N took_us N longest_us N (the longest key's sum) total_us N (all keys') */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "random.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

enum { REQUEST_MAX = 16 << 10, EVENTS = 256, KEYS_MAX = 4096, BACKLOG = 4096 };

static const char key_header[] = "x-lanegate-ordering-key: k";

static int connection_ready(int fd)
{
    int on = 1;
    CHECK(fd >= 0 && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    return fd;
}

/* ---- receive ---- */

struct connection {
    int fd;
    size_t len;
    char data[REQUEST_MAX];
    int64_t began_us, due_us;
    unsigned key;
    struct connection *later; /* the next one due */
};

static struct connection *waiting; /* the earliest first */
static int64_t sums_us[KEYS_MAX], first_us, last_us;
static long hooks;
static volatile sig_atomic_t over;

static void end(int signal_number)
{
    (void)signal_number;
    over = 1;
}

static void report(void)
{
    int64_t longest_us = 0, total_us = 0;
    for (int i = 0; i < KEYS_MAX; i++) {
        longest_us = sums_us[i] > longest_us ? sums_us[i] : longest_us;
        total_us += sums_us[i];
    }
    printf("hooks %ld took_us %lld longest_us %lld total_us %lld\n", hooks, (long long)(last_us - first_us),
           (long long)longest_us, (long long)total_us);
}

static void answer_due(void)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    while (waiting && waiting->due_us <= clock_mono_us()) {
        struct connection *connection = waiting;
        waiting = connection->later;
        CHECK(send(connection->fd, ok, sizeof ok - 1, MSG_NOSIGNAL) == sizeof ok - 1);
        last_us = clock_mono_us();
        sums_us[connection->key] += last_us - connection->began_us;
        hooks++;
    }
}

static void put_off(struct connection *connection, int64_t us)
{
    connection->due_us = connection->began_us + us;
    struct connection **at = &waiting;
    while (*at && (*at)->due_us <= connection->due_us)
        at = &(*at)->later;
    connection->later = *at;
    *at = connection;
}

/* False when the peer is gone. */
static bool take(struct connection *connection, struct random *dice, int64_t most_us)
{
    ssize_t n =
        recv(connection->fd, connection->data + connection->len, REQUEST_MAX - 1 - connection->len, 0);
    if (n <= 0)
        return false;
    connection->len += (size_t)n;
    connection->data[connection->len] = 0;
    const char *body = strstr(connection->data, "\r\n\r\n");
    const char *length = strcasestr(connection->data, "content-length:");
    if (!body || !length || strlen(body + 4) < strtoul(length + 15, NULL, 10))
        return true;
    const char *key = strcasestr(connection->data, key_header);
    connection->key = key ? (unsigned)strtoul(key + sizeof key_header - 1, NULL, 10) % KEYS_MAX : 0;
    connection->len = 0;
    connection->began_us = clock_mono_us();
    if (!first_us)
        first_us = connection->began_us;
    put_off(connection, (int64_t)random_below(dice, (size_t)most_us + 1));
    return true;
}

static void receive(int64_t most_us)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    struct random dice = {.state = 1};
    int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, BACKLOG) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
    struct epoll_event event = {.events = EPOLLIN}, events[EVENTS];
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0);
    signal(SIGTERM, end);
    prctl(PR_SET_TIMERSLACK, 1UL);
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    while (!over) {
        int64_t wait_us = waiting ? waiting->due_us - clock_mono_us() : 100000;
        struct timespec wait = {.tv_nsec = wait_us > 0 ? wait_us * 1000 : 0};
        int n = epoll_pwait2(epoll, events, EVENTS, &wait, NULL);
        for (int i = 0; i < n; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!connection) {
                connection = mem_zalloc(sizeof *connection);
                connection->fd = connection_ready(accept(listener, NULL, NULL));
                event.data.ptr = connection;
                CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event) == 0);
            } else if (!take(connection, &dice, most_us)) {
                close(connection->fd);
                free(connection);
            }
        }
        answer_due();
    }
    report();
}

/* ---- ask ---- */

struct asker {
    pthread_t thread;
    unsigned key, hooks, port;
};

/* An answer of the receiver above comes in one piece. */
static void *ask(void *ctx)
{
    struct asker *asker = ctx;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)asker->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = connection_ready(socket(AF_INET, SOCK_STREAM, 0));
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    char text[256], answer[256];
    int len = snprintf(text, sizeof text, "POST / HTTP/1.1\r\nhost: a\r\n%s%u\r\ncontent-length: 2\r\n\r\n{}",
                       key_header, asker->key);
    for (unsigned i = 0; i < asker->hooks; i++) {
        CHECK(send(fd, text, (size_t)len, MSG_NOSIGNAL) == len);
        CHECK(recv(fd, answer, sizeof answer, 0) > 0);
    }
    close(fd);
    return NULL;
}

static void ask_all(unsigned port, unsigned keys, unsigned count)
{
    struct asker *askers = mem_zalloc(keys * sizeof *askers);
    for (unsigned i = 0; i < keys; i++) {
        askers[i] = (struct asker){.key = i, .hooks = count / keys, .port = port};
        CHECK(pthread_create(&askers[i].thread, NULL, ask, &askers[i]) == 0);
    }
    for (unsigned i = 0; i < keys; i++)
        pthread_join(askers[i].thread, NULL);
    free(askers);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "receive") == 0) {
        int64_t most_us = strtoll(argv[2], NULL, 10);
        CHECK(most_us >= 0 && most_us < 1000000);
        receive(most_us);
    } else if (argc == 5 && strcmp(argv[1], "ask") == 0 && atoi(argv[3]) > 0) {
        ask_all((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
    } else {
        fputs("usage: bench_turns receive MOST_US | ask PORT KEYS HOOKS\n", stderr);
        return 2;
    }
    return 0;
}
