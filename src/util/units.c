#include "util/units.h"

#include <stdio.h>

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit ms_units[] = {{"ms", 1},      {"s", 1000},     {"m", 60000},
                                       {"h", 3600000}, {"d", 86400000}, {0}};
static const struct unit byte_units[] = {{"B", 1},           {"KiB", 1LL << 10}, {"MiB", 1LL << 20},
                                         {"GiB", 1LL << 30}, {"TiB", 1LL << 40}, {0}};
static const int64_t exact_max = 1LL << 53;

bool units_parse_u63(struct bytes text, int64_t *n)
{
    int64_t v = 0;
    if (!text.len)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || __builtin_mul_overflow(v, (int64_t)10, &v) ||
            __builtin_add_overflow(v, (int64_t)(text.at[i] - '0'), &v))
            return false;
    }
    *n = v;
    return true;
}

bool units_parse_decimal(struct bytes text, double *n)
{
    enum { DIGITS_MAX = 15 }; /* all of them count in a double */
    int64_t digits = 0;
    double divisor = 1;
    const char *point = text.len ? memchr(text.at, '.', text.len) : NULL;
    if (text.len > DIGITS_MAX + 1 || (point && (point == text.at || point == text.at + text.len - 1)))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (text.at + i == point)
            continue;
        if (c < '0' || c > '9')
            return false;
        digits = digits * 10 + (c - '0');
        divisor *= point && text.at + i > point ? 10 : 1;
    }
    *n = (double)digits / divisor;
    return text.len > 0;
}

static bool parse(struct bytes text, const struct unit *units, int64_t *out)
{
    size_t digits = 0;
    while (digits < text.len && text.at[digits] >= '0' && text.at[digits] <= '9')
        digits++;
    int64_t n;
    if (!units_parse_u63(bytes_of(text.at, digits), &n))
        return false;
    struct bytes unit = bytes_of(text.at + digits, text.len - digits);
    for (; units->name; units++)
        if (bytes_eq(unit, bytes_str(units->name)))
            return !__builtin_mul_overflow(n, units->factor, out) && *out <= exact_max;
    return false;
}

bool units_parse_ms(struct bytes text, int64_t *ms)
{
    return parse(text, ms_units, ms);
}

bool units_parse_bytes(struct bytes text, int64_t *bytes)
{
    return parse(text, byte_units, bytes);
}

void units_format_ms(int64_t ms, char out[32])
{
    static const struct unit shown[] = {
        {"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}};
    for (size_t i = 0; i < 5; i++)
        if (ms >= 2 * shown[i].factor || i == 4) {
            snprintf(out, 32, "%lld %s", (long long)(ms / shown[i].factor), shown[i].name);
            return;
        }
}

void units_format_bytes(int64_t bytes, char out[32])
{
    for (int i = 4; i >= 0; i--)
        if (bytes >= byte_units[i].factor || i == 0) {
            snprintf(out, 32, "%lld %s", (long long)(bytes / byte_units[i].factor), byte_units[i].name);
            return;
        }
}
