/* Tables: aligned, cut to the screen, and harmless. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/grid.h"
#include "cli_support.h"

static const struct grid_column columns[] = {{"LANE", false}, {"DEPTH", true}, {"LAST ERROR", false}};

static void row(struct grid *table, const char *lane, int depth, const char *error)
{
    grid_cell(table, "%s", lane);
    grid_cell(table, "%d", depth);
    grid_cell(table, "%s", error);
}

static void prints(const struct grid *table, unsigned width, const char *expected)
{
    struct caught caught;
    grid_print(table, caught_open(&caught), width);
    assert_string_equal(expected, caught_text(&caught));
    caught_free(&caught);
}

static void columns_are_aligned(void **state)
{
    (void)state;
    struct grid *table = grid_new(columns, 3);
    row(table, "demo/receiver/a", 5, "HTTP 503");
    row(table, "demo/log", 12345, "");
    prints(table, 0,
           "LANE             DEPTH  LAST ERROR\n"
           "demo/receiver/a      5  HTTP 503\n"
           "demo/log         12345  -\n");
    grid_free(table);
}

static void titles_alone(void **state)
{
    (void)state;
    struct grid *table = grid_new(columns, 3);
    prints(table, 0, "LANE  DEPTH  LAST ERROR\n");
    grid_free(table);
}

static void the_last_column_is_cut_to_the_screen(void **state)
{
    (void)state;
    struct grid *table = grid_new(columns, 3);
    row(table, "a", 1, "connection refused by peer");
    prints(table, 30,
           "LANE  DEPTH  LAST ERROR\n"
           "a         1  connection ref...\n");
    prints(table, 39,
           "LANE  DEPTH  LAST ERROR\n"
           "a         1  connection refused by peer\n");
    prints(table, 1, /* narrower than the other columns: eight are left for it */
           "LANE  DEPTH  LAST ...\n"
           "a         1  conne...\n");
    grid_free(table);
}

static void letters_beyond_ascii_count_once(void **state)
{
    (void)state;
    struct grid *table = grid_new(columns, 3);
    row(table, "caf\xc3\xa9", 1,
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4");
    row(table, "tea", 1, "x");
    prints(table, 21,
           "LANE  DEPTH  LAST ...\n"
           "caf\xc3\xa9      1  \xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4...\n"
           "tea       1  x\n");
    grid_free(table);
}

/* A receiver that answers with escape sequences must not steer the operator's terminal. */
static void control_characters_never_reach_the_screen(void **state)
{
    (void)state;
    struct grid *table = grid_new(columns, 3);
    row(table, "a\nb", 1,
        "\x1b[2J\x7f\xc2\x9b"
        "31m \xc3\x9b");
    prints(table, 0,
           "LANE  DEPTH  LAST ERROR\n"
           "a?b       1  ?[2J??31m \xc3\x9b\n");
    grid_free(table);

    struct caught caught;
    print_harmless(caught_open(&caught), "x\ty\r\nz");
    assert_string_equal("x?y??z", caught_text(&caught));
    caught_free(&caught);
}

static void a_file_has_no_width(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(0, grid_width(file));
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_aligned),
        cmocka_unit_test(titles_alone),
        cmocka_unit_test(the_last_column_is_cut_to_the_screen),
        cmocka_unit_test(letters_beyond_ascii_count_once),
        cmocka_unit_test(control_characters_never_reach_the_screen),
        cmocka_unit_test(a_file_has_no_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
