/* What an attempt came to. */
#include <stdio.h>

#include "deliver/deliver_priv.h"

const char *outcome_class_name(enum outcome_class cls)
{
    static const char *const names[] = {
#define OUTCOME_NAME(id, name) name,
        OUTCOME_CLASSES(OUTCOME_NAME)
#undef OUTCOME_NAME
    };
    return names[cls];
}

/* Keeps what was measured (duration, status); the reason is cut at its size and made printable, since parts
 * of it may come from a library or a certificate. */
void outcome_set(struct outcome *outcome, enum outcome_class cls, const char *format, ...)
{
    outcome->cls = cls;
    va_list args;
    va_start(args, format);
    vsnprintf(outcome->reason, sizeof outcome->reason, format, args);
    va_end(args);
    for (char *p = outcome->reason; *p; p++)
        if (*p < 0x20 || *p > 0x7e)
            *p = '?';
}
