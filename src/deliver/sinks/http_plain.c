/* HTTP/1.1 to a plain receiver: one request and one answer at a time on a kept connection, without libcurl
 * between. A kept connection that breaks soon and before anything of an answer may have been dead before we
 * used it: then the request is sent once more on a new one (RFC 9112, section 9.3.1; receivers know repeats
 * by their idempotency key). */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "deliver/sinks/http_priv.h"
#include "util/clock.h"

enum {
    READ_BYTES = 16 << 10,
    QUIET_US = 200,
    RESEND_US = 1000000, /* later, the receiver has worked on the request, or tried to: that is a failure to
                            be told */
};

static struct pool *own_pool(struct transfer *transfer)
{
    struct pool **pool = &transfer->sink->pools[transfer->loop];
    if (!*pool)
        *pool = pools_find(transfer_loop(transfer), transfer->sink->authority);
    return *pool;
}

static size_t request_bytes(const struct transfer *transfer)
{
    return transfer->head.len + transfer->attempt->envelope->body.len;
}

static bool is_sent(const struct transfer *transfer)
{
    return transfer->sent == request_bytes(transfer);
}

/* Lets the connection go, for reuse or for good, and ends the attempt. */
static void finish(struct transfer *transfer, CURLcode code, bool keep)
{
    struct http_end end = {
        .code = code,
        .phase = is_sent(transfer) ? PHASE_ANSWER : PHASE_SEND,
        .status = transfer->answer.status,
        .unsent = code != CURLE_OK && !transfer->sent_any,
    };
    list_remove(&transfer->task.node);
    if (keep)
        connection_keep(transfer->connection);
    else
        connection_close(transfer->connection);
    transfer->connection = NULL;
    transfer_finish(transfer, &end);
}

static void on_due(struct loop_task *task, bool timed_out)
{
    struct transfer *transfer = LIST_OWNER(task, struct transfer, task);
    finish(transfer, timed_out ? CURLE_OPERATION_TIMEDOUT : CURLE_ABORTED_BY_CALLBACK, false);
}

static void dial(struct transfer *transfer)
{
    int64_t gone_ms = (clock_mono_us() - transfer->started_us) / 1000;
    int64_t left_ms = transfer->timeout_ms - gone_ms;
    transfer->is_new = true;
    http_library_dial(transfer, left_ms > 0 ? left_ms : 1);
}

/* The peer hung up, in an orderly way or not, or said something before it was asked. */
static void on_broken(struct transfer *transfer, bool orderly)
{
    bool nothing_came = transfer->seen.received == 0;
    if (nothing_came && !transfer->is_new && clock_mono_us() - transfer->started_us < RESEND_US) {
        list_remove(&transfer->task.node);
        connection_close(transfer->connection);
        transfer->connection = NULL;
        dial(transfer);
    } else if (orderly && !nothing_came && answer_end(&transfer->answer) == ANSWER_COMPLETE) {
        finish(transfer, CURLE_OK, false);
    } else {
        finish(transfer, nothing_came ? CURLE_GOT_NOTHING : CURLE_PARTIAL_FILE, false);
    }
}

/* An answer may be complete before the request is. One that says no, or that it is the last on this
 * connection, ends the sending; with any other the receiver is still reading, and is given the rest. */
static void on_complete(struct transfer *transfer)
{
    if (is_sent(transfer)) {
        finish(transfer, CURLE_OK, transfer->answer.keeps);
    } else if (transfer->answer.status >= 300 || !transfer->answer.keeps) {
        finish(transfer, CURLE_OK, false);
    } else {
        transfer->answered = true;
        loop_watch(transfer_loop(transfer), &transfer->connection->socket, EPOLLOUT);
    }
}

static void on_bytes(struct transfer *transfer, struct bytes bytes)
{
    switch (answer_take(&transfer->answer, &transfer->seen, bytes)) {
    case ANSWER_GOES_ON:
        break;
    case ANSWER_COMPLETE:
        on_complete(transfer);
        break;
    case ANSWER_CUT:
        finish(transfer, CURLE_OK, false); /* we hang up, having read enough */
        break;
    case ANSWER_HEAD_LARGE:
        transfer->seen.head_too_large = true;
        finish(transfer, CURLE_WRITE_ERROR, false);
        break;
    case ANSWER_NOT_HTTP:
        finish(transfer, CURLE_WEIRD_SERVER_REPLY, false);
        break;
    }
}

