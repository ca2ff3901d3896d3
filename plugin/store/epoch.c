/* SPDX-License-Identifier: MIT */
#include "store/epoch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

_Atomic uint64_t epoch_now = 1;
__thread struct epoch_record *epoch_mine;

static struct epoch_record *_Atomic records;
static _Atomic uint32_t numbers; /* of records made */
/* Threads in a section without a record, because there was no memory for one. */
static _Atomic uint64_t strangers;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool key_made;

static void give_back(void *record)
{
        struct epoch_record *r = record;
        epoch_mine = NULL;
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

static struct epoch_record *take_record(void)
{
        pthread_once(&once, make_key);
        if (!key_made)
                return NULL;
        struct epoch_record *r = atomic_load_explicit(&records, memory_order_acquire);
        for (; r; r = r->next) {
                bool taken = false;
                if (!atomic_load_explicit(&r->taken, memory_order_relaxed) &&
                    atomic_compare_exchange_strong(&r->taken, &taken, true))
                        break;
        }
        bool made = !r;
        if (made) {
                r = aligned_alloc(_Alignof(struct epoch_record), sizeof *r);
                if (!r)
                        return NULL;
                *r = (struct epoch_record){.taken = true, .dice = (uint32_t)(uintptr_t)r | 1};
        }
        if (pthread_setspecific(key, r) != 0) {
                if (made)
                        free(r);
                else
                        atomic_store_explicit(&r->taken, false, memory_order_release);
                return NULL;
        }
        if (made) {
                r->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
                r->next = atomic_load_explicit(&records, memory_order_relaxed);
                while (!atomic_compare_exchange_weak(&records, &r->next, r))
                        ;
        }
        epoch_mine = r;
        return r;
}

void epoch_enter_first(void)
{
        struct epoch_record *record = take_record();
        if (record)
                epoch_announce(record);
        else
                atomic_fetch_add(&strangers, 1);
}

void epoch_leave_stranger(void)
{
        atomic_fetch_sub(&strangers, 1);
}

uint64_t epoch_retire(void)
{
        return atomic_fetch_add(&epoch_now, 1);
}

uint64_t epoch_horizon(void)
{
        full_fence();
        if (atomic_load(&strangers))
                return 0;
        uint64_t horizon = UINT64_MAX;
        for (struct epoch_record *r = atomic_load_explicit(&records, memory_order_acquire); r; r = r->next) {
                uint64_t epoch = atomic_load_explicit(&r->epoch, memory_order_acquire);
                if (epoch && epoch < horizon)
                        horizon = epoch;
        }
        return horizon;
}
