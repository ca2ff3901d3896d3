/* SPDX-License-Identifier: MIT
 * The tables of a policy file, read into rules. Whatever is not understood is an error that says where: a
 * word that is misspelled must not just be without effect (B91). */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/lua/lua_engine.h"
#include "policy/names.h"

struct reader {
        lua_State *L;
        struct policy_program *program;
        const struct policy_services *services;
        struct policy_rules *rules;
};

static const char TOP[] = "the policy";

/* Where in the file: "ttl", "ttl.zones", ... */
static int wrong(struct reader *r, const char *where, const char *what)
{
        return luaL_error(r->L, "%s: %s: %s", r->program->path, where, what);
}

/* The key of a pair that lua_next() found, for messages. */
static const char *key_text(struct reader *r, int index)
{
        lua_pushvalue(r->L, index);
        const char *text = luaL_tolstring(r->L, -1, NULL);
        lua_remove(r->L, -2); /* the copy; the text stays until the error is raised */
        return text;
}

static void need_table(struct reader *r, const char *where)
{
        if (lua_type(r->L, -1) != LUA_TTABLE)
                wrong(r, where, "must be a table");
}

/* Go through the table on the top, whose keys are words. `take` finds the value on the top. */
struct word {
        const char *name;
        void (*take)(struct reader *r, const char *where, void *ctx);
};
static void read_words(struct reader *r, const char *where, const struct word *words, void *ctx)
{
        lua_State *L = r->L;
        bool top = strcmp(where, TOP) == 0;
        need_table(r, where);
        lua_pushnil(L);
        while (lua_next(L, -2)) {
                const struct word *w = words;
                const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
                while (w->name && strcmp(w->name, key) != 0)
                        w++;
                if (!w->name) {
                        lua_pushfstring(L, "%s: %s: there is no %s here", r->program->path, where,
                                        key_text(r, -2));
                        lua_error(L);
                }
                char place[64];
                snprintf(place, sizeof place, "%s%s%s", top ? "" : where, top ? "" : ".", key);
                w->take(r, place, ctx);
                lua_pop(L, 1);
        }
}

static uint32_t read_whole(struct reader *r, const char *where, lua_Integer least, lua_Integer most)
{
        int is_whole;
        lua_Integer n = lua_tointegerx(r->L, -1, &is_whole);
        if (lua_type(r->L, -1) != LUA_TNUMBER || !is_whole || n < least || n > most) {
                lua_pushfstring(r->L, "must be a whole number from %d to %d", (int)least, (int)most);
                wrong(r, where, lua_tostring(r->L, -1));
        }
        return (uint32_t)n;
}

static bool read_bool(struct reader *r, const char *where)
{
        if (lua_type(r->L, -1) != LUA_TBOOLEAN)
                wrong(r, where, "must be true or false");
        return lua_toboolean(r->L, -1);
}

/* Lists in files --------------------------------------------------------------------------------------------
 */

static const char list_mark;

int tables_list(lua_State *L)
{
        luaL_checkstring(L, 1);
        lua_createtable(L, 0, 1);
        lua_pushvalue(L, 1);
        lua_rawsetp(L, -2, &list_mark);
        return 1;
}

/* The file's name, if the value at `index` is a list. */
static const char *list_file(lua_State *L, int index)
{
        if (lua_type(L, index) != LUA_TTABLE)
                return NULL;
        lua_rawgetp(L, index, &list_mark);
        const char *file = lua_tostring(L, -1);
        lua_pop(L, 1); /* the list keeps it */
        return file;
}

typedef void (*item_reader)(struct reader *r, const char *where, const char *text, size_t len, void *ctx);

