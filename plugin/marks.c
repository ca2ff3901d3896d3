/* SPDX-License-Identifier: MIT */
#include "marks.h"

static uint64_t note(uint64_t hash, uint32_t now)
{
        return (hash & 0xffffffff00000000) | now;
}

/* Also when another thread's clock was read a moment after ours and is a second ahead. */
static bool younger(uint64_t held, uint32_t now, uint32_t patience)
{
        return held != 0 && now < (uint64_t)(uint32_t)held + patience;
}

bool marks_take(struct marks *marks, uint64_t hash, uint32_t now, uint32_t patience)
{
        _Atomic uint64_t *place = &marks->place[hash % MARKS];
        uint64_t held = atomic_load_explicit(place, memory_order_relaxed);
        return !younger(held, now, patience) &&
               atomic_compare_exchange_strong_explicit(place, &held, note(hash, now), memory_order_relaxed,
                                                       memory_order_relaxed);
}

void marks_set(struct marks *marks, uint64_t hash, uint32_t now)
{
        atomic_store_explicit(&marks->place[hash % MARKS], note(hash, now), memory_order_relaxed);
}

bool marks_has(const struct marks *marks, uint64_t hash, uint32_t now, uint32_t patience)
{
        uint64_t held = atomic_load_explicit(&marks->place[hash % MARKS], memory_order_relaxed);
        return held >> 32 == hash >> 32 && younger(held, now, patience);
}

void marks_clear(struct marks *marks, uint64_t hash)
{
        _Atomic uint64_t *place = &marks->place[hash % MARKS];
        uint64_t held = atomic_load_explicit(place, memory_order_relaxed);
        if (held != 0 && held >> 32 == hash >> 32)
                atomic_compare_exchange_strong_explicit(place, &held, 0, memory_order_relaxed,
                                                        memory_order_relaxed);
}
