/* What libcurl does for the sink: whole attempts over TLS and through proxies, and opening the connections of
 * the plain way. Easy handles are kept with their options set, so that an attempt sets only what differs:
 * body, headers, timeout. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deliver/sinks/http_priv.h"
#include "util/check.h"
#include "util/clock.h"

enum {
    CONNECT_TIMEOUT_MS = 10000, /* at most; the total one may be shorter */
    IDLE_CONNECTION_S = 60,     /* many firewalls forget a connection after that */
    NAME_CACHE_S = 5,           /* a receiver that moves, or a name that is mended, is found soon */
    CA_CACHE_S = 300,           /* how long a changed CA file may go unnoticed */
    READ_BUFFER_BYTES = 8192,   /* answers are short */
};

/* -- what is asked of libcurl's handle once a transfer is over */

static curl_off_t info(CURL *easy, CURLINFO what)
{
    curl_off_t n = 0;
    curl_easy_getinfo(easy, what, &n);
    return n;
}

static long info_long(CURL *easy, CURLINFO what)
{
    long n = 0;
    curl_easy_getinfo(easy, what, &n);
    return n;
}

/* What libcurl has no time of has not happened. */
static enum http_phase phase_of(CURL *easy, const struct http_seen *seen)
{
    if (info(easy, CURLINFO_PRETRANSFER_TIME_T) > 0) {
        curl_off_t to_send = info(easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T);
        bool sent =
            info_long(easy, CURLINFO_REQUEST_SIZE) > 0 && info(easy, CURLINFO_SIZE_UPLOAD_T) >= to_send;
        return sent ? PHASE_ANSWER : PHASE_SEND;
    }
    const char *connected_to = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIMARY_IP, &connected_to);
    if (connected_to && *connected_to)
        return PHASE_TLS; /* its connect time counts only behind the handshake */
    return seen->dialled ? PHASE_CONNECT : PHASE_NAME;
}

static struct http_end end_of(CURL *easy, CURLcode code, const struct http_seen *seen)
{
    struct http_end end = {
        .code = code == CURLE_WRITE_ERROR && seen->cut ? CURLE_OK : code, /* we hung up, having read enough */
        .phase = phase_of(easy, seen),
        .status = (int)info_long(easy, CURLINFO_RESPONSE_CODE),
        .connect_errno = (int)info_long(easy, CURLINFO_OS_ERRNO),
        .proxy_status = info_long(easy, CURLINFO_HTTP_CONNECTCODE),
        .verify_result = info_long(easy, CURLINFO_SSL_VERIFYRESULT),
    };
    /* The second part: libcurl sends again by itself when a kept connection turns out to be dead. */
    end.unsent =
        end.code != CURLE_OK && end.phase < PHASE_SEND && info_long(easy, CURLINFO_REQUEST_SIZE) == 0;
    return end;
}

/* Before each request, on a kept connection too: the rules may have changed since it was made. */
static int before_request(void *ctx, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
    (void)own_ip, (void)peer_port, (void)own_port;
    struct ip one;
    if (ip_parse(bytes_str(peer_ip), &one) && transfer_may_reach(ctx, &one))
        return CURL_PREREQFUNC_OK;
    return CURL_PREREQFUNC_ABORT;
}

/* The address to connect to, before the first packet. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct transfer *transfer = ctx;
    struct http_seen *seen = &transfer->seen;
    struct ip ip;
    if (!ip_of_socket(&address->addr, &ip) || !transfer_may_reach(transfer, &ip))
        return CURL_SOCKET_BAD;
    seen->address = ip;
    seen->port =
        ntohs(address->family == AF_INET ? ((struct sockaddr_in *)(void *)&address->addr)->sin_port
                                         : ((struct sockaddr_in6 *)(void *)&address->addr)->sin6_port);
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0) {
        seen->socket_errno = errno;
        return CURL_SOCKET_BAD;
    }
    seen->dialled = true;
    loop_opened(transfer_loop(transfer), fd);
    return fd;
}

static int close_socket(void *ctx, curl_socket_t fd)
{
    loop_leaves(ctx, fd);
    return close(fd);
}

/* One line of a head; an interim answer (1xx) has a head of its own, and a proxy's is not shown. */
static size_t on_header(char *at, size_t one, size_t len, void *ctx)
{
    (void)one;
    struct http_seen *seen = ctx;
    struct bytes line = bytes_of(at, len), name = BYTES("retry-after:");
    seen->received += len;
    if (seen->received > HTTP_RESPONSE_MAX) {
        seen->head_too_large = true;
        return 0;
    }
    if (bytes_starts_nocase(line, BYTES("HTTP/"))) {
        seen->has_retry_after = false;
    } else if (bytes_starts_nocase(line, name)) {
        while (line.len && (line.at[line.len - 1] == '\n' || line.at[line.len - 1] == '\r'))
            line.len--;
        struct bytes value = bytes_trim(bytes_of(line.at + name.len, line.len - name.len));
        seen->has_retry_after = http_retry_after_parse(value, clock_unix_ms(), &seen->retry_after_ms);
    }
    return len;
}

