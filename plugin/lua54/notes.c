/* SPDX-License-Identifier: MIT */
#include "lua54/notes.h"

#include <stdio.h>

void notes_init(struct notes *notes)
{
        pthread_mutex_init(&notes->lock, NULL);
        notes->first = notes->count = 0;
}

void notes_push(void *ctx, int level, const char *text)
{
        struct notes *notes = ctx;
        pthread_mutex_lock(&notes->lock);
        if (notes->count < NOTES_MAX) {
                struct note *note = &notes->note[(notes->first + notes->count++) % NOTES_MAX];
                note->level = level;
                snprintf(note->text, sizeof note->text, "%s", text);
        }
        pthread_mutex_unlock(&notes->lock);
}

bool notes_pop(struct notes *notes, struct note *note)
{
        pthread_mutex_lock(&notes->lock);
        bool any = notes->count > 0;
        if (any) {
                *note = notes->note[notes->first];
                notes->first = (notes->first + 1) % NOTES_MAX;
                notes->count--;
        }
        pthread_mutex_unlock(&notes->lock);
        return any;
}
