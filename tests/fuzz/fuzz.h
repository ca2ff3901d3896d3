/* SPDX-License-Identifier: MIT
 * A fuzz target, in libFuzzer's shape: main.c and libFuzzer both call it. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(): it must hold in every build. */
#define MUST(condition)                                                                                      \
        do {                                                                                                 \
                if (!(condition)) {                                                                          \
                        fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);        \
                        abort();                                                                             \
                }                                                                                            \
        } while (0)

/* With MSan: every byte has been written, so nothing of somebody else's can be in it. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define MUST_BE_WRITTEN(p, len) __msan_check_mem_is_initialized(p, len)
#define UNWRITTEN(p, len)       __msan_allocated_memory(p, len)
#endif
#endif
#ifndef MUST_BE_WRITTEN
#define MUST_BE_WRITTEN(p, len) ((void)(p), (void)(len))
#define UNWRITTEN(p, len)       ((void)(p), (void)(len))
#endif

#endif
