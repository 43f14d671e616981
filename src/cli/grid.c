#include "cli/grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/check.h"
#include "util/vec.h"

enum { GAP = 2 };

struct grid {
    const struct grid_column *columns;
    size_t column_count;
    VEC(char *) cells; /* row after row */
};

struct grid *grid_new(const struct grid_column *columns, size_t count)
{
    CHECK(count > 0);
    struct grid *table = mem_zalloc(sizeof *table);
    table->columns = columns;
    table->column_count = count;
    return table;
}

void grid_free(struct grid *table)
{
    if (!table)
        return;
    VEC_EACH (cell, &table->cells)
        free(*cell);
    VEC_FREE(&table->cells);
    free(table);
}

/* C0, DEL, and C1 as UTF-8 writes them (C2 80 to C2 9F): the ways to steer a terminal. In place. */
static void make_harmless(char *text)
{
    char *to = text;
    for (const unsigned char *from = (const unsigned char *)text; *from; from++) {
        bool c1 = from[0] == 0xc2 && from[1] >= 0x80 && from[1] <= 0x9f;
        *to++ = c1 || *from < 0x20 || *from == 0x7f ? '?' : (char)*from;
        from += c1;
    }
    *to = 0;
}

void print_harmless(FILE *out, const char *text)
{
    char *copy = mem_strdup(text);
    make_harmless(copy);
    fputs(copy, out);
    free(copy);
}

void grid_cell(struct grid *table, const char *format, ...)
{
    struct buf text = {0};
    va_list args;
    va_start(args, format);
    buf_putv(&text, format, args);
    va_end(args);
    char *cell = mem_strdup(text.len ? text.at : "-");
    buf_free(&text);
    make_harmless(cell);
    VEC_PUSH(&table->cells, cell);
}

static bool starts_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* In characters, which is near enough to columns for what is shown here. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += starts_character(*text);
    return n;
}

static void print_cut(FILE *out, const char *text, size_t room)
{
    if (width_of(text) <= room) {
        fputs(text, out);
        return;
    }
    size_t left = room > 3 ? room - 3 : 0;
    for (; *text && (left || !starts_character(*text)); text++) {
        left -= starts_character(*text);
        fputc(*text, out);
    }
    fputs("...", out);
}

static void print_row(const struct grid *table, FILE *out, const char *const *cells, const size_t *widths,
                      unsigned width)
{
    size_t at = 0, last = table->column_count - 1;
    for (size_t i = 0; i <= last; i++) {
        size_t pad = widths[i] - width_of(cells[i]);
        if (table->columns[i].right)
            fprintf(out, "%*s", (int)pad, "");
        if (i == last)
            break;
        fprintf(out, "%s%*s", cells[i], (int)(table->columns[i].right ? GAP : pad + GAP), "");
        at += widths[i] + GAP;
    }
    enum { LEAST = 8 }; /* a screen too narrow even for that wraps */
    size_t room = !width ? SIZE_MAX : width > at + LEAST ? width - at : LEAST;
    print_cut(out, cells[last], room);
    fputc('\n', out);
}

void grid_print(const struct grid *table, FILE *out, unsigned width)
{
    size_t columns = table->column_count;
    CHECK(table->cells.len % columns == 0);
    size_t *widths = mem_zalloc(columns * sizeof *widths);
    const char **titles = mem_zalloc(columns * sizeof *titles);
    for (size_t i = 0; i < columns; i++) {
        titles[i] = table->columns[i].title;
        widths[i] = width_of(titles[i]);
    }
    for (size_t i = 0; i < table->cells.len; i++) {
        size_t w = width_of(table->cells.at[i]);
        if (w > widths[i % columns])
            widths[i % columns] = w;
    }
    print_row(table, out, titles, widths, width);
    for (size_t i = 0; i < table->cells.len; i += columns)
        print_row(table, out, (const char *const *)table->cells.at + i, widths, width);
    free(titles);
    free(widths);
}

static struct winsize terminal_size(FILE *out)
{
    struct winsize size = {0};
    int fd = fileno(out);
    if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0)
        size = (struct winsize){0};
    return size;
}

unsigned grid_width(FILE *out)
{
    return terminal_size(out).ws_col;
}

unsigned grid_height(FILE *out)
{
    return terminal_size(out).ws_row;
}
