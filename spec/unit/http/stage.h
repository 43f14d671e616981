/* A server with a handler that tests can steer. */
#ifndef SPEC_HTTP_STAGE_H
#define SPEC_HTTP_STAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "http/http.h"

#define STAGE_KEPT_MAX 1024
#define STAGE_STREAM_MAX (64 * 1024)

struct stage {
    struct http_server *server;
    struct http_options options;
    const char *listen[2];
    atomic_int handled;       /* requests that reached the handler */
    atomic_int handled_by[2]; /* the first two loops */
    atomic_int refused_timeout, refused_memory, refused_connections, refused_handshake, refused_other;
    struct metrics *metrics;              /* of the server */
    _Atomic(struct http_stream *) stream; /* of the last /stream; the test takes it out */
    atomic_int closed;                    /* streams that were told so */
    atomic_bool gate;                     /* while set, /gate blocks its loop */
    /* When set, exchanges are kept for the test to answer, instead of echoed. */
    atomic_bool keep;
    pthread_mutex_t lock;
    struct http_exchange *kept[STAGE_KEPT_MAX];
    size_t kept_count;
};

/* From main, before the first stage: with the argument "tls" every server speaks TLS, and wire.h speaks it
 * too, so that the same tests hold for both. Then `stage_done` at the end. */
void stage_arguments(int argc, char **argv);
void stage_done(void);

/* Options with wide bounds and one loop; change them before stage_open. */
void stage_prepare(struct stage *stage);
void stage_open(struct stage *stage);
void stage_shut(struct stage *stage); /* the server only; it may be opened again */
void stage_close(struct stage *stage);

/* The echo: 200, text/plain, "METHOD target\nname: value\n...\n\nbody". Steered by the target:
 *   /json      201 {"ok":true}, the defaults       /204   an empty answer
 *   /close     as /json, and closes                /drop  no answer
 *   /big?N     N bytes                             /who   address, kept or new, client certificate
 *   /stream    an answer that goes on
 *   /gate      as /json, once the gate is open */

/* Waits until the handler holds `n` exchanges; they are taken out into `out`. */
void stage_take(struct stage *stage, size_t n, struct http_exchange **out);

/* A gauge of the server as a scrape shows it. */
double stage_gauge(struct stage *stage, const char *name);

/* Polls with a deadline; fails the test when it passes. */
#define STAGE_WAIT(condition)                                                                                \
    do {                                                                                                     \
        for (int waited_ = 0; !(condition); waited_++) {                                                     \
            assert_true(waited_ < 10000);                                                                    \
            stage_pause();                                                                                   \
        }                                                                                                    \
    } while (0)
void stage_pause(void); /* a millisecond */

#endif
