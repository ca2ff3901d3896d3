/* SPDX-License-Identifier: MIT */
#include "lua54/options.h"

#include <lauxlib.h>
#include <stddef.h>
#include <string.h>

#include "lua54/clock.h"
#include "lua54/fields.h"
#include "lua54/struct_fields.h"

enum kind { NUMBER, FLAG };

static const struct option {
        const char *name;
        size_t offset, size;
        enum kind kind;
} known[] = {
#define OPTION(field, kind)                                                                                  \
        {#field, offsetof(struct sardine_options, field), sizeof((struct sardine_options *)0)->field, kind},
    OPTION_FIELDS(OPTION)
#undef OPTION
};

static void set_whole(struct sardine_options *options, const struct option *option, uint64_t value)
{
        uint8_t *field = (uint8_t *)options + option->offset;
        const uint8_t narrow = (uint8_t)value;
        const uint16_t shorter = (uint16_t)value;
        const uint32_t word = (uint32_t)value;
        switch (option->size) {
        case sizeof narrow:
                memcpy(field, &narrow, sizeof narrow);
                break;
        case sizeof shorter:
                memcpy(field, &shorter, sizeof shorter);
                break;
        case sizeof word:
                memcpy(field, &word, sizeof word);
                break;
        default:
                memcpy(field, &value, sizeof value);
        }
}

/* A list of EDNS option codes. */
static void set_splits(lua_State *L, int arg, const char *name, struct lua_options *out)
{
        if (!lua_istable(L, -1))
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s' must be a list of numbers", name));
        const size_t most = sizeof out->splits / sizeof *out->splits;
        lua_Unsigned n = lua_rawlen(L, -1);
        if (n > most)
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s' has more than %d numbers", name, (int)most));
        for (lua_Unsigned i = 0; i < n; i++) {
                lua_rawgeti(L, -1, (lua_Integer)i + 1);
                out->splits[i] = (uint16_t)field_whole(L, arg, name, UINT16_MAX);
                lua_pop(L, 1);
        }
        out->options.split_options = out->splits;
        out->options.n_split_options = (uint32_t)n;
}

static bool set_option(lua_State *L, int arg, const char *name, void *ctx)
{
        struct lua_options *out = ctx;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
                const struct option *option = &known[i];
                if (strcmp(name, option->name) != 0)
                        continue;
                uint64_t max = option->size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * option->size) - 1;
                set_whole(&out->options, option,
                          option->kind == FLAG ? field_flag(L, arg, name) : field_whole(L, arg, name, max));
                return true;
        }
        if (strcmp(name, "split_options") == 0) {
                set_splits(L, arg, name, out);
        } else if (strcmp(name, "clock") == 0) {
                out->options.clock_ctx = luaL_testudata(L, -1, CLOCK_TYPE);
                if (!out->options.clock_ctx)
                        luaL_argerror(L, arg, "'clock' must come from sardine.clock()");
                out->options.clock = clock_read;
                lua_pushvalue(L, -1);
                lua_setiuservalue(L, out->cache, CACHE_CLOCK);
        } else if (strcmp(name, "log") == 0) {
                if (!lua_isfunction(L, -1))
                        luaL_argerror(L, arg, "'log' must be a function");
                lua_pushvalue(L, -1);
                lua_setiuservalue(L, out->cache, CACHE_LOG);
        } else {
                return false;
        }
        return true;
}

void options_read(lua_State *L, int arg, struct lua_options *out)
{
        fields_read(L, arg, set_option, out);
}
