/* SPDX-License-Identifier: MIT
 * The libraries of a policy. Instructions are counted in Lua code only, so what could work for long inside of
 * a library's function is bounded here. */
#include <limits.h>

#include "policy/lua/lua_engine.h"

enum {
        STEPS_MOST = 10000000, /* of a pattern, in the worst case */
        STEPS_MOST_LOADING = 20 * STEPS_MOST,
        STEPS_AN_INSTRUCTION = 32,
        REPEATS_MOST = 1000000,
        REPEATS_AN_INSTRUCTION = 8,
        ITEMS_MOST = 10000, /* that a hook may sort, move or unpack at once */
};

/* Call the function that this one stands for, with the same arguments. */
static int original(lua_State *L)
{
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_insert(L, 1);
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
        return lua_gettop(L);
}

/* Protected calls -------------------------------------------------------------------------------------------
 * No instruction is counted in a message handler of an error that the counting itself has raised, nor in a
 * coroutine that such an error has ended (its __close handlers are still to come). So handlers are called
 * when the stack is unwound, and coroutines unwind theirs before they end. */

static int xpcall_done(lua_State *L, int status, lua_KContext unused)
{
        (void)unused;
        /* The handler, true, and what the function has returned; or what it has raised. */
        if (status == LUA_OK || status == LUA_YIELD)
                return lua_gettop(L) - 1;
        lua_pushvalue(L, 1);
        lua_insert(L, -2);
        lua_pcall(L, 1, 1, 0);
        lua_pushboolean(L, false);
        lua_insert(L, -2);
        return 2;
}

static int xpcall(lua_State *L)
{
        luaL_checktype(L, 2, LUA_TFUNCTION);
        int arguments = lua_gettop(L) - 2;
        lua_pushboolean(L, true);
        lua_pushvalue(L, 1);
        lua_rotate(L, 3, 2);
        lua_remove(L, 1);
        return xpcall_done(L, lua_pcallk(L, arguments, LUA_MULTRET, 0, 0, xpcall_done), 0);
}

static int coroutine_done(lua_State *L, int status, lua_KContext unused)
{
        (void)unused;
        return status == LUA_OK || status == LUA_YIELD ? lua_gettop(L) : lua_error(L);
}

static int coroutine(lua_State *L)
{
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_insert(L, 1);
        return coroutine_done(L, lua_pcallk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, 0, coroutine_done), 0);
}

static int guard_coroutine(lua_State *L)
{
        luaL_checktype(L, 1, LUA_TFUNCTION);
        lua_settop(L, 1);
        lua_pushcclosure(L, coroutine, 1);
        return original(L);
}

/* Work in libraries -----------------------------------------------------------------------------------------
 */

enum pattern_use { USE_MATCH, USE_FIND, USE_GMATCH, USE_GSUB };

/* Comparisons in the worst case. The items that repeat end at every combination of places in their order;
 * each
 * `?` is tried both ways; then the rest of the pattern is compared, and a balance or an earlier capture may
 * be as long as the subject. */
static double steps(const char *pattern, size_t len, size_t subject, bool anchored)
{
        double n = (double)subject + 1, steps = 1, long_item = 0;
        unsigned places = 0;
        bool in_set = false;
        if (!anchored)
                steps *= n + ++places;
        for (size_t i = 0; i < len; i++) {
                char c = pattern[i];
                if (c == '%') {
                        i++;
                        if (!in_set && i < len &&
                            (pattern[i] == 'b' || (pattern[i] >= '0' && pattern[i] <= '9')))
                                long_item = n;
                } else if (in_set) {
                        in_set = c != ']';
                } else if (c == '[') {
                        in_set = true;
                        i += i + 1 < len && pattern[i + 1] == '^';
                        i += i + 1 < len && pattern[i + 1] == ']';
                } else if (i > 0 && (c == '*' || c == '+' || c == '-')) {
                        places++;
                        steps *= (n + places) / places;
                } else if (i > 0 && c == '?') {
                        steps *= 2;
                }
        }
        return steps * ((double)len + long_item);
}

static int guard_pattern(lua_State *L)
{
        size_t subject, len;
        luaL_checklstring(L, 1, &subject);
        const char *pattern = luaL_checklstring(L, 2, &len);
        enum pattern_use use = (enum pattern_use)lua_tointeger(L, lua_upvalueindex(2));
        int most = state_of(L)->loading ? STEPS_MOST_LOADING : STEPS_MOST;
        double may = use == USE_FIND && lua_toboolean(L, 4)
                         ? (double)subject * (double)len
                         : steps(pattern, len, subject, use != USE_GMATCH && len > 0 && pattern[0] == '^');
        if (may > most)
                return luaL_error(
                    L, "a pattern that may take %d million steps on %d bytes; at most %d million",
                    may / 1e6 < INT_MAX ? (int)(may / 1e6) : INT_MAX, (int)subject, most / 1000000);
        spend(L, may / STEPS_AN_INSTRUCTION + (use == USE_GSUB ? (double)subject : 0));
        return original(L);
}

static int guard_rep(lua_State *L)
{
        lua_Integer repeats = luaL_checkinteger(L, 2);
        if (repeats > REPEATS_MOST)
                return luaL_error(L, "string.rep: more than %d times", REPEATS_MOST);
        if (repeats > 0)
                spend(L, (double)repeats / REPEATS_AN_INSTRUCTION);
        return original(L);
}

