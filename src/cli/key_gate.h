/* `--fail-if 'missing>1% or largest>20%'`: bounds on what a key does with stored hooks. Pure. */
#ifndef CLI_KEY_GATE_H
#define CLI_KEY_GATE_H

#include <stdbool.h>
#include <stddef.h>

#include "util/status.h"

/* Counts of hooks, but for `lanes`; a bound in percent is of `hooks`. */
#define KEY_GATE_NAMES(X) X(missing) X(largest) X(unordered) X(changed) X(errors) X(breaches) X(lanes)

struct key_counts {
    double hooks; /* of which the others are shares: those that the sink takes */
#define KEY_GATE_MEMBER(name) double name;
    KEY_GATE_NAMES(KEY_GATE_MEMBER)
#undef KEY_GATE_MEMBER
};

/* OK when `text` reads; INVALID with what was expected. Nothing is judged. */
enum status key_gate_check(const char *text, struct error *err);

/* True when a bound is passed: `which` gets the term, such as "largest>20%" (with what was found: 31%). */
bool key_gate_fails(const char *text, const struct key_counts *counts, char *which, size_t size);

#endif
