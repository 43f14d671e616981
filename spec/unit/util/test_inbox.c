/* The mailbox: nothing lost, order kept per sender, one wake a batch. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/inbox.h"

struct letter {
    int sender, n;
    struct list node;
};

static void count_wake(void *ctx)
{
    ++*(int *)ctx;
}

static void only_the_first_put_wakes(void **state)
{
    (void)state;
    int wakes = 0;
    struct inbox box;
    inbox_init(&box, count_wake, &wakes);
    struct letter letters[3];
    for (int i = 0; i < 3; i++)
        inbox_put(&box, &letters[i].node);
    assert_int_equal(wakes, 1);

    struct list out = LIST_INIT(out);
    assert_true(inbox_take(&box, &out));
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(list_pop(&out), &letters[i].node);
    assert_false(inbox_take(&box, &out));

    inbox_put(&box, &letters[0].node);
    assert_int_equal(wakes, 2);
    inbox_take(&box, &out);
    inbox_destroy(&box);
}

static void a_whole_list_is_one_put(void **state)
{
    (void)state;
    int wakes = 0;
    struct inbox box;
    inbox_init(&box, count_wake, &wakes);
    struct list items = LIST_INIT(items), out = LIST_INIT(out);
    inbox_put_all(&box, &items); /* nothing: nobody is woken */
    assert_int_equal(wakes, 0);

    struct letter letters[4];
    inbox_put(&box, &letters[0].node);
    for (int i = 1; i < 4; i++)
        list_append(&items, &letters[i].node);
    inbox_put_all(&box, &items);
    assert_true(list_empty(&items));
    assert_int_equal(wakes, 1);
    inbox_take(&box, &out);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(list_pop(&out), &letters[i].node);
    inbox_destroy(&box);
}

static void a_take_adds_behind_what_is_there(void **state)
{
    (void)state;
    int wakes = 0;
    struct inbox box;
    inbox_init(&box, count_wake, &wakes);
    struct list out = LIST_INIT(out);
    struct letter kept, fresh;
    list_append(&out, &kept.node);
    inbox_put(&box, &fresh.node);
    inbox_take(&box, &out);
    assert_ptr_equal(list_pop(&out), &kept.node);
    assert_ptr_equal(list_pop(&out), &fresh.node);
    inbox_destroy(&box);
}

enum { SENDERS = 6, LETTERS = 20000 };

struct sender {
    int number;
    struct inbox *box;
    struct letter *letters;
};

static void *send(void *arg)
{
    struct sender *s = arg;
    for (int i = 0; i < LETTERS; i++) {
        s->letters[i].sender = s->number;
        s->letters[i].n = i;
        inbox_put(s->box, &s->letters[i].node);
    }
    return NULL;
}

static void post(void *ctx)
{
    sem_post(ctx);
}

/* The owner sleeps until it is woken: a wake that goes missing hangs this test. */
static void many_senders_lose_nothing(void **state)
{
    (void)state;
    sem_t woken;
    sem_init(&woken, 0, 0);
    struct inbox box;
    inbox_init(&box, post, &woken);
    struct letter *letters = calloc(SENDERS * LETTERS, sizeof *letters);
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){i, &box, letters + i * LETTERS};
        assert_int_equal(pthread_create(&threads[i], NULL, send, &senders[i]), 0);
    }

    int next[SENDERS] = {0}, got = 0;
    while (got < SENDERS * LETTERS) {
        sem_wait(&woken);
        struct list out = LIST_INIT(out);
        inbox_take(&box, &out);
        for (struct list *node; (node = list_pop(&out)); got++) {
            struct letter *l = LIST_OWNER(node, struct letter, node);
            assert_int_equal(l->n, next[l->sender]);
            next[l->sender]++;
        }
    }
    for (int i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    inbox_destroy(&box);
    sem_destroy(&woken);
    free(letters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_first_put_wakes),
        cmocka_unit_test(a_whole_list_is_one_put),
        cmocka_unit_test(a_take_adds_behind_what_is_there),
        cmocka_unit_test(many_senders_lose_nothing),
    };
    return cmocka_run_group_tests_name("util: inbox", tests, NULL, NULL);
}
