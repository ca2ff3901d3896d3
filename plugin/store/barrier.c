/* SPDX-License-Identifier: MIT */
#include "store/barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
        /* A processor's stores reach the others within microseconds. */
        DRAIN_NS = 5000000,
};

_Atomic bool barrier_one_sided;

static bool membarrier(int command)
{
        return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void barrier_init(void)
{
#ifndef FENCE_BY_EXCHANGE
        atomic_store(&barrier_one_sided, membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
#endif
}

void barrier_of_writer(void)
{
        full_fence();
        if (!atomic_load_explicit(&barrier_one_sided, memory_order_relaxed) ||
            membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
                return;
        /* It was allowed, and is not any more: a filter for system calls was put in place since. From now on
         * readers fence; wait for those who passed without. */
        atomic_store(&barrier_one_sided, false);
        nanosleep(&(struct timespec){.tv_nsec = DRAIN_NS}, NULL);
        full_fence();
}
