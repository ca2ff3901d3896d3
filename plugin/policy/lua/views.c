/* SPDX-License-Identifier: MIT
 * What hooks get to see: userdata that point at the call's own data. Each knows which call it was made for;
 * after that it only gives errors. */
#include <arpa/inet.h>
#include <string.h>

#include "policy/lua/lua_engine.h"
#include "policy/names.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

struct view {
        uint64_t serial;
        const uint8_t *bytes; /* of a name or an address */
        uint32_t kind;        /* enum view_kind, and VIEW_MAGIC */
        uint32_t number;      /* length of an address; number of a record */
};

enum {
        VIEW_MAGIC = 0x5a9d1e00,
};

static const char *const kind_names[VIEWS] = {"question", "name", "address", "answer", "record", "entry"};

static void push_view(lua_State *L, enum view_kind kind, const uint8_t *bytes, uint32_t number)
{
        struct view *view = lua_newuserdatauv(L, sizeof *view, 0);
        *view = (struct view){
            .serial = state_of(L)->serial, .bytes = bytes, .kind = VIEW_MAGIC | kind, .number = number};
        lua_rawgeti(L, LUA_REGISTRYINDEX, AT_VIEW + (int)kind);
        lua_setmetatable(L, -2);
}

void view_push_question(lua_State *L)
{
        push_view(L, VIEW_QUESTION, NULL, 0);
}

void view_push_answer(lua_State *L)
{
        push_view(L, VIEW_ANSWER, NULL, 0);
}

void view_push_entry(lua_State *L)
{
        push_view(L, VIEW_ENTRY, NULL, 0);
}

/* The view at `index`, which must be of this kind and of the call under way. */
static struct view *view_at(lua_State *L, int index, enum view_kind kind)
{
        struct view *view = lua_type(L, index) == LUA_TUSERDATA && lua_rawlen(L, index) == sizeof *view
                                ? lua_touserdata(L, index)
                                : NULL;
        if (!view || view->kind != (VIEW_MAGIC | kind))
                luaL_error(L, "not a method of this: %s wanted, as in q.qname:within('example.com')",
                           kind_names[kind]);
        if (view->serial != state_of(L)->serial)
                luaL_error(L,
                           "this %s was kept from an earlier call; it can be used during its own call only",
                           kind_names[kind]);
        return view;
}

/* Fields and methods are in the table that __index has as upvalue: numbers and functions. Returns the field's
 * number, or -1 with a method on the top. */
static int field_at(lua_State *L, enum view_kind kind)
{
        lua_pushvalue(L, 2);
        switch (lua_rawget(L, lua_upvalueindex(1))) {
        case LUA_TNUMBER:
                return (int)lua_tointeger(L, -1);
        case LUA_TFUNCTION:
                return -1;
        default:
                return luaL_error(L, "a view of a%s %s has no field %s",
                                  strchr("aeiou", kind_names[kind][0]) ? "n" : "", kind_names[kind],
                                  lua_tostring(L, 2) ? lua_tostring(L, 2) : "of this kind");
        }
}

static void push_name_text(lua_State *L, const uint8_t *name)
{
        char text[POLICY_NAME_TEXT];
        size_t len = policy_name_to_text(name, text);
        lua_pushlstring(L, text, len);
}

static void push_address_text(lua_State *L, const uint8_t *addr, size_t len, int prefix)
{
        char text[INET6_ADDRSTRLEN];
        inet_ntop(len == 4 ? AF_INET : AF_INET6, addr, text, sizeof text);
        if (prefix >= 0)
                lua_pushfstring(L, "%s/%d", text, prefix);
        else
                lua_pushstring(L, text);
}

static void push_address(lua_State *L, const uint8_t *addr, size_t len)
{
        if (addr && (len == 4 || len == 16))
                push_view(L, VIEW_ADDRESS, addr, (uint32_t)len);
        else
                lua_pushnil(L);
}

/* Names -----------------------------------------------------------------------------------------------------
 */

/* The name given as the second argument. */
static size_t name_argument(lua_State *L, uint8_t name[255])
{
        size_t text_len;
        const char *text = luaL_checklstring(L, 2, &text_len);
        size_t len = policy_name_from_text(text, text_len, name);
        if (len == 0)
                luaL_error(L, "\"%s\" is not a domain name", text);
        return len;
}

static size_t name_len(const uint8_t *name)
{
        const uint8_t *p = name;
        while (*p != 0)
                p += *p + 1u;
        return (size_t)(p - name) + 1;
}

