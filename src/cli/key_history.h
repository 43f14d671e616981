/* `lanegate key --history`: what a key does with the hooks that a gateway has stored. */
#ifndef CLI_KEY_HISTORY_H
#define CLI_KEY_HISTORY_H

#include "cli/client.h"
#include "cli/key_subject.h"

enum { KEY_HISTORY_MAX = 100000, KEY_HISTORY_PROBED = 100, KEY_HISTORY_LARGEST = 5 };

struct key_history {
    const struct key_subject *subject;
    const struct client_where *where;
    int64_t since_ms; /* unix */
    int64_t limit;    /* hooks, the newest */
    const char *gate; /* key_gate.h; NULL: none */
    bool json;
};

/* Prints the report; on a terminal a bar on stderr meanwhile. The first KEY_HISTORY_PROBED hooks are probed:
 * CLI_FAILED when the key is nondeterministic or the gate fails, else what the client gives. */
int key_history(const struct key_history *history);

#endif
