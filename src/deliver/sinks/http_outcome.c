/* From what happened on the wire to an outcome, with a reason that a person can act on. */
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

#include "deliver/sinks/http_priv.h"

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

static void of_timeout(enum http_phase phase, const struct http_seen *seen, int64_t timeout_ms,
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

/* Descriptors, memory or permission that the system does not give us are no fault of the receiver's. */
static void of_socket(int code, struct outcome *outcome)
{
    outcome_set(outcome, OUTCOME_CONFIG, "can't open a socket: %s%s", strerror(code),
                code == EMFILE ? "; see the limit on open files (ulimit -n, LimitNOFILE)" : "");
}

static void of_connect(int code, const struct http_seen *seen, struct outcome *outcome)
{
    char at[64];
    outcome->unreachable = true;
    if (code == ECONNREFUSED)
        outcome_set(outcome, OUTCOME_TRANSIENT, "connection refused by %s", peer(seen, at));
    else
        outcome_set(outcome, OUTCOME_TRANSIENT, "can't connect to %s: %s", peer(seen, at),
                    code ? strerror(code) : seen->error);
}

static void of_certificate(long verify_result, const struct http_seen *seen, struct outcome *outcome)
{
    outcome->unreachable = true;
    switch (verify_result) {
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

static void of_broken(const struct http_end *end, const struct http_seen *seen, struct outcome *outcome)
{
    if (end->proxy_status && end->proxy_status != 200) {
        outcome->unreachable = true;
        outcome_set(outcome, OUTCOME_TRANSIENT, "the proxy answered CONNECT with HTTP %ld",
                    end->proxy_status);
    } else if (end->phase <= PHASE_TLS) {
        outcome->unreachable = true;
        outcome_set(outcome, OUTCOME_TRANSIENT, "TLS: %s",
                    seen->error[0] ? seen->error : "the handshake failed");
    } else if (end->phase == PHASE_SEND) {
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

void http_outcome(const struct sink_options *options, const struct http_end *end,
                  const struct http_seen *seen, int64_t timeout_ms, struct outcome *outcome)
{
    outcome->http_status = end->status;
    outcome->unsent = end->unsent;

    switch (end->code) {
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
        of_timeout(end->phase, seen, timeout_ms, outcome);
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        outcome->unreachable = true;
        outcome_set(outcome, OUTCOME_TRANSIENT, "name look-up failed: %s", seen->error);
        break;
    case CURLE_COULDNT_CONNECT:
        if (seen->forbidden && !seen->dialled)
            of_egress(seen, outcome);
        else if (seen->socket_errno && !seen->dialled)
            of_socket(seen->socket_errno, outcome);
        else
            of_connect(end->connect_errno, seen, outcome);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        of_certificate(end->verify_result, seen, outcome);
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
        of_broken(end, seen, outcome);
        break;
    case CURLE_OUT_OF_MEMORY: /* its word for a line beyond its own bound */
        outcome_set(outcome, OUTCOME_TRANSIENT, "a line of the answer's head is too large");
        break;
    default:
        outcome_set(outcome, OUTCOME_TRANSIENT, "%s",
                    seen->head_too_large ? "the head of the answer is larger than 64 KiB"
                    : seen->error[0]     ? seen->error
                                         : curl_easy_strerror(end->code));
        break;
    }
}
