/* SPDX-License-Identifier: MIT */
#include "lua54/request.h"

#include <arpa/inet.h>
#include <lauxlib.h>
#include <string.h>

#include "lua54/fields.h"
#include "lua54/text.h"

/* Returns the length of the address. */
static uint32_t field_address(lua_State *L, int arg, const char *name, uint8_t address[16])
{
        const char *text = field_text(L, arg, name, NULL);
        if (inet_pton(AF_INET, text, address) == 1)
                return 4;
        if (inet_pton(AF_INET6, text, address) != 1)
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s' is not an IP address: %s", name, text));
        return 16;
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

/* sardine_host_tag_fn */
static const char *host_tag(void *ctx, const char *name)
{
        const struct request *request = ctx;
        for (size_t i = 0; i < request->n_host_tags; i++)
                if (strcmp(name, request->host_tag[i].name) == 0)
                        return request->host_tag[i].text;
        return NULL;
}

/* A table of names and texts, both of which stay where they are for as long as the table does. */
static void set_host_tags(lua_State *L, int arg, const char *name, struct request *request)
{
        if (!lua_istable(L, -1))
                luaL_argerror(L, arg, lua_pushfstring(L, "'%s' must be a table", name));
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
                if (lua_type(L, -1) != LUA_TSTRING || lua_type(L, -2) != LUA_TSTRING)
                        luaL_argerror(L, arg, lua_pushfstring(L, "'%s' must have strings only", name));
                if (request->n_host_tags == HOST_TAGS_MAX)
                        luaL_argerror(L, arg,
                                      lua_pushfstring(L, "'%s' has more than %d", name, HOST_TAGS_MAX));
                request->host_tag[request->n_host_tags].name = lua_tostring(L, -2);
                request->host_tag[request->n_host_tags++].text = lua_tostring(L, -1);
        }
        request->query.host_tag = host_tag;
        request->query.host_ctx = request;
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
        struct sardine_query *query = &request->query;
        if (strcmp(name, "client") == 0) {
                query->client_len = field_address(L, arg, name, request->client);
                query->client = request->client;
        } else if (strcmp(name, "local_address") == 0) {
                query->local_len = field_address(L, arg, name, request->local);
                query->local = request->local;
        } else if (strcmp(name, "local_port") == 0) {
                query->local_port = (uint32_t)field_whole(L, arg, name, UINT16_MAX);
        } else if (strcmp(name, "transport") == 0) {
                set_transport(L, arg, name, request);
        } else if (strcmp(name, "tag") == 0) {
                query->tag = field_tag(L, arg, name, &query->tag_len);
        } else if (strcmp(name, "pool") == 0) {
                query->pool = field_text(L, arg, name, NULL);
        } else if (strcmp(name, "host_tags") == 0) {
                set_host_tags(L, arg, name, request);
        } else if (strcmp(name, "max_ttl") == 0) {
                query->max_ttl = (uint32_t)field_whole(L, arg, name, UINT32_MAX);
        } else if (strcmp(name, "failure") == 0) {
                query->failure = field_rcode(L, arg, name);
        } else {
                return false;
        }
        return true;
}

void request_read(lua_State *L, int arg, int how, struct request *request)
{
        *request = (struct request){.query = {.sz = sizeof request->query}};
        request->query.packet = (const uint8_t *)luaL_checklstring(L, arg, &request->query.len);
        if (!lua_isnoneornil(L, how))
                fields_read(L, how, set_field, request);
}
