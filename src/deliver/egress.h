/* Where connections may go. Pure functions: no socket, no look-up. Closed to everything that is not a public
 * address unless configuration opens it; judged at load for what can be seen, and at every connection for the
 * address actually connected to. Any thread. */
#ifndef DELIVER_EGRESS_H
#define DELIVER_EGRESS_H

#include <stdbool.h>

#include "util/ip.h"
#include "util/status.h"

struct egress_rules {
    struct ip_ranges allow_private;
    bool allow_http;
};

/* What kind of forbidden address this is ("loopback", "private", ...), static text; NULL for a public one.
 * Forms that carry a v4 address inside a v6 one are judged by what they carry. */
const char *egress_kind(const struct ip *address);

/* Public, or covered by allow_private. */
bool egress_allows(const struct egress_rules *rules, const struct ip *address);

/* A sink's URL: strictly http or https, a plain host, nothing that two parsers could read in two ways.
 * REFUSED (with the line of configuration that would open it) when a rule forbids the scheme, the literal
 * address or a name known to be local; INVALID when it is malformed. A name that passes is judged again at
 * each connection. */
enum status egress_url_check(const char *url, const struct egress_rules *rules, struct error *err);
/* A proxy's URL: http, https or socks5h, user and password allowed, the same rules for its host. */
enum status egress_proxy_check(const char *url, const struct egress_rules *rules, struct error *err);

#endif