static int name_within(lua_State *L)
{
        const uint8_t *name = view_at(L, 1, VIEW_NAME)->bytes;
        uint8_t suffix[255];
        size_t want = name_argument(L, suffix), len = name_len(name);
        while (len > want) {
                size_t label = *name + 1u;
                name += label;
                len -= label;
        }
        lua_pushboolean(L, len == want && wire_name_equal(name, suffix, want));
        return 1;
}

static int name_is(lua_State *L)
{
        const uint8_t *name = view_at(L, 1, VIEW_NAME)->bytes;
        uint8_t other[255];
        size_t want = name_argument(L, other);
        lua_pushboolean(L, name_len(name) == want && wire_name_equal(name, other, want));
        return 1;
}

static lua_Integer label_count(const uint8_t *name)
{
        lua_Integer labels = 0;
        for (; *name != 0; name += *name + 1u)
                labels++;
        return labels;
}

/* The n-th label's bytes; from the end with n < 0. nil: there is none. */
static int name_label(lua_State *L)
{
        const uint8_t *name = view_at(L, 1, VIEW_NAME)->bytes;
        lua_Integer n = luaL_checkinteger(L, 2), labels = label_count(name);
        if (n < 0)
                n += labels + 1;
        if (n < 1 || n > labels) {
                lua_pushnil(L);
                return 1;
        }
        while (--n > 0)
                name += *name + 1u;
        uint8_t folded[63];
        wire_name_fold(folded, name + 1, *name);
        lua_pushlstring(L, (const char *)folded, *name);
        return 1;
}

static int name_text(lua_State *L)
{
        push_name_text(L, view_at(L, 1, VIEW_NAME)->bytes);
        return 1;
}

static int name_labels(lua_State *L)
{
        lua_pushinteger(L, label_count(view_at(L, 1, VIEW_NAME)->bytes));
        return 1;
}

static int name_equal(lua_State *L)
{
        const uint8_t *a = view_at(L, 1, VIEW_NAME)->bytes, *b = view_at(L, 2, VIEW_NAME)->bytes;
        size_t len = name_len(a);
        lua_pushboolean(L, len == name_len(b) && wire_name_equal(a, b, len));
        return 1;
}

static int name_index(lua_State *L)
{
        view_at(L, 1, VIEW_NAME);
        field_at(L, VIEW_NAME);
        return 1;
}

/* Addresses -------------------------------------------------------------------------------------------------
 */

static int address_within(lua_State *L)
{
        const struct view *view = view_at(L, 1, VIEW_ADDRESS);
        const char *text = luaL_checkstring(L, 2);
        struct subnet net;
        if (!subnet_from_text(text, &net))
                return luaL_error(L, "\"%s\" is not a network", text);
        lua_pushboolean(L, subnet_has(&net, view->bytes, view->number));
        return 1;
}

static int address_text(lua_State *L)
{
        const struct view *view = view_at(L, 1, VIEW_ADDRESS);
        push_address_text(L, view->bytes, view->number, -1);
        return 1;
}

static int address_index(lua_State *L)
{
        const struct view *view = view_at(L, 1, VIEW_ADDRESS);
        if (field_at(L, VIEW_ADDRESS) >= 0)
                lua_pushinteger(L, view->number == 4 ? 4 : 6);
        return 1;
}

/* Questions -------------------------------------------------------------------------------------------------
 */

enum question_field {
        Q_QNAME,
        Q_NAME,
        Q_QTYPE,
        Q_RD,
        Q_CD,
        Q_DNSSEC_OK,
        Q_CLIENT,
        Q_ECS,
        Q_TRANSPORT,
        Q_LISTENER,
        Q_LISTENER_PORT,
        Q_POOL,
        Q_TAG,
};

static void push_ecs(lua_State *L, const struct wire_ecs *ecs)
{
        if (ecs && ecs->family != ECS_NONE)
                push_address_text(L, ecs->addr, ecs->family == ECS_IPV4 ? 4 : 16, ecs->source);
        else
                lua_pushnil(L);
}

static void push_transport(lua_State *L, const struct sardine_query *query)
{
        static const char *const names[] = {"udp", "tcp", "dot", "doh", "doq"};
        lua_pushstring(L, query && query->transport < sizeof names / sizeof names[0] ? names[query->transport]
                                                                                     : NULL);
}

