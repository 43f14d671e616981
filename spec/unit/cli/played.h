/* A real HTTP server that plays the gateway's admin API from a script: targets, each with its answer. And
 * ears for what a verb prints. */
#ifndef SPEC_CLI_PLAYED_H
#define SPEC_CLI_PLAYED_H

#include "cli/cli.h"
#include "util/bytes.h"

void played_start(void);
void played_stop(void);
const char *played_url(void);

/* Forgets every answer, and what the environment says about the gateway. */
void played_reset(void);
/* From now on that target (path and query) gets this answer; borrowed until the reset. Any other target gets
 * 404. */
void played_on(const char *target, int status, struct bytes body);
/* Fails the test unless the last request had that target and Authorization value ("" for none). */
void played_was_asked(const char *target, const char *authorization);

/* From here on stdout and stderr go to files; played_heard gives them back. Texts are static. */
struct heard {
    char out[8192], err[4096];
};
void played_listen(void);
const struct heard *played_heard(void);

/* Fixtures of cmocka: for a group, and for a test whose verbs find the played gateway by the environment. */
int played_group_start(void **state);
int played_group_stop(void **state);
int played_test_start(void **state);

/* Runs "lanegate VERB WORDS...", the last word NULL; fails the test on another exit code. */
const struct heard *played_run(const struct cli_verb *verb, int expected, ...) __attribute__((sentinel));

#endif
