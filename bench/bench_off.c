/* SPDX-License-Identifier: Apache-2.0
 *
 * What instrumented code costs while nothing records: instructions (counted by callgrind, so they
 * repeat to the last one) and time. Of recording itself only the instructions are counted here; its
 * times are bench_scope's.
 *
 * The program runs itself under valgrind: `bench_off --loop FUNCTION N` does nothing but that loop.
 */
#include "bench_off.h"

#include "bench_harness.h"

#include <mtprof/trace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COUNTED = 20000,
    BATCH = 200000
};

/* What recording executes, too: a number that repeats, where times do not. */
static void scopes_on(uint64_t n)
{
    mtprof_config config = {.struct_size = sizeof config};
    mtprof_session *session = bench_start(&config);
    bench_scopes(NULL, n);
    bench_close(session);
}

static const struct loop {
    const char *name;
    void (*run)(uint64_t n);
} loops[] = {
    {"off_small_with", off_small_with}, {"off_small_without", off_small_without},
    {"off_large_with", off_large_with}, {"off_large_without", off_large_without},
    {"off_busy_with", off_busy_with},   {"off_busy_without", off_busy_without},
    {"scopes_on", scopes_on},
};

static const struct loop *find_loop(const char *name)
{
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
        if (strcmp(loops[i].name, name) == 0) {
            return &loops[i];
        }
    }
    fprintf(stderr, "no loop is called %s\n", name);
    exit(2);
}

/* ---- instructions ---- */

/* Instructions of a function of a loop and what it calls, per turn; negative where callgrind is not
 * to be had. */
static double count_instructions(const char *name, const char *function)
{
    char program[1024], out[1100], command[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) {
        return -1;
    }
    program[length] = '\0';
    snprintf(out, sizeof out, "%s.callgrind", bench_path());
    snprintf(command, sizeof command,
             "valgrind --tool=callgrind --callgrind-out-file='%s' --toggle-collect=%s "
             "'%s' --loop %s %d >/dev/null 2>&1",
             out, function, program, name, COUNTED);
    int status = system(command);
    double instructions = -1;
    FILE *file = status == 0 ? fopen(out, "r") : NULL;
    char line[512];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "totals: ", 8) == 0 || strncmp(line, "summary: ", 9) == 0) {
            instructions = strtod(strchr(line, ' '), NULL);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    unlink(out);
    return instructions / COUNTED;
}

static void bench_instructions(const char *figure, const char *with, const char *without,
                               double limit)
{
    double a = count_instructions(with, with), b = count_instructions(without, without);
    if (a <= 0 || b <= 0) {
        fprintf(stderr, "%s: skipped, valgrind is missing or failed\n", figure);
        return;
    }
    char extra[96];
    snprintf(extra, sizeof extra, "\"with\": %.2f, \"without\": %.2f", a, b);
    bench_emit(&(bench_figure){
        .name = figure, .unit = "instr", .value = a - b, .limit = limit, .extra = extra});
}

static void bench_on_instructions(void)
{
    double value = count_instructions("scopes_on", "bench_scopes");
    if (value <= 0) {
        fprintf(stderr, "scope_on_instructions: skipped, valgrind is missing or failed\n");
    } else {
        bench_emit(
            &(bench_figure){.name = "scope_on_instructions", .unit = "instr", .value = value});
    }
}

/* ---- time ---- */

static void run_loop(void *context, uint64_t n)
{
    const struct loop *loop = context;
    loop->run(n);
}

static void bench_time(const char *figure, const char *with, const char *without)
{
    struct loop a = *find_loop(with), b = *find_loop(without);
    bench_case cases[] = {{.name = with, .run = run_loop, .context = &a},
                          {.name = without, .run = run_loop, .context = &b}};
    bench_compare(cases, 2, BATCH, (int)bench_pick(200, 80));
    char extra[96];
    snprintf(extra, sizeof extra, "\"with\": %.3f, \"without\": %.3f", cases[0].best_ns,
             cases[1].best_ns);
    bench_emit(&(bench_figure){.name = figure,
                               .unit = "ns",
                               .value = cases[0].best_ns - cases[1].best_ns,
                               .median = cases[0].median_ns - cases[1].median_ns,
                               .extra = extra});
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--loop") == 0) {
        find_loop(argv[2])->run(strtoull(argv[3], NULL, 10));
        return 0;
    }
    bench_init(argc, argv);
    if (bench_wants("scope_off_instructions")) {
        bench_instructions("scope_off_instructions", "off_small_with", "off_small_without", 4);
    }
    if (bench_wants("scope_off_instructions_large_body")) {
        bench_instructions("scope_off_instructions_large_body", "off_large_with",
                           "off_large_without", 0);
    }
    if (bench_wants("scope_off_instructions_busy_body")) {
        bench_instructions("scope_off_instructions_busy_body", "off_busy_with", "off_busy_without",
                           0);
    }
    if (bench_wants("scope_on_instructions")) {
        bench_on_instructions();
    }
    if (bench_wants("scope_off_ns")) {
        bench_time("scope_off_ns", "off_small_with", "off_small_without");
    }
    if (bench_wants("scope_off_large_body_ns")) {
        bench_time("scope_off_large_body_ns", "off_large_with", "off_large_without");
    }
    return 0;
}
