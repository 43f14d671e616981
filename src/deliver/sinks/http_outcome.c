/* From what happened on the wire to an outcome, with a reason that a person can act on. */
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

#include "deliver/sinks/http_priv.h"

/* How far a transfer came; what libcurl has no time of has not happened. */
enum phase { PHASE_NAME, PHASE_CONNECT, PHASE_TLS, PHASE_SEND, PHASE_ANSWER };

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

static enum phase phase_of(CURL *easy, const struct http_seen *seen)
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

/* "10.0.0.1:80" of the address tried last. */
static const char *peer(const struct http_seen *seen, char text[64])
{
    char address[IP_TEXT];
    ip_format(&seen->address, address);
    snprintf(text, 64, strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, seen->port);
    return text;
}

static bool is_refused(const struct sink_options *options, int status)
{
    for (size_t i = 0; i < options->refused_count; i++)
        if (options->refused[i] == status)
            return true;
    return false;
}

static void of_status(const struct sink_options *options, const struct http_seen *seen,
                      struct outcome *outcome)
{
    int status = outcome->http_status;
    if (status >= 200 && status <= 299) {
        outcome->cls = OUTCOME_OK;
        outcome->reason[0] = 0;
    } else if (is_refused(options, status)) {
        outcome_set(outcome, OUTCOME_REFUSED, "HTTP %d", status);
    } else if (seen->has_retry_after &&
               (status == 408 || status == 429 || (status >= 500 && status <= 599))) {
        outcome->retry_after_ms = seen->retry_after_ms;
        outcome_set(outcome, OUTCOME_RETRY_AFTER, "HTTP %d, retry after %lld s", status,
                    (long long)((seen->retry_after_ms + 999) / 1000));
    } else if (status >= 300 && status <= 399) {
        outcome_set(outcome, OUTCOME_TRANSIENT, "HTTP %d (redirects are not followed)", status);
    } else {
        outcome_set(outcome, OUTCOME_TRANSIENT, "HTTP %d", status);
    }
}

static void of_timeout(enum phase phase, const struct http_seen *seen, int64_t timeout_ms,
                       struct outcome *outcome)
{
    char at[64];
    long long ms = timeout_ms;
    outcome->timed_out = outcome->unreachable = true;
    switch (phase) {
    case PHASE_NAME:
        outcome_set(outcome, OUTCOME_TRANSIENT, "timed out looking up the host's name");
        break;
    case PHASE_CONNECT:
        outcome_set(outcome, OUTCOME_TRANSIENT, "timed out connecting to %s", peer(seen, at));
        break;
    case PHASE_TLS:
        outcome_set(outcome, OUTCOME_TRANSIENT, "timed out in the TLS handshake with %s", peer(seen, at));
        break;
    case PHASE_SEND:
        outcome_set(outcome, OUTCOME_TRANSIENT, "timed out after %lld ms while the request was sent", ms);
        break;
    case PHASE_ANSWER:
        if (outcome->http_status)
            outcome_set(outcome, OUTCOME_TRANSIENT, "timed out after %lld ms, inside an HTTP %d answer", ms,
                        outcome->http_status);
        else
            outcome_set(outcome, OUTCOME_TRANSIENT, "no answer within %lld ms (a retry may be a duplicate)",
                        ms);
        break;
    }
}

static void of_egress(const struct http_seen *seen, struct outcome *outcome)
{
    char at[46];
    const char *kind = egress_kind(&seen->forbidden_address);
    ip_format(&seen->forbidden_address, at);
    outcome_set(outcome, OUTCOME_CONFIG, "egress refused: %s is %s; see egress.allow_private", at,
                kind ? kind : "not an internet address");
}

static void of_connect(CURL *easy, const struct http_seen *seen, struct outcome *outcome)
{
    char at[64];
    int code = seen->socket_errno ? seen->socket_errno : (int)info_long(easy, CURLINFO_OS_ERRNO);
    outcome->unreachable = true;
    if (seen->socket_errno) {
        outcome_set(outcome, OUTCOME_TRANSIENT, "can't open a socket: %s", strerror(code));
    } else if (code == ECONNREFUSED) {
        outcome_set(outcome, OUTCOME_TRANSIENT, "connection refused by %s", peer(seen, at));
    } else {
        outcome_set(outcome, OUTCOME_TRANSIENT, "can't connect to %s: %s", peer(seen, at),
                    code ? strerror(code) : seen->error);
    }
}

