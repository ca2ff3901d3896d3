/* SPDX-License-Identifier: MIT
 * Tables with named fields, as arguments: every field must be known and of the right kind, or the call is an
 * error that says which. */
#ifndef LUA54_FIELDS_H
#define LUA54_FIELDS_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Take the field `name`, whose value is on top of the stack, and leave it there. false: no such field. */
typedef bool (*field_fn)(lua_State *L, int arg, const char *name, void *ctx);

/* Hand each field of the table that is argument `arg` to `set`. No Lua code runs meanwhile, and strings of
 * the table stay where they are for as long as it is an argument. */
void fields_read(lua_State *L, int arg, field_fn set, void *ctx);

/* The value on top of the stack. */
uint64_t field_whole(lua_State *L, int arg, const char *name, uint64_t max);
bool field_flag(lua_State *L, int arg, const char *name);
const char *field_text(lua_State *L, int arg, const char *name, size_t *len);
/* As long as a tag may be. */
const char *field_tag(lua_State *L, int arg, const char *name, uint32_t *len);

#endif
