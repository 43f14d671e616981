/* Whose request is this, and may they come? A client is the peer of its connection, unless that is a proxy we
 * trust: then it is whom X-Forwarded-For names. Each proxy writes its own client at the right end, so the
 * walk goes from there to the first address that nobody vouches for; what stands left of it is the client's
 * own word, and is not even read. */
#include "ingest/ingest_priv.h"

#include "util/check.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/units.h"

enum { LOG_EVERY_MS = 10000 };

static bool is_port(struct bytes text)
{
    int64_t port;
    return units_parse_u63(text, &port) && port <= 65535;
}

/* "1.2.3.4", "1.2.3.4:5678", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:5678". */
static bool read_entry(struct bytes entry, struct ip *out)
{
    struct bytes host = entry, port = BYTES_NONE;
    const char *end = entry.at + entry.len;
    if (entry.at[0] == '[') {
        const char *close = memchr(entry.at, ']', entry.len);
        if (!close || (close + 1 < end && close[1] != ':'))
            return false;
        host = bytes_of(entry.at + 1, (size_t)(close - entry.at - 1));
        if (close + 1 < end)
            port = bytes_of(close + 2, (size_t)(end - close - 2));
        if (!memchr(host.at, ':', host.len)) /* brackets are for IPv6 */
            return false;
    } else {
        const char *colon = memchr(entry.at, ':', entry.len);
        if (colon && !memchr(colon + 1, ':', (size_t)(end - colon - 1))) {
            host = bytes_of(entry.at, (size_t)(colon - entry.at));
            port = bytes_of(colon + 1, (size_t)(end - colon - 1));
        }
    }
    return (!port.at || is_port(port)) && ip_parse(host, out);
}

/* One line, from its right end. False when the walk ends in it: at a stranger, or at what can't be read. An
 * empty element is none (RFC 9110, section 5.6.1). */
static bool walk_line(const struct ip_ranges *trusted, struct bytes line, struct caller *caller)
{
    while (line.len > 0) {
        const char *comma = memrchr(line.at, ',', line.len);
        const char *start = comma ? comma + 1 : line.at;
        struct bytes entry = bytes_trim(bytes_of(start, (size_t)(line.at + line.len - start)));
        line.len = comma ? (size_t)(comma - line.at) : 0;
        if (entry.len == 0)
            continue;
        caller->known = read_entry(entry, &caller->ip);
        if (!caller->known || !ip_ranges_hold(trusted, &caller->ip))
            return false;
    }
    return true;
}

void caller_find(const struct ip_ranges *trusted, const struct http_request *request, struct caller *caller)
{
    caller->known = ip_parse(request->remote_ip, &caller->ip);
    caller->text = request->remote_ip;
    if (!caller->known || !ip_ranges_hold(trusted, &caller->ip))
        return;
    for (size_t i = request->header_count; i-- > 0;)
        if (bytes_eq_nocase(request->headers[i].name, BYTES("x-forwarded-for")) &&
            !walk_line(trusted, request->headers[i].value, caller))
            break;
    if (caller->known)
        caller->text = bytes_of(caller->own_text, ip_format(&caller->ip, caller->own_text));
}

const char *caller_denied(const struct ip_gate *gate, const struct caller *caller)
{
    if (!caller->known)
        return "unreadable_address";
    switch (ip_gate_judge(gate, &caller->ip)) {
    case IP_PASSES:
        return NULL;
    case IP_DENIED:
        return "denied";
    case IP_NOT_ALLOWED:
        return "not_allowed";
    }
    UNREACHABLE();
}

void caller_log(struct ingest *ingest, const struct caller *caller, const char *source, const char *reason)
{
    int64_t now_ms = clock_mono_ms();
    int64_t last_ms = atomic_load_explicit(&ingest->denied_logged_ms, memory_order_relaxed);
    if (last_ms && now_ms - last_ms < LOG_EVERY_MS)
        return;
    if (atomic_compare_exchange_strong(&ingest->denied_logged_ms, &last_ms, now_ms))
        log_event(LOG_INFO, "ip_denied", LOG_BYTES("address", caller->text), LOG_STR("source", source),
                  LOG_STR("reason", reason));
}
