/* SPDX-License-Identifier: MIT
 * Programs, states, and calls of hooks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "policy/lua/lua_engine.h"

enum {
        ERRORS_A_SECOND = 10, /* of a hook; then it is left out for the rest of the second */
        LOG_EVERY = 60,       /* seconds between lines about the same hook */

        NS_AN_INSTRUCTION = 100,    /* of CPU time; it takes about a tenth of that */
        BYTES_AN_INSTRUCTION = 256, /* allocated */
        BYTES_COLLECTED = 64,       /* for an instruction */
        HOOK_PLACE = 1,             /* + enum policy_hook: on the stack of a state that is ready */
        STRING_MOST = 1 << 20,      /* bytes, of one that a hook makes: one instruction may compare all */
        SMALL = 4096,               /* bytes: allocated even if nothing is left */
};

static const char *const hook_names[POLICY_HOOKS] = {"key", "store", "evict", "stale"};

/* Limits ----------------------------------------------------------------------------------------------------
 * Work inside of libraries is counted as the instructions that take about as long: the guards do that before
 * the work, the allocator with what it is asked for. What nobody has thought of is found by the clock. */

static void count_slice(lua_State *L, lua_Debug *ar);

static void look_every_slice(lua_State *L)
{
        lua_sethook(L, count_slice, LUA_MASKCOUNT, SLICE);
}

/* At the next instruction, and at every one that follows: whoever catches the error gets it again. */
static void stop_soon(lua_State *L)
{
        lua_sethook(L, count_slice, LUA_MASKCOUNT, 1);
        state_of(L)->stopping = true;
}

static void stop(lua_State *L, int level)
{
        struct state *s = state_of(L);
        s->over = true;
        s->left = -1;
        stop_soon(L);
        stop_soon(s->L); /* which may have called this coroutine */
        luaL_where(L, level);
        lua_pushfstring(L, "more than %d instructions, or their time",
                        s->loading ? LOAD_INSTRUCTIONS : s->instructions);
        lua_concat(L, 2);
        lua_error(L);
}

