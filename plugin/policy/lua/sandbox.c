/* SPDX-License-Identifier: MIT
 * The libraries of a policy. Instructions are counted in Lua code only, so what could work for long inside of
 * a library's function is bounded here. */
#include <limits.h>
#include <string.h>

#include "policy/lua/lua_engine.h"

enum {
        STEPS_MOST = 10000000, /* of a pattern, in the worst case */
        REPEATS_MOST = 1000000,
        ITEMS_MOST = 10000, /* that a hook may sort or move at once */
};

/* Call the function that this one stands for, with the same arguments. */
static int original(lua_State *L)
{
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_insert(L, 1);
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
        return lua_gettop(L);
}

/* In the worst case every item of a pattern that repeats tries every length at every place. */
static double steps(const char *pattern, size_t len, size_t subject)
{
        double n = (double)subject + 1, steps = len > 0 && pattern[0] == '^' ? n : n * n;
        bool in_set = false;
        for (size_t i = 0; i < len; i++) {
                char c = pattern[i];
                if (c == '%') {
                        i++;
                } else if (in_set) {
                        in_set = c != ']';
                } else if (c == '[') {
                        in_set = true;
                        i += i + 1 < len && pattern[i + 1] == '^';
                        i += i + 1 < len && pattern[i + 1] == ']';
                } else if (i > 0 && (c == '*' || c == '+' || c == '-')) {
                        steps *= n;
                }
        }
        return steps / n;
}

static int guard_pattern(lua_State *L)
{
        size_t subject, len;
        luaL_checklstring(L, 1, &subject);
        const char *pattern = luaL_checklstring(L, 2, &len);
        double most = lua_toboolean(L, lua_upvalueindex(2)) && lua_toboolean(L, 4)
                          ? (double)subject * (double)len
                          : steps(pattern, len, subject);
        if (most > STEPS_MOST)
                return luaL_error(
                    L, "a pattern that may take %d million steps on %d bytes; at most %d million",
                    most / 1e6 < INT_MAX ? (int)(most / 1e6) : INT_MAX, (int)subject, STEPS_MOST / 1000000);
        return original(L);
}

static int guard_rep(lua_State *L)
{
        if (luaL_checkinteger(L, 2) > REPEATS_MOST)
                return luaL_error(L, "string.rep: more than %d times", REPEATS_MOST);
        return original(L);
}

/* A table with methods of its own could make a library's loop run for ever. */
static int guard_plain(lua_State *L)
{
        luaL_checktype(L, 1, LUA_TTABLE);
        if (luaL_getmetafield(L, 1, "__len") != LUA_TNIL || luaL_getmetafield(L, 1, "__index") != LUA_TNIL ||
            luaL_getmetafield(L, 1, "__newindex") != LUA_TNIL)
                return luaL_error(L, "not for a table with such a metatable");
        if (lua_toboolean(L, lua_upvalueindex(2)) && !state_of(L)->loading && lua_rawlen(L, 1) > ITEMS_MOST)
                return luaL_error(L, "more than %d items", ITEMS_MOST);
        return original(L);
}

static int guard_move(lua_State *L)
{
        lua_Integer from = luaL_checkinteger(L, 2), to = luaL_checkinteger(L, 3);
        if (to >= from && (lua_Unsigned)to - (lua_Unsigned)from >= ITEMS_MOST)
                return luaL_error(L, "table.move: more than %d items", ITEMS_MOST);
        return original(L);
}

/* Finalizers run where no instruction is counted. */
static int guard_setmetatable(lua_State *L)
{
        if (lua_type(L, 2) == LUA_TTABLE) {
                lua_pushliteral(L, "__gc");
                if (lua_rawget(L, 2) != LUA_TNIL)
                        return luaL_error(L, "setmetatable: a policy has no finalizers (__gc)");
                lua_pop(L, 1);
        }
        return original(L);
}

/* Put `guard` in the place of a function of the table on the top. */
static void guard(lua_State *L, const char *name, lua_CFunction with, bool more)
{
        lua_getfield(L, -1, name);
        lua_pushboolean(L, more);
        lua_pushcclosure(L, with, 2);
        lua_setfield(L, -2, name);
}

static void forget(lua_State *L, const char *name)
{
        lua_pushnil(L);
        lua_setfield(L, -2, name);
}

/* types.AAAA, rcodes.NXDOMAIN: found once, then kept. */
static int number_of(lua_State *L)
{
        const struct policy_services *services = state_of(L)->program->services;
        bool is_rcode = lua_toboolean(L, lua_upvalueindex(1));
        const char *name = luaL_checkstring(L, 2);
        int number = is_rcode ? services->rcode_number(name) : services->type_number(name);
        if (number < 0)
                return luaL_error(L, "no %s is called %s", is_rcode ? "rcode" : "record type", name);
        lua_settop(L, 2);
        lua_pushinteger(L, number);
        lua_pushvalue(L, -1);
        lua_insert(L, 2);
        lua_rawset(L, 1);
        return 1;
}

static void numbers(lua_State *L, const char *global, bool rcodes)
{
        lua_newtable(L);
        lua_newtable(L);
        lua_pushboolean(L, rcodes);
        lua_pushcclosure(L, number_of, 1);
        lua_setfield(L, -2, "__index");
        lua_setmetatable(L, -2);
        lua_setglobal(L, global);
}

void sandbox_open(lua_State *L, const struct policy_program *program)
{
        static const luaL_Reg libraries[] = {
            {LUA_GNAME, luaopen_base},       {LUA_STRLIBNAME, luaopen_string},
            {LUA_TABLIBNAME, luaopen_table}, {LUA_MATHLIBNAME, luaopen_math},
            {LUA_UTF8LIBNAME, luaopen_utf8},
        };
        if (program->all_libraries)
                luaL_openlibs(L);
        for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
                luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
                lua_pop(L, 1);
        }
        lua_pushglobaltable(L);
        if (!program->all_libraries) {
                static const char *const out[] = {"load",  "loadfile", "dofile", "collectgarbage",
                                                  "print", "warn",     "require"};
                for (size_t i = 0; i < sizeof out / sizeof out[0]; i++)
                        forget(L, out[i]);
                guard(L, "setmetatable", guard_setmetatable, false);
        }
        lua_getfield(L, -1, LUA_STRLIBNAME);
        guard(L, "find", guard_pattern, true);
        guard(L, "match", guard_pattern, false);
        guard(L, "gmatch", guard_pattern, false);
        guard(L, "gsub", guard_pattern, false);
        guard(L, "rep", guard_rep, false);
        forget(L, "dump");
        lua_pop(L, 1);
        lua_getfield(L, -1, LUA_TABLIBNAME);
        guard(L, "insert", guard_plain, false);
        guard(L, "remove", guard_plain, false);
        guard(L, "sort", guard_plain, true);
        guard(L, "concat", guard_plain, false);
        guard(L, "move", guard_move, false);
        lua_pop(L, 2);
        numbers(L, "types", false);
        numbers(L, "rcodes", true);
        lua_pushcfunction(L, tables_list);
        lua_setglobal(L, "list");
}
