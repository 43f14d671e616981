/* A store as files: a backup is whole, whatever happens beside it; what is damaged is told; a restore leaves
 * the old store, the new one, or says that it was interrupted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/tools.h"
#include "store_rig.h"
#include "util/clock.h"
#include "util/mem.h"

static struct store_options options;
static struct store *store;
static uint32_t billing;
static char *dir, *out;

static int setup(void **state)
{
    (void)state;
    struct error err;
    dir = rig_make_dir();
    out = rig_make_dir();
    options = rig_options(dir);
    store = rig_start(&options);
    assert_int_equal(store_sink_id(store, "shop", "billing", &billing, &err), STATUS_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    store_close(store);
    rig_remove_dir(dir);
    rig_remove_dir(out);
    return 0;
}

/* ---- words ---- */

static char *in_out(const char *name)
{
    static char paths[8][512];
    static size_t next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", out, name);
    return path;
}

static bool is_there(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0;
}

/* Names of faults, each with a blank behind it. */
static void note_fault(void *ctx, const struct store_fault *fault)
{
    char *names = ctx;
    assert_true(*fault->found && *fault->expected && *fault->action);
    size_t len = strlen(names);
    snprintf(names + len, 256 - len, "%s ", fault->what);
}

static char faults[256];

static struct store_judge judge(void)
{
    faults[0] = 0;
    return (struct store_judge){.fault = note_fault, .ctx = faults};
}

static struct store_copied copied;
static struct error said;

static enum status back_up(const char *file)
{
    said = (struct error){""};
    return store_backup(&(struct store_backup){.data_dir = dir, .file = file, .judge = judge()}, &copied,
                        &said);
}

static enum status restore_to(const char *file, const char *to, bool replace)
{
    said = (struct error){""};
    struct store_restore ask = {.file = file, .data_dir = to, .replace = replace, .judge = judge()};
    return store_restore(&ask, &copied, &said);
}

static const char *check(const char *path)
{
    struct store_judge by = judge();
    struct store_verdict verdict;
    said = (struct error){""};
    if (store_check(path, &by, &verdict, &said) != STATUS_OK)
        return said.text;
    assert_int_equal(verdict.faults > 0, faults[0] != 0);
    return faults;
}

static void change(const char *path, const char *sql)
{
    sqlite3 *db;
    char *problem = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &problem) != SQLITE_OK)
        fail_msg("%s: %s", sql, problem);
    sqlite3_close(db);
}

static int64_t value(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t found = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return found;
}

static void copy_to(const char *from, const char *to)
{
    char block[65536];
    FILE *in = fopen(from, "rb"), *into = fopen(to, "wb");
    assert_true(in && into);
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
        assert_int_equal(fwrite(block, 1, n, into), n);
    fclose(in);
    assert_int_equal(fclose(into), 0);
}

static uint64_t put_ordered(const char *key, const char *dedupe)
{
    struct rig_hook *hook = rig_hook_new(100);
    rig_hook_row(hook, billing, key);
    hook->hook.envelope->dedupe_key = bytes_str(dedupe);
    hook->hook.dedupe_ttl_ms = 60000;
    assert_int_equal(rig_commit(store, hook), STATUS_OK);
    uint64_t seq = hook->seq;
    rig_hook_free(hook);
    return seq;
}

static void put_in_pen(void)
{
    struct rig_hook *hook = rig_hook_new(50);
    hook->hook.pen_reason = "no_header";
    hook->hook.pen_share_bytes = 1 << 20;
    assert_int_equal(rig_commit(store, hook), STATUS_OK);
    rig_hook_free(hook);
}

