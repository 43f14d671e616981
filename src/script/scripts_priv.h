/* The inside of a set: its functions, and the states of each thread. */
#ifndef SCRIPT_SCRIPTS_PRIV_H
#define SCRIPT_SCRIPTS_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "script/keys.h"
#include "script/sandbox.h"
#include "util/vec.h"

/* One function of one module, whatever its arguments. */
struct function {
    size_t module, slot; /* of scripts->modules; of its sandboxes */
    const char *name;
    struct series *duration, *breaches[SCRIPT_BREACH_COUNT]; /* NULL: not metered */
    atomic_llong logged_ms; /* when an error of it was logged last, monotonic */
};

/* A spec and its function. */
struct entry {
    const struct key_spec *spec;
    struct function *function;
};

struct module {
    const char *name;
    size_t function_count;
    struct sandbox *first; /* made by scripts_add, taken by the first thread that needs one */
};

/* What one thread uses. */
struct host {
    struct host *next;
    pthread_t thread;
    struct sandbox **sandboxes; /* one a module; NULL: not open */
};

struct scripts {
    uint64_t id; /* unlike any other set's, also one at the same address before */
    struct scripts_options options;
    struct sources *sources;
    struct key_engine engine;
    VEC(struct module) modules;
    VEC(struct function *) functions;
    VEC(struct entry) entries; /* sorted by spec */
    pthread_mutex_t lock;
    struct host *hosts; /* under the lock */
};

const struct entry *scripts_entry(const struct scripts *scripts, const struct key_spec *spec);
/* The place of this thread's sandbox of a module. */
struct sandbox **scripts_place(struct scripts *scripts, size_t module);
/* Makes the place hold an open sandbox that is not spent; false with a reason when it can't be opened. */
bool scripts_ready(struct scripts *scripts, struct sandbox **place, size_t module, struct error *err);

/* Calls, in the sandbox of `place`, which is opened when it must be. MISSING_NOTHING: the results are at the
 * top of its stack. SCRIPT_BREACH; SCRIPT_ERROR: it raised, or, when *place is NULL, did not open, and `err`
 * says why. */
enum missing_reason scripts_run(struct scripts *scripts, struct sandbox **place,
                                const struct sandbox_call *call, size_t module, struct error *err);
/* Counts and logs what came of a call. `sandbox` NULL: it did not open. */
void scripts_note(const struct scripts *scripts, const struct entry *entry, const struct sandbox *sandbox,
                  enum missing_reason missing, const struct error *not_open);

/* The engine's. */
enum missing_reason scripts_resolve(void *ctx, const struct key_spec *spec, const struct envelope *envelope,
                                    struct arena *arena, struct bytes *key, bool *unordered);
/* One call of a key function with cost and explanation, neither counted nor logged. */
void scripts_inspect(struct scripts *scripts, struct sandbox **place, const struct entry *entry,
                     const struct envelope *envelope, struct arena *arena, struct script_result *out);

#endif
