#include "receiver.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/check.h"
#include "util/mem.h"

enum { REQUESTS_MAX = 4096, CONNECTIONS_MAX = 256, HEAD_MAX = 256 << 10 };

struct connection {
    struct receiver *receiver;
    pthread_t thread;
    int fd;
    unsigned index;
};

struct receiver {
    answer_fn answer;
    const char *text;
    SSL_CTX *tls;
    int listener;
    unsigned port;
    bool skip_bodies;
    atomic_bool closing;
    pthread_t acceptor;
    pthread_mutex_t lock;
    struct received requests[REQUESTS_MAX];
    unsigned request_count;
    struct connection connections[CONNECTIONS_MAX];
    unsigned connection_count;
};

static ssize_t take(struct exchange *x, void *at, size_t len)
{
    return x->ssl ? SSL_read(x->ssl, at, (int)len) : recv(x->fd, at, len, 0);
}

bool say(struct exchange *x, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t n = x->ssl ? SSL_write(x->ssl, text, (int)left) : send(x->fd, text, left, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        text += n;
        left -= (size_t)n;
    }
    return true;
}

void hang(struct exchange *x)
{
    char rest[4096];
    while (!x->receiver->closing && recv(x->fd, rest, sizeof rest, 0) > 0)
        ;
}

void wait_for_end(struct exchange *x)
{
    struct pollfd end = {.fd = x->fd, .events = POLLRDHUP};
    while (!x->receiver->closing && poll(&end, 1, 50) == 0)
        ;
}

void read_body(struct exchange *x)
{
    const struct received *request = receiver_request(x->receiver, x->number);
    size_t left = strtoul(received_header(request, "content-length"), NULL, 10) - request->body_len;
    char some[16384];
    while (left > 0) {
        ssize_t n = take(x, some, left < sizeof some ? left : sizeof some);
        if (n <= 0)
            return;
        left -= (size_t)n;
    }
}

void stop_listening(struct exchange *x)
{
    shutdown(x->receiver->listener, SHUT_RDWR);
}

