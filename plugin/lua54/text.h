/* SPDX-License-Identifier: MIT
 * Names of types, response codes and networks, as text for people. */
#ifndef LUA54_TEXT_H
#define LUA54_TEXT_H

#include <lua.h>
#include <stdint.h>

/* "AAAA", "TYPE65280" */
void push_type(lua_State *L, uint32_t type);
/* "NXDOMAIN", "RCODE23" */
void push_rcode(lua_State *L, uint32_t rcode);
/* "192.0.2.0/24" */
void push_network(lua_State *L, uint32_t family, const uint8_t addr[16], uint32_t prefix);

/* The field on top of the stack: a name as above, or a number. */
uint32_t field_type(lua_State *L, int arg, const char *name);
uint32_t field_rcode(lua_State *L, int arg, const char *name);

/* Argument `arg` as text without a NUL inside; NULL when there is one. */
const char *check_text(lua_State *L, int arg);

#endif