/* Something of everything. */
static void fill(void)
{
    rig_put_many(store, billing, 300, 2500);
    put_in_pen();
    uint64_t held = put_ordered("cus_1", "k1"), dead = rig_put(store, billing, 100);
    put_ordered("cus_1", "k2");
    for (uint64_t seq = 1; seq < 1030; seq++)
        rig_change(store, seq, billing, ROW_DONE, "ok");
    rig_change(store, dead, billing, ROW_DEAD, "refused");
    struct store_change *failed = store_change_new();
    failed->seq = held;
    failed->sink = billing;
    failed->state = ROW_HELD;
    failed->cls = "exhausted";
    failed->failed = true;
    failed->attempts = 1;
    failed->at_ms = clock_unix_ms();
    struct list one = LIST_INIT(one);
    list_append(&one, &failed->node);
    store_changes(store, &one);
    store_set_mark(store, &(struct store_mark){.kind = MARK_SINK_PAUSE, .sink = billing, .set = true});
    store_put_replay(store, &(struct store_replay){.number = 1, .last = 10, .id = uuid_new(1)});
    assert_true(store_flush(store));
    rig_change(store, 1, billing, ROW_DONE, "ok"); /* the next transaction says that block 0 is settled */
    assert_true(store_flush(store));
}

/* ---- backups ---- */

static void test_backup_is_whole(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    assert_true(copied.served);
    assert_int_equal(copied.verdict.hooks, 2503);
    assert_string_equal(check(in_out("b")), "");
    struct uuid epoch = store_epoch(store);
    assert_memory_equal(&copied.epoch, &epoch, sizeof epoch);
    struct stat st;
    assert_int_equal(stat(in_out("b"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_false(is_there(in_out("b.part")));
    assert_false(is_there(in_out("b-wal")));
}

/* What was answered before it began is in it; what is in it has all its rows. */
static void test_backup_beside_commits(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", round);
        uint64_t last = rig_put_many(store, billing, 2000, 500) + 499;
        struct rig_hook *hooks[200];
        for (size_t i = 0; i < 200; i++) {
            hooks[i] = rig_hook_new(2000);
            rig_hook_row(hooks[i], billing, NULL);
            assert_int_equal(store_commit(store, &hooks[i]->hook), STATUS_OK);
        }
        assert_int_equal(back_up(in_out(name)), STATUS_OK);
        for (size_t i = 0; i < 200; i++) {
            assert_true(rig_wait_done(hooks[i]));
            rig_hook_free(hooks[i]);
        }
        assert_true((uint64_t)value(in_out(name), "SELECT max(seq) FROM hooks") >= last);
    }
}

/* As an URI, "//x/y" alone would be the host x. */
static void test_a_path_may_begin_with_two_slashes(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    char *path = mem_format("/%s", in_out("b"));
    assert_string_equal(check(path), "");
    free(path);
}

static void test_backup_overwrites_nothing(void **state)
{
    (void)state;
    fill();
    copy_to("/dev/null", in_out("b"));
    assert_int_equal(back_up(in_out("b")), STATUS_REFUSED);
    assert_non_null(strstr(said.text, "nothing is overwritten"));
    assert_int_equal(back_up(in_out("none/b")), STATUS_IO);
    /* What a killed one left is taken over; what somebody writes at this moment is not. */
    int fd = open(in_out("c.part"), O_RDWR | O_CREAT, 0644);
    assert_int_equal(write(fd, "half a backup", 13), 13);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(back_up(in_out("c")), STATUS_BUSY);
    assert_true(is_there(in_out("c.part")));
    close(fd);
    assert_int_equal(back_up(in_out("c")), STATUS_OK);
    assert_string_equal(check(in_out("c")), "");
    assert_false(is_there(in_out("c.part")));
}

/* In a folder of many, a name that is foreseen may be there already, as another name of something. */
static void test_backup_writes_into_no_file_of_others(void **state)
{
    (void)state;
    fill();
    int fd = open(in_out("precious"), O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(fd, "precious", 8), 8);
    assert_int_equal(link(in_out("precious"), in_out("e.part")), 0);
    assert_int_equal(back_up(in_out("e")), STATUS_REFUSED);
    assert_non_null(strstr(said.text, "e.part is there already"));
    struct stat found;
    assert_int_equal(fstat(fd, &found), 0);
    assert_int_equal(found.st_size, 8);
    assert_true(is_there(in_out("e.part")));
    close(fd);
    assert_int_equal(symlink(in_out("precious"), in_out("f.part")), 0);
    assert_int_equal(back_up(in_out("f")), STATUS_IO);
}

static void test_backup_on_a_full_disk(void **state)
{
    (void)state;
    fill();
    struct rlimit before, small = {100000, 100000};
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    enum status status = back_up(in_out("b"));
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, STATUS_IO);
    assert_false(is_there(in_out("b")));
    assert_false(is_there(in_out("b.part")));

    struct store_backup greedy = {
        .data_dir = dir, .file = in_out("b"), .min_free_bytes = INT64_MAX / 2, .judge = judge()};
    assert_int_equal(store_backup(&greedy, &copied, &said), STATUS_REFUSED);
    assert_non_null(strstr(said.text, "another disk"));
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
}

static bool stop_soon(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    assert_true(total == 0 || done <= total);
    return strcmp(what, ctx) != 0;
}

static void test_backup_can_be_stopped(void **state)
{
    (void)state;
    fill();
    static const char *const phases[] = {"copying", "sealing", "checking pages", "checking rules",
                                         "decoding hooks"};
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        struct store_backup ask = {.data_dir = dir, .file = in_out("b"), .judge = judge()};
        ask.judge.watch = (struct store_watch){stop_soon, (void *)phases[i]};
        if (store_backup(&ask, &copied, &said) != STATUS_DRAINING)
            fail_msg("%s did not stop it: %s", phases[i], said.text);
        assert_false(is_there(in_out("b")));
        assert_false(is_there(in_out("b.part")));
    }
}

