/* SPDX-License-Identifier: MIT */
#include "lua54/fields.h"

#include <lauxlib.h>

#include "sardine.h"

void fields_read(lua_State *L, int arg, field_fn set, void *ctx)
{
        luaL_checktype(L, arg, LUA_TTABLE);
        lua_pushnil(L);
        while (lua_next(L, arg)) {
                if (lua_type(L, -2) != LUA_TSTRING)
                        luaL_argerror(L, arg, "fields have names");
                const char *name = lua_tostring(L, -2);
                if (!set(L, arg, name, ctx))
                        luaL_argerror(L, arg, lua_pushfstring(L, "unknown field '%s'", name));
                lua_pop(L, 1);
        }
}

uint64_t field_whole(lua_State *L, int arg, const char *name, uint64_t max)
{
        uint64_t most = max < LUA_MAXINTEGER ? max : LUA_MAXINTEGER;
        int whole = 0;
        /* Not from strings, which lua_tointegerx() would read. */
        lua_Integer value = lua_type(L, -1) == LUA_TNUMBER ? lua_tointegerx(L, -1, &whole) : 0;
        if (!whole || value < 0 || (uint64_t)value > most)
                luaL_argerror(
                    L, arg,
                    lua_pushfstring(L, "'%s' must be a whole number from 0 to %I", name, (LUAI_UACINT)most));
        return (uint64_t)value;
}

bool field_flag(lua_State *L, int arg, const char *name)
{
        if (!lua_isboolean(L, -1))
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s' must be true or false", name));
        return lua_toboolean(L, -1);
}

const char *field_text(lua_State *L, int arg, const char *name, size_t *len)
{
        if (lua_type(L, -1) != LUA_TSTRING)
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s' must be a string", name));
        return lua_tolstring(L, -1, len);
}

const char *field_tag(lua_State *L, int arg, const char *name, uint32_t *len)
{
        size_t size;
        const char *tag = field_text(L, arg, name, &size);
        if (size > SARDINE_TAG_MAX)
                luaL_argerror(L, arg,
                              lua_pushfstring(L, "'%s' is longer than %d bytes", name, SARDINE_TAG_MAX));
        *len = (uint32_t)size;
        return tag;
}
