/* SPDX-License-Identifier: MIT
 *
 * sardine-bench SCENARIO [options]: runs a scenario several times, each time in a fresh process, and reports
 * the median of every number.
 */
#include "bench.h"

#include <sardine.h>

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A new scenario is one line here, and its file in meson.build. */
#define SCENARIOS(X)                                                                                         \
        X(seed)                                                                                              \
        X(ecs)                                                                                               \
        X(policy)                                                                                            \
        X(scale)                                                                                             \
        X(mixed)                                                                                             \
        X(expunge)                                                                                           \
        X(hitratio)                                                                                          \
        X(ladder)                                                                                            \
        X(peer)                                                                                              \
        X(snapshot)

#define DECLARE(name) extern const struct scenario scenario_##name;
#define LIST(name)    &scenario_##name,
SCENARIOS(DECLARE)
static const struct scenario *const scenarios[] = {SCENARIOS(LIST)};

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OPTIONS_MAX  32
#define RUNS_MAX     99
#define FIELDS_MAX   256

struct field {
        char name[64], unit[32];
        double values[RUNS_MAX];
        unsigned n;
};

static const struct scenario *scenario;
static double option_values[OPTIONS_MAX];
static unsigned run, runs = 3;
static int report_fd = -1;
static struct field fields[FIELDS_MAX];
static unsigned n_fields;

