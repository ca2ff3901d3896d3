/* SPDX-License-Identifier: MIT
 *
 * luafunction.h - what the threads of dnsdist call for every query, as functions for LuaJIT's C API. LuaJIT
 * does not compile an FFI call that is given a light userdata, which is how dnsdist hands over a packet;
 * interpreted, that call costs several times as much as one of a C function.
 *
 * Lua's own functions are looked up in the process, at the first call: nothing of Lua is needed to build, and
 * a process that uses only the FFI needs none of it.
 */
#ifndef HOST_LUAFUNCTION_H
#define HOST_LUAFUNCTION_H

struct lua_State;

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* In Lua: each takes and returns what the function of that name without "lua_" does. */
int sardine_dnsdist_lua_lookup(struct lua_State *lua);
int sardine_dnsdist_lua_response(struct lua_State *lua);
int sardine_dnsdist_lua_self_answered(struct lua_State *lua);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
