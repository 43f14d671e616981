#include "util/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "util/clock.h"
#include "util/jsonw.h"
#include "util/log_out.h"

static _Atomic int least_level = LOG_INFO;
static _Atomic bool as_json = true;
static const char *const names[] = {"debug", "info", "warn", "error"};

void log_setup(enum log_level least, bool json)
{
    least_level = (int)least;
    as_json = json;
}

bool log_level_parse(const char *text, enum log_level *level)
{
    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0)
            return *level = (enum log_level)i, true;
    return false;
}

static void timestamp(char out[32])
{
    int64_t ms = clock_unix_ms();
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, 32 - n, ".%03dZ", (int)(ms % 1000));
}

static void line_json(struct buf *line, const char *ts, enum log_level level, const char *event,
                      const struct log_field *fields, size_t n)
{
    struct jsonw w = jsonw_on(line);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "ts", ts);
    jsonw_str(&w, "level", names[level]);
    jsonw_str(&w, "event", event);
    for (size_t i = 0; i < n; i++) {
        const struct log_field *f = &fields[i];
        switch (f->kind) {
        case LOG_FIELD_STR:
            jsonw_str(&w, f->name, f->str);
            break;
        case LOG_FIELD_BYTES:
            jsonw_bytes_percent(&w, f->name, f->bytes);
            break;
        case LOG_FIELD_INT:
            jsonw_int(&w, f->name, f->num);
            break;
        case LOG_FIELD_BOOL:
            jsonw_bool(&w, f->name, f->num != 0);
            break;
        }
    }
    jsonw_end_object(&w);
}

static void line_text(struct buf *line, const char *ts, enum log_level level, const char *event,
                      const struct log_field *fields, size_t n)
{
    buf_putf(line, "%.12s %-5s %s", ts + 11, names[level], event);
    for (size_t i = 0; i < n; i++) {
        const struct log_field *f = &fields[i];
        buf_putf(line, " %s=", f->name);
        if (f->kind == LOG_FIELD_STR)
            percent_encode(line, f->str ? bytes_str(f->str) : BYTES("-"));
        else if (f->kind == LOG_FIELD_BYTES)
            percent_encode(line, f->bytes.at ? f->bytes : BYTES("-"));
        else if (f->kind == LOG_FIELD_BOOL)
            buf_puts(line, f->num ? "true" : "false");
        else
            buf_putf(line, "%lld", (long long)f->num);
    }
}

void log_line(struct buf *line, enum log_level level, const char *event, const struct log_field *fields,
              size_t n)
{
    char ts[32];
    timestamp(ts);
    (as_json ? line_json : line_text)(line, ts, level, event, fields, n);
    buf_putc(line, '\n');
}

void log_write(enum log_level level, const char *event, const struct log_field *fields, size_t n)
{
    if ((int)level < least_level)
        return;
    struct buf line = {.max = 64 << 10};
    log_line(&line, level, event, fields, n);
    if (line.overflow) { /* half an object is no use to anybody: the event alone, which says so */
        buf_clear(&line);
        log_line(&line, level, event, &LOG_BOOL("cut", true), 1);
    }
    log_out(buf_bytes(&line));
    buf_free(&line);
}
