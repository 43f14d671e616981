/* A Lua state of ours: capped memory, the compiler off, pure libraries only, modules out of the binary, and
 * calls under an instruction budget. Private to this room. A state belongs to one thread at a time. */
#ifndef SCRIPT_STATE_H
#define SCRIPT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#include "util/status.h"

struct script_state {
    lua_State *lua;
    size_t memory, memory_max; /* bytes held now; beyond the cap allocations fail */
    int64_t budget;            /* instructions left to the guarded call */
    bool breached; /* the budget was spent: until the guarded call has ended, every instruction raises */
};

/* The embedded modules can be required in it. The struct must not move while the state is open. FULL when
 * even an empty state does not fit. */
enum status script_state_open(struct script_state *state, size_t memory_max, struct error *err);
void script_state_close(struct script_state *state);

/* The state that a Lua function of ours runs in. */
struct script_state *script_state_of(lua_State *lua);

/* lua_pcall on `lua` (a thread of the state) under a budget of instructions. Spending it is an error that the
 * Lua code can't catch. */
int script_state_call(struct script_state *state, lua_State *lua, int arguments, int results, int64_t budget);

#endif