static void of_certificate(CURL *easy, const struct http_seen *seen, struct outcome *outcome)
{
    outcome->unreachable = true;
    switch (info_long(easy, CURLINFO_SSL_VERIFYRESULT)) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        outcome_set(outcome, OUTCOME_TRANSIENT, "TLS: the receiver's certificate has expired");
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        outcome_set(outcome, OUTCOME_TRANSIENT, "TLS: the receiver's certificate is not valid yet");
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        outcome_set(outcome, OUTCOME_TRANSIENT,
                    "TLS: the receiver's certificate is from an unknown CA (tls = { ca = ... } adds one)");
        break;
    case X509_V_OK:
    case X509_V_ERR_UNSPECIFIED: /* libcurl's "not judged yet": it looks at the name first */
        outcome_set(outcome, OUTCOME_TRANSIENT, "TLS: the receiver's certificate is for another host");
        break;
    default:
        outcome_set(outcome, OUTCOME_TRANSIENT, "TLS: %s", seen->error);
        break;
    }
}

static void of_broken(enum phase phase, CURL *easy, const struct http_seen *seen, struct outcome *outcome)
{
    long connect_status = info_long(easy, CURLINFO_HTTP_CONNECTCODE);
    if (connect_status && connect_status != 200) {
        outcome->unreachable = true;
        outcome_set(outcome, OUTCOME_TRANSIENT, "the proxy answered CONNECT with HTTP %ld", connect_status);
    } else if (phase <= PHASE_TLS) {
        outcome->unreachable = true;
        outcome_set(outcome, OUTCOME_TRANSIENT, "TLS: %s",
                    seen->error[0] ? seen->error : "the handshake failed");
    } else if (phase == PHASE_SEND) {
        outcome_set(outcome, OUTCOME_TRANSIENT, "the connection broke while the request was sent");
    } else if (outcome->http_status) {
        outcome_set(outcome, OUTCOME_TRANSIENT, "the connection broke inside an HTTP %d answer",
                    outcome->http_status);
    } else {
        outcome_set(outcome, OUTCOME_TRANSIENT,
                    "the connection broke after the request was sent, without an answer (a retry may be a "
                    "duplicate)");
    }
}

void http_outcome(const struct sink_options *options, CURL *easy, CURLcode code, const struct http_seen *seen,
                  int64_t timeout_ms, struct outcome *outcome)
{
    outcome->http_status = (int)info_long(easy, CURLINFO_RESPONSE_CODE);
    if (code == CURLE_WRITE_ERROR && seen->cut)
        code = CURLE_OK; /* we hung up, having read enough */

    switch (code) {
    case CURLE_OK:
        of_status(options, seen, outcome);
        break;
    case CURLE_ABORTED_BY_CALLBACK:
        if (seen->forbidden) {
            of_egress(seen, outcome);
        } else {
            outcome_set(outcome, OUTCOME_TRANSIENT, "shutting down");
            outcome->cut_off = true;
        }
        break;
    case CURLE_OPERATION_TIMEDOUT:
        of_timeout(phase_of(easy, seen), seen, timeout_ms, outcome);
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        outcome->unreachable = true;
        outcome_set(outcome, OUTCOME_TRANSIENT, "name look-up failed: %s", seen->error);
        break;
    case CURLE_COULDNT_CONNECT:
        if (seen->forbidden && !seen->dialled)
            of_egress(seen, outcome);
        else
            of_connect(easy, seen, outcome);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        of_certificate(easy, seen, outcome);
        break;
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_CRL_BADFILE:
        outcome_set(outcome, OUTCOME_CONFIG, "TLS files: %s", seen->error);
        break;
    case CURLE_URL_MALFORMAT:
        outcome_set(outcome, OUTCOME_CONFIG, "url: %s", seen->error);
        break;
    case CURLE_UNSUPPORTED_PROTOCOL: /* it takes what is no status line for HTTP/0.9 */
    case CURLE_WEIRD_SERVER_REPLY:
        outcome_set(outcome, OUTCOME_TRANSIENT, "the answer is not HTTP");
        break;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CLIENTCERT:
        outcome->unreachable = true;
        outcome_set(outcome, OUTCOME_TRANSIENT, "TLS: %s", seen->error);
        break;
    case CURLE_PROXY:
        outcome->unreachable = true;
        outcome_set(outcome, OUTCOME_TRANSIENT, "proxy: %s", seen->error);
        break;
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        of_broken(phase_of(easy, seen), easy, seen, outcome);
        break;
    case CURLE_OUT_OF_MEMORY: /* its word for a line beyond its own bound */
        outcome_set(outcome, OUTCOME_TRANSIENT, "a line of the answer's head is too large");
        break;
    default:
        outcome_set(outcome, OUTCOME_TRANSIENT, "%s",
                    seen->head_too_large ? "the head of the answer is larger than 64 KiB"
                    : seen->error[0]     ? seen->error
                                         : curl_easy_strerror(code));
        break;
    }
    /* The second part: libcurl sends again by itself when a kept connection turns out to be dead. */
    outcome->unsent =
        code != CURLE_OK && phase_of(easy, seen) < PHASE_SEND && info_long(easy, CURLINFO_REQUEST_SIZE) == 0;
}
