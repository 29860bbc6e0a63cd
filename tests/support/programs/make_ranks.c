/* SPDX-License-Identifier: Apache-2.0
 *
 * make_ranks FOLDER [--ranks N] [--steps N] [--events N] ...: a synthetic job (synthetic_ranks.h),
 * FOLDER/rank<number>.mtt a rank, and FOLDER/truth.json: what is true of it. Ranks named by
 * --missing take part but leave no file. A rank's time depends on its own events only, so 1,000
 * ranks of a million events take a thousand times as long as one.
 */
#include "support/traces/synthetic_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_MISSING = 64
};

typedef struct request {
    sr_options options;
    uint32_t missing[MOST_MISSING];
    size_t n_missing;
    uint32_t first, count; /* ranks to write */
} request;

static int usage(void)
{
    fprintf(stderr,
            "usage: make_ranks FOLDER [--seed N] [--ranks N] [--steps N] [--events N]\n"
            "    [--buckets N] [--op-us N] [--transfer-us N] [--noise SHARE] [--exit-us X]\n"
            "    [--exit-fixed-us X] [--offset-s X] [--drift-ppm X] [--lost SHARE] [--job ID]\n"
            "    [--straggler RANK:STEP:PERCENT[:op|load|outside]] [--missing RANK]...\n"
            "    [--no-wall-clock] [--no-steps] [--first RANK] [--count RANKS]\n");
    return 2;
}

static bool parse_straggler(const char *text, sr_options *o)
{
    char slow[16] = "op";
    if (sscanf(text, "%u:%u:%lf:%15s", &o->straggler, &o->straggler_step, &o->straggler_percent,
               slow) < 3) {
        return false;
    }
    for (int i = 0; i < SR_SLOW_COUNT; i++) {
        if (strcmp(slow, sr_slow_name((enum sr_slow)i)) == 0) {
            o->straggler_slow = (enum sr_slow)i;
            o->has_straggler = true;
        }
    }
    return o->has_straggler;
}

static bool parse_number(const char *option, const char *value, request *r)
{
    sr_options *o = &r->options;
    const struct {
        const char *name;
        uint32_t *to;
    } whole[] = {{"--ranks", &o->ranks},   {"--steps", &o->steps},
                 {"--events", &o->events}, {"--buckets", &o->buckets},
                 {"--op-us", &o->op_us},   {"--transfer-us", &o->transfer_us},
                 {"--first", &r->first},   {"--count", &r->count}};
    const struct {
        const char *name;
        double *to;
    } real[] = {{"--noise", &o->compute_noise},         {"--exit-us", &o->exit_us},
                {"--exit-fixed-us", &o->exit_fixed_us}, {"--offset-s", &o->offset_s},
                {"--drift-ppm", &o->drift_ppm},         {"--lost", &o->lost_share}};
    char *rest = NULL;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (strcmp(option, whole[i].name) == 0) {
            *whole[i].to = (uint32_t)strtoul(value, &rest, 10);
        }
    }
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        if (strcmp(option, real[i].name) == 0) {
            *real[i].to = strtod(value, &rest);
        }
    }
    if (strcmp(option, "--seed") == 0) {
        o->seed = strtoull(value, &rest, 10);
    }
    if (strcmp(option, "--missing") == 0 && r->n_missing < MOST_MISSING) {
        r->missing[r->n_missing++] = (uint32_t)strtoul(value, &rest, 10);
    }
    return rest != NULL && rest != value && *rest == '\0';
}

static bool parse(int argc, char **argv, request *r)
{
    for (int i = 2; i < argc; i++) {
        const char *option = argv[i];
        if (strcmp(option, "--no-wall-clock") == 0) {
            r->options.no_wall_clock = true;
            continue;
        }
        if (strcmp(option, "--no-steps") == 0) {
            r->options.no_steps = true;
            continue;
        }
        if (++i >= argc) {
            return false;
        }
        if (strcmp(option, "--job") == 0) {
            r->options.job_id = argv[i];
        } else if (strcmp(option, "--straggler") == 0) {
            if (!parse_straggler(argv[i], &r->options)) {
                return false;
            }
        } else if (!parse_number(option, argv[i], r)) {
            return false;
        }
    }
    return argc > 1;
}

static bool is_missing(const request *r, uint32_t rank)
{
    for (size_t i = 0; i < r->n_missing; i++) {
        if (r->missing[i] == rank) {
            return true;
        }
    }
    return false;
}

static bool save(const char *path, const trace_builder *b)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    bool written = fwrite(b->bytes, 1, b->size, file) == b->size;
    return fclose(file) == 0 && written;
}

static void write_straggler(const sr_options *o, FILE *out)
{
    if (o->has_straggler) {
        fprintf(
            out,
            "{\"rank\": %u, \"step\": %u, \"percent\": %g, \"slow\": \"%s\", \"event\": \"%s\"}",
            o->straggler, o->straggler_step, o->straggler_percent, sr_slow_name(o->straggler_slow),
            sr_slow_event(o->straggler_slow));
    } else {
        fputs("null", out);
    }
}

static int write_all(const request *r, const sr_job *job, const char *folder, FILE *truth)
{
    char path[4096];
    const sr_options *o = &job->options;
    uint32_t last = r->count > 0 && r->first + r->count < o->ranks ? r->first + r->count : o->ranks;
    fprintf(truth,
            "{\"seed\": %llu, \"ranks\": %u, \"steps\": %u, \"buckets\": %u, \"straggler\": ",
            (unsigned long long)o->seed, o->ranks, o->steps, o->buckets);
    write_straggler(o, truth);
    fputs(", \"clocks\": [", truth);
    for (uint32_t rank = r->first; rank < last; rank++) {
        uint64_t events = 0, lost = 0;
        bool missing = is_missing(r, rank);
        if (!missing) {
            trace_builder b;
            sr_write(job, rank, &b, &events, &lost);
            (void)snprintf(path, sizeof path, "%s/rank%u.mtt", folder, rank);
            bool saved = save(path, &b);
            tb_fini(&b);
            if (!saved) {
                fprintf(stderr, "make_ranks: cannot write %s\n", path);
                return 1;
            }
        }
        const sr_rank *clock = &job->ranks[rank];
        fprintf(truth,
                "%s\n  {\"rank\": %u, \"missing\": %s, \"mono_ns\": %lld, \"drift\": %.17g, "
                "\"wall_error_ns\": %lld, \"events\": %llu, \"lost\": %llu}",
                rank > r->first ? "," : "", rank, missing ? "true" : "false",
                (long long)clock->mono_ns, clock->drift, (long long)clock->wall_error_ns,
                (unsigned long long)events, (unsigned long long)lost);
    }
    fputs("\n]}\n", truth);
    return 0;
}

int main(int argc, char **argv)
{
    char path[4096];
    request r = {.first = 0};
    if (!parse(argc, argv, &r)) {
        return usage();
    }
    (void)snprintf(path, sizeof path, "%s/truth.json", argv[1]);
    FILE *truth = fopen(path, "w");
    if (truth == NULL) {
        fprintf(stderr, "make_ranks: cannot write %s\n", path);
        return 1;
    }
    sr_job job;
    sr_init(&job, &r.options);
    int status = write_all(&r, &job, argv[1], truth);
    sr_fini(&job);
    return fclose(truth) == 0 ? status : 1;
}
