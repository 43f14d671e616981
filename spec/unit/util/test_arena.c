/* The arena: what it gave stays where it is and intact until the whole is freed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/arena.h"

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    enum { PIECES = 2000 };
    struct arena *arena = arena_new(100);
    unsigned char *piece[PIECES];
    for (int i = 0; i < PIECES; i++) {
        size_t size = (size_t)(i * 7 % 613);
        piece[i] = arena_alloc(arena, size);
        assert_int_equal((uintptr_t)piece[i] % 16, 0);
        memset(piece[i], i & 0xff, size);
    }
    for (int i = 0; i < PIECES; i++)
        for (size_t k = 0; k < (size_t)(i * 7 % 613); k++)
            assert_int_equal(piece[i][k], i & 0xff);
    arena_free(arena);
}

static void one_piece_may_be_larger_than_any_block(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    size_t size = 5 << 20;
    char *big = arena_alloc(arena, size);
    memset(big, 'x', size);
    char *small = arena_alloc(arena, 8);
    memset(small, 'y', 8);
    assert_int_equal(big[size - 1], 'x');
    assert_true(arena_size(arena) >= size);
    arena_free(arena);
}

static void a_good_hint_needs_no_second_block(void **state)
{
    (void)state;
    struct arena *arena = arena_new(1024);
    size_t before = arena_size(arena);
    for (int i = 0; i < 64; i++)
        arena_alloc(arena, 16);
    assert_int_equal(arena_size(arena), before);
    arena_alloc(arena, 1);
    assert_true(arena_size(arena) > before);
    arena_free(arena);
}

static void zalloc_clears(void **state)
{
    (void)state;
    struct arena *arena = arena_new(64);
    for (int round = 0; round < 50; round++) {
        unsigned char *p = arena_zalloc(arena, 100);
        for (int i = 0; i < 100; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, 100);
    }
    arena_free(arena);
}

static void copies_end_with_a_nul_and_keep_absence(void **state)
{
    (void)state;
    struct arena *arena = arena_new(64);
    char text[] = "a\0b";
    struct bytes copy = arena_copy(arena, bytes_of(text, 3));
    text[0] = 'z';
    assert_int_equal(copy.len, 3);
    assert_memory_equal(copy.at, "a\0b", 4);
    assert_null(arena_copy(arena, BYTES_NONE).at);
    struct bytes empty = arena_copy(arena, BYTES(""));
    assert_non_null(empty.at);
    assert_int_equal(empty.at[0], 0);
    assert_string_equal(arena_strdup(arena, "hook"), "hook");
    assert_null(arena_strdup(arena, NULL));
    arena_free(arena);
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    arena_free(NULL);
    arena_free(arena_new(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
        cmocka_unit_test(one_piece_may_be_larger_than_any_block),
        cmocka_unit_test(a_good_hint_needs_no_second_block),
        cmocka_unit_test(zalloc_clears),
        cmocka_unit_test(copies_end_with_a_nul_and_keep_absence),
        cmocka_unit_test(freeing_nothing_is_fine),
    };
    return cmocka_run_group_tests_name("util: arena", tests, NULL, NULL);
}
