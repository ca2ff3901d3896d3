/* SPDX-License-Identifier: MIT
 * A client's query and what is known of it, as arguments of a lookup. */
#ifndef LUA54_REQUEST_H
#define LUA54_REQUEST_H

#include <lua.h>

#include "sardine.h"

enum {
        HOST_TAGS_MAX = 16,
};

struct request {
        struct sardine_query query;
        uint8_t client[16], local[16];
        struct {
                const char *name, *text;
        } host_tag[HOST_TAGS_MAX];
        size_t n_host_tags;
};

/* The packet is argument `arg`; the table `how`, which may be nil or none, has the rest. Both must stay on
 * the stack for as long as the request is used. */
void request_read(lua_State *L, int arg, int how, struct request *request);

#endif
