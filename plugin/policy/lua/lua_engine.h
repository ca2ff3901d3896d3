/* SPDX-License-Identifier: MIT
 * The engine for policy files in Lua 5.4, from inside. A program is a file's text and what is common to all
 * threads; each thread that is in a hook has a state of the program to itself. */
#ifndef POLICY_LUA_ENGINE_H
#define POLICY_LUA_ENGINE_H

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/engine.h"

enum {
        /* For a hook; the policy's `limits` set others. */
        INSTRUCTIONS = 100000,
        INSTRUCTIONS_LEAST = 1000,
        INSTRUCTIONS_MOST = 10000000,
        MEMORY = 16 << 20,
        MEMORY_LEAST = 1 << 20,
        MEMORY_MOST = 1 << 30,
        /* For the file itself. */
        LOAD_INSTRUCTIONS = 200000000,
        LOAD_MEMORY = 1 << 30,
        /* Between looks at what is left; a hook that ends earlier costs no look. */
        SLICE = INSTRUCTIONS_LEAST,
        TEXT_MOST = 64 << 20,
};

struct counted {
        /* Written by whoever has the state, read by anybody: atomic, relaxed. */
        _Atomic uint64_t calls, errors, timeouts;
};

/* A name or a network that a hook has given as text: it will be the same text in the next call. */
enum {
        TEXTS = 16,
        TEXT_KEPT = 64, /* longer ones are read each time */
};
enum text_is { TEXT_NONE, TEXT_NAME, TEXT_NETWORK };
struct text_read {
        enum text_is is;
        size_t len, name_len;
        char text[TEXT_KEPT];
        union {
                uint8_t name[TEXT_KEPT + 2];
                struct subnet net;
        };
};

struct state {
        lua_State *L; /* NULL: to be made */
        struct policy_program *program;
        struct state *next; /* constant once published */
        atomic_bool busy;
        bool over;                  /* the call under way has used up its instructions */
        bool loading;               /* the file is being evaluated */
        bool stopping;              /* Lua looks at what is left at every instruction, not every SLICE */
        size_t memory, memory_most; /* bytes */
        int instructions;           /* that a call may take */
        int64_t left;               /* of those of the call under way */
        int64_t until;              /* CPU time of this thread at which the call is over; 0: not known yet */
        uint64_t serial;            /* of the call under way: views of other calls are void */
        struct counted counted[POLICY_HOOKS];
        /* What the call under way is about. */
        enum policy_hook hook;
        const struct policy_question *question;
        struct policy_key *key;
        struct policy_answer *answer;
        const struct policy_entry *entry;
        const char *why;
        int verdict;
        struct text_read texts[TEXTS]; /* by where Lua has the text */
};

/* How a hook fares: errors of the second under way, and when somebody last heard of them. */
struct health {
        _Atomic uint64_t errors_of_second; /* second << 32 | errors */
        _Atomic uint64_t closed_until;     /* second; 0: it is called */
        _Atomic uint64_t logged;           /* second of the last line; 0: never */
        _Atomic uint64_t skipped;
};

struct policy_program {
        uint64_t id; /* never given twice */
        const struct policy_services *services;
        char *text, *path, *chunk_name, *directory;
        size_t text_len;
        bool all_libraries;
        sardine_log_fn log;
        void *log_ctx;
        uint32_t hooks;
        int instructions;
        size_t memory;
        _Atomic(struct state *) states;
        struct health health[POLICY_HOOKS];
};

static inline struct state *state_of(lua_State *L)
{
        return *(struct state **)lua_getextraspace(L);
}

/* Keys in a state's registry, beyond those that Lua uses. */
enum registry {
        AT_HOOK = 64, /* + enum policy_hook: the function, or nil */
};

enum view_kind {
        VIEW_QUESTION,
        VIEW_NAME,
        VIEW_ADDRESS,
        VIEW_ANSWER,
        VIEW_RECORD,
        VIEW_ENTRY,
        VIEWS,
};

/* engine.c: a library's function is about to work as much as `count` instructions do; raises an error if
 * that many are not left. */
void spend(lua_State *L, double count);

/* sandbox.c: the libraries that a policy has. */
void sandbox_open(lua_State *L, const struct policy_program *program);

/* views.c: make the metatable; push views, which takes no memory. */
void views_open(lua_State *L);
void view_push_question(lua_State *L);
void view_push_answer(lua_State *L);
void view_push_entry(lua_State *L);

/* tables.c: the table on the top of the stack says what `rules` and the program's limits become; raises an
 * error with the place and the reason. */
void tables_read(lua_State *L, struct policy_program *program, struct policy_rules *rules);
/* The function `list`: names or networks from a file, for tables. */
int tables_list(lua_State *L);

#endif
