/* SPDX-License-Identifier: MIT
 * require "sardine" for Lua 5.4: the public header as a Lua program wants it. */
#include <lauxlib.h>
#include <lua.h>

#include "lua54/cache.h"
#include "lua54/clock.h"
#include "lua54/text.h"
#include "lua54/walk.h"
#include "sardine.h"

static int push_name_failure(lua_State *L, int error)
{
        lua_pushnil(L);
        lua_pushstring(L, sardine_strerror(error));
        return 2;
}

static int name_from_text(lua_State *L)
{
        uint8_t name[255];
        const char *text = check_text(L, 1);
        int len = text ? sardine_name_from_text(text, name) : SARDINE_ERR_NAME;
        if (len < 0)
                return push_name_failure(L, len);
        lua_pushlstring(L, (const char *)name, (size_t)len);
        return 1;
}

static int name_to_text(lua_State *L)
{
        char text[1024];
        size_t wire;
        const char *name = luaL_checklstring(L, 1, &wire);
        int len = sardine_name_to_text((const uint8_t *)name, wire, text, sizeof text);
        if (len < 0)
                return push_name_failure(L, len);
        lua_pushlstring(L, text, (size_t)len);
        return 1;
}

__attribute__((visibility("default"))) int luaopen_sardine(lua_State *L);

int luaopen_sardine(lua_State *L)
{
        static const luaL_Reg functions[] = {{"new", cache_new},
                                             {"clock", clock_new},
                                             {"name_from_text", name_from_text},
                                             {"name_to_text", name_to_text},
                                             {NULL, NULL}};
        luaL_checkversion(L);
        if (sardine_abi_version() != SARDINE_ABI_VERSION)
                return luaL_error(L, "this module needs a libsardine of ABI %d, the one loaded is %s, ABI %d",
                                  SARDINE_ABI_VERSION, sardine_version(), (int)sardine_abi_version());
        cache_open(L);
        clock_open(L);
        walk_open(L);
        luaL_newlib(L, functions);
        lua_pushstring(L, sardine_version());
        lua_setfield(L, -2, "version");
        return 1;
}
