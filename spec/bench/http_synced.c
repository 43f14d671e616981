/* The least that a durable answer can cost with this HTTP room on this machine: bodies of all that wait are
 * written behind each other into one file, with one write and one sync a batch, and answered. No envelope, no
 * index, no row, no lane, no delivery, no outcome: what `ingest` measures can't be faster than this, whatever
 * stands in the place of SQLite. The file is written round and round in space it has, as a log is.
 *
 *     bench_http_synced THREADS FILE
 *
 * Prints its address, ends on SIGTERM or SIGINT. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/http.h"
#include "util/check.h"
#include "util/inbox.h"
#include "util/mem.h"

enum { LOG_BYTES = 32 << 20, BATCH_MAX = 8 << 20 };

struct post {
    struct list node;
    struct http_exchange *exchange;
    size_t len;
    char body[];
};

static struct inbox posts;
static sem_t work;
static int file;

static void wake(void *ctx)
{
    (void)ctx;
    sem_post(&work);
}

static void take(void *ctx, const struct http_request *request)
{
    (void)ctx;
    struct post *post = mem_alloc(sizeof *post + request->body.len);
    post->exchange = request->exchange;
    post->len = request->body.len;
    memcpy(post->body, request->body.at, request->body.len);
    inbox_put(&posts, &post->node);
}

static void answer_all(struct list *batch)
{
    static const char body[] = "{\"id\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"status\":\"accepted\"}";
    http_answers_hold();
    for (struct list *node; (node = list_pop(batch));) {
        struct post *post = LIST_OWNER(node, struct post, node);
        http_answer(post->exchange,
                    &(struct http_answer){.status = 201, .body = bytes_of(body, sizeof body - 1)});
        free(post);
    }
    http_answers_release();
}

static void *write_all(void *arg)
{
    static char bytes[BATCH_MAX];
    off_t at = 0;
    (void)arg;
    for (;;) {
        struct list batch = LIST_INIT(batch);
        size_t len = 0;
        while (sem_wait(&work) != 0)
            ;
        inbox_take(&posts, &batch);
        LIST_EACH (node, &batch) {
            struct post *post = LIST_OWNER(node, struct post, node);
            CHECK(len + post->len <= sizeof bytes);
            memcpy(bytes + len, post->body, post->len);
            len += post->len;
        }
        if (at + (off_t)len > LOG_BYTES)
            at = 0;
        CHECK(pwrite(file, bytes, len, at) == (ssize_t)len && fdatasync(file) == 0);
        at += (off_t)len;
        answer_all(&batch);
    }
    return NULL;
}

static void file_open(const char *path)
{
    char *zeros = mem_zalloc(LOG_BYTES);
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(file >= 0 && write(file, zeros, LOG_BYTES) == LOG_BYTES && fsync(file) == 0);
    free(zeros);
}

int main(int argc, char **argv)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (argc != 3) {
        fprintf(stderr, "usage: bench_http_synced THREADS FILE\n");
        return 2;
    }
    file_open(argv[2]);
    CHECK(sem_init(&work, 0, 0) == 0);
    inbox_init(&posts, wake, NULL);
    pthread_t writer;
    CHECK(pthread_create(&writer, NULL, write_all, NULL) == 0);

    const char *listen = "127.0.0.1:0";
    struct http_options options = {
        .listen = &listen,
        .listen_count = 1,
        .threads = (unsigned)strtoul(argv[1], NULL, 10),
        .name = "synced",
        .max_body_bytes = 1 << 20,
        .max_buffered_bytes = 256 << 20,
        .header_timeout_ms = 10000,
        .body_timeout_ms = 30000,
        .idle_timeout_ms = 60000,
        .max_connections = 10000,
        .handler = take,
    };
    struct http_server *server;
    struct error err;
    if (http_open(&options, &server, &err) != STATUS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%s\n", http_address(server, 0));
    fflush(stdout);
    int signal;
    sigwait(&set, &signal);
    return 0; /* as if killed: nobody reads the file */
}
