/* The table of what is not public, by IANA's special-purpose registries, and the one question asked of it. */
#include "deliver/egress.h"

#include <string.h>

struct range {
    uint8_t start[16];
    unsigned prefix_len;
    const char *kind;
};

static const struct {
    uint8_t start[4];
    unsigned prefix_len;
    const char *kind;
} ranges_v4[] = {
    {{0, 0, 0, 0}, 8, "this machine (0.0.0.0/8)"},
    {{10, 0, 0, 0}, 8, "private"},
    {{100, 64, 0, 0}, 10, "carrier-grade NAT"},
    {{127, 0, 0, 0}, 8, "loopback"},
    {{169, 254, 0, 0}, 16, "link-local"},
    {{172, 16, 0, 0}, 12, "private"},
    {{192, 0, 0, 0}, 24, "reserved"},
    {{192, 0, 2, 0}, 24, "documentation"},
    {{192, 88, 99, 0}, 24, "a 6to4 relay"},
    {{192, 168, 0, 0}, 16, "private"},
    {{198, 18, 0, 0}, 15, "benchmarking"},
    {{198, 51, 100, 0}, 24, "documentation"},
    {{203, 0, 113, 0}, 24, "documentation"},
    {{224, 0, 0, 0}, 4, "multicast"},
    {{240, 0, 0, 0}, 4, "reserved"},
};

/* Inside 2000::/3 first; what is outside it and in no row is reserved. */
static const struct range ranges_v6[] = {
    {{0x20, 0x01, 0x00, 0x00}, 32, "Teredo"},
    {{0x20, 0x01}, 23, "reserved"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"},
    {{0x20, 0x02}, 16, "6to4"},
    {{0x3f, 0xff}, 20, "documentation"},
    {{0x01, 0x00}, 64, "discard-only"},
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "local NAT64"},
    {{0xfc}, 7, "private"},
    {{0xfe, 0x80}, 10, "link-local"},
    {{0xfe, 0xc0}, 10, "site-local"},
    {{0xff}, 8, "multicast"},
};

static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
static const uint8_t zeros[16];

static bool within(const uint8_t *address, const uint8_t *start, unsigned prefix_len)
{
    unsigned whole = prefix_len / 8, rest = prefix_len % 8;
    if (memcmp(address, start, whole) != 0)
        return false;
    return rest == 0 || ((address[whole] ^ start[whole]) >> (8 - rest)) == 0;
}

static const char *kind_v4(const uint8_t address[4])
{
    for (size_t i = 0; i < sizeof ranges_v4 / sizeof ranges_v4[0]; i++)
        if (within(address, ranges_v4[i].start, ranges_v4[i].prefix_len))
            return ranges_v4[i].kind;
    return NULL;
}

const char *egress_kind(const struct ip *ip)
{
    const uint8_t *address = ip->at;
    if (ip_is_v4(ip))
        return kind_v4(address + 12);
    if (memcmp(address, nat64, sizeof nat64) == 0)
        return kind_v4(address + 12);
    if (memcmp(address, zeros, 15) == 0 && address[15] <= 1)
        return address[15] ? "loopback" : "this machine (::)";
    if (memcmp(address, zeros, 12) == 0)
        return "v4-compatible";
    for (size_t i = 0; i < sizeof ranges_v6 / sizeof ranges_v6[0]; i++)
        if (within(address, ranges_v6[i].start, ranges_v6[i].prefix_len))
            return ranges_v6[i].kind;
    return (address[0] & 0xe0) == 0x20 ? NULL : "reserved";
}

bool egress_allows(const struct egress_rules *rules, const struct ip *address)
{
    return !egress_kind(address) || ip_ranges_hold(&rules->allow_private, address);
}
