/* SPDX-License-Identifier: MIT
 *
 * Prints questions of the reference workload, one a line, as dnsperf reads them.
 */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
        if (argc < 2 || argc > 3) {
                fprintf(stderr, "usage: workload-names COUNT [SEED]\n");
                return 2;
        }
        unsigned long long count = strtoull(argv[1], NULL, 10),
                           seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
        char text[WORKLOAD_QUERY_MAX];
        for (unsigned long long i = 0; i < count; i++) {
                workload_text(seed, i, text);
                puts(text);
        }
        return fflush(stdout) ? 1 : 0;
}
