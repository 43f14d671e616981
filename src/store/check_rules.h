/* What is always true of a store of ours, as SQL: each rule gives how many things break it and, of the first,
 * a number to find it by (NULL: there is none). */
#ifndef STORE_CHECK_RULES_H
#define STORE_CHECK_RULES_H

struct check_rule {
    int since; /* the layout that has what it asks about */
    const char *what;
    const char *sql;
    const char *of; /* "%lld ..., the first at seq %lld" begins with it; NULL: a count says nothing */
    const char *by; /* what the second number is */
    const char *expected, *action;
};

extern const struct check_rule check_rules[];
extern const int check_rule_count;

#endif
