/* lanegate lanes show | pause | resume | retry | skip | rekey, and what sinks share with it. */
#ifndef CLI_LANE_ACT_H
#define CLI_LANE_ACT_H

#include "cli/client.h"

/* `argv[0]` is the act's name. The verb's exit code. */
int lane_show(int argc, char **argv);
int lane_act(int argc, char **argv);
int lane_rekey(int argc, char **argv);

/* POSTs `path` with --reason behind it and gives the answer; with `json`, prints it. CLI_OK and an answer
 * (json_decref it), or an exit code. */
int act_post(const struct cli_verb *verb, const struct client_where *where, struct buf *path,
             const char *reason, bool json, json_t **answer);

#endif
