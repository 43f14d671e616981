/* Addresses: "127.0.0.1:4000", "[::1]:0", "localhost:4000" become one listening socket each. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_priv.h"
#include "util/mem.h"

/* What the kernel holds for one connection before we read, inherited by all of them. Left to itself it grows
 * to megabytes, and one turn of a loop reads all that waits on all sockets, before any sweep can look. Enough
 * for 25 MiB in a body's time at 200 ms of round trip. */
#define RECEIVE_BYTES (256 * 1024)

struct endpoint {
    char host[256];
    char port[8];
};

static bool split(const char *text, struct endpoint *out)
{
    const char *colon = strrchr(text, ':');
    const char *host = text, *end = colon;
    if (!colon || strlen(colon + 1) == 0 || strlen(colon + 1) > 5 ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    if (text[0] == '[') {
        host = text + 1;
        end = colon - 1;
        if (end < host || *end != ']')
            return false;
    }
    size_t len = (size_t)(end - host);
    if (len == 0 || len >= sizeof out->host || (text[0] != '[' && memchr(host, ':', len)))
        return false;
    memcpy(out->host, host, len);
    out->host[len] = 0;
    memcpy(out->port, colon + 1, strlen(colon + 1) + 1);
    return strtoul(out->port, NULL, 10) <= 65535;
}

/* "[::]:4000" takes IPv4 too, unless an IPv4 address is listed beside it and would collide. */
static bool lists_v4(const struct http_options *options)
{
    for (size_t i = 0; i < options->listen_count; i++)
        if (options->listen[i][0] != '[')
            return true;
    return false;
}

static int open_socket(const struct addrinfo *info, bool six_only)
{
    int on = 1, v6only = six_only, receive = RECEIVE_BYTES;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
               sizeof on); /* never SO_REUSEPORT: it hides a second process */
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof receive);
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static char *real_address(int fd, const struct endpoint *endpoint)
{
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return NULL;
    unsigned port = at.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&at)->sin6_port)
                                             : ntohs(((struct sockaddr_in *)&at)->sin_port);
    return mem_format(strchr(endpoint->host, ':') ? "[%s]:%u" : "%s:%u", endpoint->host, port);
}

static const char *what_to_do(int why)
{
    switch (why) {
    case EADDRINUSE:
        return "another process listens there; stop it or choose another port";
    case EACCES:
        return "ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one";
    case EADDRNOTAVAIL:
        return "this machine has no such address";
    default:
        return strerror(why);
    }
}

static enum status listen_one(struct http_server *server, size_t i, struct error *err)
{
    const char *text = server->options.listen[i];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *info = NULL;
    struct endpoint endpoint;

    if (!split(text, &endpoint))
        return error_set(err, STATUS_INVALID,
                         "listen %s: must be ADDRESS:PORT, as 0.0.0.0:4000 or [::1]:4000", text);
    int failed = getaddrinfo(endpoint.host, endpoint.port, &hints, &info);
    if (failed)
        return error_set(err, STATUS_INVALID, "listen %s: %s", text, gai_strerror(failed));
    int fd = open_socket(info, lists_v4(&server->options));
    int why = errno;
    freeaddrinfo(info);
    if (fd < 0)
        return error_set(err, why == EADDRINUSE ? STATUS_BUSY : STATUS_IO, "listen %s: %s", text,
                         what_to_do(why));
    server->listen_fds[i] = fd;
    server->addresses[i] = real_address(fd, &endpoint);
    return STATUS_OK;
}

enum status http_listen_all(struct http_server *server, struct error *err)
{
    for (size_t i = 0; i < server->options.listen_count; i++) {
        enum status status = listen_one(server, i, err);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}