/* ---- check ---- */

/* A breach, and the only fault that it makes (others may follow it). */
static const struct breach {
    const char *fault, *sql;
} breaches[] = {
    {"epoch", "DELETE FROM meta WHERE name = 'epoch'"},
    {"seq_floor", "UPDATE meta SET value = 'x' WHERE name = 'seq_floor'"},
    {"names", "UPDATE names SET id = 99 WHERE kind = 1"},
    {"names_twice", "INSERT INTO names SELECT id + 3, kind, text, sink FROM names WHERE kind = 3"},
    {"hooks", "UPDATE hooks SET source = 77 WHERE seq = 5"},
    {"hooks", "UPDATE hooks SET id = x'00' WHERE seq = 5"},
    {"rows", "UPDATE rows SET state = 9 WHERE seq = 5"},
    {"rows", "UPDATE rows SET lane = x'0102' WHERE seq = 5"},
    {"rows_without_hook", "DELETE FROM hooks WHERE seq = 1900"},
    {"rows_disagree", "UPDATE rows SET received_at = 1 WHERE seq = 5"},
    {"held_without_lane", "UPDATE rows SET lane = NULL WHERE state = 3"},
    {"blocks_missing", "DELETE FROM blocks WHERE block = 0"},
    {"blocks_count", "UPDATE blocks SET hooks = hooks + 1 WHERE block = 0"},
    {"blocks_times", "UPDATE blocks SET newest = oldest - 1 WHERE block = 0"},
    {"settled_but_owed", "UPDATE rows SET state = 0 WHERE seq = 5"},
    {"seq_ahead", "UPDATE rows SET seq = 90000 WHERE seq = 1900"},
    {"attempts_without_row", "UPDATE attempts SET seq = 5, sink = 77"},
    {"marks", "UPDATE marks SET kind = 8"},
    {"sizes", "UPDATE rows SET size = 1 WHERE seq = 5"},
    {"claims", "UPDATE claims SET hash = x'01'"},
    {"claims", "UPDATE claims SET id = x'00112233445566778899aabbccddeeff'"},
    {"claims_ahead", "UPDATE claims SET seq = seq + 90000"},
    {"quarantine", "UPDATE pen SET size = 3"},
    {"replays", "UPDATE replays SET cursor = 1000"},
    {"envelopes", "UPDATE hooks SET head = CAST(x'ff' || substr(head, 2) AS BLOB) WHERE seq = 5"},
    {"quarantined_envelopes", "UPDATE pen SET head = zeroblob(length(head))"},
    {"pages", "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM "
              "sqlite_schema WHERE name = 'pen_sizes') WHERE name = 'attempts_of'"},
};

