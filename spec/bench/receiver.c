/* The cheapest receiver that still reads its requests: it answers 200 at once and counts how long each hook
 * of bench_rate_client took from when it was due until it was here. One thread.
 *
 *     bench_receiver [-l ADDRESS:PORT=127.0.0.1:0] [-f KEY]
 *
 * Prints its address. -f: hooks whose "customer" is KEY are answered 503 instead, and not counted. GET /stats
 * gives "count N p50_us N p99_us N p999_us N max_us N", GET /reset begins anew. Ends on a signal. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "histogram.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/mem.h"

enum { REQUEST_MAX = 256 << 10, EVENTS = 256, BACKLOG = 4096 };

struct connection {
    int fd;
    size_t len;
    char data[REQUEST_MAX];
};

static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
static const char sick[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
static struct histogram lags;
static char failing[64]; /* as it stands in a body */

static bool say(struct connection *connection, const char *text, size_t len)
{
    return send(connection->fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static bool answer_get(struct connection *connection)
{
    if (strncmp(connection->data, "GET /reset ", 11) == 0)
        memset(&lags, 0, sizeof lags);
    char body[256], text[512];
    int len = snprintf(body, sizeof body, "count %llu p50_us %lld p99_us %lld p999_us %lld max_us %lld\n",
                       (unsigned long long)lags.count, (long long)histogram_at(&lags, 0.5),
                       (long long)histogram_at(&lags, 0.99), (long long)histogram_at(&lags, 0.999),
                       (long long)lags.max_us);
    len = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len, body);
    return say(connection, text, (size_t)len);
}

static bool answer_post(struct connection *connection, const char *body, size_t len)
{
    if (failing[0] && memmem(body, len, failing, strlen(failing)))
        return say(connection, sick, sizeof sick - 1);
    static const char mark[] = "\"sent_us\":1"; /* its first digit is there for the width */
    const char *sent = memmem(body, len, mark, sizeof mark - 1);
    histogram_add(&lags, sent ? clock_mono_us() - strtoll(sent + sizeof mark - 1, NULL, 10) : 0);
    return say(connection, ok, sizeof ok - 1);
}

/* Answers every complete request at the front of the buffer; false: close. */
static bool answer_all(struct connection *connection)
{
    for (;;) {
        connection->data[connection->len] = '\0';
        char *head_end = strstr(connection->data, "\r\n\r\n");
        if (!head_end)
            return connection->len < REQUEST_MAX - 1;
        *head_end = '\0';
        char *length = strcasestr(connection->data, "\r\ncontent-length:");
        size_t body_len = length ? strtoul(length + 17, NULL, 10) : 0;
        bool get = strncmp(connection->data, "GET ", 4) == 0;
        *head_end = '\r';
        size_t head_len = (size_t)(head_end + 4 - connection->data);
        if (body_len > REQUEST_MAX - 1 - head_len)
            return false;
        if (connection->len < head_len + body_len)
            return true;
        if (!(get ? answer_get(connection) : answer_post(connection, connection->data + head_len, body_len)))
            return false;
        connection->len -= head_len + body_len;
        memmove(connection->data, connection->data + head_len + body_len, connection->len);
    }
}

static bool read_more(struct connection *connection)
{
    ssize_t n =
        recv(connection->fd, connection->data + connection->len, REQUEST_MAX - 1 - connection->len, 0);
    if (n <= 0)
        return false;
    connection->len += (size_t)n;
    return answer_all(connection);
}

static int listen_at(const char *address)
{
    char host[64];
    unsigned port;
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    if (sscanf(address, "%63[^:]:%u", host, &port) != 2 || inet_pton(AF_INET, host, &at.sin_addr) != 1) {
        fprintf(stderr, "receiver: not an address: %s\n", address);
        exit(2);
    }
    at.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, BACKLOG) != 0) {
        perror("receiver: listen");
        exit(1);
    }
    getsockname(fd, (struct sockaddr *)&at, &len);
    printf("%s:%u\n", host, ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    const char *address = "127.0.0.1:0";
    for (int option; (option = getopt(argc, argv, "l:f:")) != -1;) {
        if (option == 'l')
            address = optarg;
        else if (option == 'f')
            snprintf(failing, sizeof failing, "\"customer\":\"%s\"", optarg);
        else
            return 2;
    }
    int listener = listen_at(address), epoll = epoll_create1(0), on = 1;
    struct epoll_event event = {.events = EPOLLIN}, events[EVENTS];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int n = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            struct connection *connection = events[i].data.ptr;
            if (connection) {
                if (!read_more(connection)) {
                    close(connection->fd);
                    free(connection);
                }
                continue;
            }
            int fd = accept(listener, NULL, NULL);
            if (fd < 0)
                continue;
            connection = mem_alloc(sizeof *connection); /* its pages come as they are needed */
            connection->fd = fd;
            connection->len = 0;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            event.data.ptr = connection;
            CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
        }
    }
}
