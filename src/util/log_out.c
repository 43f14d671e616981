#include "util/log_out.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/thread.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t came;
    bool started;
    bool writing; /* the thread has lines that are not out yet */
    struct buf waiting;
    int64_t dropped;
} out = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER, .waiting = {.max = LOG_WAITING_MAX}};

/* All of it, however long that takes. */
static void write_out(struct bytes text)
{
    while (text.len > 0) {
        ssize_t n = write(STDERR_FILENO, text.at, text.len);
        if (n < 0 && errno == EAGAIN) { /* somebody else who has this pipe made it so */
            struct pollfd wait = {.fd = STDERR_FILENO, .events = POLLOUT};
            poll(&wait, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return; /* nowhere left to say so */
        } else if (n > 0) {
            text = bytes_of(text.at + n, text.len - (size_t)n);
        }
    }
}

/* A pipe that polls as writable has room for PIPE_BUF bytes at least; a file never makes anybody wait. */
static bool is_taken_at_once(size_t len)
{
    struct stat stat;
    if (fstat(STDERR_FILENO, &stat) == 0 && S_ISREG(stat.st_mode))
        return true;
    struct pollfd now = {.fd = STDERR_FILENO, .events = POLLOUT};
    return len <= PIPE_BUF && poll(&now, 1, 0) == 1;
}

void log_out(struct bytes line)
{
    pthread_mutex_lock(&out.lock);
    bool behind = out.writing || out.waiting.len > 0 || out.dropped > 0;
    if (!out.started || (!behind && is_taken_at_once(line.len))) {
        write_out(line);
    } else if (out.dropped > 0 || out.waiting.len + line.len > LOG_WAITING_MAX) {
        out.dropped++; /* and all behind it, until that is told: a gap is one gap */
    } else {
        buf_putb(&out.waiting, line);
        pthread_cond_signal(&out.came);
    }
    pthread_mutex_unlock(&out.lock);
}

static void *write_what_waits(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&out.lock);
    for (;;) {
        while (out.waiting.len == 0 && out.dropped == 0)
            pthread_cond_wait(&out.came, &out.lock);
        struct buf taken = out.waiting;
        int64_t dropped = taken.len == 0 ? out.dropped : 0;
        out.waiting = (struct buf){.max = LOG_WAITING_MAX};
        out.dropped -= dropped;
        out.writing = true;
        pthread_mutex_unlock(&out.lock);
        if (dropped)
            log_line(&taken, LOG_WARN, "log_lines_dropped", &LOG_INT("lines", dropped), 1);
        write_out(buf_bytes(&taken));
        buf_free(&taken);
        pthread_mutex_lock(&out.lock);
        out.writing = false;
    }
    return NULL;
}

bool log_out_start(void)
{
    pthread_t thread;
    bool started = thread_start(&thread, "log", write_what_waits, NULL) == 0;
    if (started)
        pthread_detach(thread);
    pthread_mutex_lock(&out.lock);
    out.started = started;
    pthread_mutex_unlock(&out.lock);
    return started;
}

bool log_out_drain(int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    for (;;) {
        pthread_mutex_lock(&out.lock);
        bool done = !out.writing && out.waiting.len == 0 && out.dropped == 0;
        pthread_mutex_unlock(&out.lock);
        if (done || clock_mono_ms() >= until_ms)
            return done;
        usleep(1000);
    }
}
