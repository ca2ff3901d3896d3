/* SPDX-License-Identifier: MIT
 * A walk over the entries of a cache. What it finds is copied before Lua sees any of it: no Lua code runs
 * inside the library's walk, which a break, an error or a call into the cache would harm. */
#ifndef LUA54_WALK_H
#define LUA54_WALK_H

#include <lua.h>

#include "sardine.h"

/* cache:walk(selector, how): the four values of a generic `for`, or nil and a message. The selector is
 * argument 2, the table `how` argument 3. */
int walk_new(lua_State *L, sardine_cache *cache);
void walk_open(lua_State *L);

#endif
