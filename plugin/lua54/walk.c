/* SPDX-License-Identifier: MIT */
#include "lua54/walk.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lua54/fields.h"
#include "lua54/selector.h"
#include "lua54/text.h"

#define WALK_TYPE "sardine.walk"

enum {
        BLOCK_SIZE = 64 * 1024 - 32,
        MESSAGE_MAX = 65535,
};

/* An entry; then its name, tag, group and message. */
struct record {
        uint32_t ttl, expired, life, bytes;
        uint32_t message_len;
        uint16_t qtype, rcode;
        uint8_t name_len, tag_len, group_len, hits, eviction_class;
        bool rd, cd, dnssec_ok;
        uint8_t ecs_family, ecs_prefix;
        uint8_t ecs_addr[16];
        uint8_t data[];
};

struct block {
        struct block *next;
        size_t size, used;
        _Alignas(struct record) uint8_t bytes[];
};

struct walk {
        struct block *first, *last;
        size_t read; /* bytes of `first` */
        /* While it is collected: */
        sardine_cache *cache;
        uint64_t limit;
        bool messages;
        int error;
        uint8_t *message;
};

static size_t record_size(const struct record *r)
{
        size_t size = sizeof *r + r->name_len + r->tag_len + r->group_len + r->message_len;
        return (size + _Alignof(struct record) - 1) & ~(_Alignof(struct record) - 1);
}

/* Room for a record behind the others; NULL: no memory. */
static void *walk_room(struct walk *walk, size_t size)
{
        struct block *block = walk->last;
        if (!block || block->size - block->used < size) {
                size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
                block = malloc(sizeof *block + room);
                if (!block)
                        return NULL;
                *block = (struct block){.size = room};
                if (walk->last)
                        walk->last->next = block;
                else
                        walk->first = block;
                walk->last = block;
        }
        void *room = block->bytes + block->used;
        block->used += size;
        return room;
}

static uint8_t *put(uint8_t *to, const uint8_t *from, size_t len)
{
        if (len)
                memcpy(to, from, len);
        return to + len;
}

static int collect(void *ctx, const struct sardine_entry_view *entry)
{
        struct walk *walk = ctx;
        struct record record = {
            .ttl = entry->ttl,
            .expired = entry->expired,
            .life = entry->life,
            .bytes = entry->bytes,
            .qtype = (uint16_t)entry->qtype,
            .rcode = (uint16_t)entry->rcode,
            .name_len = (uint8_t)entry->qname_len,
            .tag_len = (uint8_t)entry->tag_len,
            .group_len = (uint8_t)entry->group_len,
            .eviction_class = (uint8_t)entry->eviction_class,
            .hits = (uint8_t)entry->hits,
            .rd = entry->rd,
            .cd = entry->cd,
            .dnssec_ok = entry->dnssec_ok,
            .ecs_family = (uint8_t)entry->ecs_family,
            .ecs_prefix = (uint8_t)entry->ecs_prefix,
        };
        memcpy(record.ecs_addr, entry->ecs_addr, sizeof record.ecs_addr);
        if (walk->messages) {
                int len = sardine_entry_message(walk->cache, entry, walk->message, MESSAGE_MAX);
                if (len < 0) {
                        walk->error = len;
                        return 1;
                }
                record.message_len = (uint32_t)len;
        }
        uint8_t *to = walk_room(walk, record_size(&record));
        if (!to) {
                walk->error = -ENOMEM;
                return 1;
        }
        memcpy(to, &record, sizeof record);
        to = put(((struct record *)to)->data, entry->qname, record.name_len);
        to = put(to, entry->tag, record.tag_len);
        to = put(to, entry->group, record.group_len);
        put(to, walk->message, record.message_len);
        return --walk->limit == 0;
}

static void walk_drop_block(struct walk *walk)
{
        struct block *block = walk->first;
        walk->first = block->next;
        walk->read = 0;
        free(block);
}

static int walk_close(lua_State *L)
{
        struct walk *walk = luaL_checkudata(L, 1, WALK_TYPE);
        while (walk->first)
                walk_drop_block(walk);
        walk->last = NULL;
        return 0;
}