void reset(struct exchange *x)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(x->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/* Reads up to the blank line, then the body by its length. False when there is no (whole) request. */
static bool read_request(struct exchange *x, struct received *request)
{
    char *text = mem_alloc(HEAD_MAX), *blank = NULL;
    size_t len = 0;
    text[0] = 0;
    while (!blank && len < HEAD_MAX - 1) {
        ssize_t n = take(x, text + len, HEAD_MAX - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        text[len] = 0;
        blank = memmem(text, len, "\r\n\r\n", 4);
    }
    if (!blank) {
        free(text);
        return false;
    }
    size_t head_len = (size_t)(blank + 2 - text), have = len - head_len - 2;
    char *head = mem_alloc(head_len + 1), *out = head;
    for (size_t i = 0; i < head_len; i++)
        if (text[i] != '\r')
            *out++ = text[i];
    *out = 0;
    *request = (struct received){.head = head};
    const char *declared = received_header(request, "content-length");
    size_t body_len = declared ? strtoul(declared, NULL, 10) : 0;
    if (x->receiver->skip_bodies && have < body_len)
        body_len = have;
    request->body = mem_alloc(body_len + 1);
    memcpy(request->body, blank + 4, have < body_len ? have : body_len);
    for (request->body_len = have; request->body_len < body_len;) {
        ssize_t n = take(x, request->body + request->body_len, body_len - request->body_len);
        if (n <= 0)
            break;
        request->body_len += (size_t)n;
    }
    free(text);
    if (request->body_len >= body_len)
        return true;
    free(request->head);
    free(request->body);
    return false;
}

static void *serve(void *ctx)
{
    struct connection *c = ctx;
    struct receiver *receiver = c->receiver;
    struct exchange x = {.receiver = receiver, .fd = c->fd};
    bool go_on = true;
    if (receiver->tls) {
        x.ssl = SSL_new(receiver->tls);
        SSL_set_fd(x.ssl, c->fd);
        go_on = SSL_accept(x.ssl) == 1;
    }
    struct received request;
    while (go_on && read_request(&x, &request)) {
        request.connection = c->index;
        pthread_mutex_lock(&receiver->lock);
        CHECK(receiver->request_count < REQUESTS_MAX);
        receiver->requests[receiver->request_count++] = request;
        x.number = receiver->request_count;
        pthread_mutex_unlock(&receiver->lock);
        go_on = receiver->answer(&x, receiver->text);
    }
    if (x.ssl)
        SSL_free(x.ssl);
    /* The lock keeps receiver_close from shutting a number that is somebody else's by now. */
    pthread_mutex_lock(&receiver->lock);
    close(c->fd);
    c->fd = -1;
    pthread_mutex_unlock(&receiver->lock);
    return NULL;
}

static void *accept_all(void *ctx)
{
    struct receiver *receiver = ctx;
    for (;;) {
        int fd = accept(receiver->listener, NULL, NULL);
        if (fd < 0)
            return NULL; /* shut down */
        pthread_mutex_lock(&receiver->lock);
        CHECK(receiver->connection_count < CONNECTIONS_MAX);
        struct connection *c = &receiver->connections[receiver->connection_count++];
        *c = (struct connection){.receiver = receiver, .fd = fd, .index = receiver->connection_count};
        CHECK(pthread_create(&c->thread, NULL, serve, c) == 0);
        pthread_mutex_unlock(&receiver->lock);
    }
}

struct receiver *receiver_open(answer_fn answer, const char *text, SSL_CTX *tls)
{
    struct receiver *receiver = mem_zalloc(sizeof *receiver);
    receiver->answer = answer;
    receiver->text = text;
    receiver->tls = tls;
    pthread_mutex_init(&receiver->lock, NULL);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    receiver->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(receiver->listener, (struct sockaddr *)&at, sizeof at) == 0 &&
          listen(receiver->listener, 256) == 0);
    CHECK(getsockname(receiver->listener, (struct sockaddr *)&at, &len) == 0);
    receiver->port = ntohs(at.sin_port);
    CHECK(pthread_create(&receiver->acceptor, NULL, accept_all, receiver) == 0);
    return receiver;
}

void receiver_close(struct receiver *receiver)
{
    receiver->closing = true;
    shutdown(receiver->listener, SHUT_RDWR);
    pthread_join(receiver->acceptor, NULL);
    close(receiver->listener);
    pthread_mutex_lock(&receiver->lock);
    for (unsigned i = 0; i < receiver->connection_count; i++)
        if (receiver->connections[i].fd >= 0)
            shutdown(receiver->connections[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&receiver->lock);
    for (unsigned i = 0; i < receiver->connection_count; i++)
        pthread_join(receiver->connections[i].thread, NULL);
    for (unsigned i = 0; i < receiver->request_count; i++) {
        free(receiver->requests[i].head);
        free(receiver->requests[i].body);
    }
    pthread_mutex_destroy(&receiver->lock);
    free(receiver);
}

unsigned receiver_port(const struct receiver *receiver)
{
    return receiver->port;
}

unsigned receiver_connections(struct receiver *receiver)
{
    pthread_mutex_lock(&receiver->lock);
    unsigned n = receiver->connection_count;
    pthread_mutex_unlock(&receiver->lock);
    return n;
}

unsigned receiver_requests(struct receiver *receiver)
{
    pthread_mutex_lock(&receiver->lock);
    unsigned n = receiver->request_count;
    pthread_mutex_unlock(&receiver->lock);
    return n;
}

const struct received *receiver_request(struct receiver *receiver, unsigned n)
{
    CHECK(n >= 1 && n <= receiver_requests(receiver));
    return &receiver->requests[n - 1];
}

void receiver_skip_bodies(struct receiver *receiver)
{
    receiver->skip_bodies = true;
}

const char *received_header(const struct received *request, const char *name)
{
    static __thread char value[8192];
    size_t name_len = strlen(name), len = 0;
    bool any = false;
    const char *line = strchr(request->head, '\n');
    while (line && *++line) {
        const char *end = strchr(line, '\n');
        if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':') {
            const char *at = line + name_len + 1;
            while (*at == ' ')
                at++;
            CHECK(len + (size_t)(end - at) + 2 < sizeof value);
            if (any)
                value[len++] = '|';
            memcpy(value + len, at, (size_t)(end - at));
            len += (size_t)(end - at);
            any = true;
        }
        line = end;
    }
    value[len] = 0;
    return any ? value : NULL;
}