static int question_index(lua_State *L)
{
        view_at(L, 1, VIEW_QUESTION);
        const struct policy_question *q = state_of(L)->question;
        const struct sardine_query *query = q->query;
        switch (field_at(L, VIEW_QUESTION)) {
        case Q_QNAME:
                push_view(L, VIEW_NAME, q->qname, 0);
                break;
        case Q_NAME:
                push_name_text(L, q->qname);
                break;
        case Q_QTYPE:
                lua_pushinteger(L, q->qtype);
                break;
        case Q_RD:
                lua_pushboolean(L, q->rd);
                break;
        case Q_CD:
                lua_pushboolean(L, q->cd);
                break;
        case Q_DNSSEC_OK:
                lua_pushboolean(L, q->dnssec_ok);
                break;
        case Q_CLIENT:
                push_address(L, query ? query->client : NULL, query ? query->client_len : 0);
                break;
        case Q_ECS:
                push_ecs(L, q->ecs);
                break;
        case Q_TRANSPORT:
                push_transport(L, query);
                break;
        case Q_LISTENER:
                push_address(L, query ? query->local : NULL, query ? query->local_len : 0);
                break;
        case Q_LISTENER_PORT:
                if (query && query->local_port)
                        lua_pushinteger(L, query->local_port);
                else
                        lua_pushnil(L);
                break;
        case Q_POOL:
                lua_pushstring(L, query ? query->pool : NULL);
                break;
        case Q_TAG:
                lua_pushlstring(L, q->tag, q->tag_len);
                break;
        default:
                break; /* a method */
        }
        return 1;
}

/* What the host knows of this query under a name: text, or nil. */
static int question_host_tag(lua_State *L)
{
        view_at(L, 1, VIEW_QUESTION);
        const struct sardine_query *query = state_of(L)->question->query;
        const char *name = luaL_checkstring(L, 2);
        lua_pushstring(L, query && query->host_tag ? query->host_tag(query->host_ctx, name) : NULL);
        return 1;
}

/* Answers and their records ---------------------------------------------------------------------------------
 */

enum answer_field {
        R_RCODE,
        R_TTL,
        R_SIZE,
        R_NEGATIVE,
        R_CLASS,
        R_AA,
        R_AD,
        R_COUNT,
        R_ECS,
};

static int answer_index(lua_State *L)
{
        view_at(L, 1, VIEW_ANSWER);
        const struct policy_answer *a = state_of(L)->answer;
        const struct wire_response *r = a->response;
        uint32_t answers = 0;
        switch (field_at(L, VIEW_ANSWER)) {
        case R_RCODE:
                lua_pushinteger(L, r->rcode);
                break;
        case R_TTL:
                lua_pushinteger(L, a->life);
                break;
        case R_SIZE:
                lua_pushinteger(L, (lua_Integer)r->len);
                break;
        case R_NEGATIVE:
                lua_pushboolean(L, a->negative);
                break;
        case R_CLASS:
                lua_pushinteger(L, a->class);
                break;
        case R_AA:
                lua_pushboolean(L, r->flags2 & DNS_AA);
                break;
        case R_AD:
                lua_pushboolean(L, r->flags3 & DNS_AD);
                break;
        case R_COUNT:
                while (answers < r->count && r->rrs[answers].section == WIRE_ANSWER)
                        answers++;
                lua_pushinteger(L, answers);
                break;
        case R_ECS: {
                struct wire_ecs scope = r->ecs;
                scope.source = r->ecs.scope;
                push_ecs(L, &scope);
                break;
        }
        default:
                break;
        }
        return 1;
}

static int next_record(lua_State *L)
{
        view_at(L, 1, VIEW_ANSWER);
        lua_Integer next = lua_tointeger(L, lua_upvalueindex(1));
        if (next >= state_of(L)->answer->response->count)
                return 0;
        lua_pushinteger(L, next + 1);
        lua_replace(L, lua_upvalueindex(1));
        push_view(L, VIEW_RECORD, NULL, (uint32_t)next);
        return 1;
}

/* for record in r:records() do */
static int answer_records(lua_State *L)
{
        view_at(L, 1, VIEW_ANSWER);
        lua_pushinteger(L, 0);
        lua_pushcclosure(L, next_record, 1);
        lua_pushvalue(L, 1);
        return 2;
}

enum record_field {
        RR_NAME,
        RR_TYPE,
        RR_TTL,
        RR_SECTION,
        RR_DATA,
        RR_ADDRESS,
        RR_TARGET,
};

