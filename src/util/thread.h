/* Threads that hear no signal: signals are main's, which waits for them. A thread that did not say so would
 * be given whatever comes while main is busy, and SIGHUP or SIGTERM would end the process on the spot. */
#ifndef UTIL_THREAD_H
#define UTIL_THREAD_H

#include <pthread.h>
#include <signal.h>

/* pthread_create with every signal blocked; 0, or its error number. `name` is what the system shows, at most
 * 15 bytes. */
static inline int thread_start(pthread_t *thread, const char *name, void *(*run)(void *ctx), void *ctx)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(thread, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0)
        pthread_setname_np(*thread, name);
    return code;
}

#endif