/* A field with the next `len` bytes, if there are any. Returns what follows. */
static const char *push_bytes(lua_State *L, const char *name, const char *bytes, size_t len)
{
        if (len) {
                lua_pushlstring(L, bytes, len);
                lua_setfield(L, -2, name);
        }
        return bytes + len;
}

static void push_entry(lua_State *L, const struct record *r)
{
        char name[1024];
        int len = sardine_name_to_text(r->data, r->name_len, name, sizeof name);
        lua_createtable(L, 0, 16);
        lua_pushlstring(L, name, len > 0 ? (size_t)len : 0);
        lua_setfield(L, -2, "name");
        push_type(L, r->qtype);
        lua_setfield(L, -2, "type");
        push_rcode(L, r->rcode);
        lua_setfield(L, -2, "rcode");
        const struct {
                const char *name;
                lua_Integer value;
        } numbers[] = {{"ttl", r->ttl},     {"expired", r->expired}, {"life", r->life},
                       {"bytes", r->bytes}, {"hits", r->hits},       {"eviction_class", r->eviction_class}};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
                lua_pushinteger(L, numbers[i].value);
                lua_setfield(L, -2, numbers[i].name);
        }
        const struct {
                const char *name;
                bool value;
        } flags[] = {{"rd", r->rd}, {"cd", r->cd}, {"dnssec_ok", r->dnssec_ok}};
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
                lua_pushboolean(L, flags[i].value);
                lua_setfield(L, -2, flags[i].name);
        }
        const char *data = (const char *)r->data + r->name_len;
        data = push_bytes(L, "tag", data, r->tag_len);
        data = push_bytes(L, "group", data, r->group_len);
        push_bytes(L, "message", data, r->message_len);
        if (r->ecs_family) {
                push_network(L, r->ecs_family, r->ecs_addr, r->ecs_prefix);
                lua_setfield(L, -2, "network");
        }
}

/* Each block is freed when the loop has gone through it. */
static int walk_next(lua_State *L)
{
        struct walk *walk = luaL_checkudata(L, 1, WALK_TYPE);
        while (walk->first && walk->read == walk->first->used)
                walk_drop_block(walk);
        if (!walk->first) {
                walk->last = NULL;
                lua_pushnil(L);
                return 1;
        }
        const struct record *record = (const struct record *)(walk->first->bytes + walk->read);
        walk->read += record_size(record);
        push_entry(L, record);
        return 1;
}

static bool set_field(lua_State *L, int arg, const char *name, void *ctx)
{
        struct walk *walk = ctx;
        if (strcmp(name, "messages") == 0)
                walk->messages = field_flag(L, arg, name);
        else if (strcmp(name, "limit") == 0)
                walk->limit = field_whole(L, arg, name, UINT64_MAX);
        else
                return false;
        return true;
}

int walk_new(lua_State *L, sardine_cache *cache)
{
        lua_settop(L, 3);
        struct selector selector;
        if (lua_isnil(L, 2))
                selector = (struct selector){.selector = {.sz = sizeof selector.selector}};
        else
                selector_read(L, 2, &selector);
        lua_pushcfunction(L, walk_next);
        struct walk *walk = lua_newuserdatauv(L, sizeof *walk, 0);
        uint8_t message[MESSAGE_MAX];
        *walk = (struct walk){.cache = cache, .limit = UINT64_MAX, .message = message};
        luaL_setmetatable(L, WALK_TYPE);
        if (!lua_isnil(L, 3))
                fields_read(L, 3, set_field, walk);
        int64_t result = 0;
        if (walk->limit > 0)
                result = sardine_walk(cache, &selector.selector, collect, walk);
        walk->message = NULL;
        walk->cache = NULL;
        int error = result < 0 ? (int)result : walk->error;
        if (error) {
                lua_pushnil(L);
                lua_pushstring(L, sardine_strerror(error));
                return 2;
        }
        lua_pushnil(L);
        lua_pushvalue(L, -2);
        return 4;
}

void walk_open(lua_State *L)
{
        static const luaL_Reg methods[] = {{"__gc", walk_close}, {"__close", walk_close}, {NULL, NULL}};
        luaL_newmetatable(L, WALK_TYPE);
        luaL_setfuncs(L, methods, 0);
        lua_pop(L, 1);
}
