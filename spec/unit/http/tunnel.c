#include "tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/check.h"
#include "util/vec.h"

struct tunnel {
    int net, plain;
    SSL *ssl;
    bool no_more, ended; /* the plain side has said so; the other side has */
};

static VEC(pthread_t) threads;

static void wait_for(int fd, short events)
{
    struct pollfd at = {.fd = fd, .events = events};
    poll(&at, 1, -1);
}

static bool encrypt(struct tunnel *tunnel, const char *at, size_t len)
{
    while (len > 0) {
        int n = SSL_write(tunnel->ssl, at, (int)len);
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (SSL_get_error(tunnel->ssl, n) == SSL_ERROR_WANT_WRITE) {
            wait_for(tunnel->net, POLLOUT);
        } else {
            return false;
        }
    }
    return true;
}

static bool outwards(struct tunnel *tunnel)
{
    char chunk[16 * 1024];
    ssize_t n = read(tunnel->plain, chunk, sizeof chunk);
    if (n > 0)
        return encrypt(tunnel, chunk, (size_t)n);
    tunnel->no_more = true;
    return SSL_shutdown(tunnel->ssl) >= 0;
}

static bool write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            at += n, len -= (size_t)n;
    }
    return true;
}

/* The plain side may go on sending after the other one has ended. */
static bool inwards(struct tunnel *tunnel)
{
    char chunk[16 * 1024];
    for (;;) {
        int n = SSL_read(tunnel->ssl, chunk, sizeof chunk);
        int why = SSL_get_error(tunnel->ssl, n);
        if (n > 0 && !write_all(tunnel->plain, chunk, (size_t)n))
            return false;
        if (n > 0)
            continue;
        if (why == SSL_ERROR_WANT_READ)
            return true;
        tunnel->ended = true;
        shutdown(tunnel->plain, SHUT_WR);
        return why == SSL_ERROR_ZERO_RETURN && !tunnel->no_more;
    }
}

static bool shake(struct tunnel *tunnel)
{
    for (;;) {
        int done = SSL_connect(tunnel->ssl), why = SSL_get_error(tunnel->ssl, done);
        if (done == 1)
            return true;
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
            return false;
        wait_for(tunnel->net, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT);
    }
}

static void *run(void *arg)
{
    struct tunnel *tunnel = arg;
    sigset_t pipe_signal; /* OpenSSL writes without MSG_NOSIGNAL */
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL);
    bool open = shake(tunnel);
    while (open) {
        struct pollfd ends[2] = {{.fd = tunnel->ended ? -1 : tunnel->net, .events = POLLIN},
                                 {.fd = tunnel->no_more ? -1 : tunnel->plain, .events = POLLIN}};
        poll(ends, 2, -1);
        if (ends[1].revents)
            open = outwards(tunnel) && !(tunnel->ended && tunnel->no_more);
        if (open && ends[0].revents)
            open = inwards(tunnel);
    }
    close(tunnel->plain);
    close(tunnel->net);
    SSL_free(tunnel->ssl);
    free(tunnel);
    return NULL;
}

int tunnel_through(int net_fd)
{
    struct tunnel *tunnel = calloc(1, sizeof *tunnel);
    int ends[2];
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    CHECK(tunnel && ctx && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    CHECK(fcntl(net_fd, F_SETFL, O_NONBLOCK) == 0);
    *tunnel = (struct tunnel){.net = net_fd, .plain = ends[1], .ssl = SSL_new(ctx)};
    CHECK(tunnel->ssl && SSL_set_fd(tunnel->ssl, net_fd) == 1);
    SSL_CTX_free(ctx);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, tunnel) == 0);
    VEC_PUSH(&threads, thread);
    return ends[0];
}

void tunnel_join_all(void)
{
    for (size_t i = 0; i < threads.len; i++)
        CHECK(pthread_join(threads.at[i], NULL) == 0);
    VEC_FREE(&threads);
}
