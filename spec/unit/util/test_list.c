/* The two containers: intrusive list and growing array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/list.h"
#include "util/vec.h"

struct item {
    int n;
    struct list node;
};

/* The numbers in the list, as one decimal number read from the front: 1 2 3 is 123. */
static int digits(struct list *head)
{
    int forward = 0, backward = 0, place = 1;
    LIST_EACH (node, head)
        forward = forward * 10 + LIST_OWNER(node, struct item, node)->n;
    for (struct list *node = head->prev; node != head; node = node->prev, place *= 10)
        backward += place * LIST_OWNER(node, struct item, node)->n;
    assert_int_equal(forward, backward);
    return forward;
}

static void a_list_keeps_its_order(void **state)
{
    (void)state;
    struct list head = LIST_INIT(head);
    struct item a = {.n = 1}, b = {.n = 2}, c = {.n = 3};
    assert_true(list_empty(&head));
    list_append(&head, &a.node);
    list_append(&head, &c.node);
    list_insert_before(&c.node, &b.node);
    assert_int_equal(digits(&head), 123);
    list_remove(&b.node);
    assert_int_equal(digits(&head), 13);
    list_remove(&b.node); /* twice is harmless */
    assert_true(list_empty(&b.node));
    assert_int_equal(digits(&head), 13);
    assert_ptr_equal(list_pop(&head), &a.node);
    assert_ptr_equal(list_pop(&head), &c.node);
    assert_null(list_pop(&head));
}

static void a_walk_survives_removal(void **state)
{
    (void)state;
    struct list head = LIST_INIT(head);
    struct item items[6];
    for (int i = 0; i < 6; i++) {
        items[i].n = i + 1;
        list_append(&head, &items[i].node);
    }
    LIST_EACH_SAFE (node, &head)
        if (LIST_OWNER(node, struct item, node)->n % 2 == 0)
            list_remove(node);
    assert_int_equal(digits(&head), 135);
}

static void a_splice_moves_everything_behind(void **state)
{
    (void)state;
    struct list to = LIST_INIT(to), from = LIST_INIT(from);
    struct item items[4];
    for (int i = 0; i < 4; i++) {
        items[i].n = i + 1;
        list_append(i < 2 ? &to : &from, &items[i].node);
    }
    list_splice(&to, &from);
    assert_int_equal(digits(&to), 1234);
    assert_true(list_empty(&from));
    list_splice(&to, &from); /* nothing there */
    assert_int_equal(digits(&to), 1234);
    list_splice(&from, &to); /* into an empty one */
    assert_int_equal(digits(&from), 1234);
    assert_true(list_empty(&to));
}

static void a_vector_grows_and_keeps(void **state)
{
    (void)state;
    VEC(int64_t) numbers = {0};
    for (int64_t i = 0; i < 10000; i++)
        VEC_PUSH(&numbers, i * i);
    assert_int_equal(numbers.len, 10000);
    int64_t i = 0;
    VEC_EACH (n, &numbers) {
        assert_true(*n == i * i);
        i++;
    }
    *VEC_ADD(&numbers) = -1;
    assert_true(numbers.at[10000] == -1);
    VEC_FREE(&numbers);
    assert_null(numbers.at);
    assert_int_equal(numbers.len, 0);
    VEC_EACH (n, &numbers)
        fail();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_keeps_its_order),
        cmocka_unit_test(a_walk_survives_removal),
        cmocka_unit_test(a_splice_moves_everything_behind),
        cmocka_unit_test(a_vector_grows_and_keeps),
    };
    return cmocka_run_group_tests_name("util: list and vec", tests, NULL, NULL);
}
