/* Where connections may go. Pure functions: no socket, no look-up. Closed to everything that is not a public
 * address unless configuration opens it; judged at load for what can be seen, and at every connection for the
 * address actually connected to. Any thread. */
#ifndef DELIVER_EGRESS_H
#define DELIVER_EGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/status.h"

struct egress_cidr {
    uint8_t address[16]; /* v4 as v4-mapped */
    unsigned prefix_len; /* 0..128, of the mapped form */
};

struct egress_rules {
    const struct egress_cidr *allow_private;
    size_t allow_count;
    bool allow_http;
};

/* "10.0.0.0/8", "::1/128", "127.0.0.1"; INVALID with a sentence. */
enum status egress_cidr_parse(const char *text, struct egress_cidr *out, struct error *err);

/* What kind of forbidden address this is ("loopback", "private", ...), static text; NULL for a public one.
 * Forms that carry a v4 address inside a v6 one are judged by what they carry. */
const char *egress_kind(const uint8_t address[16]);

/* Public, or covered by allow_private. A v6 range never covers a v4 address: "::/0" is not "0.0.0.0/0". */
bool egress_allows(const struct egress_rules *rules, const uint8_t address[16]);

/* The 16-byte form of a socket address; false when it is neither v4 nor v6. */
struct sockaddr;
bool egress_address(const struct sockaddr *from, uint8_t address[16]);

/* "10.0.0.1" or "2001:db8::1"; a v4-mapped address is shown as v4. `text` holds 46 bytes. */
void egress_address_text(const uint8_t address[16], char text[46]);

/* A sink's URL: strictly http or https, a plain host, nothing that two parsers could read in two ways.
 * REFUSED (with the line of configuration that would open it) when a rule forbids the scheme, the literal
 * address or a name known to be local; INVALID when it is malformed. A name that passes is judged again at
 * each connection. */
enum status egress_url_check(const char *url, const struct egress_rules *rules, struct error *err);
/* A proxy's URL: http, https or socks5h, user and password allowed, the same rules for its host. */
enum status egress_proxy_check(const char *url, const struct egress_rules *rules, struct error *err);

#endif
