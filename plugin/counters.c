/* SPDX-License-Identifier: MIT */
#include "counters.h"

#include "store/epoch.h"

void counters_add(struct counters *counters, enum counter which)
{
        uint32_t thread = epoch_thread();
        if (__builtin_expect(thread < COUNTER_SHARED, 1)) {
                _Atomic uint64_t *value = &counters->stripe[thread].value[which];
                uint64_t before = atomic_load_explicit(value, memory_order_relaxed);
                atomic_store_explicit(value, before + 1, memory_order_relaxed);
        } else {
                atomic_fetch_add_explicit(&counters->stripe[COUNTER_SHARED].value[which], 1,
                                          memory_order_relaxed);
        }
}

uint64_t counters_sum(const struct counters *counters, enum counter which)
{
        uint64_t sum = 0;
        for (unsigned i = 0; i < COUNTER_STRIPES; i++)
                sum += atomic_load_explicit(&counters->stripe[i].value[which], memory_order_relaxed);
        return sum;
}