/* Each line's first word, '#' begins a comment. */
static void read_list(struct reader *r, const char *where, const char *file, item_reader item, void *ctx)
{
        lua_State *L = r->L;
        char *path = NULL, *line = NULL;
        size_t room = 0;
        if (asprintf(&path, "%s%s%s", *file == '/' ? "" : r->program->directory, *file == '/' ? "" : "/",
                     file) < 0)
                luaL_error(L, "no memory");
        FILE *in = fopen(path, "re");
        int err = errno;
        free(path);
        if (!in) {
                lua_pushfstring(L, "list \"%s\": %s", file, strerror(err));
                wrong(r, where, lua_tostring(L, -1));
        }
        char bad[300] = "";
        for (unsigned n = 1; !*bad && getline(&line, &room, in) >= 0; n++) {
                const char *text = line + strspn(line, " \t\r\n");
                size_t len = strcspn(text, " \t\r\n#");
                if (len == 0)
                        continue;
                line[(size_t)(text - line) + len] = '\0';
                uint8_t name[255];
                struct subnet net;
                /* What `item` will want, looked at here: it must not raise an error while the file is open.
                 */
                if (!subnet_from_text(text, &net) && policy_name_from_text(text, len, name) == 0)
                        snprintf(bad, sizeof bad, "list \"%s\", line %u: \"%.100s\" is no name or network",
                                 file, n, text);
                else
                        item(r, NULL, text, len, ctx);
        }
        free(line);
        fclose(in);
        if (*bad) {
                lua_pushstring(L, bad);
                wrong(r, where, lua_tostring(L, -1));
        }
}

/* Zones and networks ----------------------------------------------------------------------------------------
 */

/* `where` is NULL for a line of a list: what is of the wrong kind is passed over then. */
static void put_zone(struct reader *r, const char *where, const char *text, size_t len, void *rule)
{
        uint8_t name[255];
        size_t name_len = policy_name_from_text(text, len, name);
        if (name_len)
                r->services->rules_zone(r->rules, name, name_len, rule);
        else if (where)
                luaL_error(r->L, "%s: %s: \"%s\" is not a domain name", r->program->path, where, text);
}

static void put_client(struct reader *r, const char *where, const char *text, size_t len, void *rule)
{
        struct subnet net;
        (void)len;
        if (subnet_from_text(text, &net))
                r->services->rules_client(r->rules, &net, rule);
        else if (where)
                luaL_error(r->L, "%s: %s: \"%s\" is not a network, like \"192.0.2.0/24\"", r->program->path,
                           where, text);
}

/* A name or network, or a list of them, at `index`. */
static void put_item(struct reader *r, const char *where, int index, item_reader item,
                     struct policy_rule *rule)
{
        size_t len;
        const char *file = list_file(r->L, index);
        if (file) {
                read_list(r, where, file, item, rule);
                return;
        }
        if (lua_type(r->L, index) != LUA_TSTRING)
                wrong(r, where, "names and networks are strings, or list(\"file\")");
        const char *text = lua_tolstring(r->L, index, &len);
        item(r, where, text, len, rule);
}

/* { "a.", "b.", list("file") } or one of those alone: all get `rule`. */
static void read_set(struct reader *r, const char *where, item_reader item, struct policy_rule *rule)
{
        if (lua_type(r->L, -1) != LUA_TTABLE || list_file(r->L, -1)) {
                put_item(r, where, lua_gettop(r->L), item, rule);
                return;
        }
        lua_pushnil(r->L);
        while (lua_next(r->L, -2)) {
                if (lua_type(r->L, -2) != LUA_TNUMBER)
                        wrong(r, where, "must be a list");
                put_item(r, where, lua_gettop(r->L), item, rule);
                lua_pop(r->L, 1);
        }
}

/* { ["a."] = value, [list("file")] = value }: `value` makes the rule of what is on the top. */
typedef void (*rule_reader)(struct reader *r, const char *where, struct policy_rule *rule);
static void read_map(struct reader *r, const char *where, item_reader item, rule_reader value)
{
        need_table(r, where);
        lua_pushnil(r->L);
        while (lua_next(r->L, -2)) {
                struct policy_rule rule = {0};
                value(r, where, &rule);
                put_item(r, where, lua_gettop(r->L) - 1, item, &rule);
                lua_pop(r->L, 1);
        }
}

