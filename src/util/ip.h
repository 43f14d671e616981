/* IP addresses, and ranges of them. A v4 address is held as its v4-mapped form, so that "10.0.0.1" and
 * "::ffff:10.0.0.1" are one address. Pure functions over values; any thread. */
#ifndef UTIL_IP_H
#define UTIL_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"
#include "util/status.h"

struct ip {
    uint8_t at[16];
};

/* "10.0.0.1" or "2001:db8::1", nothing around it: no zone, no port, no leading zeros in a decimal part. */
bool ip_parse(struct bytes text, struct ip *out);
/* The address of a socket; false when it is neither v4 nor v6. */
struct sockaddr;
bool ip_of_socket(const struct sockaddr *from, struct ip *out);
bool ip_is_v4(const struct ip *ip);
/* Writes the shortest form and a NUL, a v4 address as v4; gives the length. */
#define IP_TEXT 46
size_t ip_format(const struct ip *ip, char text[IP_TEXT]);

struct ip_range {
    struct ip first;     /* no bit is set behind the prefix */
    unsigned prefix_len; /* 0..128, of the mapped form */
};

/* "10.0.0.0/8", "::1/128", or one address. INVALID with the words that go behind an option's path. */
enum status ip_range_parse(const char *text, struct ip_range *out, struct error *err);

struct ip_ranges {
    const struct ip_range *at;
    size_t len;
};

/* Does any range hold it? A v6 range never holds a v4 address: "::/0" is not "0.0.0.0/0". */
bool ip_ranges_hold(const struct ip_ranges *ranges, const struct ip *ip);

/* Who may come. A list that is empty says nothing. */
struct ip_gate {
    struct ip_ranges deny, allow;
};
enum ip_verdict { IP_PASSES, IP_DENIED, IP_NOT_ALLOWED };
/* In deny: denied, whatever allow says. */
enum ip_verdict ip_gate_judge(const struct ip_gate *gate, const struct ip *ip);

#endif
