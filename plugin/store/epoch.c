/* SPDX-License-Identifier: MIT */
#include "store/epoch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "store/fence.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)

/* One for each thread that ever read and has not ended. Records are never freed: a thread that ends leaves
 * its record to the next one that comes. */
struct record {
        _Alignas(64) _Atomic uint64_t epoch; /* 0: outside of any section. Written by its thread only */
        uint32_t dice;                       /* its thread only */
        _Atomic bool taken;
        struct record *next; /* constant once published */
};

static _Atomic uint64_t global_epoch = 1;
static struct record *_Atomic records;
/* Threads in a section without a record, because there was no memory for one. */
static _Atomic uint64_t strangers;

static __thread struct record *mine;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool key_made;

/* A reader announces itself, then looks; a writer hides something, then looks for readers. Each must see the
 * other: both fence in between. */
static void announce(struct record *record, uint64_t epoch)
{
        atomic_store_explicit(&record->epoch, epoch, memory_order_release);
        full_fence();
}

static void give_back(void *record)
{
        struct record *r = record;
        mine = NULL;
        atomic_store_explicit(&r->taken, false, memory_order_release);
}

static void make_key(void)
{
        key_made = pthread_key_create(&key, give_back) == 0;
}

/* A host may close the library while threads that used it live on: they must not call into it when they end.
 */
__attribute__((destructor)) static void drop_key(void)
{
        if (key_made)
                pthread_key_delete(key);
}

static struct record *take_record(void)
{
        pthread_once(&once, make_key);
        if (!key_made)
                return NULL;
        struct record *r = atomic_load_explicit(&records, memory_order_acquire);
        for (; r; r = r->next) {
                bool taken = false;
                if (!atomic_load_explicit(&r->taken, memory_order_relaxed) &&
                    atomic_compare_exchange_strong(&r->taken, &taken, true))
                        break;
        }
        bool made = !r;
        if (made) {
                r = aligned_alloc(_Alignof(struct record), sizeof *r);
                if (!r)
                        return NULL;
                *r = (struct record){.taken = true, .dice = (uint32_t)(uintptr_t)r | 1};
        }
        if (pthread_setspecific(key, r) != 0) {
                if (made)
                        free(r);
                else
                        atomic_store_explicit(&r->taken, false, memory_order_release);
                return NULL;
        }
        if (made) {
                r->next = atomic_load_explicit(&records, memory_order_relaxed);
                while (!atomic_compare_exchange_weak(&records, &r->next, r))
                        ;
        }
        mine = r;
        return r;
}

void epoch_enter(void)
{
        struct record *r = mine;
        if (LIKELY(r) || (r = take_record()))
                announce(r, atomic_load_explicit(&global_epoch, memory_order_acquire));
        else
                atomic_fetch_add(&strangers, 1);
}

void epoch_leave(void)
{
        if (LIKELY(mine))
                atomic_store_explicit(&mine->epoch, 0, memory_order_release);
        else
                atomic_fetch_sub(&strangers, 1);
}

uint64_t epoch_retire(void)
{
        return atomic_fetch_add(&global_epoch, 1);
}

uint64_t epoch_horizon(void)
{
        full_fence();
        if (atomic_load(&strangers))
                return 0;
        uint64_t horizon = UINT64_MAX;
        for (struct record *r = atomic_load_explicit(&records, memory_order_acquire); r; r = r->next) {
                uint64_t epoch = atomic_load_explicit(&r->epoch, memory_order_acquire);
                if (epoch && epoch < horizon)
                        horizon = epoch;
        }
        return horizon;
}

uint32_t epoch_dice(void)
{
        if (!mine)
                return 0;
        mine->dice = mine->dice * 1664525u + 1013904223u;
        return mine->dice >> 16;
}
