#include "admin/access.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "util/check.h"
#include "util/digest.h"

const char *access_scope_name(unsigned scope)
{
    switch (scope) {
    case ADMIN_SCOPE_READ:
        return "read";
    case ADMIN_SCOPE_PAYLOAD:
        return "payload";
    case ADMIN_SCOPE_OPERATE:
        return "operate";
    case ADMIN_SCOPE_CONFIG:
        return "config";
    }
    UNREACHABLE();
}

static bool is_port(struct bytes text)
{
    if (text.len == 0 || text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return true;
}

/* "name", "name:port", "[v6]" or "[v6]:port" to the name or the literal, without brackets. */
static bool without_port(struct bytes host, struct bytes *name, bool *bracketed)
{
    *bracketed = host.len && host.at[0] == '[';
    const char *end = host.len ? memchr(host.at, *bracketed ? ']' : ':', host.len) : NULL;
    if (*bracketed && !end)
        return false;
    size_t len = end ? (size_t)(end - host.at) : host.len;
    *name = *bracketed ? bytes_of(host.at + 1, len - 1) : bytes_of(host.at, len);

    struct bytes rest = bytes_of(host.at + len + *bracketed, host.len - len - *bracketed);
    return rest.len == 0 || (rest.at[0] == ':' && is_port(bytes_of(rest.at + 1, rest.len - 1)));
}

bool access_host_is_loopback(struct bytes host)
{
    struct bytes name;
    bool bracketed;
    if (!host.len || !without_port(host, &name, &bracketed))
        return false;

    char text[INET6_ADDRSTRLEN];
    if (name.len >= sizeof text || memchr(name.at, 0, name.len))
        return false;
    memcpy(text, name.at, name.len);
    text[name.len] = 0;
    struct in6_addr v6;
    if (bracketed)
        return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    struct in_addr v4;
    if (inet_pton(AF_INET, text, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return bytes_eq_nocase(name, BYTES("localhost"));
}

bool access_listens_on_loopback(const char *const *listen, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!access_host_is_loopback(bytes_str(listen[i])))
            return false;
    return true;
}

bool access_origin_is_own(struct bytes origin, struct bytes host)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < 2; i++) {
        struct bytes scheme = bytes_str(schemes[i]);
        if (host.len && bytes_starts_nocase(origin, scheme) &&
            bytes_eq_nocase(bytes_of(origin.at + scheme.len, origin.len - scheme.len), host))
            return true;
    }
    return false;
}

unsigned access_scopes(const struct admin_token *tokens, size_t count, struct bytes authorization,
                       const char **name)
{
    struct bytes scheme = BYTES("bearer ");
    if (!bytes_starts_nocase(authorization, scheme))
        return 0;
    struct bytes token = bytes_trim(bytes_of(authorization.at + scheme.len, authorization.len - scheme.len));
    if (token.len == 0)
        return 0;

    uint8_t hash[SHA256_SIZE];
    sha256(&token, 1, hash);
    unsigned scopes = 0;
    for (size_t i = 0; i < count; i++) /* all of them: where a match stands must not show in the time */
        if (bytes_eq_constant_time(tokens[i].hash, bytes_of(hash, sizeof hash)))
            scopes |= tokens[i].scopes, *name = tokens[i].name;
    return scopes;
}
