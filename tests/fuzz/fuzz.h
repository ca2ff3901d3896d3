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

#endif