/* Of this thread alone: a thread that has to wait for a processor is not at fault. */
static int64_t cpu_time(void)
{
        struct timespec ts;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void count_slice(lua_State *L, lua_Debug *ar)
{
        (void)ar;
        struct state *s = state_of(L);
        s->left -= SLICE;
        int64_t now = cpu_time();
        if (s->until == 0)
                s->until =
                    now + (int64_t)(s->loading ? LOAD_INSTRUCTIONS : s->instructions) * NS_AN_INSTRUCTION;
        if (s->left <= 0 || now > s->until)
                stop(L, 0);
        /* A coroutine of an earlier call that has been stopped. */
        if (lua_gethookcount(L) != SLICE)
                look_every_slice(L);
}

void spend(lua_State *L, double count)
{
        struct state *s = state_of(L);
        if (count > (double)s->left)
                stop(L, 1);
        s->left -= (int64_t)count;
}

/* Lua goes on counting from call to call, so the first slice of a call is shorter: one more makes up for it.
 */
static void give_instructions(struct state *s, int count)
{
        s->over = false;
        s->left = count + SLICE;
        s->until = 0;
        if (s->stopping) {
                look_every_slice(s->L);
                s->stopping = false;
        }
}

static void *allocate(void *ctx, void *block, size_t old_size, size_t size)
{
        struct state *s = ctx;
        bool string = !block && old_size == LUA_TSTRING;
        if (!block)
                old_size = 0;
        if (size == 0) {
                free(block);
                s->memory -= old_size;
                return NULL;
        }
        /* Lua relies on shrinking to succeed, and needs a little for the error. */
        if (size > old_size) {
                bool fits = s->memory - old_size + size <= s->memory_most &&
                            (!string || s->loading || size <= STRING_MOST);
                /* If it does not fit, Lua collects everything before it gives up. */
                s->left -= (int64_t)(fits ? size / BYTES_AN_INSTRUCTION : s->memory / BYTES_COLLECTED);
                if (s->left < 0 && s->L)
                        stop_soon(s->L);
                if (!fits)
                        return NULL;
                if (s->left < 0 && size > SMALL) {
                        s->over = true;
                        return NULL;
                }
        }
        void *moved = realloc(block, size);
        if (moved)
                s->memory += size - old_size;
        return moved;
}

/* States ----------------------------------------------------------------------------------------------------
 */

static const char *error_text(lua_State *L)
{
        const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        return text ? text : "error without a text";
}

/* In protected mode: run the file; returns its table. */
static int open_state(lua_State *L)
{
        struct state *s = state_of(L);
        const struct policy_program *program = s->program;
        views_open(L);
        sandbox_open(L, program);
        look_every_slice(L);
        give_instructions(s, LOAD_INSTRUCTIONS);
        if (luaL_loadbufferx(L, program->text, program->text_len, program->chunk_name, "t") != LUA_OK)
                return lua_error(L);
        lua_call(L, 0, 1);
        if (lua_type(L, -1) != LUA_TTABLE)
                return luaL_error(L, "%s: the file must return a table", program->path);
        for (int i = 0; i < POLICY_HOOKS; i++) {
                int type = lua_getfield(L, -1, hook_names[i]);
                if (type != LUA_TNIL && type != LUA_TFUNCTION)
                        return luaL_error(L, "%s: %s must be a function", program->path, hook_names[i]);
                lua_rawseti(L, LUA_REGISTRYINDEX, AT_HOOK + i);
        }
        return 1;
}

static int panic(lua_State *L)
{
        /* Nothing runs outside of protected mode. */
        fprintf(stderr, "sardine: policy: %s\n", error_text(L));
        abort();
}

/* Make the Lua state, with the file's table on its stack. If that fails, *why says why, as long as s->L is
 * not closed. */
static bool make_lua(struct state *s, const char **why)
{
        s->memory = 0;
        s->memory_most = LOAD_MEMORY;
        s->loading = true;
        s->left = LOAD_INSTRUCTIONS;
        *why = "no memory";
        s->L = lua_newstate(allocate, s);
        if (!s->L)
                return false;
        *(struct state **)lua_getextraspace(s->L) = s;
        lua_atpanic(s->L, panic);
        lua_pushcfunction(s->L, open_state);
        int status = lua_pcall(s->L, 0, 1, 0);
        if (status == LUA_OK)
                return true;
        *why = error_text(s->L);
        return false;
}

/* It is loaded: from now on hooks run in it. They stay on its stack, at HOOK_PLACE. */
static void settle(struct state *s)
{
        lua_settop(s->L, 0);
        for (int i = 0; i < POLICY_HOOKS; i++)
                lua_rawgeti(s->L, LUA_REGISTRYINDEX, AT_HOOK + i);
        look_every_slice(s->L);
        lua_gc(s->L, LUA_GCCOLLECT);
        /* What calls leave behind is collected when it is as much as all else: rarely, for it is little. */
        lua_gc(s->L, LUA_GCGEN, 100, 0);
        s->memory_most = s->memory + s->program->memory;
        s->instructions = s->program->instructions;
        s->loading = false;
}

static void close_lua(struct state *s)
{
        if (s->L)
                lua_close(s->L);
        s->L = NULL;
}

static struct state *new_state(struct policy_program *program)
{
        struct state *s = calloc(1, sizeof *s);
        if (!s)
                return NULL;
        s->program = program;
        atomic_init(&s->busy, true);
        return s;
}

static void publish(struct state *s)
{
        struct policy_program *program = s->program;
        s->next = atomic_load(&program->states);
        while (!atomic_compare_exchange_weak(&program->states, &s->next, s))
                ;
}

static bool take(struct state *s)
{
        return !atomic_load_explicit(&s->busy, memory_order_relaxed) &&
               !atomic_exchange_explicit(&s->busy, true, memory_order_acquire);
}

/* A state for this thread alone until it is given back: the one that it had the last time, if it can be. */
static struct state *take_state(struct policy_program *program)
{
        static _Thread_local struct {
                uint64_t program;
                struct state *state;
        } last;
        if (last.program == program->id && take(last.state))
                return last.state;
        struct state *s = atomic_load_explicit(&program->states, memory_order_acquire);
        while (s && !take(s))
                s = s->next;
        if (!s) {
                s = new_state(program);
                if (!s)
                        return NULL;
                publish(s);
        }
        last.program = program->id;
        last.state = s;
        return s;
}

static void give_back(struct state *s)
{
        atomic_store_explicit(&s->busy, false, memory_order_release);
}

/* Errors ----------------------------------------------------------------------------------------------------
 */

static uint64_t second(void)
{
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
        return (uint64_t)ts.tv_sec + 1;
}

static void complain(struct policy_program *program, enum policy_hook hook, const char *text)
{
        struct health *health = &program->health[hook];
        uint64_t now = second();
        uint64_t seen = atomic_load(&health->errors_of_second), next;
        do
                next = seen >> 32 == (now & UINT32_MAX) ? seen + 1 : now << 32 | 1;
        while (!atomic_compare_exchange_weak(&health->errors_of_second, &seen, next));
        if ((uint32_t)next >= ERRORS_A_SECOND)
                atomic_store(&health->closed_until, now + 1);
        uint64_t logged = atomic_load(&health->logged);
        if ((logged != 0 && now < logged + LOG_EVERY) || !program->log ||
            !atomic_compare_exchange_strong(&health->logged, &logged, now))
                return;
        /* Errors of Lua itself do not say where. */
        const char *slash = strrchr(program->path, '/'), *file = slash ? slash + 1 : program->path;
        bool says = strstr(text, file) != NULL;
        char line[512];
        snprintf(line, sizeof line,
                 "policy, hook %s: %s%s%s (said once a minute at most; counted in the statistics)",
                 hook_names[hook], says ? "" : program->path, says ? "" : ": ", text);
        program->log(program->log_ctx, SARDINE_LOG_WARNING, line);
}

/* Is it left out after too many errors? */
static bool closed(struct health *health)
{
        uint64_t until = atomic_load_explicit(&health->closed_until, memory_order_relaxed);
        if (until == 0)
                return false;
        if (second() >= until) {
                atomic_store_explicit(&health->closed_until, 0, memory_order_relaxed);
                return false;
        }
        atomic_fetch_add_explicit(&health->skipped, 1, memory_order_relaxed);
        return true;
}

/* Hooks -----------------------------------------------------------------------------------------------------
 */

static int bad_answer(lua_State *L, const char *want)
{
        return luaL_error(L, "the hook's answer must be %s", want);
}

static bool field(lua_State *L, const char *name, int type, const char *want)
{
        int is = lua_getfield(L, -1, name);
        if (is != LUA_TNIL && is != type)
                luaL_error(L, "the hook's answer: %s must be %s", name, want);
        return is != LUA_TNIL;
}

static void read_tag(lua_State *L, char out[POLICY_TAG_MAX], uint8_t *out_len)
{
        size_t len;
        const char *text = lua_tolstring(L, -1, &len);
        if (len > POLICY_TAG_MAX)
                luaL_error(L, "a tag of %d bytes; at most %d", (int)len, POLICY_TAG_MAX);
        memcpy(out, text, len);
        *out_len = (uint8_t)len;
}

/* A whole number within bounds. */
static lua_Integer whole(lua_State *L, const char *name, lua_Integer least, lua_Integer most)
{
        int is_whole;
        lua_Integer n = lua_tointegerx(L, -1, &is_whole);
        if (!is_whole || n < least || n > most)
                luaL_error(L, "the hook's answer: %s must be a whole number from %d to %d", name, (int)least,
                           (int)most);
        return n;
}

static void read_network(lua_State *L, struct policy_key *key)
{
        int type = lua_getfield(L, -1, "ecs");
        if (type == LUA_TNIL || (type == LUA_TBOOLEAN && lua_toboolean(L, -1))) {
                key->network_is = POLICY_NETWORK_OWN;
        } else if (type == LUA_TBOOLEAN) {
                key->network_is = POLICY_NETWORK_NONE;
        } else if (type == LUA_TNUMBER) {
                key->network_is = POLICY_NETWORK_LIMIT;
                key->limit = (uint8_t)whole(L, "ecs", 0, 128);
        } else {
                struct subnet net;
                if (type != LUA_TSTRING || !subnet_from_text(lua_tostring(L, -1), &net))
                        luaL_error(L, "the hook's answer: ecs must be false, a prefix length, or a network");
                key->network_is = POLICY_NETWORK_SET;
                key->network = (struct wire_ecs){.family = net.family, .source = net.prefix};
                memcpy(key->network.addr, net.addr, sizeof net.addr);
        }
        lua_pop(L, 1);
}

static void read_key(lua_State *L, struct policy_key *key)
{
        switch (lua_type(L, -1)) {
        case LUA_TNIL:
                break;
        case LUA_TBOOLEAN:
                key->skip = !lua_toboolean(L, -1);
                break;
        case LUA_TSTRING:
                read_tag(L, key->tag, &key->tag_len);
                break;
        case LUA_TTABLE:
                if (field(L, "tag", LUA_TSTRING, "a string"))
                        read_tag(L, key->tag, &key->tag_len);
                lua_pop(L, 1);
                if (field(L, "skip", LUA_TBOOLEAN, "true or false"))
                        key->skip = lua_toboolean(L, -1);
                lua_pop(L, 1);
                if (field(L, "max_ttl", LUA_TNUMBER, "a number"))
                        key->max_ttl = (uint32_t)whole(L, "max_ttl", 1, INT32_MAX);
                lua_pop(L, 1);
                read_network(L, key);
                break;
        default:
                bad_answer(L, "nil, false, a tag, or a table");
        }
}

static void read_store(lua_State *L, struct policy_answer *answer)
{
        switch (lua_type(L, -1)) {
        case LUA_TNIL:
                break;
        case LUA_TBOOLEAN:
                answer->refuse = !lua_toboolean(L, -1);
                break;
        case LUA_TNUMBER:
                answer->life = (uint32_t)whole(L, "the TTL", 1, INT32_MAX);
                break;
        case LUA_TTABLE:
                if (field(L, "store", LUA_TBOOLEAN, "true or false"))
                        answer->refuse = !lua_toboolean(L, -1);
                lua_pop(L, 1);
                if (field(L, "ttl", LUA_TNUMBER, "a number"))
                        answer->life = (uint32_t)whole(L, "ttl", 1, INT32_MAX);
                lua_pop(L, 1);
                if (field(L, "class", LUA_TNUMBER, "a number"))
                        answer->class = (uint8_t)whole(L, "class", 0, POLICY_CLASSES - 1);
                lua_pop(L, 1);
                if (field(L, "group", LUA_TSTRING, "a string"))
                        read_tag(L, answer->group, &answer->group_len);
                lua_pop(L, 1);
                break;
        default:
                bad_answer(L, "nil, false, a TTL, or a table");
        }
}

static int read_evict(lua_State *L)
{
        switch (lua_type(L, -1)) {
        case LUA_TNIL:
                return POLICY_NO_ANSWER;
        case LUA_TNUMBER:
                return (int)whole(L, "the weight", 0, POLICY_WEIGHT_MOST);
        case LUA_TSTRING:
                if (strcmp(lua_tostring(L, -1), "keep") == 0)
                        return POLICY_WEIGHT_KEEP;
                if (strcmp(lua_tostring(L, -1), "drop") == 0)
                        return 0;
                break;
        default:
                break;
        }
        return bad_answer(L, "nil, \"keep\", \"drop\", or a weight");
}

static int read_stale(lua_State *L)
{
        switch (lua_type(L, -1)) {
        case LUA_TNIL:
                return POLICY_NO_ANSWER;
        case LUA_TBOOLEAN:
                return lua_toboolean(L, -1) ? 0 : POLICY_NOT_STALE;
        case LUA_TNUMBER:
                return (int)whole(L, "the TTL", 1, INT32_MAX);
        default:
                return bad_answer(L, "nil, true, false, or a TTL");
        }
}

/* In protected mode, for strings take memory: what the stale hook is called with beside the entry. */
static int run_stale(lua_State *L)
{
        lua_pushstring(L, state_of(L)->why);
        lua_call(L, 2, 1);
        return 1;
}

/* In protected mode: of what the hook has returned. */
static int read_answer(lua_State *L)
{
        struct state *s = state_of(L);
        switch (s->hook) {
        case POLICY_HOOK_KEY:
                read_key(L, s->key);
                break;
        case POLICY_HOOK_STORE:
                read_store(L, s->answer);
                break;
        case POLICY_HOOK_EVICT:
                s->verdict = read_evict(L);
                break;
        default:
                s->verdict = read_stale(L);
                break;
        }
        return 0;
}

/* Most answers are so plain that reading them raises no error. false: this one may. */
static bool read_plain(lua_State *L, struct state *s)
{
        int type = lua_type(L, -1);
        if (type == LUA_TNIL) {
                s->verdict = POLICY_NO_ANSWER;
                return true;
        }
        bool tag = type == LUA_TSTRING && lua_rawlen(L, -1) <= POLICY_TAG_MAX;
        if (s->hook != POLICY_HOOK_KEY || (type != LUA_TBOOLEAN && !tag))
                return false;
        read_key(L, s->key);
        return true;
}

/* The hook with its arguments, in protected mode, and its answer. Nothing here takes memory: views do not. */
static int run(lua_State *L, struct state *s)
{
        int arguments = 1;
        if (s->hook == POLICY_HOOK_STALE) {
                lua_pushcfunction(L, run_stale);
                arguments = 2;
        }
        lua_pushvalue(L, HOOK_PLACE + (int)s->hook);
        if (s->hook == POLICY_HOOK_KEY) {
                view_push_question(L);
        } else if (s->hook == POLICY_HOOK_STORE) {
                view_push_question(L);
                view_push_answer(L);
                arguments = 2;
        } else {
                view_push_entry(L);
        }
        int status = lua_pcall(L, arguments, 1, 0);
        if (status != LUA_OK || read_plain(L, s))
                return status;
        lua_pushcfunction(L, read_answer);
        lua_insert(L, -2);
        return lua_pcall(L, 1, 0, 0);
}

static void count(_Atomic uint64_t *counter)
{
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}

static bool ready(struct state *s, enum policy_hook hook)
{
        if (s->L)
                return true;
        const char *why;
        if (make_lua(s, &why)) {
                settle(s);
                return true;
        }
        count(&s->counted[hook].errors);
        complain(s->program, hook, why);
        close_lua(s);
        return false;
}

/* Run the hook of a state that is ready. false: it failed. */
static bool call(struct state *s, enum policy_hook hook)
{
        lua_State *L = s->L;
        s->hook = hook;
        s->serial++;
        count(&s->counted[hook].calls);
        give_instructions(s, s->instructions);
        int status = run(L, s);
        s->serial++;
        if (status == LUA_OK) {
                lua_settop(L, POLICY_HOOKS);
                return true;
        }
        count(s->over ? &s->counted[hook].timeouts : &s->counted[hook].errors);
        const char *text = status != LUA_ERRMEM ? error_text(L)
                           : s->over            ? "more memory asked for than its instructions allow"
                                                : "not enough memory: the limit is reached";
        complain(s->program, hook, text);
        /* What it has heaped up would be in its way for ever. */
        if (status == LUA_ERRMEM && !s->over)
                close_lua(s);
        else
                lua_settop(L, POLICY_HOOKS);
        return false;
}

static struct state *enter(struct policy_program *program, enum policy_hook hook)
{
        if (closed(&program->health[hook]))
                return NULL;
        struct state *s = take_state(program);
        if (s && !ready(s, hook)) {
                give_back(s);
                return NULL;
        }
        return s;
}

static void engine_key(struct policy_program *program, const struct policy_question *question,
                       struct policy_key *key)
{
        struct state *s = enter(program, POLICY_HOOK_KEY);
        if (!s)
                return;
        s->question = question;
        s->key = key;
        if (!call(s, POLICY_HOOK_KEY)) {
                key->skip = false;
                key->network_is = POLICY_NETWORK_OWN;
                key->max_ttl = 0;
                key->tag_len = 0;
        }
        give_back(s);
}

static void engine_store(struct policy_program *program, const struct policy_question *question,
                         struct policy_answer *answer)
{
        struct state *s = enter(program, POLICY_HOOK_STORE);
        if (!s)
                return;
        struct policy_answer before = {
            .refuse = answer->refuse, .life = answer->life, .class = answer->class};
        s->question = question;
        s->answer = answer;
        if (!call(s, POLICY_HOOK_STORE)) {
                answer->refuse = before.refuse;
                answer->life = before.life;
                answer->class = before.class;
                answer->group_len = 0;
        }
        give_back(s);
}

static int judge(struct policy_program *program, enum policy_hook hook, const struct policy_entry *entry,
                 const char *why)
{
        struct state *s = enter(program, hook);
        if (!s)
                return POLICY_NO_ANSWER;
        s->entry = entry;
        s->why = why;
        int verdict = call(s, hook) ? s->verdict : POLICY_NO_ANSWER;
        give_back(s);
        return verdict;
}

static int engine_evict(struct policy_program *program, const struct policy_entry *entry)
{
        return judge(program, POLICY_HOOK_EVICT, entry, NULL);
}

static int engine_stale(struct policy_program *program, const struct policy_entry *entry, const char *why)
{
        return judge(program, POLICY_HOOK_STALE, entry, why);
}

static void engine_stats(struct policy_program *program, struct policy_hook_stats stats[POLICY_HOOKS])
{
        for (unsigned hook = 0; hook < POLICY_HOOKS; hook++) {
                stats[hook] = (struct policy_hook_stats){
                    .skipped = atomic_load_explicit(&program->health[hook].skipped, memory_order_relaxed)};
                for (struct state *s = atomic_load(&program->states); s; s = s->next) {
                        struct counted *c = &s->counted[hook];
                        stats[hook].calls += atomic_load_explicit(&c->calls, memory_order_relaxed);
                        stats[hook].errors += atomic_load_explicit(&c->errors, memory_order_relaxed);
                        stats[hook].timeouts += atomic_load_explicit(&c->timeouts, memory_order_relaxed);
                }
        }
}

/* Programs --------------------------------------------------------------------------------------------------
 */

static void free_program(struct policy_program *program)
{
        struct state *s = atomic_load(&program->states), *next;
        for (; s; s = next) {
                next = s->next;
                close_lua(s);
                free(s);
        }
        free(program->text);
        free(program->path);
        free(program->chunk_name);
        free(program->directory);
        free(program);
}

/* The whole file. NULL, and errno. */
static char *read_file(const char *path, size_t *len)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return NULL;
        struct stat st;
        char *text = NULL;
        if (fstat(fd, &st) == 0) {
                errno = EFBIG;
                size_t size =
                    S_ISREG(st.st_mode) && st.st_size <= TEXT_MOST ? (size_t)st.st_size : TEXT_MOST + 1;
                text = size <= TEXT_MOST ? malloc(size + 1) : NULL;
                *len = 0;
                for (ssize_t got; text && *len < size; *len += (size_t)got)
                        if ((got = read(fd, text + *len, size - *len)) <= 0)
                                break;
        }
        int err = errno;
        close(fd);
        errno = err;
        return text;
}

