/* What can be seen of a destination in its URL. Deliberately stricter than any URL standard: a form that some
 * parser reads as another host is refused, so that what was judged here is what libcurl will dial. */
#include <string.h>

#include "deliver/egress.h"
#include "util/bytes.h"
#include "util/units.h"

enum { URL_MAX = 8192, HOST_MAX = 253, LABEL_MAX = 63 };

struct target {
    struct bytes host; /* without brackets */
    bool bracketed;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

static enum status check_port(struct bytes port, struct error *err)
{
    int64_t n;
    if (!units_parse_u63(port, &n) || n < 1 || n > 65535)
        return error_set(err, STATUS_INVALID, "must have a port from 1 to 65535, got \"%.*s\"",
                         port.len > 40 ? 40 : (int)port.len, port.at);
    return STATUS_OK;
}

/* authority is what stands between "//" and the first '/' or '?'. */
static enum status split_authority(struct bytes authority, struct target *target, struct error *err)
{
    const char *at = authority.at, *end = at + authority.len;
    const char *host_end;
    if (at < end && *at == '[') {
        const char *close = memchr(at, ']', authority.len);
        if (!close || (close + 1 < end && close[1] != ':'))
            return error_set(err, STATUS_INVALID,
                             "must have nothing but a port behind the address in brackets");
        target->bracketed = true;
        target->host = bytes_of(at + 1, (size_t)(close - at - 1));
        host_end = close + 1;
    } else {
        const char *colon = memchr(at, ':', authority.len);
        host_end = colon ? colon : end;
        target->host = bytes_of(at, (size_t)(host_end - at));
    }
    if (target->host.len == 0)
        return error_set(err, STATUS_INVALID, "must name a host");
    if (host_end < end)
        return check_port(bytes_of(host_end + 1, (size_t)(end - host_end - 1)), err);
    return STATUS_OK;
}

static enum status judge_address(const struct ip *address, const struct egress_rules *rules,
                                 struct error *err)
{
    if (egress_allows(rules, address))
        return STATUS_OK;
    char text[IP_TEXT];
    ip_format(address, text);
    return error_set(err, STATUS_REFUSED,
                     "leads to %s, which is %s; to allow it: egress = { allow_private = { \"%s/%d\" } }",
                     text, egress_kind(address), text, strchr(text, ':') ? 128 : 32);
}

/* Any of the texts is reachable: the name passes at load, and the connection decides. */
static enum status judge_local_name(const char *name, const char *const *addresses,
                                    const struct egress_rules *rules, struct error *err)
{
    for (size_t i = 0; addresses[i]; i++) {
        struct ip one;
        if (ip_parse(bytes_str(addresses[i]), &one) && egress_allows(rules, &one))
            return STATUS_OK;
    }
    return error_set(
        err, STATUS_REFUSED,
        "names \"%s\", which leads to %s; to allow it: egress = { allow_private = { \"%s/%s\" } }", name,
        addresses[0], addresses[0], strchr(addresses[0], ':') ? "128" : "32");
}

static enum status judge_v6(struct bytes host, const struct egress_rules *rules, struct error *err)
{
    struct ip address;
    if (memchr(host.at, '%', host.len))
        return error_set(err, STATUS_REFUSED, "must not name an address with a zone: it is link-local");
    if (!memchr(host.at, ':', host.len) || !ip_parse(host, &address))
        return error_set(err, STATUS_INVALID, "must have an IPv6 address in its brackets");
    return judge_address(&address, rules, err);
}

static bool ends_in_number(struct bytes host)
{
    size_t start = host.len;
    while (start > 0 && host.at[start - 1] != '.')
        start--;
    struct bytes last = bytes_of(host.at + start, host.len - start);
    if (bytes_starts_nocase(last, BYTES("0x")))
        return true;
    for (size_t i = 0; i < last.len; i++)
        if (!is_digit(last.at[i]))
            return false;
    return last.len > 0;
}

static bool is_or_under(struct bytes host, struct bytes name)
{
    if (bytes_eq_nocase(host, name))
        return true;
    if (host.len <= name.len || host.at[host.len - name.len - 1] != '.')
        return false;
    return bytes_eq_nocase(bytes_of(host.at + host.len - name.len, name.len), name);
}

static enum status judge_name(struct bytes host, const struct egress_rules *rules, struct error *err)
{
    bool dot_at_end = host.len > 1 && host.at[host.len - 1] == '.';
    if (dot_at_end)
        host.len--;
    if (host.len > HOST_MAX)
        return error_set(err, STATUS_INVALID, "must have a host name of at most %d characters", HOST_MAX);
    size_t label = 0;
    for (size_t i = 0; i <= host.len; i++) {
        if (i < host.len && host.at[i] != '.') {
            if (!is_name_char(host.at[i]))
                return error_set(
                    err, STATUS_INVALID,
                    "must have a host of letters, digits, '-', '_' and '.' (write other letters in "
                    "their xn-- form)");
            label++;
            continue;
        }
        if (label == 0 || label > LABEL_MAX)
            return error_set(err, STATUS_INVALID, "must have a host name whose parts have 1 to %d characters",
                             LABEL_MAX);
        label = 0;
    }

