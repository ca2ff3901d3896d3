/* SPDX-License-Identifier: MIT */
#include "lua54/request.h"

#include <arpa/inet.h>
#include <lauxlib.h>
#include <string.h>

#include "lua54/fields.h"

static void set_client(lua_State *L, int arg, const char *name, struct request *request)
{
        const char *text = field_text(L, arg, name, NULL);
        if (inet_pton(AF_INET, text, request->client) == 1)
                request->query.client_len = 4;
        else if (inet_pton(AF_INET6, text, request->client) == 1)
                request->query.client_len = 16;
        else
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s' is not an IP address: %s", name, text));
        request->query.client = request->client;
}

static void set_transport(lua_State *L, int arg, const char *name, struct request *request)
{
        static const char *const names[] = {[SARDINE_UDP] = "udp",
                                            [SARDINE_TCP] = "tcp",
                                            [SARDINE_DOT] = "dot",
                                            [SARDINE_DOH] = "doh",
                                            [SARDINE_DOQ] = "doq"};
        const char *text = field_text(L, arg, name, NULL);
        for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
                if (strcmp(text, names[i]) == 0) {
                        request->query.transport = i;
                        return;
                }
        luaL_argerror(L, arg, lua_pushfstring(L, "'%s' is udp, tcp, dot, doh or doq, not '%s'", name, text));
}

static void set_tag(lua_State *L, int arg, const char *name, struct request *request)
{
        size_t len;
        request->query.tag = field_text(L, arg, name, &len);
        if (len > SARDINE_TAG_MAX)
                luaL_argerror(L, arg,
                              lua_pushfstring(L, "'%s' is longer than %d bytes", name, SARDINE_TAG_MAX));
        request->query.tag_len = (uint32_t)len;
}

static bool set_field(lua_State *L, int arg, const char *name, void *ctx)
{
        static const struct {
                const char *name;
                uint32_t flag;
        } flags[] = {{"skip", SARDINE_SKIP},
                     {"cache_only", SARDINE_CACHE_ONLY},
                     {"allow_stale", SARDINE_ALLOW_STALE},
                     {"coalesce", SARDINE_COALESCE},
                     {"peek", SARDINE_PEEK}};
        struct request *request = ctx;
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
                if (strcmp(name, flags[i].name) == 0) {
                        if (field_flag(L, arg, name))
                                request->query.flags |= flags[i].flag;
                        return true;
                }
        if (strcmp(name, "client") == 0)
                set_client(L, arg, name, request);
        else if (strcmp(name, "transport") == 0)
                set_transport(L, arg, name, request);
        else if (strcmp(name, "tag") == 0)
                set_tag(L, arg, name, request);
        else
                return false;
        return true;
}

void request_read(lua_State *L, int arg, int how, struct request *request)
{
        *request = (struct request){.query = {.sz = sizeof request->query}};
        request->query.packet = (const uint8_t *)luaL_checklstring(L, arg, &request->query.len);
        if (!lua_isnoneornil(L, how))
                fields_read(L, how, set_field, request);
}
