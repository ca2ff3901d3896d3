/* SPDX-License-Identifier: MIT
 * What hooks get to see: light userdata that name a part of the call's own data. They are numbers, so that
 * making one takes no memory. Each knows which call it was made for; after that it only gives errors. */
#include <arpa/inet.h>
#include <string.h>

#include "policy/lua/lua_engine.h"
#include "policy/names.h"
#include "wire/bytes.h"
#include "wire/dns.h"
#include "wire/name.h"

/* A view's bits, from the lowest: serial of the call, number, kind, mark. No pointer has the mark. */
enum {
        SERIAL_BITS = 42,
        NUMBER_BITS = 13,
        KIND_BITS = 3,
        KIND_AT = SERIAL_BITS + NUMBER_BITS,
        MARK_AT = KIND_AT + KIND_BITS,
        MARK = 0x29,
};
_Static_assert(sizeof(void *) == sizeof(uint64_t), "a view fills a light userdata");

/* What the number of an address says; of a record it is the place in the response. */
enum address {
        ADDRESS_CLIENT,
        ADDRESS_LISTENER,
        ADDRESS_RECORD, /* + the record's number */
};
_Static_assert(ADDRESS_RECORD + WIRE_RRS_MAX <= 1 << NUMBER_BITS, "every record has a number");

static const char *const kind_names[VIEWS] = {"question", "name", "address", "answer", "record", "entry"};

static uint64_t serial_now(lua_State *L)
{
        return state_of(L)->serial & ((UINT64_C(1) << SERIAL_BITS) - 1);
}

static void push_view(lua_State *L, enum view_kind kind, uint64_t number)
{
        uint64_t view = (uint64_t)MARK << MARK_AT | (uint64_t)kind << KIND_AT | number << SERIAL_BITS;
        lua_pushlightuserdata(L, (void *)(uintptr_t)(view | serial_now(L)));
}

void view_push_question(lua_State *L)
{
        push_view(L, VIEW_QUESTION, 0);
}

void view_push_answer(lua_State *L)
{
        push_view(L, VIEW_ANSWER, 0);
}

void view_push_entry(lua_State *L)
{
        push_view(L, VIEW_ENTRY, 0);
}

static void need_now(lua_State *L, uint64_t view)
{
        if ((view ^ serial_now(L)) << (64 - SERIAL_BITS) != 0)
                luaL_error(L,
                           "this %s was kept from an earlier call; it can be used during its own call only",
                           kind_names[view >> KIND_AT & ((1 << KIND_BITS) - 1)]);
}

/* The number of the view at `index`, which must be of this kind and of the call under way. */
static unsigned view_at(lua_State *L, int index, enum view_kind kind)
{
        uint64_t view = (uintptr_t)lua_touserdata(L, index);
        if (view >> KIND_AT != (MARK << KIND_BITS | kind))
                luaL_error(L, "not a method of this: %s wanted, as in q.qname:within('example.com')",
                           kind_names[kind]);
        need_now(L, view);
        return view >> SERIAL_BITS & ((1 << NUMBER_BITS) - 1);
}

