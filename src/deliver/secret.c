/* The text of a signing secret, and its bytes. */
#include "deliver/deliver.h"
#include "util/digest.h"

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

enum status sink_secret_decode(struct bytes text, struct arena *arena, struct bytes *key, struct error *err)
{
    static const char format[] = "must be \"whsec_\" and base64, or any other text of at least one character "
                                 "without blanks or line breaks at its ends";
    size_t blanks = 0;
    while (blanks < text.len && is_blank(text.at[blanks]))
        blanks++;
    if (blanks == text.len)
        return error_set(err, STATUS_INVALID, "%s; it is %s", format, text.len ? "blank" : "empty");
    if (is_blank(text.at[0]) || is_blank(text.at[text.len - 1]))
        return error_set(err, STATUS_INVALID, "%s; it has some", format);
    if (bytes_starts(text, BYTES("v1,")))
        return error_set(err, STATUS_INVALID, "%s; it starts like a signature, with \"v1,\"", format);
    if (!bytes_starts(text, BYTES("whsec_"))) {
        *key = arena_copy(arena, text);
        return STATUS_OK;
    }
    struct buf decoded = {0};
    enum status status = STATUS_OK;
    if (base64_decode(&decoded, bytes_of(text.at + 6, text.len - 6)) && decoded.len > 0)
        *key = arena_copy(arena, buf_bytes(&decoded));
    else
        status = error_set(err, STATUS_INVALID, "%s; what follows \"whsec_\" is not base64", format);
    buf_free(&decoded);
    return status;
}
