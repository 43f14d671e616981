/* What libh2o 2.2.5 would leave behind, or do behind our back. Each was seen; none has a call of its own. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/http_priv.h"

static void set_up(void)
{
    /* From 32 MB on a connection's input would become a mapped file in /tmp: a full disk there ends the
     * process with SIGBUS, and bodies do not belong there. The bounds of the wall keep the memory in check.
     */
    h2o_socket_buffer_mmap_settings.threshold = SIZE_MAX;
    /* Inputs double as they grow. glibc learns from each large block that is freed to keep the next of its
     * size on the heap, and never gives that back: large ones are to come from the system and to return to
     * it. */
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
}

void http_debts_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
}

/* h2o_evloop_destroy forgets to close the descriptor of its epoll, an int behind the public part of the loop.
 */
int http_debts_epoll_fd(h2o_loop_t *loop)
{
    char path[64], target[64] = {0};
    int fd;
    memcpy(&fd, (char *)loop + sizeof *loop, sizeof fd);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(path, target, sizeof target - 1);
    return len > 0 && strcmp(target, "anon_inode:[eventpoll]") == 0 ? fd : -1;
}

/* Memory that libh2o keeps per thread for its next use. */
void http_debts_thread(void)
{
    h2o_mem_recycle_t *inputs = &h2o_socket_buffer_prototype.allocator;
    while (inputs->cnt > 0)
        free(h2o_mem_alloc_recycle(inputs, 0));

    /* The pools' chunks have no public door: take more than can be kept into a pool, and free them from it. A
     * pool's chunks hang together by their first word. */
    h2o_mem_pool_t pool;
    h2o_mem_init_pool(&pool);
    for (int i = 0; i < 4 * 17; i++)
        h2o_mem_alloc_pool(&pool, 1000); /* four a chunk, and libh2o keeps at most 16 chunks */
    for (void *chunk = pool.chunks, *next; chunk; chunk = next) {
        memcpy(&next, chunk, sizeof next);
        free(chunk);
    }
}
