#include "util/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "util/units.h"

enum { V4_OFFSET = 96 }; /* bits of the mapped form in front of a v4 address */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool ip_parse(struct bytes text, struct ip *out)
{
    char plain[IP_TEXT];
    if (text.len == 0 || text.len >= sizeof plain || memchr(text.at, 0, text.len))
        return false;
    memcpy(plain, text.at, text.len);
    plain[text.len] = 0;
    memcpy(out->at, mapped, sizeof mapped);
    return inet_pton(AF_INET, plain, out->at + sizeof mapped) == 1 ||
           inet_pton(AF_INET6, plain, out->at) == 1;
}

bool ip_of_socket(const struct sockaddr *from, struct ip *out)
{
    if (from->sa_family == AF_INET) {
        memcpy(out->at, mapped, sizeof mapped);
        memcpy(out->at + sizeof mapped, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
        return true;
    }
    if (from->sa_family == AF_INET6) {
        memcpy(out->at, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, sizeof out->at);
        return true;
    }
    return false;
}

bool ip_is_v4(const struct ip *ip)
{
    return memcmp(ip->at, mapped, sizeof mapped) == 0;
}

size_t ip_format(const struct ip *ip, char text[IP_TEXT])
{
    if (ip_is_v4(ip))
        inet_ntop(AF_INET, ip->at + sizeof mapped, text, IP_TEXT);
    else
        inet_ntop(AF_INET6, ip->at, text, IP_TEXT);
    return strlen(text);
}

/* Clears what is behind the prefix; true when something was. */
static bool clear_host_bits(struct ip_range *range)
{
    bool any = false;
    for (unsigned bit = range->prefix_len; bit < 128; bit++) {
        uint8_t mask = (uint8_t)(0x80 >> bit % 8);
        any |= (range->first.at[bit / 8] & mask) != 0;
        range->first.at[bit / 8] &= (uint8_t)~mask;
    }
    return any;
}

enum status ip_range_parse(const char *text, struct ip_range *out, struct error *err)
{
    const char *slash = strchr(text, '/');
    struct bytes address = bytes_of(text, slash ? (size_t)(slash - text) : strlen(text));
    struct ip_range range = {.prefix_len = 128};
    if (!ip_parse(address, &range.first))
        goto malformed;
    if (slash) {
        /* The length is of the form that is written: "10.0.0.0/8" is "::ffff:10.0.0.0/104". */
        unsigned offset = memchr(address.at, ':', address.len) ? 0 : V4_OFFSET;
        int64_t len;
        if (!units_parse_u63(bytes_str(slash + 1), &len) || len > 128 - offset)
            goto malformed;
        range.prefix_len = offset + (unsigned)len;
    }
    if (clear_host_bits(&range)) {
        char first[IP_TEXT];
        ip_format(&range.first, first);
        return error_set(
            err, STATUS_INVALID,
            "must be a range without bits set behind its length, got \"%s\": write \"%s/%u\" for the "
            "range, or \"%.*s\" for the one address",
            text, first, range.prefix_len - (ip_is_v4(&range.first) ? V4_OFFSET : 0), BYTES_ARG(address));
    }
    *out = range;
    return STATUS_OK;

malformed:
    return error_set(err, STATUS_INVALID,
                     "must be an address range such as \"10.0.0.0/8\" or \"::1/128\", got \"%.100s\"", text);
}

static bool holds(const struct ip_range *range, const struct ip *ip)
{
    unsigned whole = range->prefix_len / 8, rest = range->prefix_len % 8;
    if (memcmp(ip->at, range->first.at, whole) != 0)
        return false;
    return rest == 0 || ((ip->at[whole] ^ range->first.at[whole]) >> (8 - rest)) == 0;
}

bool ip_ranges_hold(const struct ip_ranges *ranges, const struct ip *ip)
{
    unsigned shortest = ip_is_v4(ip) ? V4_OFFSET : 0;
    for (size_t i = 0; i < ranges->len; i++)
        if (ranges->at[i].prefix_len >= shortest && holds(&ranges->at[i], ip))
            return true;
    return false;
}

enum ip_verdict ip_gate_judge(const struct ip_gate *gate, const struct ip *ip)
{
    if (ip_ranges_hold(&gate->deny, ip))
        return IP_DENIED;
    return gate->allow.len == 0 || ip_ranges_hold(&gate->allow, ip) ? IP_PASSES : IP_NOT_ALLOWED;
}
