/* Retry-After, in the forms the standard allows and no other. */
#include <time.h>

#include "deliver/sinks/http_priv.h"
#include "util/units.h"

enum { CAP_MS = 3600 * 1000, SENSIBLE_S = 366 * 24 * 3600 };

/* The three forms of RFC 9110, section 5.6.7; all are GMT. */
static bool parse_date(const char *text, int64_t *unix_s)
{
    static const char *const forms[] = {
        "%a, %d %b %Y %H:%M:%S GMT",
        "%A, %d-%b-%y %H:%M:%S GMT",
        "%a %b %e %H:%M:%S %Y",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);
        if (end && *end == 0) {
            *unix_s = timegm(&tm);
            return true;
        }
    }
    return false;
}

bool http_retry_after_parse(struct bytes value, int64_t now_unix_ms, int64_t *ms)
{
    int64_t seconds, at_s;
    char text[64];
    if (units_parse_u63(value, &seconds)) {
        if (seconds > SENSIBLE_S)
            return false;
        *ms = seconds * 1000;
    } else {
        if (value.len >= sizeof text)
            return false;
        memcpy(text, value.at, value.len);
        text[value.len] = 0;
        if (!parse_date(text, &at_s))
            return false;
        *ms = at_s * 1000 - now_unix_ms;
        if (*ms < 0 || *ms / 1000 > SENSIBLE_S)
            return false; /* past, or a clock that can't be meant */
    }
    if (*ms > CAP_MS)
        *ms = CAP_MS;
    return true;
}
