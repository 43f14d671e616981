/* Accepted means durable: a child commits hooks and says over a pipe which ones it was told are safe; it is
 * killed in the middle of it, again and again; each time every safe hook is there, byte for byte, unless it
 * was delivered (then it may have been removed, the store is kept small), what was flushed as delivered still
 * is, no seq comes twice, and whatever `lanegate store check` knows to be true of a store is true.
 *
 *     crash_kill [rounds=20] [seed]
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/tools.h"
#include "store_rig.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/vec.h"

enum { OUTSTANDING = 32, RECORDS_MAX = 4000, BODY_MAX = 12000 };

enum kind {
    ACKED,     /* done(OK) */
    FINISHING, /* about to be reported delivered: may be removed from now on */
    FINISHED,  /* store_flush has said that this is durable */
};

/* Smaller than PIPE_BUF: whole or not at all. */
struct record {
    enum kind kind;
    uint64_t seq;
    struct uuid id;
};

static int out_fd;

static void say(enum kind kind, uint64_t seq, const struct uuid *id)
{
    struct record record;
    memset(&record, 0, sizeof record);
    record.kind = kind;
    record.seq = seq;
    if (id)
        record.id = *id;
    CHECK(write(out_fd, &record, sizeof record) == sizeof record);
}

/* ---- the child --------------------------------------------------------------------------------------------
 */

/* What the writer tells the main thread: seqs to be reported delivered. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static VEC(uint64_t) seqs;
static unsigned outstanding;

static void on_done(struct store_hook *hook, enum status status)
{
    CHECK(status == STATUS_OK);
    say(ACKED, hook->envelope->seq, &hook->envelope->id);
    pthread_mutex_lock(&lock);
    VEC_PUSH(&seqs, hook->envelope->seq);
    outstanding--;
    pthread_cond_signal(&answered);
    pthread_mutex_unlock(&lock);
    rig_hook_free(LIST_OWNER(hook, struct rig_hook, hook));
}

/* A body that can be told from its id alone. */
static size_t body_len_of(const struct uuid *id)
{
    return (size_t)(id->bytes[14] << 8 | id->bytes[15]) % BODY_MAX;
}

static void put(struct store *store, uint32_t sink)
{
    struct rig_hook *rig = rig_hook_new(BODY_MAX);
    struct envelope *envelope = rig->hook.envelope;
    envelope->body.len = body_len_of(&envelope->id);
    memset((char *)envelope->body.at, envelope->id.bytes[13], envelope->body.len);
    rig_hook_row(rig, sink, "cus_1");
    rig->hook.done = on_done;
    pthread_mutex_lock(&lock);
    outstanding++;
    pthread_mutex_unlock(&lock);
    CHECK(store_commit(store, &rig->hook) == STATUS_OK);
}

static _Noreturn void child(const struct store_options *options)
{
    struct store *store = rig_start(options);
    uint32_t sink;
    CHECK(store_sink_id(store, "shop", "billing", &sink, NULL) == STATUS_OK);
    for (;;) {
        pthread_mutex_lock(&lock);
        while (outstanding == OUTSTANDING)
            pthread_cond_wait(&answered, &lock);
        unsigned room = OUTSTANDING - outstanding;
        VEC(uint64_t) finished = {0};
        VEC_EACH (seq, &seqs) {
            if (*seq % 8 != 0)
                VEC_PUSH(&finished, *seq);
        }
        seqs.len = 0;
        pthread_mutex_unlock(&lock);

        for (unsigned i = 0; i < room; i++)
            put(store, sink);
        VEC_EACH (seq, &finished) {
            say(FINISHING, *seq, NULL);
            rig_change(store, *seq, sink, ROW_DONE, "ok");
        }
        if (finished.len > 0 && finished.at[0] % 4 == 0 && store_flush(store)) {
            VEC_EACH (seq, &finished)
                say(FINISHED, *seq, NULL);
        }
        VEC_FREE(&finished);
    }
}

/* ---- the parent -------------------------------------------------------------------------------------------
 */

struct known {
    uint64_t seq;
    struct uuid id;
    bool finishing, finished;
};

static VEC(struct known) known; /* ascending in seq */
static uint64_t highest;        /* seq seen in any round, answered or not */