static size_t on_body(char *at, size_t one, size_t len, void *ctx)
{
    (void)one;
    struct http_seen *seen = ctx;
    size_t room = sizeof seen->response - seen->response_len;
    size_t kept = len < room ? len : room;
    memcpy(seen->response + seen->response_len, at, kept);
    seen->response_len += kept;
    seen->received += len;
    if (seen->received > HTTP_RESPONSE_MAX) {
        seen->cut = true;
        return 0;
    }
    return len;
}

/* What is the same for every attempt of a sink. */
static void set_options(CURL *easy, struct transfer *transfer)
{
    const struct sink_options *o = &transfer->sink->options;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer->base);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->seen.error);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_CONNECTION_S);
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, (long)NAME_CACHE_S);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)READ_BUFFER_BYTES);
    curl_easy_setopt(easy, CURLOPT_URL, o->url);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    if (o->method && strcmp(o->method, "POST") != 0)
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, o->method);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "lanegate/" LANEGATE_VERSION);

    curl_easy_setopt(easy, CURLOPT_PROXY, o->proxy ? o->proxy : "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);

    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_S);
    if (o->tls_ca) { /* this one instead of the system's, not beside them */
        curl_easy_setopt(easy, CURLOPT_CAINFO, o->tls_ca);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (o->tls_cert)
        curl_easy_setopt(easy, CURLOPT_SSLCERT, o->tls_cert);
    if (o->tls_key)
        curl_easy_setopt(easy, CURLOPT_SSLKEY, o->tls_key);

    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, transfer_loop(transfer));
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, before_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer->seen);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer->seen);
}

static CURL *handle_of(struct transfer *transfer, void (*finished)(struct loop_transfer *, CURLcode))
{
    if (!transfer->base.easy) {
        transfer->base.easy = curl_easy_init();
        CHECK(transfer->base.easy);
        set_options(transfer->base.easy, transfer);
    }
    transfer->base.finished = finished;
    return transfer->base.easy;
}

static void set_timeout(CURL *easy, int64_t ms)
{
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(ms < CONNECT_TIMEOUT_MS ? ms : CONNECT_TIMEOUT_MS));
}

static void on_answered(struct loop_transfer *base, CURLcode code)
{
    struct transfer *transfer = (struct transfer *)base;
    struct http_end end = end_of(base->easy, code, &transfer->seen);
    curl_easy_setopt(base->easy, CURLOPT_HTTPHEADER, NULL); /* it pointed at this attempt's */
    curl_easy_setopt(base->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
    curl_easy_setopt(base->easy, CURLOPT_POSTFIELDS, "");
    transfer_finish(transfer, &end);
}

void http_library_start(struct transfer *transfer)
{
    CURL *easy = handle_of(transfer, on_answered);
    struct bytes body = transfer->attempt->envelope->body;
    struct curl_slist *headers = http_request_list(&transfer->request, &transfer->sink->shape,
                                                   transfer->attempt, clock_unix_ms() / 1000);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.len ? body.at : "");
    set_timeout(easy, transfer->timeout_ms);
    loop_run(transfer_loop(transfer), &transfer->base);
}

/* -- connections of the plain way */

/* Instead of closing: the socket that is let go last is the one that libcurl settled on. */
static int hand_over(void *ctx, curl_socket_t fd)
{
    struct transfer *transfer = ctx;
    loop_leaves(transfer_loop(transfer), fd);
    if (transfer->opened_fd >= 0)
        close(transfer->opened_fd);
    transfer->opened_fd = fd;
    return 0;
}

static void on_dialled(struct loop_transfer *base, CURLcode code)
{
    struct transfer *transfer = (struct transfer *)base;
    struct http_end end = end_of(base->easy, code, &transfer->seen);
    int fd = transfer->opened_fd;
    if (code != CURLE_OK && fd >= 0) {
        close(fd);
        fd = -1;
    } else if (code == CURLE_OK && fd < 0) {
        end.code = CURLE_COULDNT_CONNECT; /* 7.88.1 does not do that */
    }
    http_plain_opened(transfer, fd, &end);
}

/* libcurl connects and does nothing else; told not to reuse the connection, it lets go of its socket at once.
 */
void http_library_dial(struct transfer *transfer, int64_t left_ms)
{
    CURL *easy = handle_of(transfer, on_dialled);
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, hand_over);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, transfer);
    set_timeout(easy, left_ms);
    transfer->opened_fd = -1;
    loop_run(transfer_loop(transfer), &transfer->base);
}
