/* Text in columns for a terminal. What comes from a hook or a receiver is made harmless: a control character
 * never reaches the screen. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct table_column {
    const char *title;
    bool right; /* numbers stand right */
};

struct table;

/* `columns` is borrowed for the table's life. */
struct table *table_new(const struct table_column *columns, size_t count);
void table_free(struct table *table);

/* The next cell, from left to right, row by row; "-" when the text is empty. */
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Titles, then rows, two blanks between columns. Lines wider than `width` (0: no limit) are cut in the last
 * column, with "..." at its end. Every row must be complete. */
void table_print(const struct table *table, FILE *out, unsigned width);

/* The width of the terminal behind `out`; 0 when it is not one. */
unsigned table_width(FILE *out);

/* Prints UTF-8 text with a '?' in place of every control character. */
void print_harmless(FILE *out, const char *text);

#endif
