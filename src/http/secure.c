/* Connections under TLS. libh2o reads, decrypts and answers; it keeps the SSL object to itself and says
 * little, so OpenSSL's own callback tells us what we need: the handshake is done (and who the client is), it
 * has failed (and why), the client ends. The way from there to our connection is libh2o's BIO, which holds
 * the socket.
 *
 *   accept ──▶ handshake ──▶ [ libh2o's HTTP/1: the sweep sees it ] ──▶ closing ──▶ closed
 *
 * On both sides of the brackets libh2o's list does not have the connection, so the times are kept here: the
 * handshake has the header's time, the farewell (libh2o waits until its close_notify is written) a second. */
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>

#include "http/http_priv.h"
#include "util/bytes.h"
#include "util/check.h"
#include "util/log.h"

#define FAREWELL_MS 1000

static struct http_conn *conn_of(const SSL *ssl)
{
    h2o_socket_t *sock = BIO_get_data(SSL_get_rbio(ssl));
    return sock->on_close.data;
}

/* libh2o closes a failed handshake without sending the alert that OpenSSL wrote for it, and the client learns
 * nothing. So its record is remembered as it is written, and sent by us. */
static long remember_record(BIO *bio, int what, const char *text, size_t len, int arg_int, long arg_long,
                            int ret, size_t *processed)
{
    (void)arg_int, (void)arg_long, (void)processed;
    struct http_secure *secure = (struct http_secure *)BIO_get_callback_arg(bio);
    if (what == BIO_CB_WRITE) {
        secure->record_len = len <= sizeof secure->record ? len : 0;
        memcpy(secure->record, text, secure->record_len);
    }
    return ret;
}

static void send_plain(struct http_conn *conn, const void *text, size_t len)
{
    ssize_t sent = send(h2o_socket_get_fd(conn->sock), text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* a client that takes nothing gets no explanation */
}

static void begin(struct http_conn *conn, const SSL *ssl)
{
    BIO *bio = SSL_get_wbio(ssl);
    BIO_set_callback_arg(bio, (char *)&conn->secure);
    BIO_set_callback_ex(bio, remember_record);
}

static void identify(struct http_conn *conn, const SSL *ssl)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    X509 *peer = SSL_get0_peer_certificate(ssl);
    if (peer && X509_digest(peer, EVP_sha256(), digest, &len) == 1 && len == HTTP_FINGERPRINT_BYTES)
        hex_encode(digest, len, conn->secure.fingerprint);
}

static void shaken(struct http_conn *conn, const SSL *ssl)
{
    conn->secure.shaken = true;
    BIO_set_callback_ex(SSL_get_wbio(ssl), NULL);
    identify(conn, ssl);
}

/* Somebody speaks HTTP to this port without TLS: what they understand is an answer. */
static void answer_plain_http(struct http_conn *conn)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\n"
                                 "Connection: close\r\n"
                                 "Content-Type: application/json\r\n"
                                 "Content-Length: 24\r\n"
                                 "\r\n"
                                 "{\"error\":\"tls_required\"}";
    send_plain(conn, answer, sizeof answer - 1);
}

static void failed(struct http_conn *conn)
{
    unsigned long why = ERR_peek_error();
    const char *reason = ERR_reason_error_string(why);
    log_event(LOG_DEBUG, "tls_handshake_failed", LOG_STR("server", conn->loop->server->name),
              LOG_BYTES("remote_ip", bytes_of(conn->remote_ip, conn->remote_ip_len)),
              LOG_STR("reason", reason ? reason : "unknown"));
    http_refuse_count(conn->loop->server, "tls_handshake");
    http_conn_linger(conn);
    if (ERR_GET_LIB(why) == ERR_LIB_SSL && ERR_GET_REASON(why) == SSL_R_HTTP_REQUEST)
        answer_plain_http(conn);
}

/* SSL_read gives nothing any more, and what still comes would pile up before it, seen by no bound: what the
 * client has asked is answered, then the connection ends. */
static void client_ends(struct http_conn *conn)
{
    if (list_empty(&conn->secure.ended))
        list_append(&conn->loop->ended, &conn->secure.ended);
}

static void on_event(const SSL *ssl, int where, int value)
{
    struct http_conn *conn = conn_of(ssl);
    bool is_alert = (where & SSL_CB_ALERT) != 0;
    int level = value >> 8, description = value & 0xff;

    if ((where & SSL_CB_HANDSHAKE_START) && !conn->secure.shaken)
        begin(conn, ssl);
    else if ((where & SSL_CB_HANDSHAKE_DONE) && !conn->secure.shaken)
        shaken(conn, ssl);
    else if (is_alert && (where & SSL_CB_WRITE) && level == SSL3_AL_FATAL && !conn->secure.shaken)
        send_plain(conn, conn->secure.record, conn->secure.record_len);
    else if (is_alert && (where & SSL_CB_READ) && description == SSL_AD_CLOSE_NOTIFY)
        client_ends(conn);
    else if (where == SSL_CB_ACCEPT_EXIT && value <= 0 && ERR_peek_error() != 0 && !conn->secure.shaken)
        failed(conn);
}

void http_secure_watch(SSL_CTX *ctx)
{
    SSL_CTX_set_info_callback(ctx, on_event);
}

void http_secure_open(struct http_conn *conn, SSL_CTX *ctx)
{
    conn->secure.ctx = ctx;
    list_init(&conn->secure.link);
    list_init(&conn->secure.ended);
    if (ctx)
        list_append(&conn->loop->secured, &conn->secure.link);
}

void http_secure_close(struct http_conn *conn)
{
    list_remove(&conn->secure.link);
    list_remove(&conn->secure.ended);
    SSL_CTX_free(conn->secure.ctx);
    conn->secure.ctx = NULL;
}

void http_secure_end(struct http_loop *loop)
{
    LIST_EACH_SAFE (node, &loop->ended) {
        struct http_conn *conn = LIST_OWNER(node, struct http_conn, secure.ended);
        if (conn->req || h2o_socket_is_writing(conn->sock))
            continue;
        if (!conn->ending)
            http_conn_end(conn);
        else
            http_conn_shut(conn, true); /* it goes on sending */
    }
}

size_t http_secure_sweep(struct http_loop *loop, int64_t now_ms)
{
    size_t half_here = 0;
    LIST_EACH (node, &loop->secured) {
        struct http_conn *conn = LIST_OWNER(node, struct http_conn, secure.link);
        bool is_outside = conn->seen_ms != now_ms, greeted = conn->seen_ms != 0;
        int64_t since_ms = now_ms - (greeted ? conn->seen_ms : conn->phase_since_ms);
        if (!is_outside || conn->shut)
            continue;
        if (greeted && since_ms >= FAREWELL_MS) {
            http_conn_shut(conn, true);
        } else if (!greeted && since_ms >= loop->server->options.header_timeout_ms) {
            http_refuse_count(loop->server, "timeout");
            http_conn_shut(conn, true);
        } else if (!greeted && loop->draining) {
            bool grace = now_ms - loop->drain_since_ms < HTTP_DRAIN_GRACE_MS;
            if (grace)
                half_here++;
            else
                http_conn_shut(conn, false);
        }
    }
    return half_here;
}

void http_secure_shut(struct http_loop *loop)
{
    LIST_EACH (node, &loop->secured)
        http_conn_shut(LIST_OWNER(node, struct http_conn, secure.link), false);
}
