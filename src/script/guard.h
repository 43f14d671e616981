/* What holds a script in its bounds: memory, instructions, pattern steps, time, the C stack. Private to this
 * room.
 *
 * A breach is marked first and raised then, and it stays: from the mark on the hook fires at every
 * instruction, so whatever catches the error (pcall, a coroutine, a metamethod) gets no further. Only the end
 * of the guarded call takes it down, and with it the state.
 *
 * Three things can take long, and each is paid for: Lua instructions by the hook; work of our helpers in C by
 * guard_charge, before it is done; single instructions over large values (a comparison, a concatenation, the
 * next member of a sparse table) by the interval of the hook, which shrinks as memory grows, and by the clock
 * that it reads. */
#ifndef SCRIPT_GUARD_H
#define SCRIPT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#include "script/keys.h"

enum {
    GUARD_TRACE_MAX = 2048,            /* bytes of a traceback */
    GUARD_C_STACK_MAX = 256 * 1024,    /* bytes of C stack under the guarded call; threads have 8 MiB */
    GUARD_BYTES_PER_INSTRUCTION = 128, /* what allocating costs, from GUARD_BIG_BYTES on */
    GUARD_BIG_BYTES = 16 * 1024,
};

struct guard {
    lua_State *lua;
    size_t memory, memory_max, memory_peak; /* bytes */
    int64_t instructions, steps;            /* left to the call */
    int interval;                           /* instructions until the hook fires */
    bool armed;                             /* inside a guarded call */
    bool exact;                             /* the hook fires at every instruction */
    enum script_breach breach;
    uintptr_t stack_end;                         /* no frame of ours may lie below */
    int64_t started_ns, elapsed_ns, time_max_ns; /* elapsed: when the call has ended */
    int64_t cpu_from_ns; /* the thread's processor clock when the call first looked slow; 0: it did not */
    char at[256];        /* "file:line" of the innermost line of Lua then */
    char trace[GUARD_TRACE_MAX]; /* where the first error or breach of the call was raised; "": nowhere */
    bool own_words; /* an error of this call had words of the script: none of its messages may be logged */
};

/* A state with the compiler off and no library. `guard` must not move. False when not even that fits. */
bool guard_open(struct guard *guard, size_t memory_max);
void guard_close(struct guard *guard);
/* Under protection, once the state has memory to spare: makes the texts that raising a breach needs. */
void guard_prepare(lua_State *lua);

/* Around a protected call. */
void guard_begin(struct guard *guard, const struct script_limits *limits, bool exact);
void guard_end(struct guard *guard);
/* What a breach is called in a message. */
const char *guard_breach_text(enum script_breach breach);

/* The message handler of guarded calls: notes the traceback, changes nothing. */
int guard_handler(lua_State *lua);

/* ---- for functions that scripts call; all of these may raise ---- */

struct guard *guard_of(lua_State *lua);
/* Pays for work about to be done. */
void guard_charge(lua_State *lua, int64_t instructions);
/* Pays for pattern steps done. */
void guard_charge_steps(lua_State *lua, int64_t left);
/* Before anything that calls Lua from C, so that recursion ends as an error. */
void guard_stack(lua_State *lua);
/* Before a large allocation: collects garbage when it would not fit otherwise. */
void guard_room(lua_State *lua, size_t bytes);
/* For the body, whose size is no fault of the script's: around its one copy. Gives back what allocating so
 * many bytes is charged; afterwards the clock of the call starts anew. */
void guard_spare(lua_State *lua, size_t bytes);
void guard_spared(lua_State *lua);
/* Before raising an error whose message a script has made. */
void guard_own_words(lua_State *lua);
/* Raises when a breach is marked: for C code that has caught an error. */
void guard_check(lua_State *lua);
/* Marks a breach and raises it. */
int guard_break(lua_State *lua, enum script_breach breach);

#endif
