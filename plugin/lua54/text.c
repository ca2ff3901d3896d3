/* SPDX-License-Identifier: MIT */
#include "lua54/text.h"

#include <arpa/inet.h>
#include <lauxlib.h>
#include <ldns/ldns.h>
#include <stdlib.h>
#include <string.h>

#include "lua54/fields.h"

void push_type(lua_State *L, uint32_t type)
{
        char *text = ldns_rr_type2str((ldns_rr_type)type);
        lua_pushstring(L, text ? text : "?");
        free(text);
}

void push_rcode(lua_State *L, uint32_t rcode)
{
        const ldns_lookup_table *known = ldns_lookup_by_id(ldns_rcodes, (int)rcode);
        if (known)
                lua_pushstring(L, known->name);
        else
                lua_pushfstring(L, "RCODE%d", (int)rcode);
}

void push_network(lua_State *L, uint32_t family, const uint8_t addr[16], uint32_t prefix)
{
        char text[INET6_ADDRSTRLEN] = "?";
        inet_ntop(family == 1 ? AF_INET : AF_INET6, addr, text, sizeof text);
        lua_pushfstring(L, "%s/%d", text, (int)prefix);
}

uint32_t field_type(lua_State *L, int arg, const char *name)
{
        if (lua_type(L, -1) == LUA_TNUMBER)
                return (uint32_t)field_whole(L, arg, name, UINT16_MAX);
        size_t len;
        const char *text = field_text(L, arg, name, &len);
        ldns_rr_type type = strlen(text) == len ? ldns_get_rr_type_by_name(text) : 0;
        if (type == 0 || (unsigned)type > UINT16_MAX)
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s' is not a record type: %s", name, text));
        return type;
}

uint32_t field_rcode(lua_State *L, int arg, const char *name)
{
        if (lua_type(L, -1) == LUA_TNUMBER)
                return (uint32_t)field_whole(L, arg, name, 4095);
        const char *text = field_text(L, arg, name, NULL);
        const ldns_lookup_table *known = ldns_lookup_by_name(ldns_rcodes, text);
        if (!known)
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s' is not a response code: %s", name, text));
        return (uint32_t)known->id;
}

const char *check_text(lua_State *L, int arg)
{
        size_t len;
        const char *text = luaL_checklstring(L, arg, &len);
        return strlen(text) == len ? text : NULL;
}
