/* One list makes every status: the enumerator, its name, its sentence. Functions that can fail for a reason
 * of the world return `enum status`; those that also owe a reader an explanation fill a `struct error`. */
#ifndef UTIL_STATUS_H
#define UTIL_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#define STATUS_LIST(X)                                                                                       \
    X(OK, "done")                                                                                            \
    X(FULL, "a bound was reached; try later")                                                                \
    X(SHARE_FULL, "the tenant has its share of the queue")                                                   \
    X(BACKLOG_FULL, "too much is waiting to be delivered")                                                   \
    X(DLQ_FULL, "the source has as many dead letters as it may have")                                        \
    X(PEN_FULL, "the source has as much in quarantine as it may have")                                       \
    X(DISK_FULL, "the disk is too full to promise anything")                                                 \
    X(UNAVAILABLE, "the store can't commit now")                                                             \
    X(DRAINING, "the process is going down")                                                                 \
    X(NOT_FOUND, "no such thing")                                                                            \
    X(INVALID, "the input is malformed")                                                                     \
    X(TOO_LARGE, "the input is over its limit")                                                              \
    X(BUSY, "somebody else holds it")                                                                        \
    X(IO, "the operating system refused")                                                                    \
    X(CORRUPT, "stored bytes do not decode")                                                                 \
    X(REFUSED, "a rule forbids it")

enum status {
#define STATUS_ENUM(name, text) STATUS_##name,
    STATUS_LIST(STATUS_ENUM)
#undef STATUS_ENUM
};

/* Static, lower-case-free identifier ("FULL") and sentence. */
const char *status_name(enum status status);
const char *status_text(enum status status);

/* A sentence for a person: what was expected, what was found, what to do. A value; never owns memory. */
struct error {
    char text[512];
};

/* Formats into `err` (cut at its size) and returns `status`, so that `return error_set(...)` reads well.
 * `err` may be NULL. */
enum status error_set(struct error *err, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
