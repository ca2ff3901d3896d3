/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include "workload.h"

#define LINE  64
#define STEPS 1000000

double bench_chase_ns(uint64_t bytes, bool huge_pages)
{
        uint64_t n = bytes / LINE + 1;
        uint64_t(*line)[LINE / 8] = bench_map(n * LINE, huge_pages);
        for (uint64_t i = 0; i < n; i++) {
                line[i][0] = workload_mix(i);
                if (i % 65536 == 0)
                        bench_progress("memory limit", i, n + 1);
        }
        /* The step number is mixed in, or the walk would soon run in a short circle. */
        uint64_t at = 0, start = bench_now();
        for (uint64_t step = 0; step < STEPS; step++) {
                uint64_t next = line[at][0] + step * 0x9e3779b97f4a7c15u;
                at = (uint64_t)((unsigned __int128)next * n >> 64);
        }
        uint64_t elapsed = bench_now() - start;
        __asm__ volatile("" ::"r"(at));
        bench_progress("memory limit", 1, 1);
        bench_unmap(line, n * LINE);
        return 2.0 * (double)elapsed / STEPS;
}
