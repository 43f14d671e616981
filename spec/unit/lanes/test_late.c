/* What a receiver may have applied already: late rows, restarts, and ends that must be on the disk before a
 * lane goes on. */
#include "play.h"

static void a_restart_finds_everything_due_and_knows_what_was_spent(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), b = lane('b');
    struct sched_owed dead = {.seq = 1, .received_ms = epoch_ms, .state = OWED_DEAD, .attempts = 1};
    struct sched_owed tried = {.seq = 2,
                               .received_ms = epoch_ms,
                               .attempts = 3,
                               .first_attempt_ms = epoch_ms - 5000,
                               .waived_ms = 1000};
    struct sched_owed held = {.seq = 3, .received_ms = epoch_ms, .state = OWED_HELD, .attempts = 4};
    sched_restore(sched, now, &a, &dead);
    sched_restore(sched, now, &a, &tried);
    sched_restore(sched, now, &b, &held);
    put(b, 4);
    struct sched_start start = expect(2);
    assert_int_equal(start.number, 4);
    assert_int_equal(start.skipped, 1);
    expect_none();
    policy.retry.give_up_after_ms = 3999;
    sched_sink_set(sched, now, 1, &policy);
    answer(start, SCHED_TRANSIENT);
    assert_int_equal(said(2).state, SCHED_ROW_HELD);
}

/* A crash would forget the end of the first, and the receiver would take it for an old one after the second.
 */
static void a_lane_goes_on_behind_a_skipped_row_when_that_is_on_the_disk(void **state)
{
    (void)state;
    disk_is_slow = true;
    put(lane('a'), 1);
    put(lane('a'), 2);
    put(lane('b'), 3);
    answer(expect(1), SCHED_REFUSED);
    struct sched_start other = expect(3); /* nobody else waits for it */
    expect_none();
    uint64_t rows_said;
    assert_true(sched_awaits_durable(sched, &rows_said));
    sched_durable(sched, now, rows_said - 1);
    expect_none();
    sched_durable(sched, now, rows_said);
    assert_false(sched_awaits_durable(sched, &rows_said));
    answer(expect(2), SCHED_OK);
    answer(other, SCHED_OK);
}

/* What became of a higher seq that was sent is not known: it may have been applied. */
static void a_dead_letter_is_late_when_a_higher_seq_was_sent(void **state)
{
    (void)state;
    put(lane('a'), 1);
    put(lane('a'), 2);
    answer(expect(1), SCHED_REFUSED);
    time_out(expect(2));
    struct sched_place place = lane('a');
    struct sched_again again = {.seq = 1, .received_ms = now.unix_ms, .dead = true};
    assert_int_equal(sched_replay(sched, now, &place, &again), SCHED_DONE);
    struct sched_start start = expect(1);
    assert_true(start.late);
    answer(start, SCHED_OK);
}

/* Nobody was there to take the higher one: the fence stands below both, and people are asked nothing. */
static void a_dead_letter_is_not_late_when_the_higher_seq_never_left(void **state)
{
    (void)state;
    put(lane('a'), 1);
    put(lane('a'), 2);
    answer(expect(1), SCHED_REFUSED);
    struct sched_outcome nobody = {.cls = SCHED_TRANSIENT, .unreachable = true, .unsent = true};
    sched_actions_done(sched);
    sched_outcome(sched, now, expect(2).run, &nobody);
    struct sched_place place = lane('a');
    struct sched_again again = {.seq = 1, .received_ms = now.unix_ms, .dead = true};
    assert_int_equal(sched_replay(sched, now, &place, &again), SCHED_DONE);
    struct sched_start start = expect(1);
    assert_false(start.late);
    answer(start, SCHED_OK);
}