/* The bytes from argument 2 to argument 3, which count from the end if they are negative. */
static int guard_bytes(lua_State *L)
{
        size_t len;
        luaL_checklstring(L, 1, &len);
        lua_Integer size = (lua_Integer)len, from = luaL_optinteger(L, 2, 1);
        lua_Integer to = luaL_optinteger(L, 3, lua_tointeger(L, lua_upvalueindex(2)) ? -1 : from);
        from = from < 0 ? (from < -size ? 1 : from + size + 1) : from;
        to = to < 0 ? (to < -size ? 0 : to + size + 1) : to > size ? size : to;
        if (to > from)
                spend(L, (double)(to - from));
        return original(L);
}

enum table_use { USE_INSERT, USE_REMOVE, USE_SORT, USE_CONCAT };

/* A table with methods of its own could make a library's loop run for ever. */
static int guard_plain(lua_State *L)
{
        luaL_checktype(L, 1, LUA_TTABLE);
        if (luaL_getmetafield(L, 1, "__len") != LUA_TNIL || luaL_getmetafield(L, 1, "__index") != LUA_TNIL ||
            luaL_getmetafield(L, 1, "__newindex") != LUA_TNIL)
                return luaL_error(L, "not for a table with such a metatable");
        enum table_use use = (enum table_use)lua_tointeger(L, lua_upvalueindex(2));
        lua_Unsigned items = lua_rawlen(L, 1);
        double n = (double)items;
        if (use == USE_SORT) {
                if (!state_of(L)->loading && items > ITEMS_MOST)
                        return luaL_error(L, "more than %d items", ITEMS_MOST);
                for (; items > 1; items /= 2)
                        spend(L, n);
        } else if (use == USE_CONCAT) {
                spend(L, n);
        } else if (lua_gettop(L) > (use == USE_INSERT ? 2 : 1)) {
                double at = (double)luaL_optinteger(L, 2, (lua_Integer)items);
                if (at >= 1 && at <= n)
                        spend(L, n - at);
        }
        return original(L);
}

/* The items from argument 2 to argument 3. */
static void spend_items(lua_State *L, lua_Integer from, lua_Integer to)
{
        if (to < from)
                return;
        lua_Unsigned more = (lua_Unsigned)to - (lua_Unsigned)from;
        if (!state_of(L)->loading && more >= ITEMS_MOST)
                luaL_error(L, "more than %d items", ITEMS_MOST);
        spend(L, (double)more);
}

static int guard_move(lua_State *L)
{
        spend_items(L, luaL_checkinteger(L, 2), luaL_checkinteger(L, 3));
        return original(L);
}

static int guard_unpack(lua_State *L)
{
        lua_Integer to = lua_isnoneornil(L, 3) ? luaL_len(L, 1) : luaL_checkinteger(L, 3);
        spend_items(L, luaL_optinteger(L, 2, 1), to);
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
static void guard(lua_State *L, const char *name, lua_CFunction with, int use)
{
        lua_getfield(L, -1, name);
        lua_pushinteger(L, use);
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

/* In dnsdist they would be bound to its LuaJIT; anywhere else one of them could call the cache, from within.
 */
static void no_c_modules(lua_State *L)
{
        lua_getfield(L, -1, LUA_LOADLIBNAME);
        forget(L, "loadlib");
        lua_getfield(L, -1, "searchers");
        for (lua_Integer i = luaL_len(L, -1); i > 2; i--) { /* after those for package.preload and for Lua */
                lua_pushnil(L);
                lua_seti(L, -2, i);
        }
        lua_pop(L, 2);
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
        }
        guard(L, "setmetatable", guard_setmetatable, 0);
        lua_pushcfunction(L, xpcall);
        lua_setfield(L, -2, "xpcall");
        if (program->all_libraries) {
                lua_getfield(L, -1, LUA_COLIBNAME);
                guard(L, "create", guard_coroutine, 0);
                guard(L, "wrap", guard_coroutine, 0);
                lua_pop(L, 1);
                lua_getfield(L, -1, LUA_DBLIBNAME);
                guard(L, "setmetatable", guard_setmetatable, 0);
                forget(L, "sethook"); /* it is ours */
                lua_pop(L, 1);
                no_c_modules(L);
        }
        lua_getfield(L, -1, LUA_STRLIBNAME);
        guard(L, "find", guard_pattern, USE_FIND);
        guard(L, "match", guard_pattern, USE_MATCH);
        guard(L, "gmatch", guard_pattern, USE_GMATCH);
        guard(L, "gsub", guard_pattern, USE_GSUB);
        guard(L, "rep", guard_rep, 0);
        guard(L, "byte", guard_bytes, false);
        forget(L, "dump");
        lua_pop(L, 1);
        lua_getfield(L, -1, LUA_UTF8LIBNAME);
        guard(L, "codepoint", guard_bytes, false);
        guard(L, "len", guard_bytes, true);
        lua_pop(L, 1);
        lua_getfield(L, -1, LUA_TABLIBNAME);
        guard(L, "insert", guard_plain, USE_INSERT);
        guard(L, "remove", guard_plain, USE_REMOVE);
        guard(L, "sort", guard_plain, USE_SORT);
        guard(L, "concat", guard_plain, USE_CONCAT);
        guard(L, "move", guard_move, 0);
        guard(L, "unpack", guard_unpack, 0);
        lua_pop(L, 2);
        numbers(L, "types", false);
        numbers(L, "rcodes", true);
        lua_pushcfunction(L, tables_list);
        lua_setglobal(L, "list");
}
