/* SPDX-License-Identifier: MIT */
#include "lua54/clock.h"

#include <lauxlib.h>
#include <math.h>
#include <stdatomic.h>

/* Atomic, for the library may look at it from a thread of its own. */
struct clock {
        _Atomic uint64_t ms;
};

uint64_t clock_read(void *ctx)
{
        struct clock *clock = ctx;
        return atomic_load_explicit(&clock->ms, memory_order_relaxed);
}

int clock_new(lua_State *L)
{
        struct clock *clock = lua_newuserdatauv(L, sizeof *clock, 0);
        atomic_init(&clock->ms, 0);
        luaL_setmetatable(L, CLOCK_TYPE);
        return 1;
}

/* Steps are bounded so that no number of them that a program can make wraps the clock. */
static int clock_advance(lua_State *L)
{
        struct clock *clock = luaL_checkudata(L, 1, CLOCK_TYPE);
        lua_Number seconds = luaL_checknumber(L, 2);
        luaL_argcheck(L, seconds >= 0 && seconds <= UINT32_MAX, 2, "from 0 to 4294967295 seconds");
        atomic_fetch_add_explicit(&clock->ms, (uint64_t)llround(seconds * 1000), memory_order_relaxed);
        return 0;
}

static int clock_now(lua_State *L)
{
        lua_pushnumber(L, (lua_Number)clock_read(luaL_checkudata(L, 1, CLOCK_TYPE)) / 1000);
        return 1;
}

void clock_open(lua_State *L)
{
        static const luaL_Reg methods[] = {{"advance", clock_advance}, {"now", clock_now}, {NULL, NULL}};
        luaL_newmetatable(L, CLOCK_TYPE);
        luaL_newlib(L, methods);
        lua_setfield(L, -2, "__index");
        lua_pop(L, 1);
}
