/* The table of what is not public, by IANA's special-purpose registries, and the one question asked of it. */
#include "deliver/egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "util/bytes.h"
#include "util/units.h"

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

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
static const uint8_t zeros[16];

static bool within(const uint8_t *address, const uint8_t *start, unsigned prefix_len)
{
    unsigned whole = prefix_len / 8, rest = prefix_len % 8;
    if (memcmp(address, start, whole) != 0)
        return false;
    return rest == 0 || ((address[whole] ^ start[whole]) >> (8 - rest)) == 0;
}

static bool is_mapped(const uint8_t address[16])
{
    return memcmp(address, mapped, sizeof mapped) == 0;
}

static const char *kind_v4(const uint8_t address[4])
{
    for (size_t i = 0; i < sizeof ranges_v4 / sizeof ranges_v4[0]; i++)
        if (within(address, ranges_v4[i].start, ranges_v4[i].prefix_len))
            return ranges_v4[i].kind;
    return NULL;
}

const char *egress_kind(const uint8_t address[16])
{
    if (is_mapped(address))
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

bool egress_allows(const struct egress_rules *rules, const uint8_t address[16])
{
    if (!egress_kind(address))
        return true;
    for (size_t i = 0; i < rules->allow_count; i++) {
        const struct egress_cidr *cidr = &rules->allow_private[i];
        if (is_mapped(address) && cidr->prefix_len < 96)
            continue;
        if (within(address, cidr->address, cidr->prefix_len))
            return true;
    }
    return false;
}

bool egress_address(const struct sockaddr *from, uint8_t address[16])
{
    if (from->sa_family == AF_INET) {
        memcpy(address, mapped, 12);
        memcpy(address + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
        return true;
    }
    if (from->sa_family == AF_INET6) {
        memcpy(address, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
        return true;
    }
    return false;
}

void egress_address_text(const uint8_t address[16], char text[46])
{
    if (is_mapped(address))
        inet_ntop(AF_INET, address + 12, text, 46);
    else
        inet_ntop(AF_INET6, address, text, 46);
}

enum status egress_cidr_parse(const char *text, struct egress_cidr *out, struct error *err)
{
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    char host[64];
    if (len >= sizeof host)
        goto malformed;
    memcpy(host, text, len);
    host[len] = 0;

    *out = (struct egress_cidr){.prefix_len = 128};
    unsigned offset = 0;
    if (inet_pton(AF_INET, host, out->address + 12) == 1) {
        memcpy(out->address, mapped, 12);
        offset = 96;
    } else if (inet_pton(AF_INET6, host, out->address) != 1) {
        goto malformed;
    }
    if (slash) {
        int64_t prefix_len;
        if (!units_parse_u63(bytes_str(slash + 1), &prefix_len) || prefix_len > 128 - offset)
            goto malformed;
        out->prefix_len = offset + (unsigned)prefix_len;
    }
    for (unsigned bit = out->prefix_len; bit < 128; bit++)
        if (out->address[bit / 8] & (0x80 >> bit % 8))
            return error_set(err, STATUS_INVALID, "has bits set beyond its prefix length, got \"%s\"", text);
    return STATUS_OK;

malformed:
    return error_set(err, STATUS_INVALID,
                     "must be an address range such as \"10.0.0.0/8\" or \"::1/128\", got \"%.100s\"", text);
}