static void test_check_tells_every_breach(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    for (size_t i = 0; i < sizeof breaches / sizeof breaches[0]; i++) {
        copy_to(in_out("b"), in_out("c"));
        change(in_out("c"), "DELETE FROM meta WHERE name = 'seal'");
        assert_string_equal(check(in_out("c")), "");
        change(in_out("c"), breaches[i].sql);
        char *wanted = mem_format("%s ", breaches[i].fault);
        const char *found = check(in_out("c"));
        if (!strstr(found, wanted))
            fail_msg("%s made: %s", breaches[i].sql, found);
        free(wanted);
    }
}

static void no_lane(struct bytes source, struct bytes sink, struct bytes key, uint8_t lane[16])
{
    assert_true(bytes_eq(source, BYTES("shop")) && bytes_eq(sink, BYTES("billing")));
    memset(lane, 0, 16);
    memcpy(lane, key.at, key.len); /* as the rig makes them */
    lane[0] ^= bytes_eq(key, BYTES("cus_2"));
}

static void test_check_compares_lanes_with_keys(void **state)
{
    (void)state;
    put_ordered("cus_1", NULL);
    store_close(store);
    struct store_judge by = judge();
    struct store_verdict verdict;
    by.lane_of = no_lane;
    assert_int_equal(store_check(dir, &by, &verdict, &said), STATUS_OK);
    assert_string_equal(faults, "");
    store = rig_start(&options);
    put_ordered("cus_2", NULL);
    store_close(store);
    assert_int_equal(store_check(dir, &by, &verdict, &said), STATUS_OK);
    assert_string_equal(faults, "lanes ");
    store = rig_start(&options);
}

/* Wherever a bit of a backup changes, it is told. */
static void test_backup_knows_its_bytes(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    struct stat st;
    assert_int_equal(stat(in_out("b"), &st), 0);
    for (int i = 0; i < 24; i++) {
        off_t at = (off_t)((uint64_t)st.st_size * (uint64_t)i / 24 + (uint64_t)(i * 131 % 4096));
        copy_to(in_out("b"), in_out("c"));
        int fd = open(in_out("c"), O_RDWR);
        char byte;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 1 << i % 8;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        if (!*check(in_out("c")))
            fail_msg("bit %d of byte %lld is another one, and nobody noticed", i % 8, (long long)at);
        if (i % 6 != 0)
            continue;
        assert_int_not_equal(restore_to(in_out("c"), in_out("d"), false), STATUS_OK);
        assert_false(is_there(in_out("d/store.db")));
        assert_false(is_there(in_out("d/store.db.restoring")));
    }
    for (int i = 0; i < 8; i += 3) {
        copy_to(in_out("b"), in_out("c"));
        assert_int_equal(truncate(in_out("c"), st.st_size * i / 8), 0);
        assert_string_not_equal(check(in_out("c")), "");
        assert_int_not_equal(restore_to(in_out("c"), in_out("d"), false), STATUS_OK);
    }
}

