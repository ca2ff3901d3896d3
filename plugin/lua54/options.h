/* SPDX-License-Identifier: MIT
 * The options of sardine.new(). */
#ifndef LUA54_OPTIONS_H
#define LUA54_OPTIONS_H

#include <lua.h>

#include "sardine.h"

/* The user values of a cache: what its options refer to, kept for as long as it is. */
enum {
        CACHE_CLOCK = 1,
        CACHE_LOG = 2,
        CACHE_USER_VALUES = 2,
};

struct lua_options {
        struct sardine_options options; /* initialized by the caller */
        int cache;                      /* where its userdata is on the stack */
        uint16_t splits[16];
};

/* From the table that is argument `arg`. */
void options_read(lua_State *L, int arg, struct lua_options *out);

#endif
