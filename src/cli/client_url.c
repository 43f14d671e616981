/* Where is the admin API? Text of a person or of the configuration to a URL. */
#include "cli/client.h"

static bool has_text(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= 0x20 || text.at[i] >= 0x7f)
            return false;
    return text.len > 0;
}

bool client_url_from_text(const char *text, struct buf *url)
{
    struct bytes all = bytes_str(text);
    bool http = bytes_starts_nocase(all, BYTES("http://")),
         https = bytes_starts_nocase(all, BYTES("https://"));
    if (!http && !https && strstr(text, "://"))
        return false;
    size_t scheme_len = http ? 7 : https ? 8 : 0;
    struct bytes rest = bytes_of(text + scheme_len, all.len - scheme_len);
    while (rest.len && rest.at[rest.len - 1] == '/')
        rest.len--;
    if (!has_text(rest) || rest.at[0] == '/' || memchr(rest.at, '?', rest.len) ||
        memchr(rest.at, '#', rest.len))
        return false;
    buf_puts(url, https ? "https://" : "http://");
    buf_putb(url, rest);
    return true;
}

void client_url_from_listen(const char *listen, struct buf *url)
{
    struct bytes all = bytes_str(listen), any4 = BYTES("0.0.0.0:"), any6 = BYTES("[::]:");
    buf_puts(url, "http://");
    if (bytes_starts(all, any4))
        buf_putf(url, "127.0.0.1:%s", listen + any4.len);
    else if (bytes_starts(all, any6))
        buf_putf(url, "[::1]:%s", listen + any6.len);
    else
        buf_puts(url, listen);
}

/* RFC 3986, unreserved characters stay. */
void client_query(struct buf *path, const char *name, struct bytes value)
{
    static const char digits[] = "0123456789ABCDEF";
    if (!value.at)
        return;
    bool first = !path->len || !memchr(path->at, '?', path->len);
    buf_putf(path, "%c%s=", first ? '?' : '&', name);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '.' || c == '_' || c == '~';
        if (plain)
            buf_putc(path, (char)c);
        else
            buf_put(path, (const char[3]){'%', digits[c >> 4], digits[c & 15]}, 3);
    }
}