static void test_check_knows_strangers(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    change(in_out("b"), "PRAGMA user_version = 99");
    assert_string_equal(check(in_out("b")), "database ");
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_CORRUPT);
    assert_non_null(strstr(said.text, "layout 99"));
    FILE *text = fopen(in_out("text"), "w");
    fputs("no database, and longer than the head of one would be: one hundred bytes are needed for that at "
          "least, so ...",
          text);
    fclose(text);
    assert_string_equal(check(in_out("text")), "database ");
    assert_int_equal(mkfifo(in_out("pipe"), 0600), 0);
    assert_non_null(strstr(check(in_out("pipe")), "is neither"));
    change(in_out("c"), "CREATE TABLE t(a)");
    assert_string_equal(check(in_out("c")), "database ");
    assert_non_null(strstr(check(in_out("none")), "No such file"));
    assert_non_null(strstr(check(out), "holds no store"));
    assert_non_null(strstr(check(dir), "is served by process"));
    char *database = mem_format("%s/store.db", dir);
    assert_non_null(strstr(check(database), "is served by process"));
    free(database);
}

/* ---- looking changes nothing ---- */

static char *listing(const char *path)
{
    char *names = mem_strdup("");
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char *file = mem_format("%s/%s", path, entries[i]->d_name), *more;
        struct stat st;
        assert_int_equal(stat(file, &st), 0);
        bool folder = S_ISDIR(st.st_mode);
        more = mem_format("%s%s %lld %lld.%09ld\n", names, entries[i]->d_name,
                          folder ? 0 : (long long)st.st_size, folder ? 0 : (long long)st.st_mtim.tv_sec,
                          folder ? 0 : st.st_mtim.tv_nsec);
        free(names);
        free(file);
        free(entries[i]);
        names = more;
    }
    free(entries);
    return names;
}

static struct sum {
    uint64_t lanes, sinks, dead, pen, stopped, sources;
    struct store_sight deepest;
} seen;

static void note_sight(void *ctx, const struct store_sight *sight)
{
    (void)ctx;
    seen.sources += sight->kind == SIGHT_SOURCE;
    seen.sinks += sight->kind == SIGHT_SINK;
    seen.dead += sight->kind == SIGHT_DEAD;
    seen.pen += sight->kind == SIGHT_PEN;
    seen.stopped += sight->kind == SIGHT_STOPPED;
    if (sight->kind == SIGHT_LANE && seen.lanes++ == 0)
        seen.deepest = *sight;
}

static void test_the_log_is_read_too_and_nothing_changes(void **state)
{
    (void)state;
    fill();
    char *crashed = rig_copy_dir(dir), *before = listing(crashed);
    struct store_inspection ask = {.max_lanes = 10, .each = note_sight};
    struct store_view view;
    seen = (struct sum){0};
    assert_int_equal(store_inspect(crashed, &ask, &view, &said), STATUS_OK);
    assert_true(view.log_bytes > 0);
    assert_int_equal(view.hooks, 2503);
    assert_int_equal(view.next_seq, 2504);
    assert_int_equal(view.states[ROW_PENDING], 2503 - 1029 - 2);
    assert_int_equal(view.states[ROW_DONE], 1029);
    assert_int_equal(view.states[ROW_DEAD], 1);
    assert_int_equal(view.states[ROW_HELD], 1);
    assert_int_equal(view.lanes, 2);
    assert_int_equal(seen.lanes, 2);
    assert_int_equal(seen.deepest.hooks, 2503 - 1029 - 3);
    assert_false(seen.deepest.ordered);
    assert_int_equal(view.dedupe_keys, 2);
    assert_int_equal(view.pen_hooks, 1);
    assert_int_equal(view.replays_running, 1);
    assert_true(seen.sources == 1 && seen.sinks == 1 && seen.dead == 2 && seen.pen == 1 && seen.stopped == 1);
    assert_string_equal(check(crashed), "");
    store_close(store); /* its directory is the one to be copied now */
    store = NULL;
    char *after = listing(crashed);
    assert_string_equal(before, after);

    char *live = dir;
    dir = crashed;
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    assert_false(copied.served);
    dir = live;
    assert_int_equal(copied.verdict.hooks, 2503);
    free(after);
    after = listing(crashed);
    assert_string_equal(before, after);
    free(after);
    free(before);
    rig_remove_dir(crashed);
    store = rig_start(&options);
}

