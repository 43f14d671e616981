/* Prometheus text format 0.0.4: one HELP and one TYPE line a metric, then a line a sample. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/metrics_priv.h"
#include "util/check.h"

#define PREFIX "lanegate_"

/* In HELP a backslash and a line feed are escaped, in a label value a double quote too. */
static void escaped(struct buf *out, const char *text, bool quotes)
{
    for (; *text; text++) {
        if (*text == '\n')
            buf_puts(out, "\\n");
        else if (*text == '\\' || (quotes && *text == '"'))
            buf_putf(out, "\\%c", *text);
        else
            buf_putc(out, *text);
    }
}

void text_labels(struct buf *out, const struct metric_row *row, const char *const *values)
{
    const char *name = row->labels;
    for (size_t i = 0; *name; i++) {
        size_t len = strcspn(name, ",");
        CHECK(values && values[i]);
        buf_putf(out, "%s%.*s=\"", i ? "," : "", (int)len, name);
        escaped(out, values[i], true);
        buf_putc(out, '"');
        name += len + (name[len] == ',');
    }
    buf_puts(out, ""); /* never absent */
}

/* The short form when it reads back as the same number. */
static void number(struct buf *out, double n)
{
    if (isnan(n)) {
        buf_puts(out, "NaN");
    } else if (isinf(n)) {
        buf_puts(out, n > 0 ? "+Inf" : "-Inf");
    } else {
        char text[40];
        snprintf(text, sizeof text, "%.15g", n);
        if (strtod(text, NULL) != n)
            snprintf(text, sizeof text, "%.17g", n);
        buf_puts(out, text);
    }
}

/* name_suffix{labels} and a blank; `le` is the upper bound of a bucket, NULL for none. */
static void sample(struct buf *out, const struct metric_row *row, const char *suffix, const char *labels,
                   const double *le)
{
    buf_putf(out, PREFIX "%s%s", row->name, suffix);
    if (*labels || le) {
        buf_putf(out, "{%s", labels);
        if (le) {
            buf_puts(out, *labels ? ",le=\"" : "le=\"");
            number(out, *le);
            buf_putc(out, '"');
        }
        buf_putc(out, '}');
    }
    buf_putc(out, ' ');
}

/* The count is the last bucket as read here, not a number of its own: a sample taken while others count is
 * still consistent with itself. */
static void histogram(struct buf *out, const struct metric_row *row, const struct series *s)
{
    uint64_t below = 0;
    for (size_t i = 0; i <= s->bounds.len; i++) {
        double le = i < s->bounds.len ? s->bounds.at[i] : INFINITY;
        below += atomic_load_explicit(&s->buckets[i], memory_order_relaxed);
        sample(out, row, "_bucket", s->labels, &le);
        buf_putf(out, "%llu\n", (unsigned long long)below);
    }
    sample(out, row, "_sum", s->labels, NULL);
    number(out, atomic_load_explicit(&s->number, memory_order_relaxed));
    buf_putc(out, '\n');
    sample(out, row, "_count", s->labels, NULL);
    buf_putf(out, "%llu\n", (unsigned long long)below);
}

void text_metric(struct buf *out, const struct metric_row *row, const struct series *first)
{
    static const char *const kinds[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};
    buf_putf(out, "# HELP " PREFIX "%s ", row->name);
    escaped(out, row->help, false);
    buf_putf(out, "\n# TYPE " PREFIX "%s %s\n", row->name, kinds[row->kind]);

    for (const struct series *s = first; s; s = s->next) {
        if (row->kind == METRIC_HISTOGRAM) {
            histogram(out, row, s);
            continue;
        }
        sample(out, row, "", s->labels, NULL);
        if (row->kind == METRIC_COUNTER)
            buf_putf(out, "%llu", (unsigned long long)counter_read(s));
        else
            number(out, atomic_load_explicit(&s->number, memory_order_relaxed));
        buf_putc(out, '\n');
    }
}
