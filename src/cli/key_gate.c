#include "cli/key_gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/bytes.h"

enum { TERM_MAX = 64 };

struct term {
    char text[TERM_MAX];
    size_t member; /* offset in struct key_counts */
    char op[3];
    double bound;
    bool percent;
};

static const struct {
    const char *name;
    size_t member;
} names[] = {
#define KEY_GATE_NAME(name) {#name, offsetof(struct key_counts, name)},
    KEY_GATE_NAMES(KEY_GATE_NAME)
#undef KEY_GATE_NAME
};

static enum status bad_term(struct error *err, const char *term)
{
    return error_set(
        err, STATUS_INVALID,
        "expected terms like \"missing>1%%\" joined by \"or\", of missing, largest, unordered, changed, "
        "errors, breaches or lanes, with > >= < or <=; got \"%s\"",
        term);
}

static bool read_term(struct term *term)
{
    size_t len = strspn(term->text, "abcdefghijklmnopqrstuvwxyz");
    const char *at = term->text + len;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i].name) != len || strncmp(names[i].name, term->text, len) != 0)
            continue;
        term->member = names[i].member;
        at += strspn(at, " ");
        size_t op_len = strspn(at, "<>=");
        if (op_len == 0 || op_len > 2 || at[0] == '=' || (op_len == 2 && at[1] != '='))
            return false;
        memcpy(term->op, at, op_len);
        term->op[op_len] = 0;
        at += op_len;
        at += strspn(at, " ");
        char *end;
        if (*at < '0' || *at > '9')
            return false;
        term->bound = strtod(at, &end);
        term->percent = *end == '%';
        return end[term->percent] == 0;
    }
    return false;
}

/* The next term of *text; false at its end. `status` says whether it read. */
static bool next_term(const char **text, struct term *term, enum status *status, struct error *err)
{
    if (!*text)
        return false;
    const char *end = strstr(*text, " or ");
    struct bytes part = bytes_trim(end ? bytes_of(*text, (size_t)(end - *text)) : bytes_str(*text));
    *term = (struct term){0};
    snprintf(term->text, sizeof term->text, "%.*s", BYTES_ARG(part));
    *status = part.len < TERM_MAX && read_term(term) ? STATUS_OK : bad_term(err, term->text);
    *text = end ? end + 4 : NULL;
    return true;
}

enum status key_gate_check(const char *text, struct error *err)
{
    struct term term;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && next_term(&text, &term, &status, err))
        ;
    return status;
}

static bool passes(const struct term *term, double value)
{
    if (term->op[0] == '>')
        return term->op[1] ? value >= term->bound : value > term->bound;
    return term->op[1] ? value <= term->bound : value < term->bound;
}

bool key_gate_fails(const char *text, const struct key_counts *counts, char *which, size_t size)
{
    struct term term;
    enum status status;
    while (next_term(&text, &term, &status, NULL)) {
        double value;
        memcpy(&value, (const char *)counts + term.member, sizeof value);
        if (term.percent)
            value = counts->hooks > 0 ? 100 * value / counts->hooks : 0;
        if (status != STATUS_OK || !passes(&term, value))
            continue;
        snprintf(which, size, "%s (found %.6g%s)", term.text, value, term.percent ? "%" : "");
        return true;
    }
    return false;
}