/* ---- restore ---- */

static void test_restore_begins_an_epoch(void **state)
{
    (void)state;
    fill();
    struct uuid epoch = store_epoch(store);
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    rig_put(store, billing, 10);
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_OK);
    assert_false(copied.aside);
    assert_true(copied.backup_ms > 0);
    assert_memory_equal(&copied.old_epoch, &epoch, sizeof epoch);
    assert_string_equal(check(in_out("d")), "");

    struct store_options there = rig_options(in_out("d"));
    struct store *restored = rig_start(&there);
    struct store_stats stats;
    struct uuid other = store_epoch(restored);
    store_stats(restored, &stats);
    assert_memory_not_equal(&other, &epoch, sizeof epoch);
    assert_memory_equal(&other, &copied.epoch, sizeof other);
    assert_memory_equal(&stats.restored_from, &epoch, sizeof epoch);
    assert_true(stats.restored_ms > 0);
    assert_int_equal(stats.hooks, 2503);
    assert_int_equal(stats.dead, 2);
    assert_int_equal(rig_put(restored, billing, 10), 2504);
    assert_int_equal(restore_to(in_out("b"), there.data_dir, true), STATUS_BUSY);
    store_close(restored);
    assert_int_equal(
        value(in_out("d/store.db"), "SELECT count(*) FROM meta WHERE name IN ('seal', 'backup_at')"), 0);
}

static void test_restore_keeps_what_was_there(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    char *old = rig_copy_dir(dir); /* with a log, as after a crash */
    assert_int_equal(restore_to(in_out("b"), old, false), STATUS_REFUSED);
    assert_non_null(strstr(said.text, "--replace"));
    assert_int_equal(restore_to(in_out("b"), old, true), STATUS_OK);
    assert_true(copied.aside);
    assert_string_equal(check(old), "");
    assert_string_equal(check(copied.aside_path), "");
    char *log = mem_format("%s/store.db-wal", copied.aside_path);
    assert_true(is_there(log));
    free(log);
    rig_remove_dir(old);
}

/* Where not every file can have a second name, all are moved: none of the old ones stays beside the new
 * store, whose log it would be. */
static void test_restore_moves_what_it_cannot_link(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    char *old = rig_copy_dir(dir);
    char *log = mem_format("%s/store.db-wal", old), *shm = mem_format("%s/store.db-shm", old);
    assert_true(is_there(log));
    unlink(shm);
    assert_int_equal(mkdir(shm, 0700), 0); /* no directory has two */
    assert_int_equal(restore_to(in_out("b"), old, true), STATUS_OK);
    assert_false(is_there(log));
    assert_false(is_there(shm));
    assert_string_equal(check(old), "");
    assert_string_equal(check(copied.aside_path), "");
    char *moved = mem_format("%s/store.db-wal", copied.aside_path);
    assert_true(is_there(moved));
    free(moved);
    free(log);
    free(shm);
    rig_remove_dir(old);
}

/* Root may restore into the directory of somebody else, who can have put anything there. */
static void test_restore_follows_no_link(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    assert_int_equal(mkdir(in_out("d"), 0700), 0);
    copy_to(in_out("b"), in_out("precious"));
    assert_int_equal(symlink(in_out("precious"), in_out("d/lock")), 0);
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_IO);
    assert_int_equal(unlink(in_out("d/lock")), 0);
    assert_int_equal(symlink(in_out("precious"), in_out("d/store.db.restoring")), 0);
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_IO);
    assert_string_equal(check(in_out("precious")), "");
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_OK);
}

