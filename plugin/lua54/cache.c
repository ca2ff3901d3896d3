/* SPDX-License-Identifier: MIT */
#include "lua54/cache.h"

#include <lauxlib.h>
#include <stdatomic.h>
#include <string.h>

#include "lua54/fields.h"
#include "lua54/options.h"
#include "lua54/policy.h"
#include "lua54/request.h"
#include "lua54/selector.h"
#include "lua54/snapshot.h"
#include "lua54/struct_fields.h"
#include "lua54/text.h"
#include "lua54/walk.h"

#define CACHE_TYPE "sardine.cache"
#define TOKEN_TYPE "sardine.token"

enum {
        REPLY_MAX = 65535, /* no reply is longer */
};

/* Cut behind the bytes that are used. */
struct lua_token {
        uint64_t cache;
        struct sardine_token token;
};

int push_failure(lua_State *L, int error)
{
        lua_pushnil(L);
        lua_pushstring(L, sardine_strerror(error));
        return 2;
}

/* What was logged while a method ran. The results of the method stay on top. */
static void deliver_notes(lua_State *L, struct lua_cache *c)
{
        static const char *const levels[] = {
            [SARDINE_LOG_ERROR] = "error", [SARDINE_LOG_WARNING] = "warning", [SARDINE_LOG_INFO] = "info"};
        struct note note;
        while (notes_pop(&c->notes, &note)) {
                if (lua_getiuservalue(L, 1, CACHE_LOG) == LUA_TFUNCTION) {
                        bool known = note.level >= 0 && note.level < (int)(sizeof levels / sizeof *levels);
                        lua_pushstring(L, known ? levels[note.level] : "info");
                        lua_pushstring(L, note.text);
                        lua_call(L, 2, 0);
                } else {
                        lua_pop(L, 1);
                }
        }
}

int cache_new(lua_State *L)
{
        static _Atomic uint64_t last_id;
        lua_settop(L, 1);
        struct lua_cache *c = lua_newuserdatauv(L, sizeof *c, CACHE_USER_VALUES);
        c->cache = NULL;
        c->id = atomic_fetch_add(&last_id, 1) + 1;
        notes_init(&c->notes);
        luaL_setmetatable(L, CACHE_TYPE);

        struct lua_options o = {.cache = lua_gettop(L)};
        sardine_options_init(&o.options, sizeof o.options);
        if (!lua_isnil(L, 1))
                options_read(L, 1, &o);
        o.options.log = notes_push;
        o.options.log_ctx = &c->notes;
        int err = sardine_create(&o.options, &c->cache);
        if (err == 0)
                return 1;
        struct note note;
        push_failure(L, err);
        if (notes_pop(&c->notes, &note)) {
                lua_pushfstring(L, ": %s", note.text);
                lua_concat(L, 2);
        }
        return 2;
}

/* Twice does no harm. */
static int cache_close(lua_State *L)
{
        struct lua_cache *c = luaL_checkudata(L, 1, CACHE_TYPE);
        sardine_destroy(c->cache);
        c->cache = NULL;
        return 0;
}

static const char *const outcomes[] = {
    [SARDINE_MISS] = "miss",       [SARDINE_HIT] = "hit",   [SARDINE_STALE] = "stale",
    [SARDINE_REFRESH] = "refresh", [SARDINE_WAIT] = "wait", [SARDINE_BYPASS] = "bypass",
};

static void push_token(lua_State *L, const struct lua_cache *c, const struct sardine_token *token)
{
        size_t used = sizeof token->len + token->len;
        struct lua_token *to = lua_newuserdatauv(L, offsetof(struct lua_token, token) + used, 0);
        to->cache = c->id;
        memcpy(&to->token, token, used);
        luaL_setmetatable(L, TOKEN_TYPE);
}

/* A token of this cache: one of another would be an answer in the wrong place. */
static const struct sardine_token *check_token(lua_State *L, int arg, const struct lua_cache *c)
{
        const struct lua_token *token = luaL_checkudata(L, arg, TOKEN_TYPE);
        luaL_argcheck(L, token->cache == c->id, arg, "a token of another cache");
        return &token->token;
}

