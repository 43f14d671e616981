/* Text in columns for a terminal. What comes from a hook or a receiver is made harmless: a control character
 * never reaches the screen. */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct grid_column {
    const char *title;
    bool right; /* numbers stand right */
};

struct grid;

/* `columns` is borrowed for the table's life. */
struct grid *grid_new(const struct grid_column *columns, size_t count);
void grid_free(struct grid *table);

/* The next cell, from left to right, row by row; "-" when the text is empty. */
void grid_cell(struct grid *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Titles, then rows, two blanks between columns. Lines wider than `width` (0: no limit) are cut in the last
 * column, with "..." at its end. Every row must be complete. */
void grid_print(const struct grid *table, FILE *out, unsigned width);

/* The width of the terminal behind `out`; 0 when it is not one. */
unsigned grid_width(FILE *out);
unsigned grid_height(FILE *out); /* its lines; 0 as well */

/* Prints UTF-8 text with a '?' in place of every control character. */
void print_harmless(FILE *out, const char *text);

#endif