/* A name of the response as text. It has been proven to expand. */
static void push_response_name(lua_State *L, const struct wire_response *r, size_t at)
{
        struct wire_name name;
        uint32_t work = WIRE_WORK_MAX;
        size_t question_len = r->qname ? r->qname_len : 0;
        if (at < r->len && wire_name_expand(r->packet, r->len, at, question_len, &work, &name))
                push_name_text(L, name.bytes);
        else
                lua_pushnil(L);
}

static void push_target(lua_State *L, const struct wire_response *r, const struct wire_rr *rr)
{
        size_t before = rr->type == DNS_MX ? 2 : rr->type == DNS_SRV ? 6 : 0;
        bool has = before > 0 || rr->type == DNS_CNAME || rr->type == DNS_NS || rr->type == DNS_PTR ||
                   rr->type == DNS_DNAME;
        if (has)
                push_response_name(L, r, rr->rdata + before);
        else
                lua_pushnil(L);
}

static int record_index(lua_State *L)
{
        static const char *const sections[] = {"answer", "authority", "additional"};
        const struct view *view = view_at(L, 1, VIEW_RECORD);
        const struct wire_response *r = state_of(L)->answer->response;
        const struct wire_rr *rr = &r->rrs[view->number];
        switch (field_at(L, VIEW_RECORD)) {
        case RR_NAME:
                push_response_name(L, r, rr->owner);
                break;
        case RR_TYPE:
                lua_pushinteger(L, rr->type);
                break;
        case RR_TTL:
                lua_pushinteger(L, rr->ttl);
                break;
        case RR_SECTION:
                lua_pushstring(L, sections[rr->section]);
                break;
        case RR_DATA:
                lua_pushlstring(L, (const char *)r->packet + rr->rdata, rr->rdlen);
                break;
        case RR_ADDRESS:
                push_address(L, r->packet + rr->rdata,
                             (rr->type == DNS_A && rr->rdlen == 4) ||
                                     (rr->type == DNS_AAAA && rr->rdlen == 16)
                                 ? rr->rdlen
                                 : 0);
                break;
        case RR_TARGET:
                push_target(L, r, rr);
                break;
        default:
                break;
        }
        return 1;
}

/* Entries ---------------------------------------------------------------------------------------------------
 */

enum entry_field {
        E_QNAME,
        E_NAME,
        E_QTYPE,
        E_RCODE,
        E_TAG,
        E_GROUP,
        E_CLASS,
        E_HITS,
        E_NEGATIVE,
        E_AGE,
        E_TTL,
        E_EXPIRED,
        E_SIZE,
};

static int entry_index(lua_State *L)
{
        view_at(L, 1, VIEW_ENTRY);
        const struct policy_entry *e = state_of(L)->entry;
        switch (field_at(L, VIEW_ENTRY)) {
        case E_QNAME:
                push_view(L, VIEW_NAME, e->qname, 0);
                break;
        case E_NAME:
                push_name_text(L, e->qname);
                break;
        case E_QTYPE:
                lua_pushinteger(L, e->qtype);
                break;
        case E_RCODE:
                lua_pushinteger(L, e->rcode);
                break;
        case E_TAG:
                lua_pushlstring(L, (const char *)e->tag, e->tag_len);
                break;
        case E_GROUP:
                lua_pushlstring(L, (const char *)e->group, e->group_len);
                break;
        case E_CLASS:
                lua_pushinteger(L, e->class);
                break;
        case E_HITS:
                lua_pushinteger(L, e->hits);
                break;
        case E_NEGATIVE:
                lua_pushboolean(L, e->negative);
                break;
        case E_AGE:
                lua_pushinteger(L, e->age);
                break;
        case E_TTL:
                lua_pushinteger(L, e->ttl);
                break;
        case E_EXPIRED:
                lua_pushinteger(L, e->expired);
                break;
        case E_SIZE:
                lua_pushinteger(L, e->size);
                break;
        default:
                break;
        }
        return 1;
}

/* Metatables ------------------------------------------------------------------------------------------------
 */

struct member {
        const char *name;
        int field;
        lua_CFunction method; /* NULL: a field */
};

static const struct member name_members[] = {{"within", 0, name_within},
                                             {"is", 0, name_is},
                                             {"label", 0, name_label},
                                             {"labels", 0, name_labels},
                                             {NULL, 0, NULL}};
static const struct member address_members[] = {
    {"within", 0, address_within}, {"family", 0, NULL}, {NULL, 0, NULL}};