/* The table that tells more of an outcome. */
static void push_details(lua_State *L, int outcome, const struct sardine_answer *answer)
{
        lua_createtable(L, 0, 4);
        if (answer->reason) {
                lua_pushstring(L, sardine_reason_name(answer->reason));
                lua_setfield(L, -2, "reason");
        }
        if (outcome == SARDINE_MISS || outcome == SARDINE_WAIT) {
                lua_pushboolean(L, answer->stale_available != 0);
                lua_setfield(L, -2, "stale_available");
        }
        bool asks = outcome == SARDINE_MISS || outcome == SARDINE_REFRESH || outcome == SARDINE_WAIT;
        const struct {
                const char *name;
                uint32_t prefix;
        } networks[] = {{"ecs_ipv4", answer->ecs_ipv4}, {"ecs_ipv6", answer->ecs_ipv6}};
        for (size_t i = 0; i < 2; i++)
                if (asks && networks[i].prefix <= 128) {
                        lua_pushinteger(L, networks[i].prefix);
                        lua_setfield(L, -2, networks[i].name);
                }
        if (asks && answer->ecs_set) {
                if (answer->ecs_family)
                        push_network(L, answer->ecs_family, answer->ecs_addr, answer->ecs_prefix);
                else
                        lua_pushboolean(L, false);
                lua_setfield(L, -2, "ecs");
        }
        if (answer->len == 0)
                return;
        push_rcode(L, answer->rcode);
        lua_setfield(L, -2, "rcode");
        lua_pushinteger(L, answer->ttl);
        lua_setfield(L, -2, "ttl");
        lua_pushinteger(L, answer->age);
        lua_setfield(L, -2, "age");
        lua_pushboolean(L, answer->dnssec_ok != 0);
        lua_setfield(L, -2, "dnssec_ok");
}

/* Outcome, reply or nil, token or nil, details; or nil and a message. */
static int push_answer(lua_State *L, const struct lua_cache *c, int outcome,
                       const struct sardine_answer *answer)
{
        if (outcome < 0)
                return push_failure(L, outcome);
        lua_pushstring(L, outcomes[outcome]);
        if (answer->len)
                lua_pushlstring(L, (const char *)answer->buf, answer->len);
        else
                lua_pushnil(L);
        if (answer->token && answer->token->len)
                push_token(L, c, answer->token);
        else
                lua_pushnil(L);
        push_details(L, outcome, answer);
        return 4;
}

static int cache_lookup(lua_State *L, struct lua_cache *c)
{
        struct request request;
        request_read(L, 2, 3, &request);
        uint8_t reply[REPLY_MAX];
        struct sardine_token token;
        token.len = 0;
        struct sardine_answer answer = {
            .sz = sizeof answer, .buf = reply, .cap = sizeof reply, .token = &token};
        int outcome = sardine_lookup(c->cache, &request.query, &answer);
        return push_answer(L, c, outcome, &answer);
}

static int cache_failed(lua_State *L, struct lua_cache *c)
{
        struct request request;
        request_read(L, 2, 3, &request);
        uint8_t reply[REPLY_MAX];
        struct sardine_answer answer = {.sz = sizeof answer, .buf = reply, .cap = sizeof reply};
        struct sardine_token token;
        if (!lua_isnoneornil(L, 4)) {
                const struct sardine_token *from = check_token(L, 4, c);
                memcpy(&token, from, sizeof from->len + from->len);
                answer.token = &token;
        }
        int outcome = sardine_failed(c->cache, &request.query, &answer);
        answer.token = NULL; /* the caller has it */
        return push_answer(L, c, outcome, &answer);
}

