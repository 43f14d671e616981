/* The rooms that the admin API looks into, all real, in a folder of their own: a source "demo" with a log
 * sink that takes everything, an ordered sink "gone" that nobody answers and that keeps trying, and an
 * ordered sink "dead" that gives up at once. */
#ifndef SPEC_ADMIN_HOUSE_H
#define SPEC_ADMIN_HOUSE_H

#include <pthread.h>

#include "admin/admin.h"
#include "events/events.h"
#include "util/buf.h"
#include "json/tree.h"

enum { HOUSE_LOG, HOUSE_GONE, HOUSE_DEAD, HOUSE_SINKS };

struct house {
    char dir[64];
    int closed_port; /* a socket that is bound and does not listen: connections are refused */
    struct metrics *metrics;
    struct events *events;
    struct store *store;
    struct deliver *deliver;
    struct lanes *lanes;
    struct lanes_sink lanes_sinks[HOUSE_SINKS];
    struct admin_sink admin_sinks[HOUSE_SINKS];
    struct admin *admin;
    struct http_server *server;
    struct admin_reloaded reloaded; /* what a reload gives */
    _Atomic(const char *) reason;   /* why it is not ready; NULL: it is */
    pthread_mutex_t gate_lock;
    pthread_cond_t gate;
    bool gate_shut, at_gate; /* whoever asks for a hook's lane waits there */
};

/* `tokens` may be none. Fails the test when something does not open. */
void house_open(struct house *house, const struct admin_token *tokens, size_t token_count);
void house_close(struct house *house);

/* Shut: who asks for the lane of a hook (a rekey) waits until it is open again. */
void house_gate(struct house *house, bool shut);
/* Until somebody waits there. */
void house_wait_at_gate(struct house *house);

/* Commits a hook of tenant "default" with a row for every sink, and waits until it is durable; its id as text
 * in `id`. An absent key is the keyless lane. */
void house_take(struct house *house, struct bytes key, struct bytes body, char id[UUID_TEXT]);

/* One request with "Host: localhost", unless `headers` ("Name: value\r\n" lines) has its own. */
struct house_answer {
    int status;
    struct buf head, body;
    json_t *json; /* NULL when the body is none */
};
void house_ask(struct house *house, const char *method, const char *target, const char *headers,
               struct house_answer *answer);
void house_answer_free(struct house_answer *answer);
/* A header line is in the answer's head, byte for byte. */
bool house_answer_has(const struct house_answer *answer, const char *line);

/* GET, 200, JSON; json_decref it. */
json_t *house_get(struct house *house, const char *target);

/* Asks until member `total` of a list is `n`; fails the test after ten seconds. */
void house_wait_total(struct house *house, const char *target, long long n);

#endif