    if (ends_in_number(host)) {
        struct ip one;
        if (dot_at_end || !ip_parse(host, &one))
            return error_set(err, STATUS_INVALID,
                             "must write an IPv4 address as four decimal numbers, got \"%.*s%s\"",
                             BYTES_ARG(host), dot_at_end ? "." : "");
        return judge_address(&one, rules, err);
    }
    static const char *const loopback[] = {"127.0.0.1", "::1", NULL};
    static const char *const metadata[] = {"169.254.169.254", "fd20:ce::254", NULL};
    if (is_or_under(host, BYTES("localhost")) || is_or_under(host, BYTES("localhost.localdomain")))
        return judge_local_name("localhost", loopback, rules, err);
    if (is_or_under(host, BYTES("metadata.google.internal")))
        return judge_local_name("metadata.google.internal", metadata, rules, err);
    return STATUS_OK;
}

static enum status check(const char *url, struct bytes rest, bool user_allowed,
                         const struct egress_rules *rules, struct error *err)
{
    if (strlen(url) > URL_MAX)
        return error_set(err, STATUS_INVALID, "must have at most %d characters", URL_MAX);
    for (const char *p = url; *p; p++)
        if (*p <= 0x20 || *p > 0x7e || *p == '\\' || *p == '#')
            return error_set(
                err, STATUS_INVALID,
                "must hold no blanks, control characters, backslashes, fragments or letters beyond ASCII");
    size_t len = strcspn(rest.at, "/?");
    struct bytes authority = bytes_of(rest.at, len);
    const char *user_end = memrchr(authority.at, '@', authority.len);
    if (user_end && !user_allowed)
        return error_set(err, STATUS_INVALID,
                         "must not hold a user or password; write headers = { authorization = ... } instead");
    if (user_end)
        authority = bytes_of(user_end + 1, authority.len - (size_t)(user_end + 1 - authority.at));

    struct target target = {0};
    enum status status = split_authority(authority, &target, err);
    if (status != STATUS_OK)
        return status;
    return target.bracketed ? judge_v6(target.host, rules, err) : judge_name(target.host, rules, err);
}

static struct bytes after_scheme(const char *url, struct bytes scheme)
{
    struct bytes text = bytes_str(url);
    return bytes_starts_nocase(text, scheme) ? bytes_of(text.at + scheme.len, text.len - scheme.len)
                                             : BYTES_NONE;
}

enum status egress_url_check(const char *url, const struct egress_rules *rules, struct error *err)
{
    struct bytes https = after_scheme(url, BYTES("https://")), http = after_scheme(url, BYTES("http://"));
    if (!https.at && !http.at)
        return error_set(err, STATUS_INVALID, "must start with https:// (or http://)");
    static const char plain[] = "uses plain http; to allow it: egress = { allow_http = true }";
    struct error first;
    enum status status = check(url, https.at ? https : http, false, rules, &first);
    bool closed = http.at && !rules->allow_http;
    if (status == STATUS_REFUSED && closed)
        return error_set(err, status, "%.300s; and %s", first.text, plain);
    if (status == STATUS_OK && closed)
        return error_set(err, STATUS_REFUSED, "%s", plain);
    return status == STATUS_OK ? status : error_set(err, status, "%s", first.text);
}

enum status egress_proxy_check(const char *url, const struct egress_rules *rules, struct error *err)
{
    static const char *const schemes[] = {"http://", "https://", "socks5h://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        struct bytes rest = after_scheme(url, bytes_str(schemes[i]));
        if (rest.at)
            return check(url, rest, true, rules, err);
    }
    return error_set(err, STATUS_INVALID, "must start with http://, https:// or socks5h://");
}
