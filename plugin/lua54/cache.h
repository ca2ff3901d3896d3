/* SPDX-License-Identifier: MIT
 * The cache as a Lua object. */
#ifndef LUA54_CACHE_H
#define LUA54_CACHE_H

#include <lua.h>

/* sardine.new(options): a cache, or nil and a message */
int cache_new(lua_State *L);
void cache_open(lua_State *L);

#endif
