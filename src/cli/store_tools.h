/* What the verbs that work on a store as files have in common. */
#ifndef CLI_STORE_TOOLS_H
#define CLI_STORE_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"
#include "store/tools.h"
#include "util/jsonw.h"

/* `lanegate store WORD ...`: argv[0] is the word. */
int store_backup_run(int argc, char **argv);
int store_restore_run(int argc, char **argv);
int store_check_run(int argc, char **argv);
int store_inspect_run(int argc, char **argv);

/* Where the store is: as it was named, else what the configuration says. store_place_free
 * in any case; min_free_bytes is the default when no file was read. CLI_OK, CLI_BAD_CONFIG. */
struct store_place {
    char *dir;
    int64_t min_free_bytes;
};
int store_place_of(const char *named, const char *config_path, struct store_place *out);
void store_place_free(struct store_place *place);

/* How far it is, on stderr when that is a terminal; stops at SIGINT and SIGTERM. */
struct store_watch store_watch_terminal(void);
/* The line of it is gone from the screen. */
void store_watch_over(void);

/* Lanes are compared with their keys. */
void store_lane(struct bytes source, struct bytes sink, struct bytes key, uint8_t lane[16]);

/* Faults as a JSON array of objects under way, or as lines on stderr. */
struct store_faults {
    bool json;
    struct buf text; /* of the array's members */
};
struct store_judge store_judge_for(struct store_faults *faults);

/* Says on stderr what went wrong, and gives the exit code. */
int store_failed(enum status status, const struct error *err);

/* Members that several answers have. */
void store_write_id(struct jsonw *w, const char *name, const struct uuid *id);
void store_write_time(struct jsonw *w, const char *name, int64_t unix_ms); /* 0 gives null */

#endif