static uint16_t read_code(struct reader *r, const char *where, int index, int (*number)(const char *),
                          const char *what)
{
        lua_State *L = r->L;
        int is_whole = 0, n = -1;
        if (lua_type(L, index) == LUA_TNUMBER)
                n = (int)lua_tointegerx(L, index, &is_whole);
        else if (lua_type(L, index) == LUA_TSTRING)
                n = number(lua_tostring(L, index));
        if (n < 0 || n > UINT16_MAX)
                luaL_error(L, "%s: %s: \"%s\" is not %s", r->program->path, where, key_text(r, index), what);
        return (uint16_t)n;
}

static uint16_t read_type(struct reader *r, const char *where, int index)
{
        return read_code(r, where, index, r->services->type_number, "a record type");
}

static void read_types(struct reader *r, const char *where, const struct policy_rule *rule)
{
        need_table(r, where);
        lua_pushnil(r->L);
        while (lua_next(r->L, -2)) {
                r->services->rules_type(r->rules, read_type(r, where, lua_gettop(r->L)), rule);
                lua_pop(r->L, 1);
        }
}

/* ecs -------------------------------------------------------------------------------------------------------
 */

static void take_ipv4(struct reader *r, const char *where, void *ecs)
{
        ((struct policy_ecs *)ecs)->ipv4 = (uint8_t)read_whole(r, where, 0, 32);
}
static void take_ipv6(struct reader *r, const char *where, void *ecs)
{
        ((struct policy_ecs *)ecs)->ipv6 = (uint8_t)read_whole(r, where, 0, 128);
}

static void value_ecs(struct reader *r, const char *where, struct policy_rule *rule)
{
        static const struct word words[] = {{"ipv4", take_ipv4}, {"ipv6", take_ipv6}, {NULL, NULL}};
        rule->set = POLICY_SET_ECS;
        if (lua_type(r->L, -1) == LUA_TBOOLEAN) {
                uint8_t limit = lua_toboolean(r->L, -1) ? POLICY_NO_LIMIT : 0;
                rule->ecs = (struct policy_ecs){limit, limit};
                return;
        }
        rule->ecs = (struct policy_ecs){0, 0};
        read_words(r, where, words, &rule->ecs);
}

static void take_ecs_zones(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        read_map(r, where, put_zone, value_ecs);
}
static void take_ecs_clients(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        read_map(r, where, put_client, value_ecs);
}

static void take_ecs(struct reader *r, const char *where, void *ctx)
{
        static const struct word words[] = {{"ipv4", take_ipv4},
                                            {"ipv6", take_ipv6},
                                            {"zones", take_ecs_zones},
                                            {"clients", take_ecs_clients},
                                            {NULL, NULL}};
        (void)ctx;
        if (lua_type(r->L, -1) == LUA_TBOOLEAN) {
                struct policy_rule rule = {0};
                value_ecs(r, where, &rule);
                r->rules->ecs = rule.ecs;
                return;
        }
        read_words(r, where, words, &r->rules->ecs);
}

/* ttl -------------------------------------------------------------------------------------------------------
 */

enum {
        TTL_ITEMS = 64, /* types and rcodes of one zone */
};
struct ttl_reader {
        struct policy_ttl *limits;
        struct policy_ttl_item items[TTL_ITEMS];
        uint32_t count;
        struct policy_ttl own;
};

static void take_at_least(struct reader *r, const char *where, void *ctx)
{
        ((struct ttl_reader *)ctx)->limits->at_least = read_whole(r, where, 0, INT32_MAX);
}
static void take_at_most(struct reader *r, const char *where, void *ctx)
{
        ((struct ttl_reader *)ctx)->limits->at_most = read_whole(r, where, 1, INT32_MAX);
}