static void test_an_interrupted_restore_is_no_empty_store(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    assert_int_equal(mkdir(in_out("d"), 0700), 0);
    copy_to(in_out("b"), in_out("d/store.db.restoring"));
    struct store_options there = rig_options(in_out("d"));
    struct store *none;
    assert_int_equal(store_open(&there, &none, &said), STATUS_CORRUPT);
    assert_non_null(strstr(said.text, "restore of this store was interrupted"));
    assert_int_equal(restore_to(in_out("b"), there.data_dir, false), STATUS_OK);
    assert_int_equal(store_open(&there, &none, &said), STATUS_OK);
    store_close(none);
}

/* A backup that an older version made is brought to this layout on its way. */
static void test_restore_of_an_older_layout(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    change(in_out("b"), "DELETE FROM meta WHERE name = 'seal'; DROP TABLE limits; DROP TABLE replays; ALTER "
                        "TABLE rows DROP COLUMN replay; ALTER TABLE rows DROP COLUMN before; DROP TABLE pen; "
                        "DROP TABLE claims; PRAGMA user_version = 4");
    assert_string_equal(check(in_out("b")), "");
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_OK);
    assert_string_equal(check(in_out("d")), "");
    struct store_options there = rig_options(in_out("d"));
    store_close(rig_start(&there));
}

static void test_restore_of_a_damaged_one_is_somebodys_word(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    change(in_out("b"), "UPDATE hooks SET body = CAST(x'00' || substr(body, 2) AS BLOB) WHERE seq = 5");
    assert_string_equal(check(in_out("b")), "seal ");
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_CORRUPT);
    struct store_restore ask = {
        .file = in_out("b"), .data_dir = in_out("d"), .damaged = true, .judge = judge()};
    assert_int_equal(store_restore(&ask, &copied, &said), STATUS_OK);
    assert_string_equal(faults, "seal ");
    assert_int_equal(copied.verdict.faults, 1);
    assert_string_equal(check(in_out("d")), "");
}

static void test_a_refused_restore_leaves_no_directory(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    change(in_out("b"), "UPDATE hooks SET body = CAST(x'00' || substr(body, 2) AS BLOB) WHERE seq = 5");
    change(in_out("c"), "CREATE TABLE t(a)");
    static const char *const files[] = {"b", "c"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        assert_int_equal(restore_to(in_out(files[i]), in_out("d"), false), STATUS_CORRUPT);
        assert_false(is_there(in_out("d")));
    }
    assert_int_equal(mkdir(in_out("d"), 0700), 0); /* one that was there stays */
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_CORRUPT);
    assert_true(is_there(in_out("d")));
}

/* Their folders were named by the second, and the next one failed. */
static void test_restores_in_one_second_are_all_done(void **state)
{
    (void)state;
    char asides[4][sizeof copied.aside_path] = {""};
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_OK);
    for (int i = 0; i < 4; i++) {
        if (restore_to(in_out("b"), in_out("d"), true) != STATUS_OK)
            fail_msg("%s", said.text);
        for (int before = 0; before < i; before++)
            assert_string_not_equal(copied.aside_path, asides[before]);
        snprintf(asides[i], sizeof asides[i], "%s", copied.aside_path);
        assert_string_equal(check(asides[i]), "");
    }
}

/* With cp, say. Its seqs go on below those that were given after it, as after any restore; and it is no
 * backup any more, of which every byte is known. */
static void test_a_backup_that_is_served_begins_an_epoch(void **state)
{
    (void)state;
    fill();
    struct uuid epoch = store_epoch(store);
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    assert_int_equal(mkdir(in_out("d"), 0700), 0);
    copy_to(in_out("b"), in_out("d/store.db"));
    struct store_options there = rig_options(in_out("d"));
    struct uuid first = {{0}};
    for (int life = 0; life < 2; life++) {
        struct store_stats stats;
        struct store *served = rig_start(&there);
        struct uuid now = store_epoch(served);
        store_stats(served, &stats);
        assert_memory_not_equal(&now, &epoch, sizeof epoch);
        assert_memory_equal(&stats.restored_from, &epoch, sizeof epoch);
        if (life > 0)
            assert_memory_equal(&now, &first, sizeof now);
        first = now;
        store_close(served);
        assert_string_equal(check(in_out("d")), "");
    }
}

