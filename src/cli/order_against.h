/* Is everything that a gateway calls delivered in a receiver's log? Asks its admin API for every hook it
 * keeps, a thousand a page; a hook is looked at alone only where the page does not say enough: when the log
 * misses it, or when it has rows of several sinks. */
#ifndef CLI_ORDER_AGAINST_H
#define CLI_ORDER_AGAINST_H

#include "cli/client.h"
#include "cli/order_taken.h"

enum { ORDER_LISTED_MAX = 100 };

/* A row that is named in the report. `sink` points into the order_against. */
struct order_row {
    struct uuid id;
    uint64_t seq;
    const struct taken_sink *sink;
    char state[16]; /* of one that is not delivered: "pending", "dead", "held", "discarded" */
};

struct order_against_report {
    uint64_t hooks;       /* that the gateway keeps, of the sources looked at */
    uint64_t delivered;   /* rows that it calls delivered */
    uint64_t missing;     /* of those, the ones that the log did not take */
    uint64_t undelivered; /* rows that it still owes, or gave up on */
    uint64_t dead;        /* of those, dead letters */
    const struct order_row *missing_rows, *undelivered_rows; /* the first ones; the order_against's */
    size_t missing_listed, undelivered_listed;               /* at most ORDER_LISTED_MAX */
};

struct order_against;

/* Asks the gateway for its sinks. `only` are "SOURCE" or "SOURCE/SINK", those whose receiver wrote the log;
 * none: all but the sinks of type log. The verb's exit code; `client` is borrowed. */
int order_against_open(const struct cli_verb *verb, struct client *client, const struct arg_list *only,
                       struct order_against **out);
void order_against_close(struct order_against *against); /* NULL is fine */

/* Every delivery of the log is to be told to this one before order_against_ask. */
struct order_taken *order_against_taken(struct order_against *against);

/* Goes through all hooks. The verb's exit code: CLI_OK says that the gateway answered, no more. Once. */
int order_against_ask(struct order_against *against);
/* Once what the log got meanwhile was told too: a delivery between our look at the log and at the gateway is
 * not a missing one. */
void order_against_finish(struct order_against *against, struct order_against_report *report);

#endif
