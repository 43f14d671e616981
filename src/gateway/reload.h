/* Another configuration while everything runs. One thread does it, so that reloads come one after the other
 * and nobody who asks is in the way of anything; it also frees the configurations that nobody uses any more.
 */
#ifndef GATEWAY_RELOAD_H
#define GATEWAY_RELOAD_H

#include <pthread.h>
#include <stdbool.h>

#include "admin/admin.h"
#include "util/list.h"
#include "util/status.h"

struct gateway;
struct generation;

struct reloader {
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* of the following */
    pthread_cond_t wake;  /* monotonic */
    struct list asked;    /* of admin_reload */
    struct list over;     /* generations to be freed */
    bool hangup;          /* SIGHUP came */
    bool stopping;
    const struct generation *unanswered; /* ingest still has requests of it */
};

void reload_open(struct gateway *gateway); /* before the first generation */
enum status reload_start(struct gateway *gateway, struct error *err);
/* Any thread; they return at once. The result of a SIGHUP is in the log. */
void reload_hangup(void *gateway);
void reload_ask(void *gateway, struct admin_reload *asked);
/* What is under way ends soon; whoever asked and waits is told that the process goes down. */
void reload_stop(struct gateway *gateway);
void reload_close(struct gateway *gateway); /* every generation is over */

/* For generation.over, with ctx = the gateway. */
void reload_over(void *gateway, struct generation *generation);

#endif
