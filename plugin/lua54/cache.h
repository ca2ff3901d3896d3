/* SPDX-License-Identifier: MIT
 * The cache as a Lua object. */
#ifndef LUA54_CACHE_H
#define LUA54_CACHE_H

#include <lua.h>

#include "lua54/notes.h"
#include "sardine.h"

struct lua_cache {
        sardine_cache *cache; /* NULL: closed */
        uint64_t id;          /* of all caches of the process: its tokens have it */
        struct notes notes;
};

/* A method that needs an open cache. A list of them ends with one without a name. */
struct method {
        const char *name;
        int (*call)(lua_State *L, struct lua_cache *c);
};

/* nil and a message, for what is not the programmer's mistake. */
int push_failure(lua_State *L, int error);

/* sardine.new(options): a cache, or nil and a message */
int cache_new(lua_State *L);
void cache_open(lua_State *L);

#endif
