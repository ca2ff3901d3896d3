/* SPDX-License-Identifier: MIT
 * Epochs: when may memory that readers may still be reading be used again? One domain for the whole process.
 */
#ifndef STORE_EPOCH_H
#define STORE_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/fence.h"

/* One for each thread that ever read and has not ended. Records are never freed: a thread that ends leaves
 * its record to the next one that comes. */
struct epoch_record {
        _Alignas(64) _Atomic uint64_t epoch; /* 0: outside of any section. Written by its thread only */
        uint32_t dice;                       /* its thread only */
        uint32_t number;                     /* constant once published */
        _Atomic bool taken;
        struct epoch_record *next; /* constant once published */
};

extern _Atomic uint64_t epoch_now;

/* The calling thread's; NULL before it first reads. In the static part of thread storage, of which a process
 * keeps some hundreds of bytes for libraries that are loaded late: found without a call. */
extern __thread struct epoch_record *epoch_mine __attribute__((tls_model("initial-exec")));

/* For a thread without a record. */
void epoch_enter_first(void);
void epoch_leave_stranger(void);

/* A reader announces itself, then looks; a writer hides something, then looks for readers. Each must see the
 * other: both fence in between. */
static inline void epoch_announce(struct epoch_record *record)
{
        uint64_t epoch = atomic_load_explicit(&epoch_now, memory_order_acquire);
        atomic_store_explicit(&record->epoch, epoch, memory_order_release);
        full_fence();
}

/* Reader sections. Threads need no registration. A section may not nest. */
static inline void epoch_enter(void)
{
        if (__builtin_expect(epoch_mine != NULL, 1))
                epoch_announce(epoch_mine);
        else
                epoch_enter_first();
}

static inline void epoch_leave(void)
{
        if (__builtin_expect(epoch_mine != NULL, 1))
                atomic_store_explicit(&epoch_mine->epoch, 0, memory_order_release);
        else
                epoch_leave_stranger();
}

/* Something was made unreachable just now: the tag under which to remember it. */
uint64_t epoch_retire(void);

/* What was retired under a tag below this is out of every reader's reach. Never waits. */
uint64_t epoch_horizon(void);

/* A number that no other living thread has, small if few threads ever read at the same time; UINT32_MAX for
 * one that has not read yet. What a thread wrote is seen by the next one with its number. */
static inline uint32_t epoch_thread(void)
{
        return __builtin_expect(epoch_mine != NULL, 1) ? epoch_mine->number : UINT32_MAX;
}

/* A few random bits for the calling thread: cheap, not good. */
static inline uint32_t epoch_dice(void)
{
        if (!epoch_mine)
                return 0;
        epoch_mine->dice = epoch_mine->dice * 1664525u + 1013904223u;
        return epoch_mine->dice >> 16;
}

#endif