static const struct member question_members[] = {{"qname", Q_QNAME, NULL},
                                                 {"name", Q_NAME, NULL},
                                                 {"qtype", Q_QTYPE, NULL},
                                                 {"rd", Q_RD, NULL},
                                                 {"cd", Q_CD, NULL},
                                                 {"dnssec_ok", Q_DNSSEC_OK, NULL},
                                                 {"client", Q_CLIENT, NULL},
                                                 {"ecs", Q_ECS, NULL},
                                                 {"transport", Q_TRANSPORT, NULL},
                                                 {"listener", Q_LISTENER, NULL},
                                                 {"listener_port", Q_LISTENER_PORT, NULL},
                                                 {"pool", Q_POOL, NULL},
                                                 {"tag", Q_TAG, NULL},
                                                 {"host_tag", 0, question_host_tag},
                                                 {NULL, 0, NULL}};
static const struct member answer_members[] = {{"rcode", R_RCODE, NULL}, {"ttl", R_TTL, NULL},
                                               {"size", R_SIZE, NULL},   {"negative", R_NEGATIVE, NULL},
                                               {"class", R_CLASS, NULL}, {"aa", R_AA, NULL},
                                               {"ad", R_AD, NULL},       {"count", R_COUNT, NULL},
                                               {"ecs", R_ECS, NULL},     {"records", 0, answer_records},
                                               {NULL, 0, NULL}};
static const struct member record_members[] = {{"name", RR_NAME, NULL},     {"type", RR_TYPE, NULL},
                                               {"ttl", RR_TTL, NULL},       {"section", RR_SECTION, NULL},
                                               {"data", RR_DATA, NULL},     {"address", RR_ADDRESS, NULL},
                                               {"target", RR_TARGET, NULL}, {NULL, 0, NULL}};
static const struct member entry_members[] = {
    {"qname", E_QNAME, NULL}, {"name", E_NAME, NULL}, {"qtype", E_QTYPE, NULL},
    {"rcode", E_RCODE, NULL}, {"tag", E_TAG, NULL},   {"group", E_GROUP, NULL},
    {"class", E_CLASS, NULL}, {"hits", E_HITS, NULL}, {"negative", E_NEGATIVE, NULL},
    {"age", E_AGE, NULL},     {"ttl", E_TTL, NULL},   {"expired", E_EXPIRED, NULL},
    {"size", E_SIZE, NULL},   {NULL, 0, NULL}};

static int read_only(lua_State *L)
{
        return luaL_error(L, "what a hook sees cannot be changed; its answer is what it returns");
}

void views_open(lua_State *L)
{
        static const struct {
                const struct member *members;
                lua_CFunction index, text, length, equal;
        } kinds[VIEWS] = {
            [VIEW_QUESTION] = {question_members, question_index, NULL, NULL, NULL},
            [VIEW_NAME] = {name_members, name_index, name_text, name_labels, name_equal},
            [VIEW_ADDRESS] = {address_members, address_index, address_text, NULL, NULL},
            [VIEW_ANSWER] = {answer_members, answer_index, NULL, NULL, NULL},
            [VIEW_RECORD] = {record_members, record_index, NULL, NULL, NULL},
            [VIEW_ENTRY] = {entry_members, entry_index, NULL, NULL, NULL},
        };
        for (int kind = 0; kind < VIEWS; kind++) {
                lua_createtable(L, 0, 8);
                lua_newtable(L);
                for (const struct member *m = kinds[kind].members; m->name; m++) {
                        if (m->method)
                                lua_pushcfunction(L, m->method);
                        else
                                lua_pushinteger(L, m->field);
                        lua_setfield(L, -2, m->name);
                }
                lua_pushcclosure(L, kinds[kind].index, 1);
                lua_setfield(L, -2, "__index");
                lua_pushcfunction(L, read_only);
                lua_setfield(L, -2, "__newindex");
                const struct {
                        const char *event;
                        lua_CFunction function;
                } more[] = {{"__tostring", kinds[kind].text},
                            {"__len", kinds[kind].length},
                            {"__eq", kinds[kind].equal}};
                for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
                        if (!more[i].function)
                                continue;
                        lua_pushcfunction(L, more[i].function);
                        lua_setfield(L, -2, more[i].event);
                }
                lua_pushfstring(L, "sardine.%s", kind_names[kind]);
                lua_setfield(L, -2, "__name");
                lua_pushboolean(L, 0);
                lua_setfield(L, -2, "__metatable");
                lua_rawseti(L, LUA_REGISTRYINDEX, AT_VIEW + kind);
        }
}
