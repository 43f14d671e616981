/* Functions that users write in Lua: ordering keys, and verifiers. A set of scripts is made when a
 * configuration is loaded: every .lua file under scripts.path is read then and never again, so all that a set
 * runs is of one moment. A set is shared by every thread; inside, each (thread, module) has a LuaJIT state of
 * its own, opened at the first call on that thread, dropped after a breach, closed with the set.
 *
 * Reload: load the new configuration (it makes a new set and plans that point to its engine), swap, and close
 * the old set when nobody resolves with the old plans any more. Two sets may run side by side; a state never
 * serves two sets. Threads need no word of it.
 *
 * No function here can raise, hang or run out of a bound: what a script does wrong is a value. */
#ifndef SCRIPT_KEYS_H
#define SCRIPT_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "envelope/envelope.h"
#include "metrics/metrics.h"
#include "order/order.h"
#include "util/arena.h"
#include "util/bytes.h"
#include "util/jsonw.h"
#include "util/status.h"

/* Of one call; memory is that of a state, over all calls. */
struct script_limits {
    size_t max_result_bytes;
    int64_t max_instructions;
    size_t max_memory_bytes;
    int64_t max_pattern_steps;
};

enum {
    SCRIPT_FILES_MAX = 10000,                /* files and folders under scripts.path */
    SCRIPT_FILE_BYTES_MAX = 1024 * 1024,     /* one file */
    SCRIPT_ALL_BYTES_MAX = 64 * 1024 * 1024, /* all of them */
    SCRIPT_MEMORY_MIN = 1024 * 1024,         /* least max_memory_bytes */
};

struct scripts_options {
    const char *path; /* the folder; it need not exist while no script is used */
    struct script_limits limits;
    size_t json_max_bytes; /* ordering.max_body_bytes: hook:get and hook:json see no larger body */
};

struct scripts;

/* Reads the folder. Copies the options. IO or TOO_LARGE with a reason. */
enum status scripts_open(const struct scripts_options *options, struct scripts **out, struct error *err);
/* Nobody may be in a call of it, on any thread. NULL is fine. */
void scripts_close(struct scripts *scripts);

/* Makes `spec` (KEY_SCRIPT) callable: loads its module in a state of its own and looks the function up.
 * `spec`, with all it points to, is borrowed for the set's life. INVALID with what is wrong and, where there
 * is one, the Lua file and line: no such module, does not load, no such function. Call it for every spec
 * before the set is shared between threads. Adding a spec twice is fine. */
enum status scripts_add(struct scripts *scripts, const struct key_spec *spec, struct error *err);
/* The same for `key` and every spec inside its `first`. */
enum status scripts_add_key(struct scripts *scripts, const struct key_spec *key, struct error *err);

/* For order_options.engine; lives as long as the set. Its resolve may be called on any thread. Specs must
 * have been added. */
const struct key_engine *scripts_engine(const struct scripts *scripts);

/* From here on calls are counted, and errors logged (once a function and minute, with a traceback, never with
 * words of the script's own). Before the set is shared. `metrics` outlives the set. */
void scripts_meter(struct scripts *scripts, struct metrics *metrics);

/* The budgets that can be broken, as in script_breaches_total{kind}. */
#define SCRIPT_BREACHES(X)                                                                                   \
    X(INSTRUCTIONS, "instructions")                                                                          \
    X(MEMORY, "memory")                                                                                      \
    X(PATTERN, "pattern_steps")                                                                              \
    X(RESULT, "result_bytes")                                                                                \
    X(TIME, "time")

enum script_breach {
    SCRIPT_BREACH_NONE,
#define SCRIPT_BREACH_ENUM(id, name) SCRIPT_BREACH_##id,
    SCRIPT_BREACHES(SCRIPT_BREACH_ENUM)
#undef SCRIPT_BREACH_ENUM
        SCRIPT_BREACH_COUNT
};
const char *script_breach_name(enum script_breach breach); /* "" for NONE */

/* What one call used. `instructions` counts what helpers in C took, too, and is exact here (in ordinary calls
 * it is watched at intervals). */
struct script_cost {
    int64_t instructions;
    int64_t pattern_steps;
    size_t memory_bytes; /* most that the state held at once during the call */
    int64_t time_ns;     /* of the processor's clock; exact counting makes a call several times slower */
};

struct script_result {
    enum missing_reason missing;
    enum script_breach breach; /* when missing is MISSING_SCRIPT_BREACH */
    bool unordered;            /* lanegate.unordered */
    struct bytes key;          /* when nothing is missing and it is not unordered; may be empty */
    const char *error;         /* what went wrong, for a person, with a traceback; "" when nothing did */
    bool nondeterministic;     /* scripts_probe only */
    struct script_cost cost;
};

/* One call with exact cost, in the state of this thread. Results live as long as `arena`. Not metered. */
void scripts_try(struct scripts *scripts, const struct key_spec *spec, const struct envelope *envelope,
                 struct arena *arena, struct script_result *out);

/* The same call in two fresh states and in a used one (that of this thread). When they do not agree,
 * `nondeterministic` is set and `error` says how; the rest is what the first fresh state gave. */
void scripts_probe(struct scripts *scripts, const struct key_spec *spec, const struct envelope *envelope,
                   struct arena *arena, struct script_result *out);

/* For a key of any form: what its scripts used, added up over those that `first` asks, in its order, until
 * one gives a key (or "unordered"); with the words of the last that had any. `probe`: each as scripts_probe
 * does. False, and a cost of nothing, when there is no script in it (then `scripts` may be NULL). */
bool scripts_explain(struct scripts *scripts, const struct key_spec *key, const struct envelope *envelope,
                     struct arena *arena, bool probe, struct script_result *out);

/* Members of the JSON object that is open: key, lane, reason, filtered, unordered, and what scripts used and
 * said. */
void scripts_write_found(const struct order_lane *lane, const struct script_result *script,
                         struct jsonw *json);

/* A verifier, function(hook, args...): true, or false and a reason (at most 64 bytes of [a-z0-9_]; anything
 * else is given as "failed"). An error, a breach or another type is false too, with the reason script_error,
 * script_breach or script_type. Metered. `reason` lives as long as `arena`. */
bool scripts_verify(struct scripts *scripts, const struct key_spec *function, const struct envelope *envelope,
                    struct arena *arena, const char **reason);

#endif