/* In protected mode: the table below this function's argument becomes rules. */
static int read_tables(lua_State *L)
{
        struct policy_rules *rules = lua_touserdata(L, 2);
        lua_settop(L, 1);
        tables_read(L, state_of(L)->program, rules);
        return 0;
}

static struct policy_program *engine_load(const struct policy_services *services,
                                          const struct policy_source *source, struct policy_rules *rules,
                                          uint32_t *hooks, char *why, size_t why_size)
{
        static _Atomic uint64_t ids;
        struct policy_program *program = calloc(1, sizeof *program);
        if (!program) {
                snprintf(why, why_size, "no memory");
                return NULL;
        }
        program->id = atomic_fetch_add(&ids, 1) + 1;
        program->services = services;
        program->all_libraries = source->all_libraries;
        program->log = source->log;
        program->log_ctx = source->log_ctx;
        program->instructions = INSTRUCTIONS;
        program->memory = MEMORY;
        program->text = read_file(source->path, &program->text_len);
        if (!program->text) {
                snprintf(why, why_size, "%s: %s", source->path, strerror(errno));
                free_program(program);
                return NULL;
        }
        program->path = strdup(source->path);
        program->directory = strdup(source->path);
        struct state *s = new_state(program);
        if (!program->path || !program->directory ||
            asprintf(&program->chunk_name, "@%s", source->path) < 0 || !s) {
                snprintf(why, why_size, "no memory");
                free(s);
                free_program(program);
                return NULL;
        }
        char *slash = strrchr(program->directory, '/');
        strcpy(slash ? slash : program->directory, slash ? "" : ".");
        publish(s);
        const char *reason;
        bool good = make_lua(s, &reason);
        if (good) {
                for (int i = 0; i < POLICY_HOOKS; i++) {
                        program->hooks |=
                            (uint32_t)(lua_rawgeti(s->L, LUA_REGISTRYINDEX, AT_HOOK + i) == LUA_TFUNCTION)
                            << i;
                        lua_pop(s->L, 1);
                }
                lua_pushcfunction(s->L, read_tables);
                lua_insert(s->L, -2);
                lua_pushlightuserdata(s->L, rules);
                good = lua_pcall(s->L, 2, 0, 0) == LUA_OK;
                if (!good)
                        reason = error_text(s->L);
        }
        if (!good) {
                snprintf(why, why_size, "%s", reason);
                free_program(program);
                return NULL;
        }
        *hooks = program->hooks;
        settle(s);
        give_back(s);
        return program;
}

__attribute__((visibility("default"))) extern const struct policy_engine sardine_policy_engine;
const struct policy_engine sardine_policy_engine = {
    .version = POLICY_ENGINE_VERSION,
    .load = engine_load,
    .unload = free_program,
    .key = engine_key,
    .store = engine_store,
    .evict = engine_evict,
    .stale = engine_stale,
    .stats = engine_stats,
};