static int cache_render(lua_State *L, struct lua_cache *c)
{
        size_t len;
        const char *response = luaL_checklstring(L, 3, &len);
        struct request request;
        request_read(L, 2, 4, &request);
        uint8_t reply[REPLY_MAX];
        struct sardine_answer answer = {.sz = sizeof answer, .buf = reply, .cap = sizeof reply};
        int outcome = sardine_render(c->cache, &request.query, (const uint8_t *)response, len, &answer);
        return push_answer(L, c, outcome, &answer);
}

/* A token, or nil and why such a query is never cached. */
static int cache_token(lua_State *L, struct lua_cache *c)
{
        struct request request;
        request_read(L, 2, 3, &request);
        struct sardine_token token;
        int result = sardine_token_init(c->cache, &request.query, &token);
        if (result < 0)
                return push_failure(L, result);
        if (result > 0) {
                lua_pushnil(L);
                lua_pushstring(L, sardine_reason_name((unsigned)result));
                return 2;
        }
        push_token(L, c, &token);
        return 1;
}

static bool set_insert_field(lua_State *L, int arg, const char *name, void *ctx)
{
        struct sardine_insert_info *info = ctx;
        if (strcmp(name, "failure_ttl") != 0)
                return false;
        info->failure_ttl = (uint32_t)field_whole(L, arg, name, UINT32_MAX);
        info->failure_ttl_set = 1;
        return true;
}

/* Outcome, life in seconds, reason or nil; or nil and a message. */
static int cache_insert(lua_State *L, struct lua_cache *c)
{
        static const char *const names[] = {[SARDINE_STORED] = "stored",
                                            [SARDINE_REPLACED] = "replaced",
                                            [SARDINE_REFRESHED] = "refreshed",
                                            [SARDINE_REFUSED] = "refused"};
        const struct sardine_token *token = check_token(L, 2, c);
        size_t len;
        const char *response = luaL_checklstring(L, 3, &len);
        struct sardine_insert_info info = {.sz = sizeof info};
        if (!lua_isnoneornil(L, 4))
                fields_read(L, 4, set_insert_field, &info);
        struct sardine_insert_result result = {.sz = sizeof result};
        int outcome = sardine_insert(c->cache, token, (const uint8_t *)response, len, &info, &result);
        if (outcome < 0)
                return push_failure(L, outcome);
        lua_pushstring(L, names[outcome]);
        lua_pushinteger(L, result.life);
        if (outcome == SARDINE_REFUSED)
                lua_pushstring(L, sardine_reason_name(result.reason));
        else
                lua_pushnil(L);
        return 3;
}

static uint64_t check_whole(lua_State *L, int arg, uint64_t max)
{
        lua_Integer value = luaL_checkinteger(L, arg);
        luaL_argcheck(L, value >= 0 && (uint64_t)value <= max, arg, "out of range");
        return (uint64_t)value;
}

static int cache_wait(lua_State *L, struct lua_cache *c)
{
        const struct sardine_token *token = check_token(L, 2, c);
        int outcome = sardine_wait(c->cache, token, (uint32_t)check_whole(L, 3, UINT32_MAX));
        if (outcome < 0)
                return push_failure(L, outcome);
        lua_pushstring(L, outcomes[outcome]);
        return 1;
}

static int push_count(lua_State *L, int64_t count)
{
        if (count < 0)
                return push_failure(L, (int)count);
        lua_pushinteger(L, count);
        return 1;
}

/* A selector is not optional: a variable that is nil by mistake must not empty the cache. */
static int cache_expunge(lua_State *L, struct lua_cache *c)
{
        int last = lua_gettop(L) < 2 ? 2 : lua_gettop(L);
        size_t n = (size_t)last - 1;
        struct selector *read = lua_newuserdatauv(L, n * sizeof *read, 0);
        struct sardine_selector *selectors = lua_newuserdatauv(L, n * sizeof *selectors, 0);
        for (size_t i = 0; i < n; i++) {
                selector_read(L, (int)i + 2, &read[i]);
                selectors[i] = read[i].selector;
        }
        return push_count(L, sardine_expunge_many(c->cache, n, selectors));
}