/* The kind of the view that a metamethod is called for: its first argument. */
static enum view_kind kind_of(lua_State *L)
{
        uint64_t view = (uintptr_t)lua_touserdata(L, 1);
        if (view >> MARK_AT != MARK)
                luaL_error(L, "not a view");
        need_now(L, view);
        return view >> KIND_AT & ((1 << KIND_BITS) - 1);
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

/* NULL: there is none. */
static const uint8_t *address_of(lua_State *L, unsigned number, size_t *len)
{
        const struct state *s = state_of(L);
        const uint8_t *addr = NULL;
        *len = 0;
        if (number >= ADDRESS_RECORD) {
                const struct wire_response *r = s->answer->response;
                const struct wire_rr *rr = &r->rrs[number - ADDRESS_RECORD];
                addr = r->packet + rr->rdata;
                *len = rr->type == DNS_A || rr->type == DNS_AAAA ? rr->rdlen : 0;
                if (*len != (rr->type == DNS_A ? 4 : 16))
                        addr = NULL;
        } else if (s->question->query) {
                const struct sardine_query *query = s->question->query;
                addr = number == ADDRESS_CLIENT ? query->client : query->local;
                *len = number == ADDRESS_CLIENT ? query->client_len : query->local_len;
        }
        return addr && (*len == 4 || *len == 16) ? addr : NULL;
}

static void push_address(lua_State *L, unsigned number)
{
        size_t len;
        if (address_of(L, number, &len))
                push_view(L, VIEW_ADDRESS, number);
        else
                lua_pushnil(L);
}

/* Names -----------------------------------------------------------------------------------------------------
 */

/* A call is about one name. */
static const uint8_t *name_of(lua_State *L)
{
        const struct state *s = state_of(L);
        bool question = s->hook == POLICY_HOOK_KEY || s->hook == POLICY_HOOK_STORE;
        return question ? s->question->qname : s->entry->qname;
}

/* Of the view that is the first argument. */
static const uint8_t *name_at(lua_State *L)
{
        view_at(L, 1, VIEW_NAME);
        return name_of(L);
}

/* Where a text that has been read is remembered. */
static struct text_read *text_place(lua_State *L, const char *text)
{
        return &state_of(L)->texts[(uintptr_t)text / 32 % TEXTS];
}

static bool has_read(const struct text_read *read, enum text_is is, const char *text, size_t len)
{
        return read->is == is && read->len == len && memcmp(read->text, text, len) == 0;
}

static void remember(struct text_read *read, enum text_is is, const char *text, size_t len)
{
        read->is = is;
        read->len = len;
        memcpy(read->text, text, len);
}

/* The name given as the second argument; longer ones are put into `room`. */
static const uint8_t *name_argument(lua_State *L, uint8_t room[255], size_t *len)
{
        size_t text_len;
        const char *text = luaL_checklstring(L, 2, &text_len);
        struct text_read *read = text_place(L, text);
        if (!has_read(read, TEXT_NAME, text, text_len)) {
                *len = policy_name_from_text(text, text_len, room);
                if (*len == 0)
                        luaL_error(L, "\"%s\" is not a domain name", text);
                if (text_len > TEXT_KEPT)
                        return room;
                remember(read, TEXT_NAME, text, text_len);
                read->name_len = *len;
                memcpy(read->name, room, *len);
        }
        *len = read->name_len;
        return read->name;
}

/* The network given as the second argument. */
static const struct subnet *network_argument(lua_State *L, struct subnet *room)
{
        size_t len;
        const char *text = luaL_checklstring(L, 2, &len);
        struct text_read *read = text_place(L, text);
        if (!has_read(read, TEXT_NETWORK, text, len)) {
                if (!subnet_from_text(text, room))
                        luaL_error(L, "\"%s\" is not a network", text);
                if (len > TEXT_KEPT)
                        return room;
                remember(read, TEXT_NETWORK, text, len);
                read->net = *room;
        }
        return &read->net;
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
        const uint8_t *name = name_at(L);
        uint8_t room[255];
        size_t want, len = name_len(name);
        const uint8_t *suffix = name_argument(L, room, &want);
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
        const uint8_t *name = name_at(L);
        uint8_t room[255];
        size_t want;
        const uint8_t *other = name_argument(L, room, &want);
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
        const uint8_t *name = name_at(L);
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

static int name_labels(lua_State *L)
{
        lua_pushinteger(L, label_count(name_at(L)));
        return 1;
}

/* Addresses -------------------------------------------------------------------------------------------------
 */

static int address_within(lua_State *L)
{
        size_t len;
        const uint8_t *addr = address_of(L, view_at(L, 1, VIEW_ADDRESS), &len);
        struct subnet room;
        const struct subnet *net = network_argument(L, &room);
        lua_pushboolean(L, addr && subnet_has(net, addr, len));
        return 1;
}

static void show_address(lua_State *L, int field, unsigned number)
{
        size_t len;
        (void)field; /* there is one */
        address_of(L, number, &len);
        lua_pushinteger(L, len == 4 ? 4 : 6);
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

static void show_question(lua_State *L, int field, unsigned number)
{
        (void)number;
        const struct policy_question *q = state_of(L)->question;
        const struct sardine_query *query = q->query;
        switch (field) {
        case Q_QNAME:
                push_view(L, VIEW_NAME, 0);
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
                push_address(L, ADDRESS_CLIENT);
                break;
        case Q_ECS:
                push_ecs(L, q->ecs);
                break;
        case Q_TRANSPORT:
                push_transport(L, query);
                break;
        case Q_LISTENER:
                push_address(L, ADDRESS_LISTENER);
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

static void show_answer(lua_State *L, int field, unsigned number)
{
        (void)number;
        const struct policy_answer *a = state_of(L)->answer;
        const struct wire_response *r = a->response;
        uint32_t answers = 0;
        switch (field) {
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
}

static int next_record(lua_State *L)
{
        view_at(L, 1, VIEW_ANSWER);
        lua_Integer next = lua_tointeger(L, lua_upvalueindex(1));
        if (next >= state_of(L)->answer->response->count)
                return 0;
        lua_pushinteger(L, next + 1);
        lua_replace(L, lua_upvalueindex(1));
        push_view(L, VIEW_RECORD, (uint64_t)next);
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

static void show_record(lua_State *L, int field, unsigned number)
{
        static const char *const sections[] = {"answer", "authority", "additional"};
        const struct wire_response *r = state_of(L)->answer->response;
        const struct wire_rr *rr = &r->rrs[number];
        switch (field) {
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
                push_address(L, ADDRESS_RECORD + number);
                break;
        case RR_TARGET:
                push_target(L, r, rr);
                break;
        default:
                break;
        }
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

static void show_entry(lua_State *L, int field, unsigned number)
{
        (void)number;
        const struct policy_entry *e = state_of(L)->entry;
        switch (field) {
        case E_QNAME:
                push_view(L, VIEW_NAME, 0);
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

static const struct {
        const struct member *members;
        void (*show)(lua_State *L, int field, unsigned number); /* NULL: it has methods only */
} kinds[VIEWS] = {
    [VIEW_QUESTION] = {question_members, show_question}, [VIEW_NAME] = {name_members, NULL},
    [VIEW_ADDRESS] = {address_members, show_address},    [VIEW_ANSWER] = {answer_members, show_answer},
    [VIEW_RECORD] = {record_members, show_record},       [VIEW_ENTRY] = {entry_members, show_entry},
};

/* Upvalue 1 + kind is the kind's table of fields, which are numbers, and methods. */
static int view_index(lua_State *L)
{
        enum view_kind kind = kind_of(L);
        lua_pushvalue(L, 2);
        switch (lua_rawget(L, lua_upvalueindex(1 + (int)kind))) {
        case LUA_TNUMBER:
                kinds[kind].show(L, (int)lua_tointeger(L, -1), view_at(L, 1, kind));
                break;
        case LUA_TFUNCTION:
                break;
        default:
                return luaL_error(L, "a view of a%s %s has no field %s",
                                  strchr("aeiou", kind_names[kind][0]) ? "n" : "", kind_names[kind],
                                  lua_tostring(L, 2) ? lua_tostring(L, 2) : "of this kind");
        }
        return 1;
}

static int view_text(lua_State *L)
{
        size_t len;
        enum view_kind kind = kind_of(L);
        if (kind == VIEW_NAME) {
                push_name_text(L, name_of(L));
        } else if (kind == VIEW_ADDRESS) {
                const uint8_t *addr = address_of(L, view_at(L, 1, kind), &len);
                push_address_text(L, addr, len, -1);
        } else {
                lua_pushfstring(L, "sardine.%s", kind_names[kind]);
        }
        return 1;
}

static int read_only(lua_State *L)
{
        return luaL_error(L, "what a hook sees cannot be changed; its answer is what it returns");
}

/* All light userdata have one metatable. */
void views_open(lua_State *L)
{
        lua_pushlightuserdata(L, NULL);
        lua_createtable(L, 0, 8);
        for (int kind = 0; kind < VIEWS; kind++) {
                lua_newtable(L);
                for (const struct member *m = kinds[kind].members; m->name; m++) {
                        if (m->method)
                                lua_pushcfunction(L, m->method);
                        else
                                lua_pushinteger(L, m->field);
                        lua_setfield(L, -2, m->name);
                }
        }
        lua_pushcclosure(L, view_index, VIEWS);
        lua_setfield(L, -2, "__index");
        static const luaL_Reg others[] = {
            {"__newindex", read_only}, {"__tostring", view_text}, {"__len", name_labels}, {NULL, NULL}};
        luaL_setfuncs(L, others, 0);
        lua_pushliteral(L, "sardine.view");
        lua_setfield(L, -2, "__name");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_setmetatable(L, -2);
        lua_pop(L, 1);
}
