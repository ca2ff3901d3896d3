/* SPDX-License-Identifier: MIT */
#include "lua54/policy.h"

#include <lauxlib.h>
#include <string.h>

#include "lua54/fields.h"
#include "lua54/text.h"

enum {
        WHY_MAX = 512,
};

/* true; or nil and a message, what is wrong with the file if that is known. */
static int push_loaded(lua_State *L, int err, const char *why)
{
        if (err == 0) {
                lua_pushboolean(L, 1);
                return 1;
        }
        push_failure(L, err);
        if (why[0]) {
                lua_pop(L, 1);
                lua_pushstring(L, why);
        }
        return 2;
}

static bool set_field(lua_State *L, int arg, const char *name, void *ctx)
{
        uint32_t *flags = ctx;
        if (strcmp(name, "all_libraries") != 0)
                return false;
        if (field_flag(L, arg, name))
                *flags |= SARDINE_POLICY_ALL_LIBRARIES;
        return true;
}

static int policy_load(lua_State *L, struct lua_cache *c)
{
        const char *path = check_text(L, 2);
        luaL_argcheck(L, path, 2, "a file name has no NUL inside");
        uint32_t flags = 0;
        if (!lua_isnoneornil(L, 3))
                fields_read(L, 3, set_field, &flags);
        char why[WHY_MAX] = "";
        return push_loaded(L, sardine_policy_load(c->cache, path, flags, why, sizeof why), why);
}

static int policy_unload(lua_State *L, struct lua_cache *c)
{
        return push_loaded(L, sardine_policy_load(c->cache, NULL, 0, NULL, 0), "");
}

static int policy_reload(lua_State *L, struct lua_cache *c)
{
        char why[WHY_MAX] = "";
        return push_loaded(L, sardine_policy_reload(c->cache, why, sizeof why), why);
}

static int policy_changed(lua_State *L, struct lua_cache *c)
{
        lua_pushboolean(L, sardine_policy_changed(c->cache) == 1);
        return 1;
}

static int policy_stats(lua_State *L, struct lua_cache *c)
{
        static const char *const hooks[SARDINE_HOOK_COUNT] = {[SARDINE_HOOK_KEY] = "key",
                                                              [SARDINE_HOOK_STORE] = "store",
                                                              [SARDINE_HOOK_EVICT] = "evict",
                                                              [SARDINE_HOOK_STALE] = "stale"};
        struct sardine_policy_stats stats = {.sz = sizeof stats};
        int err = sardine_policy_stats_get(c->cache, &stats);
        if (err)
                return push_failure(L, err);
        lua_newtable(L);
        lua_pushboolean(L, stats.loaded != 0);
        lua_setfield(L, -2, "loaded");
        lua_pushinteger(L, (lua_Integer)stats.loads);
        lua_setfield(L, -2, "loads");
        lua_pushinteger(L, (lua_Integer)stats.load_failures);
        lua_setfield(L, -2, "load_failures");
        for (unsigned i = 0; i < SARDINE_HOOK_COUNT; i++) {
                const struct {
                        const char *name;
                        uint64_t value;
                } counts[] = {{"calls", stats.calls[i]},
                              {"errors", stats.errors[i]},
                              {"timeouts", stats.timeouts[i]},
                              {"skipped", stats.skipped[i]}};
                lua_newtable(L);
                lua_pushboolean(L, stats.hooks >> i & 1);
                lua_setfield(L, -2, "defined");
                for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
                        lua_pushinteger(L, (lua_Integer)counts[j].value);
                        lua_setfield(L, -2, counts[j].name);
                }
                lua_setfield(L, -2, hooks[i]);
        }
        return 1;
}

const struct method policy_methods[] = {
    {"policy_load", policy_load},       {"policy_unload", policy_unload}, {"policy_reload", policy_reload},
    {"policy_changed", policy_changed}, {"policy_stats", policy_stats},   {NULL, NULL},
};
