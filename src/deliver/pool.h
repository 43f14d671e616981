/* Kept plain connections of one loop, by the host and port they lead to; whoever delivers there shares them,
 * and they outlive sinks, so a reload drops none. Everything here happens on the loop's thread, but for the
 * end. */
#ifndef DELIVER_POOL_H
#define DELIVER_POOL_H

#include "deliver/loop.h"
#include "util/ip.h"

/* All of a loop's. Its memory grows by some bytes with each host that was ever delivered to. */
struct pools {
    struct list all;  /* of pool.node */
    struct list kept; /* of connection.by_age: idle ones, the oldest first */
    size_t kept_count;
};

struct pool {
    struct list node;
    struct list idle; /* of connection.node, the warmest last */
    struct loop *loop;
    char authority[];
};

struct connection {
    struct loop_socket socket; /* ready() is its user's while it has one */
    struct list node, by_age;
    struct pool *pool;
    int64_t kept_us; /* since when it is idle */
    struct ip address;
    unsigned port;
    void *user;
};

void pools_init(struct pools *pools);
/* Closes every idle connection; there are no others. The loop's thread, or joined. */
void pools_close(struct pools *pools);
/* The pool of "host:port", made when there was none. */
struct pool *pools_find(struct loop *loop, const char *authority);
/* When the oldest idle connection is to be closed, monotonic; 0: never. */
int64_t pools_due_us(const struct pools *pools);
void pools_expire(struct pools *pools, int64_t now_us);

/* The caller's until it gives it back or closes it. Takes the socket, which does not block. */
struct connection *connection_new(struct pool *pool, int fd, const struct ip *address, unsigned port);
/* The one that was used last; NULL: none is idle. */
struct connection *connection_take(struct pool *pool);
/* Idle from now on. What comes on it, be it that the peer hangs up, closes it. */
void connection_keep(struct connection *connection);
void connection_close(struct connection *connection);

#endif