/* Hook 2 was in flight when the gateway was killed: it may have been applied, and nothing says so. */
static void a_dead_letter_found_at_the_start_is_late_below_a_row_that_was_found(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), b = lane('b');
    struct sched_owed dead = {.seq = 1, .received_ms = epoch_ms, .state = OWED_DEAD, .attempts = 1};
    struct sched_owed alone = dead, pending = {.seq = 3, .received_ms = epoch_ms};
    alone.seq = 2;
    sched_restore(sched, now, &a, &dead);
    sched_restore(sched, now, &b, &alone);
    sched_restore(sched, now, &a, &pending);
    put(b, 4); /* this one came in this life */
    struct sched_again again = {.seq = 2, .received_ms = now.unix_ms, .dead = true};
    assert_int_equal(sched_replay(sched, now, &b, &again), SCHED_DONE);
    again.seq = 1;
    assert_int_equal(sched_replay(sched, now, &a, &again), SCHED_DONE);
    struct sched_start first = {0}, second = {0};
    assert_true(next(&first) && next(&second));
    assert_int_equal(first.late, first.seq == 1);
    assert_int_equal(second.late, second.seq == 1);
    answer(first, SCHED_OK);
    answer(second, SCHED_OK);
}

/* The next start will not find it, and what was below it must be late then too. */
static void what_was_found_leaves_word_when_it_goes(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), b = lane('b');
    struct sched_owed dead = {.seq = 1, .received_ms = epoch_ms, .state = OWED_DEAD, .attempts = 1};
    struct sched_owed pending = {.seq = 3, .received_ms = epoch_ms};
    sched_restore(sched, now, &a, &dead);
    sched_restore(sched, now, &a, &pending);
    assert_int_equal(sched_discard(sched, now, &a, 3, false), SCHED_DONE);
    assert_true(said(1).late);
    assert_int_equal(said(1).state, SCHED_ROW_DEAD);
    sched_actions_done(sched);

    dead.seq = 4, pending.seq = 5;
    sched_restore(sched, now, &b, &dead);
    sched_restore(sched, now, &b, &pending);
    assert_int_equal(sched_rekey(sched, now, &b, 5, &a), SCHED_DONE);
    assert_true(said(4).late);
    assert_true(expect(5).late); /* what was delivered there before, nobody knows */
}

/* Its move is not on the disk yet: after a crash it would be in its old lane again, below what went on there.
 */
static void a_lane_goes_on_without_a_rekeyed_row_when_the_move_is_on_the_disk(void **state)
{
    (void)state;
    struct sched_place a = lane('a'), b = lane('b');
    disk_is_slow = true;
    sched_sink_pause(sched, now, 1, 0);
    put(a, 1);
    put(a, 2);
    assert_int_equal(sched_rekey(sched, now, &a, 1, &b), SCHED_DONE);
    sched_sink_resume(sched, now, 1);
    expect(1);
    expect_none();
    sync_all();
    expect(2);
}

static void a_replayed_dead_letter_goes_first_keeps_its_seq_and_is_late(void **state)
{
    (void)state;
    struct sched_place a = lane('a');
    put(a, 1);
    put(a, 2);
    put(a, 3);
    put(a, 4);
    answer(expect(1), SCHED_REFUSED);
    answer(expect(2), SCHED_OK);
    assert_true(said(1).late); /* the store hears of it in the same breath */
    assert_int_equal(said(1).state, SCHED_ROW_DEAD);
    struct sched_start third = expect(3);
    struct sched_again again = {.seq = 1, .received_ms = epoch_ms, .dead = true, .late = true};
    assert_int_equal(sched_replay(sched, now, &a, &again), SCHED_DONE);
    assert_int_equal(sched_replay(sched, now, &a, &again), SCHED_NOTHING); /* not made twice */
    expect_none(); /* never beside the one that runs */
    answer(third, SCHED_OK);
    struct sched_start first = expect(1);
    assert_true(first.late);
    assert_int_equal(first.skipped, 0);
    answer(first, SCHED_OK);
    assert_int_equal(expect(4).previous_seq, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(a_restart_finds_everything_due_and_knows_what_was_spent),
        PLAY(a_lane_goes_on_behind_a_skipped_row_when_that_is_on_the_disk),
        PLAY(a_dead_letter_is_late_when_a_higher_seq_was_sent),
        PLAY(a_dead_letter_is_not_late_when_the_higher_seq_never_left),
        PLAY(a_dead_letter_found_at_the_start_is_late_below_a_row_that_was_found),
        PLAY(what_was_found_leaves_word_when_it_goes),
        PLAY(a_lane_goes_on_without_a_rekeyed_row_when_the_move_is_on_the_disk),
        PLAY(a_replayed_dead_letter_goes_first_keeps_its_seq_and_is_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