static void read_ttl_items(struct reader *r, const char *where, struct ttl_reader *ttl, bool is_rcode)
{
        static const struct word words[] = {
            {"at_least", take_at_least}, {"at_most", take_at_most}, {NULL, NULL}};
        need_table(r, where);
        lua_pushnil(r->L);
        while (lua_next(r->L, -2)) {
                if (ttl->count == TTL_ITEMS)
                        wrong(r, where, "more than 64 types and rcodes");
                struct policy_ttl_item *item = &ttl->items[ttl->count++];
                int key = lua_gettop(r->L) - 1;
                *item = (struct policy_ttl_item){
                    .code = is_rcode ? read_code(r, where, key, r->services->rcode_number, "an rcode")
                                     : read_type(r, where, key),
                    .is_rcode = is_rcode,
                    .limits = {0, UINT32_MAX},
                };
                ttl->limits = &item->limits;
                read_words(r, where, words, ttl);
                lua_pop(r->L, 1);
        }
        ttl->limits = &ttl->own;
}

static void take_ttl_types(struct reader *r, const char *where, void *ctx)
{
        read_ttl_items(r, where, ctx, false);
}
static void take_ttl_rcodes(struct reader *r, const char *where, void *ctx)
{
        read_ttl_items(r, where, ctx, true);
}

static uint32_t read_ttl(struct reader *r, const char *where, const struct word *words)
{
        struct ttl_reader ttl = {.own = {0, UINT32_MAX}};
        ttl.limits = &ttl.own;
        read_words(r, where, words, &ttl);
        if (ttl.own.at_least > ttl.own.at_most)
                wrong(r, where, "at_least is above at_most");
        return r->services->rules_ttl(r->rules, &ttl.own, ttl.items, ttl.count);
}

static void value_ttl(struct reader *r, const char *where, struct policy_rule *rule)
{
        static const struct word words[] = {{"at_least", take_at_least},
                                            {"at_most", take_at_most},
                                            {"types", take_ttl_types},
                                            {"rcodes", take_ttl_rcodes},
                                            {NULL, NULL}};
        rule->set = POLICY_SET_TTL;
        rule->ttl = read_ttl(r, where, words);
}

static void take_ttl_zones(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        read_map(r, where, put_zone, value_ttl);
}

static void take_ttl(struct reader *r, const char *where, void *ctx)
{
        static const struct word words[] = {{"at_least", take_at_least}, {"at_most", take_at_most},
                                            {"types", take_ttl_types},   {"rcodes", take_ttl_rcodes},
                                            {"zones", take_ttl_zones},   {NULL, NULL}};
        (void)ctx;
        r->rules->ttl = read_ttl(r, where, words);
}

/* never_store, always_keep, classes -------------------------------------------------------------------------
 */

static void take_set_zones(struct reader *r, const char *where, void *rule)
{
        read_set(r, where, put_zone, rule);
}
static void take_set_types(struct reader *r, const char *where, void *rule)
{
        read_types(r, where, rule);
}
static const struct word set_words[] = {{"zones", take_set_zones}, {"types", take_set_types}, {NULL, NULL}};

static void take_never_store(struct reader *r, const char *where, void *ctx)
{
        struct policy_rule rule = {.set = POLICY_SET_NEVER, .never_store = 1};
        (void)ctx;
        read_words(r, where, set_words, &rule);
}

static void take_always_keep(struct reader *r, const char *where, void *ctx)
{
        struct policy_rule rule = {.set = POLICY_SET_CLASS, .class = POLICY_CLASS_KEEP};
        (void)ctx;
        read_words(r, where, set_words, &rule);
}

static void take_weight(struct reader *r, const char *where, void *ctx)
{
        const struct policy_rule *rule = ctx;
        bool keep = lua_type(r->L, -1) == LUA_TSTRING && strcmp(lua_tostring(r->L, -1), "keep") == 0;
        r->rules->weights[rule->class] =
            keep ? POLICY_WEIGHT_KEEP : (uint8_t)read_whole(r, where, 0, POLICY_WEIGHT_MOST);
}

