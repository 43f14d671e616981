/* One attempt made and waited for, and the hook it carries. */
#ifndef SPEC_DELIVER_TRIAL_H
#define SPEC_DELIVER_TRIAL_H

#include <pthread.h>
#include <stdbool.h>

#include "deliver/deliver.h"
#include "envelope/envelope.h"

/* A room with two loops whose egress lets loopback and http through. */
struct deliver *trial_room(void);
/* "http" to http://127.0.0.1:PORT/hook, named billing of source stripe, 5 s. */
struct sink_options trial_options(unsigned port);

struct trial {
    struct attempt attempt;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended;
    char response[SINK_RESPONSE_KEPT]; /* outcome.response points here afterwards */
};

/* A hook of tenant acme, source stripe, with these headers and body. */
struct envelope *trial_envelope(const struct header *headers, size_t count, struct bytes body);

/* Takes the envelope. */
void trial_init(struct trial *trial, struct sink *sink, struct envelope *envelope);
void trial_start(struct trial *trial, struct deliver *deliver);
/* The outcome, once done() was called; fails the test after a minute. */
const struct outcome *trial_wait(struct trial *trial);
void trial_end(struct trial *trial);

/* The lot, for a default hook. */
struct outcome trial_once(struct deliver *deliver, const struct sink_options *options);

#endif
