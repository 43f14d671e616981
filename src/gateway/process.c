#include "gateway/process.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "gateway/notify.h"
#include "util/check.h"
#include "util/log.h"

/* Every client and every running attempt is a file descriptor: takes what the system lets us have. */
static void raise_file_limit(const struct config *config)
{
    enum { OWN_FILES = 128 };
    rlim_t wanted = (rlim_t)config->http.max_connections + config->dispatch_concurrency + OWN_FILES;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > wanted ? wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted)
        log_event(LOG_WARN, "file_limit_low", LOG_INT("limit", limit.rlim_cur), LOG_INT("wanted", wanted),
                  LOG_STR("do", "raise the limit of open files (ulimit -n, LimitNOFILE=)"));
}

/* Hooks are made on one thread and freed on another, thousands at a time: with the allocator's defaults each
 * batch shrinks a heap and the next one grows it again, a fifth of the processor time of a hook (DECISIONS).
 */
static void keep_heaps(void)
{
    enum { TRIM_BYTES = 64 << 20, PAD_BYTES = 1 << 20 };
    mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
    mallopt(M_TOP_PAD, PAD_BYTES);
}

/* Bodies and secrets are in this memory: no core file of it, and no debugger of the same user. A developer
 * who wants one says LANEGATE_DUMPABLE=1. */
static void stay_private(void)
{
    const char *allowed = getenv("LANEGATE_DUMPABLE");
    if (!allowed || strcmp(allowed, "1") != 0)
        CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
}

static sigset_t awaited(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

void process_settle(const struct config *config)
{
    sigset_t set = awaited();
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    raise_file_limit(config);
    keep_heaps();
    stay_private();
}

/* The next signal; 0 after `ms` without one. */
static int next_signal(const sigset_t *set, int64_t ms)
{
    struct timespec patience = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    int signal;
    do
        signal = sigtimedwait(set, NULL, &patience);
    while (signal < 0 && errno == EINTR);
    CHECK(signal > 0 || errno == EAGAIN);
    return signal > 0 ? signal : 0;
}

void process_wait_for_end(const struct process_watch *watch)
{
    enum { HOUR_MS = 3600 * 1000, TOLD_WITHIN_PATIENCE = 3 };
    const sigset_t set = awaited();
    int64_t patience_ms = notify_watchdog_ms();
    for (;;) {
        int signal = next_signal(&set, patience_ms ? patience_ms / TOLD_WITHIN_PATIENCE : HOUR_MS);
        if (signal == SIGTERM || signal == SIGINT)
            return;
        if (patience_ms && watch->moves(watch->ctx))
            notify_supervisor("WATCHDOG=1");
        if (!signal)
            continue;
        watch->hangup(watch->ctx);
    }
}

static void end_at_once(int signal)
{
    (void)signal;
    _exit(1);
}

void process_end_by(int64_t within_ms)
{
    struct sigaction action = {.sa_handler = end_at_once};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)(within_ms / 1000 + 1));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
