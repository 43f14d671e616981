/* One state in which one key module lives: the libraries, the module, calls of its functions. Belongs to one
 * thread at a time. Private to this room. */
#ifndef SCRIPT_SANDBOX_H
#define SCRIPT_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "script/guard.h"
#include "script/hook.h"
#include "script/keys.h"
#include "script/sources.h"
#include "util/buf.h"

enum {
    SANDBOX_LOAD_INSTRUCTIONS = 1000 * 1000, /* least budget of loading a module */
    SANDBOX_GLOBALS_MAX = 256,               /* a call that leaves more of them costs the state */
};

/* A function of the module. The order of slots is the caller's. */
struct sandbox_call {
    const struct key_spec *spec;
    size_t slot;
    const struct envelope *envelope;
    size_t json_max_bytes;
    int results; /* 1 or 2 */
    bool exact;
};

struct sandbox {
    struct guard guard;
    const struct sources *sources;
    const struct source *source; /* of the module */
    struct script_limits limits;
    struct script_limits load_limits;
    size_t collect_above; /* bytes held: collect garbage before the next call */
    bool spent;           /* to be closed: after a breach, or with too much left behind */
    enum { SANDBOX_LOADS, SANDBOX_FINDS, SANDBOX_CALLS } job;
    const struct sandbox_call *call;
    struct hook *hook; /* of the running call */
    /* References into the registry. */
    int handler, runner; /* what lies at the bottom of the stack */
    int globals, kept;   /* tables: of the running call, of modules */
    int module;          /* its table */
    int *functions;      /* by slot; 0: not looked up yet */
    size_t function_count;
};

/* Opens a state and loads the module under a budget. NULL with what is wrong, in one line that begins with a
 * file (and a line of it) where there is one. */
struct sandbox *sandbox_open(const struct sources *sources, const char *module,
                             const struct script_limits *limits, size_t slots, struct error *err);
void sandbox_close(struct sandbox *sandbox); /* NULL is fine */

/* Is there such a function? INVALID with a line as above. */
enum status sandbox_find(struct sandbox *sandbox, const struct sandbox_call *call, struct error *err);

/* Calls it. True: the results are the values at the top of sandbox->guard.lua, until the next call. False: an
 * error (its value is at the top) or a breach (sandbox->guard.breach). */
bool sandbox_run(struct sandbox *sandbox, const struct sandbox_call *call);

/* The result of the last run is too long: a breach like others. */
void sandbox_overflow(struct sandbox *sandbox);

/* After a run that failed: what happened, for a person, and the traceback. */
void sandbox_explain(const struct sandbox *sandbox, struct buf *out);
/* The same in one line, for a log: no traceback, and nothing that the script may have said itself. */
void sandbox_explain_safely(const struct sandbox *sandbox, struct buf *out);

#endif
