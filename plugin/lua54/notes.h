/* SPDX-License-Identifier: MIT
 * What the library logs. It may do so inside any of its functions and on any thread, where no Lua function
 * can be called, so texts wait here until the method that runs is done. */
#ifndef LUA54_NOTES_H
#define LUA54_NOTES_H

#include <pthread.h>
#include <stdbool.h>

enum {
        NOTES_MAX = 16, /* that wait; more are dropped */
        NOTE_TEXT_MAX = 256,
};

struct note {
        int level;
        char text[NOTE_TEXT_MAX];
};

struct notes {
        pthread_mutex_t lock;
        unsigned first, count;
        struct note note[NOTES_MAX];
};

/* Nothing has to be undone. */
void notes_init(struct notes *notes);

/* sardine_log_fn */
void notes_push(void *ctx, int level, const char *text);
/* The oldest. false: none. */
bool notes_pop(struct notes *notes, struct note *note);

#endif
