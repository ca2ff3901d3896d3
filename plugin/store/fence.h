/* SPDX-License-Identifier: MIT
 * A full fence: what was stored before it is visible before anything is loaded after it. */
#ifndef STORE_FENCE_H
#define STORE_FENCE_H

#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__)
#define FENCE_BY_EXCHANGE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FENCE_BY_EXCHANGE 1
#endif
#endif

static inline void full_fence(void)
{
#ifdef FENCE_BY_EXCHANGE
        /* ThreadSanitizer knows no fences. An exchange with something private is one for the processors that
         * it runs on, and orders nothing in its eyes. */
        _Atomic int nothing = 0;
        atomic_exchange(&nothing, 1);
#else
        atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
