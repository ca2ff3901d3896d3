/* SPDX-License-Identifier: MIT
 * Which entries, as an argument: {name=, below=, type=, tag=, rcode=, group=}. */
#ifndef LUA54_SELECTOR_H
#define LUA54_SELECTOR_H

#include <lua.h>

#include "sardine.h"

struct selector {
        struct sardine_selector selector;
        uint8_t name[255];
};

/* From the table that is argument `arg`, which must stay there for as long as the selector is used. */
void selector_read(lua_State *L, int arg, struct selector *selector);

#endif
