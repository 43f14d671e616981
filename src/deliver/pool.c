#include "deliver/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/mem.h"

enum {
    KEPT_MAX = 8192,         /* of a loop */
    IDLE_US = 60 * 1000000L, /* many firewalls forget a connection after that */
};

void pools_init(struct pools *pools)
{
    *pools = (struct pools){0};
    list_init(&pools->all);
    list_init(&pools->kept);
}

static void close_oldest(struct pools *pools)
{
    connection_close(LIST_OWNER(pools->kept.next, struct connection, by_age));
}

void pools_close(struct pools *pools)
{
    struct list *node;
    while (!list_empty(&pools->kept))
        close_oldest(pools);
    while ((node = list_pop(&pools->all)))
        free(LIST_OWNER(node, struct pool, node));
}

struct pool *pools_find(struct loop *loop, const char *authority)
{
    struct pools *pools = loop_pools(loop);
    LIST_EACH (node, &pools->all) {
        struct pool *pool = LIST_OWNER(node, struct pool, node);
        if (strcmp(pool->authority, authority) == 0)
            return pool;
    }
    size_t size = strlen(authority) + 1;
    struct pool *pool = mem_zalloc(sizeof *pool + size);
    pool->loop = loop;
    memcpy(pool->authority, authority, size);
    list_init(&pool->idle);
    list_append(&pools->all, &pool->node);
    return pool;
}

int64_t pools_due_us(const struct pools *pools)
{
    if (list_empty(&pools->kept))
        return 0;
    return LIST_OWNER(pools->kept.next, struct connection, by_age)->kept_us + IDLE_US;
}

void pools_expire(struct pools *pools, int64_t now_us)
{
    for (int64_t due_us; (due_us = pools_due_us(pools)) && due_us <= now_us;)
        close_oldest(pools);
}

static void on_idle(struct loop_socket *socket, uint32_t events)
{
    (void)events;
    connection_close((struct connection *)socket);
}

static bool is_idle(const struct connection *connection)
{
    return !list_empty(&connection->by_age);
}

static void leave_idle(struct connection *connection)
{
    list_remove(&connection->node);
    list_remove(&connection->by_age);
    loop_pools(connection->pool->loop)->kept_count--;
}

struct connection *connection_new(struct pool *pool, int fd, const struct ip *address, unsigned port)
{
    struct connection *connection = mem_zalloc(sizeof *connection);
    *connection = (struct connection){.socket.fd = fd, .pool = pool, .address = *address, .port = port};
    list_init(&connection->node);
    list_init(&connection->by_age);
    return connection;
}

struct connection *connection_take(struct pool *pool)
{
    if (list_empty(&pool->idle))
        return NULL;
    struct connection *connection = LIST_OWNER(pool->idle.prev, struct connection, node);
    leave_idle(connection);
    return connection;
}

void connection_keep(struct connection *connection)
{
    struct pools *pools = loop_pools(connection->pool->loop);
    if (pools->kept_count == KEPT_MAX)
        close_oldest(pools);
    connection->user = NULL;
    connection->socket.ready = on_idle;
    connection->kept_us = clock_mono_us();
    loop_watch(connection->pool->loop, &connection->socket, EPOLLIN);
    list_append(&connection->pool->idle, &connection->node);
    list_append(&pools->kept, &connection->by_age);
    pools->kept_count++;
}

void connection_close(struct connection *connection)
{
    if (is_idle(connection))
        leave_idle(connection);
    loop_unwatch(connection->pool->loop, &connection->socket);
    close(connection->socket.fd);
    free(connection);
}
