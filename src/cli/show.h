/* What the verbs that look have in common: JSON to the screen, and the members of an answer as people read
 * them. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/client.h"
#include "cli/grid.h"

/* The document on one line of stdout. */
void show_json(const json_t *document);

/* Members; "" or 0 when absent or null. Texts live as long as the object. */
const char *show_text(const json_t *object, const char *name);
int64_t show_int(const json_t *object, const char *name);

/* Cells. Times are unix ms; 0 gives "-". */
void show_cell_text(struct grid *table, const json_t *object, const char *name);
void show_cell_int(struct grid *table, const json_t *object, const char *name);
void show_cell_age(struct grid *table, int64_t since_ms); /* "12 s" ago */
void show_cell_due(struct grid *table, int64_t at_ms);    /* "3 s", or "now" */
void show_cell_time(struct grid *table, int64_t at_ms);   /* "2026-07-01 12:00:00Z" */
void show_cell_bytes(struct grid *table, int64_t bytes);
/* source/sink/key of an entry; source/sink for a keyless lane and an unordered sink. */
void show_cell_lane(struct grid *table, const json_t *entry);

/* "2026-07-01 12:00:00Z" */
void show_time(int64_t at_ms, char out[32]);

/* An age ("30m": that long ago) to unix ms in digits; anything else is handed on for the API to judge. NULL
 * stays NULL. `buffer` holds the digits. */
const char *show_moment(const char *text, char buffer[24]);

/* What a verb asks for, and how it prints the answer for people. */
struct listing {
    const struct cli_verb *verb;
    const struct client_where *where;
    const char *path;   /* with its filters */
    const char *array;  /* the member that holds the entries */
    bool whole;         /* all in one answer: the rest is for paged ones */
    int64_t limit;      /* entries */
    const char *cursor; /* where to go on; NULL: from the start */
    bool json;
    void (*print)(const json_t *answer);
};

/* Asks the gateway and prints; the verb's exit code. */
int show_listing(const struct listing *listing);
/* The same again every second, as many entries as the terminal has lines for, until it is interrupted or the
 * gateway refuses. A gateway that is away meanwhile is waited for. */
int show_watched(const struct listing *listing);

/* Prints table, and on stderr what is beyond it: "100 of 2345 lanes; --cursor ... goes on", or "no lanes". */
void show_list(const struct grid *table, const json_t *answer, const char *array, const char *many);

#endif
