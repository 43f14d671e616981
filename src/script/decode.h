/* JSON as Lua values. What JSON is, json/json.h says. Private to this room. */
#ifndef SCRIPT_DECODE_H
#define SCRIPT_DECODE_H

#include <lua.h>

#include "util/bytes.h"

/* Pushes the value, or nil and a reason; gives how many were pushed. Objects and arrays become tables, null
 * becomes lanegate.null. A number that Lua would print differently becomes a string: an integer of 15 digits
 * or more, or one beyond a double. A lone surrogate becomes U+FFFD. Pays by length; raises when the budget is
 * spent. */
int decode_push(lua_State *lua, struct bytes text);

#endif
