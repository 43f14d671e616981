#include "admin/cursor.h"

/* The wire form: kind, seq, sink; big-endian, so that it reads in the order it was made of. */
static void put(uint8_t *at, uint64_t n, unsigned size)
{
    while (size--) {
        at[size] = (uint8_t)n;
        n >>= 8;
    }
}

static uint64_t get(const uint8_t *at, unsigned size)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < size; i++)
        n = n << 8 | at[i];
    return n;
}

void cursor_format(enum cursor_kind kind, struct cursor cursor, char text[CURSOR_TEXT])
{
    uint8_t raw[CURSOR_SIZE];
    raw[0] = (uint8_t)kind;
    put(raw + 1, cursor.seq, 8);
    put(raw + 9, cursor.sink, 4);
    hex_encode(raw, sizeof raw, text);
}

bool cursor_parse(enum cursor_kind kind, struct bytes text, struct cursor *out)
{
    uint8_t raw[CURSOR_SIZE];
    if (!hex_decode(text, raw, sizeof raw) || raw[0] != kind)
        return false;
    *out = (struct cursor){.seq = get(raw + 1, 8), .sink = (uint32_t)get(raw + 9, 4)};
    /* The store counts seqs in 63 bits. */
    return out->seq <= INT64_MAX && (kind == CURSOR_DEAD || out->sink == 0);
}
