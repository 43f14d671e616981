#include "util/status.h"

#include <stdio.h>

static const char *const names[] = {
#define STATUS_NAME(name, text) #name,
    STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
};

static const char *const texts[] = {
#define STATUS_TEXT(name, text) text,
    STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
};

const char *status_name(enum status status)
{
    return names[status];
}

const char *status_text(enum status status)
{
    return texts[status];
}

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return status;
}
