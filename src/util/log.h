/* One event a line on stderr, JSON or text. Any thread; a line is one write (log_out.h: nobody waits for
 * whoever reads them). Never give it a secret or a body.
 *
 *     log_event(LOG_WARN, "sink_slow", LOG_STR("sink", name), LOG_INT("ms", ms));
 */
#ifndef UTIL_LOG_H
#define UTIL_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "util/bytes.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *name;
    enum { LOG_FIELD_STR, LOG_FIELD_BYTES, LOG_FIELD_INT, LOG_FIELD_BOOL } kind;
    const char *str;
    struct bytes bytes;
    int64_t num;
};

#define LOG_STR(n, v) ((struct log_field){.name = (n), .kind = LOG_FIELD_STR, .str = (v)})
/* Shown percent-encoded: for request data. */
#define LOG_BYTES(n, v) ((struct log_field){.name = (n), .kind = LOG_FIELD_BYTES, .bytes = (v)})
#define LOG_INT(n, v) ((struct log_field){.name = (n), .kind = LOG_FIELD_INT, .num = (int64_t)(v)})
#define LOG_BOOL(n, v) ((struct log_field){.name = (n), .kind = LOG_FIELD_BOOL, .num = (v)})

/* At the start, before other threads; again at a reload is fine. */
void log_setup(enum log_level least, bool json);
bool log_level_parse(const char *text, enum log_level *level); /* debug info warn error */

#define log_event(level, event, ...)                                                                         \
    log_write((level), (event), (const struct log_field[]){__VA_ARGS__},                                     \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

/* Event names are snake_case constants. A cap of 64 KiB a line. */
void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t n);

struct buf;
/* The line alone, behind what `line` has. */
void log_line(struct buf *line, enum log_level level, const char *event, const struct log_field *fields,
              size_t n);

#endif
