/* SPDX-License-Identifier: MIT
 * A clock that a Lua program moves, in place of the system's: for tests of what ages. */
#ifndef LUA54_CLOCK_H
#define LUA54_CLOCK_H

#include <lua.h>
#include <stdint.h>

#define CLOCK_TYPE "sardine.clock"

/* sardine.clock() */
int clock_new(lua_State *L);
void clock_open(lua_State *L);

/* sardine_clock_fn; the context is the userdata. */
uint64_t clock_read(void *ctx);

#endif