static void take_classes(struct reader *r, const char *where, void *ctx)
{
        static const struct word words[] = {
            {"weight", take_weight}, {"zones", take_set_zones}, {"types", take_set_types}, {NULL, NULL}};
        (void)ctx;
        need_table(r, where);
        lua_pushnil(r->L);
        while (lua_next(r->L, -2)) {
                int is_whole = 0;
                lua_Integer class =
                    lua_type(r->L, -2) == LUA_TNUMBER ? lua_tointegerx(r->L, -2, &is_whole) : -1;
                if (!is_whole || class < 0 || class >= POLICY_CLASSES)
                        wrong(r, where, "classes are numbered from 0 to 7");
                struct policy_rule rule = {.set = POLICY_SET_CLASS, .class = (uint8_t) class};
                read_words(r, where, words, &rule);
                lua_pop(r->L, 1);
        }
}

/* tags ------------------------------------------------------------------------------------------------------
 */

static uint32_t read_tag(struct reader *r, const char *where)
{
        size_t len = 0;
        const char *text = lua_type(r->L, -1) == LUA_TSTRING ? lua_tolstring(r->L, -1, &len) : NULL;
        if (!text || len == 0 || len > POLICY_TAG_MAX / 2 || memchr(text, '/', len) || memchr(text, 0, len))
                wrong(r, where, "a tag is a string of 1 to 64 bytes without \"/\"");
        return r->services->rules_tag(r->rules, text, len);
}

static void value_tag(struct reader *r, const char *where, struct policy_rule *rule)
{
        rule->set = POLICY_SET_TAG;
        rule->tag = read_tag(r, where);
}

static void take_tag_clients(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        read_map(r, where, put_client, value_tag);
}

/* "192.0.2.1", "192.0.2.1:5300", "[2001:db8::1]:5300", ":5300". */
static bool listener_from_text(const char *text, struct policy_listener *listener)
{
        char addr[INET6_ADDRSTRLEN] = "";
        const char *colon = strrchr(text, ':'), *end = text + strlen(text);
        bool bracket = *text == '[';
        if (bracket) {
                text++;
                end = strchr(text, ']');
                if (!end || (end[1] != '\0' && end[1] != ':'))
                        return false;
                colon = end[1] == ':' ? end + 1 : NULL;
        } else if (colon && strchr(text, ':') == colon) {
                end = colon;
        } else {
                colon = NULL; /* an IPv6 address alone */
        }
        if ((size_t)(end - text) >= sizeof addr)
                return false;
        memcpy(addr, text, (size_t)(end - text));
        if (inet_pton(AF_INET, addr, listener->addr) == 1)
                listener->addr_len = 4;
        else if (inet_pton(AF_INET6, addr, listener->addr) == 1)
                listener->addr_len = 16;
        else if (*addr != '\0' || bracket)
                return false;
        if (!colon)
                return listener->addr_len > 0;
        unsigned port = 0;
        const char *p = colon + 1;
        for (; *p >= '0' && *p <= '9' && port <= UINT16_MAX; p++)
                port = port * 10 + (unsigned)(*p - '0');
        listener->port = (uint16_t)port;
        return *p == '\0' && port > 0 && port <= UINT16_MAX;
}

static void take_tag_listeners(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        need_table(r, where);
        lua_pushnil(r->L);
        while (lua_next(r->L, -2)) {
                struct policy_listener listener = {.tag = read_tag(r, where)};
                if (lua_type(r->L, -2) != LUA_TSTRING ||
                    !listener_from_text(lua_tostring(r->L, -2), &listener))
                        wrong(
                            r, where,
                            "a listener is a string like \"192.0.2.1:53\", \"[2001:db8::1]:53\" or \":53\"");
                if (!r->services->rules_listener(r->rules, &listener))
                        wrong(r, where, "more than 64 listeners");
                lua_pop(r->L, 1);
        }
}