static bool lacks_log(const char *path)
{
    struct store_judge by = judge();
    struct store_verdict verdict;
    assert_int_equal(store_check(path, &by, &verdict, &said), STATUS_OK);
    assert_int_equal(verdict.faults, 0);
    return verdict.lacks_log;
}

static void test_a_database_without_its_log_is_told(void **state)
{
    (void)state;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    assert_false(lacks_log(in_out("b")));
    char *crashed = rig_copy_dir(dir);
    assert_false(lacks_log(crashed));
    char *database = mem_format("%s/store.db", crashed);
    copy_to(database, in_out("store.db"));
    assert_true(lacks_log(in_out("store.db")));
    assert_true(lacks_log(out));
    free(database);
    rig_remove_dir(crashed);
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_OK);
    struct store_options there = rig_options(in_out("d"));
    store_close(rig_start(&there));
    assert_false(lacks_log(in_out("d"))); /* stopped: all of it is in the database */
}

static bool look_at_a_restore(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    (void)what, (void)done, (void)total;
    int *looks = ctx;
    struct store_copied other;
    struct error why = {""};
    struct store_backup ask = {.data_dir = in_out("d"), .file = in_out("beside"), .judge = {.fault = NULL}};
    assert_int_equal(store_backup(&ask, &other, &why), STATUS_BUSY);
    assert_non_null(strstr(why.text, "is being restored"));
    assert_false(is_there(in_out("beside")));
    ++*looks;
    return true;
}

/* It was taken for one that serves, and the store on its way out was backed up. */
static void test_no_backup_is_made_beside_a_restore(void **state)
{
    (void)state;
    int looks = 0;
    fill();
    assert_int_equal(back_up(in_out("b")), STATUS_OK);
    assert_int_equal(restore_to(in_out("b"), in_out("d"), false), STATUS_OK);
    struct store_restore ask = {
        .file = in_out("b"), .data_dir = in_out("d"), .replace = true, .judge = judge()};
    ask.judge.watch = (struct store_watch){look_at_a_restore, &looks};
    assert_int_equal(store_restore(&ask, &copied, &said), STATUS_OK);
    assert_true(looks > 0);
    struct store_backup after = {.data_dir = in_out("d"), .file = in_out("after"), .judge = judge()};
    if (store_backup(&after, &copied, &said) != STATUS_OK)
        fail_msg("%s", said.text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_backup_is_whole),
        TEST(test_backup_beside_commits),
        TEST(test_a_path_may_begin_with_two_slashes),
        TEST(test_backup_overwrites_nothing),
        TEST(test_backup_writes_into_no_file_of_others),
        TEST(test_backup_on_a_full_disk),
        TEST(test_backup_can_be_stopped),
        TEST(test_check_tells_every_breach),
        TEST(test_check_compares_lanes_with_keys),
        TEST(test_backup_knows_its_bytes),
        TEST(test_check_knows_strangers),
        TEST(test_the_log_is_read_too_and_nothing_changes),
        TEST(test_restore_begins_an_epoch),
        TEST(test_restore_keeps_what_was_there),
        TEST(test_restore_moves_what_it_cannot_link),
        TEST(test_restore_follows_no_link),
        TEST(test_an_interrupted_restore_is_no_empty_store),
        TEST(test_restore_of_an_older_layout),
        TEST(test_restore_of_a_damaged_one_is_somebodys_word),
        TEST(test_a_refused_restore_leaves_no_directory),
        TEST(test_restores_in_one_second_are_all_done),
        TEST(test_a_backup_that_is_served_begins_an_epoch),
        TEST(test_a_database_without_its_log_is_told),
        TEST(test_no_backup_is_made_beside_a_restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
