/* SPDX-License-Identifier: MIT
 *
 * Counts allocations by standing in front of the C library's functions: a definition in the program comes
 * before those of all libraries, so calls made by libsardine are counted too. Calls of jemalloc's own
 * functions (mallocx) are not.
 */
#include "bench.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#ifdef SANITIZED /* which stands there itself */

int64_t bench_allocations(void)
{
        return -1;
}

#else

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_llong calls;

int64_t bench_allocations(void)
{
        return atomic_load(&calls);
}

static void *real(const char *name)
{
        return dlsym(RTLD_NEXT, name);
}

#define COUNTED(type, name, parameters, arguments)                                                           \
        type name parameters                                                                                 \
        {                                                                                                    \
                static type(*_Atomic function) parameters;                                                   \
                type(*f) parameters = atomic_load_explicit(&function, memory_order_relaxed);                 \
                if (!f)                                                                                      \
                        atomic_store_explicit(&function, f = (type(*) parameters)real(#name),                \
                                              memory_order_relaxed);                                         \
                atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);                                  \
                return f arguments;                                                                          \
        }

COUNTED(void *, malloc, (size_t size), (size))
COUNTED(void *, realloc, (void *old, size_t size), (old, size))
COUNTED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
COUNTED(int, posix_memalign, (void **result, size_t alignment, size_t size), (result, alignment, size))
COUNTED(void *, mmap, (void *at, size_t size, int prot, int flags, int fd, off_t offset),
        (at, size, prot, flags, fd, offset))

/* dlsym() itself may call calloc(): what it gets before we know the real one comes from here. */
void *calloc(size_t n, size_t size)
{
        static void *(*_Atomic function)(size_t, size_t);
        static _Thread_local bool looking;
        static char early[4096];
        static atomic_size_t used;
        void *(*f)(size_t, size_t) = atomic_load_explicit(&function, memory_order_relaxed);
        if (!f && looking) {
                size_t at = atomic_fetch_add(&used, (n * size + 15) & ~(size_t)15);
                return at + n * size <= sizeof early ? early + at : NULL;
        }
        if (!f) {
                looking = true;
                atomic_store_explicit(&function, f = (void *(*)(size_t, size_t))real("calloc"),
                                      memory_order_relaxed);
                looking = false;
        }
        atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
        return f(n, size);
}

#endif
