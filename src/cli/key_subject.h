/* The key that `lanegate key` is asked about: that of a sink of the configuration, or a proposed one in its
 * place. */
#ifndef CLI_KEY_SUBJECT_H
#define CLI_KEY_SUBJECT_H

#include "config/config.h"
#include "script/keys.h"

struct key_subject {
    struct config *config; /* a reference: holds everything else */
    const struct config_source *source;
    size_t sink; /* in source->sinks */
};

/* `sink` may be NULL when the source has one ordered sink. `key` is a key as it stands in config.lua, in
 * Lua, or NULL. CLI_OK, or an exit code after saying why on stderr. */
int key_subject_open(const char *config_path, const char *source, const char *sink, const char *key,
                     struct key_subject *out);
void key_subject_close(struct key_subject *subject);

/* What becomes of one hook. */
struct key_finding {
    struct order_lane lane;      /* memory of the envelope's arena */
    struct script_result script; /* cost and words of its scripts; all zero where there are none */
    bool scripted;               /* the key has a script in it */
};
/* `probe`: in two fresh states and a used one as well. The envelope is seen as the source stores it. */
void key_subject_find(const struct key_subject *subject, const struct envelope *envelope, bool probe,
                      struct key_finding *out);

#endif
