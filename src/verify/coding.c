#include "verify/coding.h"

#include "util/digest.h"

void coding_write(enum coding coding, struct bytes in, struct buf *out)
{
    if (coding == CODING_BASE64) {
        base64_encode(out, in);
        return;
    }
    for (size_t i = 0; i < in.len; i++) {
        char digits[3];
        hex_encode(in.at + i, 1, digits);
        buf_put(out, digits, 2);
    }
}

bool coding_read(enum coding coding, struct bytes text, struct buf *out)
{
    if (coding == CODING_BASE64)
        return base64_decode(out, text);
    if (text.len % 2)
        return false;
    char *bytes = buf_extend(out, text.len / 2);
    return bytes && hex_decode(text, (uint8_t *)bytes, text.len / 2);
}

static bool read_base64_secret(struct bytes text, struct buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (text.len % 4 == 0)
        for (int i = 0; i < 2 && text.len && text.at[text.len - 1] == '='; i++)
            text.len--;
    size_t over = text.len % 4;
    const char *last = text.len ? memchr(digits, text.at[text.len - 1], 64) : NULL;
    if (!last || over == 1)
        return false;

    struct buf whole = {0};
    buf_putb(&whole, text);
    if (over) {
        int unused = over == 2 ? 0x0f : 0x03;
        whole.at[text.len - 1] = digits[(last - digits) & ~unused];
        buf_puts(&whole, over == 2 ? "==" : "=");
    }
    bool good = base64_decode(out, buf_bytes(&whole)) && out->len > 0;
    explicit_bzero(whole.at, whole.size);
    buf_free(&whole);
    return good;
}

bool coding_read_secret(enum coding coding, struct bytes text, struct buf *out)
{
    if (coding == CODING_BASE64)
        return read_base64_secret(text, out);
    return text.len > 0 && coding_read(CODING_HEX, text, out);
}
