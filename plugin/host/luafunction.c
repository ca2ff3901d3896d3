/* SPDX-License-Identifier: MIT */
#include "host/luafunction.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "host/dnsdist.h"

/* As lua.h of Lua 5.1 declares them. */
static struct {
        ptrdiff_t (*tointeger)(struct lua_State *lua, int index);
        void *(*touserdata)(struct lua_State *lua, int index);
        void (*pushinteger)(struct lua_State *lua, ptrdiff_t n);
} api;

static pthread_once_t resolved = PTHREAD_ONCE_INIT;

/* Who calls us is Lua, so they are there. */
static void resolve(void)
{
        *(void **)&api.tointeger = dlsym(RTLD_DEFAULT, "lua_tointeger");
        *(void **)&api.touserdata = dlsym(RTLD_DEFAULT, "lua_touserdata");
        *(void **)&api.pushinteger = dlsym(RTLD_DEFAULT, "lua_pushinteger");
}

static int returns(struct lua_State *lua, int n)
{
        api.pushinteger(lua, n);
        return 1;
}

int sardine_dnsdist_lua_lookup(struct lua_State *lua)
{
        pthread_once(&resolved, resolve);
        uint32_t pool = (uint32_t)api.tointeger(lua, 1);
        return returns(lua, sardine_dnsdist_lookup(pool, api.touserdata(lua, 2)));
}

int sardine_dnsdist_lua_response(struct lua_State *lua)
{
        pthread_once(&resolved, resolve);
        sardine_dnsdist_response(api.touserdata(lua, 1));
        return 0;
}

int sardine_dnsdist_lua_self_answered(struct lua_State *lua)
{
        pthread_once(&resolved, resolve);
        return returns(lua, sardine_dnsdist_self_answered(api.touserdata(lua, 1)));
}