static struct known *known_of(uint64_t seq)
{
    size_t low = 0, high = known.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (known.at[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < known.len && known.at[low].seq == seq ? &known.at[low] : NULL;
}

static void learn(const struct record *record, uint64_t before)
{
    if (record->kind == ACKED) {
        CHECK(record->seq > before);
        CHECK(known.len == 0 || record->seq > known.at[known.len - 1].seq);
        VEC_PUSH(&known, ((struct known){.seq = record->seq, .id = record->id}));
        return;
    }
    struct known *hook = known_of(record->seq);
    CHECK(hook != NULL);
    hook->finishing = true;
    hook->finished |= record->kind == FINISHED;
}

static void run_and_kill(const struct store_options *options, unsigned kill_after)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(ends[0]);
        out_fd = ends[1];
        child(options);
    }
    close(ends[1]);
    uint64_t before = highest;
    struct record record;
    for (unsigned n = 0; read(ends[0], &record, sizeof record) == sizeof record; n++) {
        learn(&record, before);
        if (n == kill_after)
            CHECK(kill(pid, SIGKILL) == 0);
    }
    close(ends[0]);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static bool take_row(void *ctx, const struct store_row_view *row)
{
    CHECK(row->ordered && bytes_eq(row->key, BYTES("cus_1")));
    *(enum row_state *)ctx = row->state;
    return true;
}

static bool count_owed(void *ctx, const struct store_owed *row)
{
    const struct known *hook = known_of(row->seq);
    CHECK(!hook || !hook->finished);
    (*(size_t *)ctx)++;
    return true;
}

static void print_fault(void *ctx, const struct store_fault *fault)
{
    (void)ctx;
    fprintf(stderr, "%s: %s\n", fault->what, fault->found);
}

/* As the kill left it: log and all. */
static void check_files(const char *dir)
{
    struct error err;
    struct store_verdict verdict;
    struct store_judge judge = {.fault = print_fault};
    CHECK(store_check(dir, &judge, &verdict, &err) == STATUS_OK && verdict.faults == 0);
}

static size_t check(const struct store_options *options)
{
    struct error err;
    struct store_reader *reader;
    size_t there = 0, owed = 0, owing = 0;
    struct store *store = rig_open(options);
    CHECK(store_scan(store, count_owed, &owed, &err) == STATUS_OK);
    CHECK(store_reader_open(store, &reader, &err) == STATUS_OK);
    VEC_EACH (hook, &known) {
        struct envelope *envelope;
        enum row_state state;
        enum status status = store_read_hook(reader, hook->seq, &envelope);
        if (status == STATUS_NOT_FOUND && hook->finishing)
            continue;
        if (status != STATUS_OK) {
            fprintf(stderr, "seq %llu was answered OK and is gone: %s\n", (unsigned long long)hook->seq,
                    status_name(status));
            abort();
        }
        there++;
        CHECK(memcmp(&envelope->id, &hook->id, sizeof hook->id) == 0);
        CHECK(envelope->body.len == body_len_of(&hook->id));
        for (size_t i = 0; i < envelope->body.len; i++)
            CHECK((uint8_t)envelope->body.at[i] == hook->id.bytes[13]);
        envelope_unref(envelope);
        CHECK(store_row_of(reader, hook->seq, 1, take_row, &state) == STATUS_OK);
        CHECK(state == ROW_DONE ? hook->finishing : !hook->finished);
        owing += state == ROW_PENDING;
    }
    CHECK(owed >= owing); /* the scan finds every one; hooks whose answer was cut off may be there too */
    struct store_stats stats;
    store_stats(store, &stats);
    CHECK(stats.next_seq > highest);
    CHECK(known.len == 0 || stats.next_seq > known.at[known.len - 1].seq);
    highest = stats.next_seq - 1;
    store_reader_close(reader);
    store_close(store);
    return there;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 20;
    unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)clock_unix_ms();
    printf("seed %u\n", seed);
    fflush(stdout);
    log_setup(LOG_WARN, true);
    char *dir = rig_make_dir();
    struct store_options options = rig_options(dir);
    options.max_bytes = 8 << 20;
    for (unsigned round = 0; round < rounds; round++) {
        run_and_kill(&options, (unsigned)rand_r(&seed) % RECORDS_MAX);
        check_files(dir);
        size_t there = check(&options);
        printf("round %u: %zu answered so far, %zu there, next seq %llu\n", round + 1, known.len, there,
               (unsigned long long)highest + 1);
        fflush(stdout);
    }
    VEC_FREE(&known);
    rig_remove_dir(dir);
    return 0;
}
