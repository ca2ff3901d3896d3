/* SPDX-License-Identifier: MIT
 * A barrier between two sides: what one side stored before its barrier is visible to what the other side
 * loads after its own, or the other way round. Readers pass theirs with every lookup, writers seldom: so
 * where the system can, the writer makes all threads of the process pass a fence (membarrier(2)), and the
 * readers' is one for the compiler only. Elsewhere both are fences. */
#ifndef STORE_BARRIER_H
#define STORE_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "store/fence.h"

/* Do writers fence for readers? Set before there are readers; cleared if the system takes it back. */
extern _Atomic bool barrier_one_sided;

/* Before the first reader comes. Once. */
void barrier_init(void);

static inline void barrier_of_reader(void)
{
        if (__builtin_expect(atomic_load_explicit(&barrier_one_sided, memory_order_relaxed), 1))
                atomic_signal_fence(memory_order_seq_cst);
        else
                full_fence();
}

void barrier_of_writer(void);

#endif
