/* SPDX-License-Identifier: MIT
 *
 * qps.h - so many queries a second, for QPSPoolAction: the same bucket that dnsdist has, which holds what
 * comes in during a second. Threads share it without a lock.
 *
 * The part between the two [cdef] lines has no preprocessor directives: it is compiled into the Lua front.
 */
#ifndef HOST_QPS_H
#define HOST_QPS_H

#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* [cdef] */

/* The number of a new limiter, 0 or above; -ENOSPC with too many. They are never freed, as rules are few. */
int sardine_dnsdist_limiter(uint32_t per_second);

/* 1: one more is within the limit, and counted. */
int sardine_dnsdist_within(uint32_t limiter);

/* [cdef] */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
