/* SPDX-License-Identifier: MIT */
#include "counters.h"

static unsigned my_stripe(void)
{
        static _Atomic unsigned next;
        static _Thread_local unsigned mine; /* 0: not given out yet */
        if (mine == 0)
                mine = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % COUNTER_STRIPES + 1;
        return mine - 1;
}

void counters_add(struct counters *counters, enum counter which)
{
        atomic_fetch_add_explicit(&counters->stripe[my_stripe()].value[which], 1, memory_order_relaxed);
}

uint64_t counters_sum(const struct counters *counters, enum counter which)
{
        uint64_t sum = 0;
        for (unsigned i = 0; i < COUNTER_STRIPES; i++)
                sum += atomic_load_explicit(&counters->stripe[i].value[which], memory_order_relaxed);
        return sum;
}