static int cache_expunge_list(lua_State *L, struct lua_cache *c)
{
        size_t len;
        const char *text = luaL_checklstring(L, 2, &len);
        return push_count(L, sardine_expunge_list(c->cache, text, len));
}

static int cache_expunge_to(lua_State *L, struct lua_cache *c)
{
        return push_count(L, sardine_expunge_to(c->cache, check_whole(L, 2, UINT64_MAX)));
}

static int cache_purge_expired(lua_State *L, struct lua_cache *c)
{
        uint64_t n = lua_isnoneornil(L, 2) ? 0 : check_whole(L, 2, UINT64_MAX);
        return push_count(L, sardine_purge_expired(c->cache, n));
}

static int cache_walk(lua_State *L, struct lua_cache *c)
{
        return walk_new(L, c->cache);
}

static int cache_stats(lua_State *L, struct lua_cache *c)
{
        struct sardine_stats stats = {.sz = sizeof stats};
        int err = sardine_stats_get(c->cache, &stats);
        if (err)
                return push_failure(L, err);
        lua_newtable(L);
#define NUMBER(field) lua_pushinteger(L, (lua_Integer)stats.field)
#define FLAG(field)   lua_pushboolean(L, stats.field != 0)
#define STAT(field, kind)                                                                                    \
        kind(field);                                                                                         \
        lua_setfield(L, -2, #field);
        STAT_FIELDS(STAT)
        lua_newtable(L);
        for (unsigned i = 1; i < SARDINE_REASON_COUNT; i++) {
                if (stats.reasons[i] == 0)
                        continue;
                NUMBER(reasons[i]);
                lua_setfield(L, -2, sardine_reason_name(i));
        }
        lua_setfield(L, -2, "reasons");
        return 1;
}

static const struct method methods[] = {
    {"lookup", cache_lookup},
    {"insert", cache_insert},
    {"token", cache_token},
    {"failed", cache_failed},
    {"wait", cache_wait},
    {"render", cache_render},
    {"expunge", cache_expunge},
    {"expunge_list", cache_expunge_list},
    {"expunge_to", cache_expunge_to},
    {"purge_expired", cache_purge_expired},
    {"walk", cache_walk},
    {"stats", cache_stats},
    {NULL, NULL},
};

static int call_method(lua_State *L)
{
        const struct method *method = lua_touserdata(L, lua_upvalueindex(1));
        struct lua_cache *c = luaL_checkudata(L, 1, CACHE_TYPE);
        if (!c->cache)
                return luaL_error(L, "the cache is closed");
        int results = method->call(L, c);
        deliver_notes(L, c);
        return results;
}

static int cache_tostring(lua_State *L)
{
        struct lua_cache *c = luaL_checkudata(L, 1, CACHE_TYPE);
        struct sardine_stats stats = {.sz = sizeof stats};
        if (c->cache && sardine_stats_get(c->cache, &stats) == 0)
                lua_pushfstring(L, "sardine cache (%I entries, %I bytes)", (LUAI_UACINT)stats.entries,
                                (LUAI_UACINT)stats.bytes);
        else
                lua_pushliteral(L, "sardine cache (closed)");
        return 1;
}

static void add_methods(lua_State *L, const struct method *method)
{
        for (; method->name; method++) {
                lua_pushlightuserdata(L, (void *)method);
                lua_pushcclosure(L, call_method, 1);
                lua_setfield(L, -2, method->name);
        }
}

void cache_open(lua_State *L)
{
        static const luaL_Reg meta[] = {
            {"__gc", cache_close}, {"__close", cache_close}, {"__tostring", cache_tostring}, {NULL, NULL}};
        luaL_newmetatable(L, CACHE_TYPE);
        luaL_setfuncs(L, meta, 0);
        lua_newtable(L);
        add_methods(L, methods);
        add_methods(L, policy_methods);
        add_methods(L, snapshot_methods);
        lua_pushcfunction(L, cache_close);
        lua_setfield(L, -2, "close");
        lua_setfield(L, -2, "__index");
        luaL_newmetatable(L, TOKEN_TYPE);
        lua_pop(L, 2);
}