static void take_tag_host(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        need_table(r, where);
        lua_Integer n = (lua_Integer)lua_rawlen(r->L, -1);
        for (lua_Integer i = 1; i <= n; i++) {
                if (lua_rawgeti(r->L, -1, i) != LUA_TSTRING)
                        wrong(r, where, "must be a list of names of the host's tags");
                if (!r->services->rules_host_tag(r->rules, lua_tostring(r->L, -1)))
                        wrong(r, where, "more than 8 names");
                lua_pop(r->L, 1);
        }
}

static void take_tags(struct reader *r, const char *where, void *ctx)
{
        static const struct word words[] = {{"clients", take_tag_clients},
                                            {"listeners", take_tag_listeners},
                                            {"host", take_tag_host},
                                            {NULL, NULL}};
        (void)ctx;
        read_words(r, where, words, NULL);
}

/* stale_from, shares, limits --------------------------------------------------------------------------------
 */

static void take_stale_negative(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        r->rules->stale_negative = read_bool(r, where);
}

static void value_stale(struct reader *r, const char *where, struct policy_rule *rule)
{
        rule->set = POLICY_SET_STALE;
        rule->stale = read_bool(r, where);
}

static void take_stale_zones(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        read_map(r, where, put_zone, value_stale);
}

static void take_stale_from(struct reader *r, const char *where, void *ctx)
{
        static const struct word words[] = {
            {"negative", take_stale_negative}, {"zones", take_stale_zones}, {NULL, NULL}};
        (void)ctx;
        read_words(r, where, words, NULL);
}

static void take_share(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        uint8_t percent = (uint8_t)read_whole(r, where, 1, 100);
        if (strcmp(where, "shares.negative") == 0)
                r->rules->share_negative = percent;
        else if (strcmp(where, "shares.one_hit") == 0)
                r->rules->share_one_hit = percent;
        else
                r->rules->share_stale = percent;
}

static void take_shares(struct reader *r, const char *where, void *ctx)
{
        static const struct word words[] = {
            {"negative", take_share}, {"one_hit", take_share}, {"stale", take_share}, {NULL, NULL}};
        (void)ctx;
        read_words(r, where, words, NULL);
}

static void take_instructions(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        r->program->instructions = (int)read_whole(r, where, INSTRUCTIONS_LEAST, INSTRUCTIONS_MOST);
}
static void take_memory(struct reader *r, const char *where, void *ctx)
{
        (void)ctx;
        r->program->memory = read_whole(r, where, MEMORY_LEAST, MEMORY_MOST);
}

static void take_limits(struct reader *r, const char *where, void *ctx)
{
        static const struct word words[] = {
            {"instructions", take_instructions}, {"memory", take_memory}, {NULL, NULL}};
        (void)ctx;
        read_words(r, where, words, NULL);
}

/* All -------------------------------------------------------------------------------------------------------
 */

static void take_hook(struct reader *r, const char *where, void *ctx)
{
        (void)r;
        (void)where;
        (void)ctx; /* looked at when the file was run */
}

void tables_read(lua_State *L, struct policy_program *program, struct policy_rules *rules)
{
        static const struct word words[] = {{"ecs", take_ecs},
                                            {"ttl", take_ttl},
                                            {"never_store", take_never_store},
                                            {"always_keep", take_always_keep},
                                            {"classes", take_classes},
                                            {"tags", take_tags},
                                            {"stale_from", take_stale_from},
                                            {"shares", take_shares},
                                            {"limits", take_limits},
                                            {"key", take_hook},
                                            {"store", take_hook},
                                            {"evict", take_hook},
                                            {"stale", take_hook},
                                            {NULL, NULL}};
        struct reader r = {.L = L, .program = program, .services = program->services, .rules = rules};
        luaL_checkstack(L, 4 * LUA_MINSTACK, NULL);
        read_words(&r, TOP, words, NULL);
}
