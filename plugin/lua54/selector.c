/* SPDX-License-Identifier: MIT */
#include "lua54/selector.h"

#include <lauxlib.h>
#include <string.h>

#include "lua54/fields.h"
#include "lua54/text.h"

static void set_name(lua_State *L, int arg, const char *name, struct selector *s)
{
        size_t len;
        const char *text = field_text(L, arg, name, &len);
        int wire = strlen(text) == len ? sardine_name_from_text(text, s->name) : SARDINE_ERR_NAME;
        if (wire < 0)
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s': %s: %s", name, text, sardine_strerror(wire)));
        s->selector.name = s->name;
        s->selector.name_len = (uint32_t)wire;
}

static bool set_field(lua_State *L, int arg, const char *name, void *ctx)
{
        struct selector *s = ctx;
        if (strcmp(name, "name") == 0) {
                set_name(L, arg, name, s);
        } else if (strcmp(name, "below") == 0) {
                s->selector.below = field_flag(L, arg, name);
        } else if (strcmp(name, "type") == 0) {
                s->selector.qtype = field_type(L, arg, name);
        } else if (strcmp(name, "tag") == 0) {
                s->selector.tag = field_tag(L, arg, name, &s->selector.tag_len);
                s->selector.use_tag = 1;
        } else if (strcmp(name, "group") == 0) {
                s->selector.group = field_tag(L, arg, name, &s->selector.group_len);
                if (s->selector.group_len == 0)
                        luaL_argerror(L, arg, "'group' must not be empty");
        } else if (strcmp(name, "rcode") == 0) {
                s->selector.rcode = field_rcode(L, arg, name);
                s->selector.use_rcode = 1;
        } else {
                return false;
        }
        return true;
}

void selector_read(lua_State *L, int arg, struct selector *s)
{
        *s = (struct selector){.selector = {.sz = sizeof s->selector}};
        fields_read(L, arg, set_field, s);
        luaL_argcheck(L, s->selector.name || !s->selector.below, arg, "'below' without 'name'");
}
