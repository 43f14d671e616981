/* lanegate replay start, and following a job on a terminal. */
#ifndef CLI_REPLAY_START_H
#define CLI_REPLAY_START_H

#include "cli/client.h"

int replay_start(int argc, char **argv);
/* Until the job is over or paused: a bar on a terminal, else a line whenever a tenth more is done. The last
 * answer is `job` afterwards. */
int replay_follow(struct client *client, json_t **job);

#endif