/* What is there of the answer, at most one buffer full: more is told by the next round. */
static void take_answer(struct transfer *transfer)
{
    char buffer[READ_BYTES];
    ssize_t n = recv(transfer->connection->socket.fd, buffer, sizeof buffer, 0);
    if (n > 0 && transfer->sent > 0)
        on_bytes(transfer, bytes_of(buffer, (size_t)n));
    else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
        on_broken(transfer, n == 0);
}

static void send_rest(struct transfer *transfer)
{
    struct bytes head = transfer->head, body = transfer->attempt->envelope->body;
    struct connection *connection = transfer->connection;
    size_t of_head = transfer->sent < head.len ? transfer->sent : head.len,
           of_body = transfer->sent - of_head;
    struct iovec parts[2] = {
        {(char *)(uintptr_t)head.at + of_head, head.len - of_head},
        {(char *)(uintptr_t)body.at + of_body, body.len - of_body},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = body.len ? 2 : 1};
    ssize_t n = sendmsg(connection->socket.fd, &message, MSG_NOSIGNAL);
    bool broken = n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS;
    if (n > 0) {
        transfer->sent += (size_t)n;
        transfer->sent_any = true;
    }
    if (transfer->answered && broken)
        finish(transfer, CURLE_SEND_ERROR, false);
    else if (transfer->answered && is_sent(transfer))
        finish(transfer, CURLE_OK, transfer->answer.keeps);
    else if (broken || is_sent(transfer)) /* a broken one may have said why */
        loop_watch(transfer_loop(transfer), &connection->socket, EPOLLIN);
    else
        loop_watch(transfer_loop(transfer), &connection->socket,
                   transfer->answered ? EPOLLOUT : EPOLLIN | EPOLLOUT);
}

static void on_ready(struct loop_socket *socket, uint32_t events)
{
    struct transfer *transfer = ((struct connection *)socket)->user;
    if (!transfer->answered && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        take_answer(transfer);
    else
        send_rest(transfer);
}

static void use(struct transfer *transfer, struct connection *connection)
{
    transfer->connection = connection;
    connection->user = transfer;
    connection->socket.ready = on_ready;
    transfer->sent = 0;
    transfer->answered = false;
    answer_begin(&transfer->answer);
    transfer->task.due_us = transfer->started_us + transfer->timeout_ms * 1000;
    transfer->task.end = on_due;
    loop_begin(transfer_loop(transfer), &transfer->task);
    send_rest(transfer);
}

/* The warmest of those on which nothing has come since: what is there already would be taken for the answer,
 * of a receiver that answers twice, or that says 408 before it hangs up. One whose answer was read just now
 * needs no look. */
static struct connection *take_quiet(struct pool *pool, int64_t now_us)
{
    struct connection *connection;
    while ((connection = connection_take(pool))) {
        char byte;
        if (now_us - connection->kept_us < QUIET_US)
            return connection;
        if (recv(connection->socket.fd, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN)
            return connection;
        connection_close(connection);
    }
    return NULL;
}

void http_plain_start(struct transfer *transfer)
{
    struct connection *connection = take_quiet(own_pool(transfer), transfer->started_us);
    transfer->head = http_request_head(&transfer->request, &transfer->sink->shape, transfer->attempt,
                                       clock_unix_ms() / 1000);
    transfer->sent_any = transfer->is_new = false;
    transfer->answer.status = 0;
    if (!connection) {
        dial(transfer);
    } else if (transfer_may_reach(transfer, &connection->address)) {
        transfer->seen.address = connection->address;
        transfer->seen.port = connection->port;
        use(transfer, connection);
    } else {
        connection_close(connection);
        transfer_finish(transfer, &(struct http_end){.code = CURLE_ABORTED_BY_CALLBACK, .unsent = true});
    }
}

void http_plain_opened(struct transfer *transfer, int fd, const struct http_end *end)
{
    if (fd < 0) {
        struct http_end failed = *end;
        failed.unsent = !transfer->sent_any;
        transfer_finish(transfer, &failed);
        return;
    }
    /* Not `seen`: of several addresses the one tried last need not be the one that answered. */
    struct sockaddr_storage peer;
    struct ip address = transfer->seen.address;
    socklen_t len = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0)
        ip_of_socket((struct sockaddr *)&peer, &address);
    use(transfer, connection_new(own_pool(transfer), fd, &address, transfer->seen.port));
}
