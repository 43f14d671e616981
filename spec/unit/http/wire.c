#include "wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/clock.h"

int (*wire_through)(int fd);

int wire_connect(const struct http_server *server)
{
    const char *colon = strrchr(http_address(server, 0), ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(colon + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return wire_through ? wire_through(fd) : fd;
}

bool wire_try_send(int fd, struct bytes text)
{
    while (text.len > 0) {
        ssize_t n = send(fd, text.at, text.len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            text = bytes_of(text.at + n, text.len - (size_t)n);
    }
    return true;
}

void wire_send(int fd, struct bytes text)
{
    assert_true(wire_try_send(fd, text));
}

void wire_no_more(int fd)
{
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
}

/* Bytes read, 0 at the end (a reset is one too), fails the test at the deadline. */
static size_t read_some(int fd, char *to, size_t room, int64_t until_ms)
{
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int64_t left_ms = until_ms - clock_mono_ms();
        assert_true(left_ms > 0);
        if (poll(&wait, 1, (int)left_ms) <= 0)
            continue;
        ssize_t n = read(fd, to, room);
        if (n >= 0)
            return (size_t)n;
        if (errno != EINTR && errno != EAGAIN)
            return 0;
    }
}

static bool head_is_whole(const struct buf *head)
{
    return head->len >= 4 && memcmp(head->at + head->len - 4, "\r\n\r\n", 4) == 0;
}

struct bytes wire_header(const struct wire_reply *reply, const char *name)
{
    const char *line = reply->head.at;
    size_t len = strlen(name);
    while (line && (line = strstr(line, "\r\n"))) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':')
            return bytes_trim(bytes_of(line + len + 1, (size_t)(strstr(line, "\r\n") - line) - len - 1));
    }
    return BYTES_NONE;
}

void wire_read(int fd, struct wire_reply *reply, bool without_body)
{
    int64_t until_ms = clock_mono_ms() + WIRE_PATIENCE_MS;
    *reply = (struct wire_reply){0};
    while (!head_is_whole(&reply->head)) {
        char c; /* one by one, so that nothing of the next answer is taken */
        if (read_some(fd, &c, 1, until_ms) == 0) {
            assert_int_equal(reply->head.len, 0); /* half an answer is never right */
            return;
        }
        buf_putc(&reply->head, c);
    }
    assert_int_equal(strncmp(reply->head.at, "HTTP/1.1 ", 9), 0);
    reply->status = atoi(reply->head.at + 9);
    reply->closes = bytes_eq_nocase(wire_header(reply, "connection"), BYTES("close"));
    struct bytes length = wire_header(reply, "content-length");
    size_t left = length.at && !without_body ? (size_t)atoll(length.at) : 0;
    while (left > 0) {
        char chunk[4096];
        size_t n = read_some(fd, chunk, left < sizeof chunk ? left : sizeof chunk, until_ms);
        assert_true(n > 0);
        buf_put(&reply->body, chunk, n);
        left -= n;
    }
}

void wire_reply_free(struct wire_reply *reply)
{
    buf_free(&reply->head);
    buf_free(&reply->body);
}

bool wire_ends(int fd)
{
    char rest[64];
    return read_some(fd, rest, sizeof rest, clock_mono_ms() + WIRE_PATIENCE_MS) == 0;
}

bool wire_has_ended(int fd)
{
    char c;
    ssize_t n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}
