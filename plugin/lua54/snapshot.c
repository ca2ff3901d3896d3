/* SPDX-License-Identifier: MIT */
#include "lua54/snapshot.h"

#include <lauxlib.h>
#include <string.h>

#include "lua54/fields.h"
#include "lua54/struct_fields.h"
#include "lua54/text.h"

static const char *check_path(lua_State *L, int arg)
{
        const char *path = check_text(L, arg);
        luaL_argcheck(L, path, arg, "a file name has no NUL inside");
        return path;
}

static void push_result(lua_State *L, const struct sardine_snapshot_result *result)
{
        lua_newtable(L);
#define NUMBER(field) lua_pushinteger(L, (lua_Integer)result->field)
#define RESULT(field, kind)                                                                                  \
        kind(field);                                                                                         \
        lua_setfield(L, -2, #field);
        SNAPSHOT_FIELDS(RESULT)
#undef RESULT
#undef NUMBER
        if (result->why) {
                lua_pushstring(L, result->why);
                lua_setfield(L, -2, "why");
        }
}

/* The result as a table; or nil and a message, with the reason that the library gives. */
static int push_outcome(lua_State *L, int err, const struct sardine_snapshot_result *result)
{
        if (err == 0) {
                push_result(L, result);
                return 1;
        }
        push_failure(L, err);
        if (result->why) {
                lua_pushfstring(L, ": %s", result->why);
                lua_concat(L, 2);
        }
        return 2;
}

static int snapshot_save(lua_State *L, struct lua_cache *c)
{
        struct sardine_snapshot_result result = {.sz = sizeof result};
        int err = sardine_snapshot_save(c->cache, check_path(L, 2), &result);
        return push_outcome(L, err, &result);
}

static int snapshot_load(lua_State *L, struct lua_cache *c)
{
        struct sardine_snapshot_result result = {.sz = sizeof result};
        int err = sardine_snapshot_load(c->cache, check_path(L, 2), &result);
        return push_outcome(L, err, &result);
}

static bool set_field(lua_State *L, int arg, const char *name, void *ctx)
{
        struct sardine_snapshot_options *options = ctx;
        if (strcmp(name, "interval") == 0)
                options->interval = (uint32_t)field_whole(L, arg, name, UINT32_MAX);
        else if (strcmp(name, "load") == 0)
                options->load = field_flag(L, arg, name);
        else if (strcmp(name, "save_at_end") == 0)
                options->save_at_end = field_flag(L, arg, name);
        else
                return false;
        return true;
}

/* true, or nil and a message */
static int push_done(lua_State *L, int err)
{
        if (err < 0)
                return push_failure(L, err);
        lua_pushboolean(L, 1);
        return 1;
}

static int snapshot_keep(lua_State *L, struct lua_cache *c)
{
        struct sardine_snapshot_options options = {.sz = sizeof options, .path = check_path(L, 2)};
        if (!lua_isnoneornil(L, 3))
                fields_read(L, 3, set_field, &options);
        return push_done(L, sardine_snapshot_keep(c->cache, &options));
}

static int snapshot_request(lua_State *L, struct lua_cache *c)
{
        return push_done(L, sardine_snapshot_request(c->cache));
}

static int snapshot_stop(lua_State *L, struct lua_cache *c)
{
        return push_done(L, sardine_snapshot_stop(c->cache));
}

static int snapshot_status(lua_State *L, struct lua_cache *c)
{
        struct sardine_snapshot_status status = {
            .sz = sizeof status, .loaded.sz = sizeof status.loaded, .saved.sz = sizeof status.saved};
        int err = sardine_snapshot_status_get(c->cache, &status);
        if (err)
                return push_failure(L, err);
        const struct {
                const char *name;
                uint32_t value;
        } flags[] = {{"keeping", status.keeping}, {"loading", status.loading}, {"saving", status.saving}};
        const struct {
                const char *name;
                uint64_t value;
        } numbers[] = {{"loads", status.loads},
                       {"saves", status.saves},
                       {"failures", status.failures},
                       {"save_age", status.save_age}};
        const struct {
                const char *name;
                int error;
        } errors[] = {{"load_error", status.load_error}, {"save_error", status.save_error}};
        lua_newtable(L);
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
                lua_pushboolean(L, flags[i].value != 0);
                lua_setfield(L, -2, flags[i].name);
        }
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
                lua_pushinteger(L, (lua_Integer)numbers[i].value);
                lua_setfield(L, -2, numbers[i].name);
        }
        for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
                if (errors[i].error) {
                        lua_pushstring(L, sardine_strerror(errors[i].error));
                        lua_setfield(L, -2, errors[i].name);
                }
        push_result(L, &status.loaded);
        lua_setfield(L, -2, "loaded");
        push_result(L, &status.saved);
        lua_setfield(L, -2, "saved");
        return 1;
}

const struct method snapshot_methods[] = {
    {"snapshot_save", snapshot_save},
    {"snapshot_load", snapshot_load},
    {"snapshot_keep", snapshot_keep},
    {"snapshot_request", snapshot_request},
    {"snapshot_stop", snapshot_stop},
    {"snapshot_status", snapshot_status},
    {NULL, NULL},
};