void bench_die(const char *format, ...)
{
        va_list args;
        va_start(args, format);
        fputs("sardine-bench: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
        exit(1);
}

double bench_option(const char *name)
{
        for (unsigned k = 0; scenario->options[k].name; k++)
                if (!strcmp(scenario->options[k].name, name))
                        return option_values[k];
        bench_die("scenario %s has no option %s", scenario->name, name);
}

void bench_report(const char *name, const char *unit, double value)
{
        dprintf(report_fd, "%s %s %.17g\n", name, unit, value);
}

void bench_progress(const char *step, uint64_t done, uint64_t total)
{
        static int terminal = -1;
        static uint64_t last;
        if (terminal < 0)
                terminal = isatty(STDERR_FILENO);
        uint64_t now = bench_now();
        if (!terminal || (now - last < 100000000 && done < total))
                return;
        last = now;
        fprintf(stderr, "\r\033[Krun %u/%u  %s %3.0f %%", run + 1, runs, step,
                total ? 100.0 * (double)done / (double)total : 100.0);
        if (done >= total)
                fputs("\r\033[K", stderr);
}

uint64_t bench_now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t bench_rss(void)
{
        unsigned long long resident;
        FILE *f = fopen("/proc/self/statm", "r");
        if (!f || fscanf(f, "%*s %llu", &resident) != 1)
                bench_die("cannot read /proc/self/statm");
        fclose(f);
        return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void *bench_map(size_t bytes, bool huge_pages)
{
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                bench_die("no memory for %zu bytes", bytes);
        madvise(memory, bytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        return memory;
}

void bench_unmap(void *memory, size_t bytes)
{
        munmap(memory, bytes);
}

static double median(const struct field *field)
{
        double sorted[RUNS_MAX];
        for (unsigned i = 0; i < field->n; i++) {
                unsigned at = i;
                for (; at && sorted[at - 1] > field->values[i]; at--)
                        sorted[at] = sorted[at - 1];
                sorted[at] = field->values[i];
        }
        unsigned half = field->n / 2;
        return field->n % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

static void collect(FILE *from)
{
        char name[64], unit[32];
        double value;
        while (fscanf(from, "%63s %31s %lf", name, unit, &value) == 3) {
                unsigned k = 0;
                while (k < n_fields && strcmp(fields[k].name, name))
                        k++;
                if (k == FIELDS_MAX)
                        bench_die("more than %d fields", FIELDS_MAX);
                if (k == n_fields) {
                        n_fields++;
                        strcpy(fields[k].name, name);
                        strcpy(fields[k].unit, unit);
                }
                fields[k].values[fields[k].n++] = value;
        }
}

static void run_once(void)
{
        int ends[2], status;
        fflush(NULL);
        if (pipe(ends))
                bench_die("pipe: %s", strerror(errno));
        pid_t child = fork();
        if (child < 0)
                bench_die("fork: %s", strerror(errno));
        if (!child) {
                close(ends[0]);
                report_fd = ends[1];
                scenario->run();
                exit(0);
        }
        close(ends[1]);
        FILE *from = fdopen(ends[0], "r");
        collect(from);
        fclose(from);
        if (waitpid(child, &status, 0) != child || status)
                bench_die("run %u of %s failed", run + 1, scenario->name);
}

static void print_table(void)
{
        printf("%-40s %16s  %-10s %s\n", scenario->name, "median", "unit", "all runs");
        for (unsigned k = 0; k < n_fields; k++) {
                printf("%-40s %16.*f  %-10s", fields[k].name, median(&fields[k]) < 10000 ? 2 : 0,
                       median(&fields[k]), fields[k].unit);
                for (unsigned i = 0; i < fields[k].n; i++)
                        printf(" %.5g", fields[k].values[i]);
                putchar('\n');
        }
}

static void write_json(const char *path)
{
        char date[32];
        time_t now = time(NULL);
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
        FILE *f = fopen(path, "w");
        if (!f)
                bench_die("%s: %s", path, strerror(errno));
        fprintf(f, "{\n  \"scenario\": \"%s\",\n  \"date\": \"%s\",\n  \"version\": \"%s\",\n",
                scenario->name, date, sardine_version());
        fprintf(f, "  \"options\": {\"runs\": %u", runs);
        for (unsigned k = 0; scenario->options[k].name; k++)
                fprintf(f, ", \"%s\": %.17g", scenario->options[k].name, option_values[k]);
        fprintf(f, "},\n");
        for (unsigned k = 0; k < n_fields; k++)
                fprintf(f, "  \"%s\": %.10g,\n", fields[k].name, median(&fields[k]));
        fprintf(f, "  \"units\": {");
        for (unsigned k = 0; k < n_fields; k++)
                fprintf(f, "%s\"%s\": \"%s\"", k ? ", " : "", fields[k].name, fields[k].unit);
        fprintf(f, "},\n  \"runs\": {");
        for (unsigned k = 0; k < n_fields; k++) {
                fprintf(f, "%s\"%s\": [", k ? ", " : "", fields[k].name);
                for (unsigned i = 0; i < fields[k].n; i++)
                        fprintf(f, "%s%.10g", i ? ", " : "", fields[k].values[i]);
                fputc(']', f);
        }
        fprintf(f, "}\n}\n");
        if (fclose(f))
                bench_die("%s: %s", path, strerror(errno));
}

static void usage(FILE *to)
{
        fprintf(to, "usage: sardine-bench SCENARIO [--runs 3] [--json FILE] [options of the scenario]\n");
        for (unsigned s = 0; s < COUNT(scenarios); s++) {
                fprintf(to, "\n%s: %s\n", scenarios[s]->name, scenarios[s]->about);
                for (const struct bench_option *o = scenarios[s]->options; o->name; o++)
                        fprintf(to, "  --%-12s %s (%.10g)\n", o->name, o->help, o->value);
        }
}

static double parse_number(const char *name, const char *text)
{
        char *end;
        double value = strtod(text, &end);
        if (end == text || *end || !(value >= 0) || value > 1e15)
                bench_die("--%s: '%s' is not a number that makes sense", name, text);
        return value;
}

int main(int argc, char **argv)
{
        struct option long_options[OPTIONS_MAX + 3] = {{"runs", required_argument, NULL, 'r'},
                                                       {"json", required_argument, NULL, 'j'}};
        const char *json = NULL;
        for (unsigned s = 0; argc > 1 && s < COUNT(scenarios); s++)
                if (!strcmp(scenarios[s]->name, argv[1]))
                        scenario = scenarios[s];
        if (!scenario) {
                bool asked = argc > 1 && !strcmp(argv[1], "--help");
                usage(asked ? stdout : stderr);
                return asked ? 0 : 2;
        }
        for (int k = 0; k < OPTIONS_MAX && scenario->options[k].name; k++) {
                option_values[k] = scenario->options[k].value;
                long_options[k + 2] =
                    (struct option){scenario->options[k].name, required_argument, NULL, 256 + k};
        }
        argv[1] = argv[0];
        for (int c; (c = getopt_long(argc - 1, argv + 1, "", long_options, NULL)) != -1;) {
                if (c == 'j') {
                        json = optarg;
                } else if (c == 'r') {
                        runs = (unsigned)parse_number("runs", optarg);
                        if (runs < 1 || runs > RUNS_MAX)
                                bench_die("--runs: 1..%d", RUNS_MAX);
                } else if (c >= 256) {
                        option_values[c - 256] = parse_number(scenario->options[c - 256].name, optarg);
                } else {
                        usage(stderr);
                        return 2;
                }
        }
        for (run = 0; run < runs; run++)
                run_once();
        print_table();
        if (json)
                write_json(json);
        return 0;
}
