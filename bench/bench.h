/* SPDX-License-Identifier: MIT
 *
 * What sardine-bench gives to its scenarios. A scenario is one file, scenario_<name>.c, that defines
 * `const struct scenario scenario_<name>` and is listed in sardine-bench.c. Each run of it is a process of
 * its own, so that runs do not share memory, and reports numbers; the parent prints and writes their medians.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `--name VALUE` on the command line; all values are numbers. */
struct bench_option {
        const char *name;
        double value; /* the default */
        const char *help;
};

struct scenario {
        const char *name;
        const char *about;
        const struct bench_option *options; /* ends with a NULL name */
        void (*run)(void);
};

/* The value of an option of the running scenario. */
double bench_option(const char *name);

/* Report one number of this run. The unit goes into the JSON file; "1" for a plain number. */
void bench_report(const char *name, const char *unit, double value);

/* On a terminal, say how far a step of the run has come. Cheap enough for every thousandth operation. */
void bench_progress(const char *step, uint64_t done, uint64_t total);

/* Print to stderr and end the program with a failure. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Nanoseconds of a clock that never goes back. */
uint64_t bench_now(void);

/* Resident bytes of this process. */
uint64_t bench_rss(void);

/* Memory for the benchmark itself; the system's own pages, so that it can be told apart and given back. */
void *bench_map(size_t bytes, bool huge_pages);
void bench_unmap(void *memory, size_t bytes);

/* Calls of malloc() and its relatives and of mmap() so far, in the whole process; negative if this build
 * cannot count them (with a sanitizer). */
int64_t bench_allocations(void);

/* Mean time of two loads, the second depending on the first and the first on the load before, at random
 * places in as many bytes: no lookup that touches an index and then an entry can be faster. */
double bench_chase_ns(uint64_t bytes, bool huge_pages);

#endif
