/* SPDX-License-Identifier: MIT
 *
 * The ladder: the seeds' steps from parsed records to packed bytes, each a cache of its own behind one
 * interface, and sardine on top. A rung takes wire bytes and gives wire bytes. Steps 0 to 5 differ in nothing
 * but the layout of an entry: they share the parser (sardine's), the key, the index and the writer of
 * replies.
 */
#ifndef LADDER_LADDER_H
#define LADDER_LADDER_H

#include <sardine.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ladder/reply.h"
#include "wire/name.h"
#include "wire/response.h"

/* The seeds' key: name, type, a flag, a tag. The flag is "data that was authenticated will do": CD=0. Nothing
 * here sets a tag, but all layouts keep one. */
struct ladder_question {
        uint64_t hash;
        uint16_t qtype;
        bool authenticated;
        uint8_t name_len;
        uint8_t name[WIRE_NAME_MAX]; /* folded */
        uint8_t tag_len;
        uint8_t tag[1];
};

/* What a miss gives to the insert that follows. */
union ladder_token {
        struct ladder_question question;
        struct sardine_token sardine;
};

/* One rung. Times are the clock's, in milliseconds. */
struct ladder_rung {
        const char *name;
        const char *about;
        /* Room for `entries`. */
        void *(*create)(uint64_t entries);
        void (*destroy)(void *cache);
        /* Length of the reply, or 0 on a miss. */
        size_t (*lookup)(void *cache, const uint8_t *query, size_t len, bool stream, uint8_t *reply,
                         size_t cap, union ladder_token *token);
        /* False when such a response is not kept. */
        bool (*insert)(void *cache, const union ladder_token *token, const uint8_t *response, size_t len);
        uint64_t (*entries)(void *cache);
};

#define LADDER_RUNGS 7
extern const struct ladder_rung *const ladder_rungs[LADDER_RUNGS];

/* The clock of all rungs: CLOCK_MONOTONIC_COARSE, or what a test puts here. */
extern uint64_t (*ladder_clock)(void);

/* A layout of an entry: what steps 0 to 5 are. */
struct ladder_layout {
        /* An entry for the question, from a response that was checked and whose TTLs are those to show. */
        void *(*make)(const struct ladder_question *question, const struct wire_response *response,
                      uint32_t life, uint64_t now);
        void (*drop)(void *entry);
        bool (*matches)(const void *entry, const struct ladder_question *question);
        /* Write header and records; false: it has expired. */
        bool (*render)(void *entry, uint64_t now, struct reply *reply);
};

extern const struct ladder_layout ladder_step0, ladder_step1, ladder_step2, ladder_step3, ladder_step4,
    ladder_step5;
extern const struct ladder_rung ladder_sardine;

#endif
