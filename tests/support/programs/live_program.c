/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that records into a file and does what it is told, a word a line on its standard input,
 * answering each with a line, so that a test of `mtprof top` knows what there is to see:
 *
 *     live_program PATH [THREADS [ring]]
 *
 *     run N      every thread records N rounds: a step, 2 ops in a scope
 *     open NAME  the main thread begins a scope, and leaves it open
 *     spin MS    every thread records as fast as it can for so long; answers with the events
 *     close      ends the recording, and goes on
 *     quit       ends
 *     die        ends by SIGKILL
 */
#include <mtprof/op.h>
#include <mtprof/session.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MOST_THREADS = 16
};

static mtprof_site step_site = MTPROF_SITE_INIT("train", MTPROF_KIND_STEP);
static mtprof_site scope_site = MTPROF_SITE_INIT("forward", MTPROF_KIND_SCOPE);
static mtprof_site mm_site = MTPROF_SITE_INIT("aten::mm", MTPROF_KIND_OP);
static mtprof_site add_site = MTPROF_SITE_INIT("aten::add", MTPROF_KIND_OP);

static struct {
    uint64_t rounds;
    int64_t until_ns; /* 0: as many rounds */
    uint64_t events;  /* atomic */
} job;

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void record_round(uint64_t i)
{
    const int64_t sizes[2] = {i % 2 == 0 ? 8 : 16, 4};
    const mtprof_value input = {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = sizes};
    const mtprof_op op = {.struct_size = sizeof op,
                          .fields = MTPROF_OP_MODULE,
                          .inputs = &input,
                          .n_inputs = 1,
                          .module = mtprof_intern("net.linear", 10)};
    mtprof_token step = mtprof_begin(&step_site);
    mtprof_token scope = mtprof_begin(&scope_site);
    mtprof_token mm = mtprof_op_begin(&mm_site, &op);
    mtprof_alloc(0, 4096, 1 << 20, 3 << 20, 8 << 20);
    mtprof_end(mm);
    mtprof_end(mtprof_begin(&add_site));
    mtprof_end(scope);
    mtprof_end(step);
}

static void *work(void *context)
{
    uint64_t n = 0;
    (void)context;
    mtprof_name_thread("worker");
    if (job.until_ns == 0) {
        for (; n < job.rounds; n++) {
            record_round(n);
        }
    } else {
        /* Scopes alone: what a recorder can do at most. */
        for (; n % 4096 != 0 || clock_ns() < job.until_ns; n++) {
            mtprof_token outer = mtprof_begin(&scope_site);
            mtprof_end(mtprof_begin(&mm_site));
            mtprof_end(mtprof_begin(&add_site));
            mtprof_end(outer);
        }
    }
    __atomic_add_fetch(&job.events, (job.until_ns == 0 ? 5 : 3) * n, __ATOMIC_RELAXED);
    return NULL;
}

static void run_threads(int n)
{
    pthread_t threads[MOST_THREADS];
    job.events = 0;
    for (int i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, work, NULL) != 0) {
            abort();
        }
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int argc, char **argv)
{
    char line[256];
    mtprof_session *session = NULL;
    int n = argc > 2 ? atoi(argv[2]) : 1;
    mtprof_config config = {
        .struct_size = sizeof config,
        .path = argc > 1 ? argv[1] : NULL,
        .policy = argc > 3 ? MTPROF_POLICY_RING : MTPROF_POLICY_SPILL,
        .wants =
            MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_MODULES | MTPROF_WANT_ALLOCS,
    };
    if (n < 1 || n > MOST_THREADS || mtprof_session_start(&config, &session) != MTPROF_OK) {
        (void)fprintf(stderr, "live_program: %s\n", mtprof_last_error()->message);
        return 1;
    }
    printf("recording\n");
    (void)fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL && strncmp(line, "quit", 4) != 0) {
        line[strcspn(line, "\n")] = '\0';
        const char *argument = strchr(line, ' ') != NULL ? strchr(line, ' ') + 1 : "";
        job.until_ns = 0;
        if (strncmp(line, "run ", 4) == 0) {
            job.rounds = strtoull(argument, NULL, 10);
            run_threads(n);
        } else if (strncmp(line, "spin ", 5) == 0) {
            job.until_ns = clock_ns() + strtoll(argument, NULL, 10) * 1000000;
            run_threads(n);
        } else if (strncmp(line, "open ", 5) == 0) {
            (void)mtprof_begin_named(argument, strlen(argument), MTPROF_KIND_SCOPE);
            job.events = 1;
        } else if (strcmp(line, "close") == 0) {
            (void)mtprof_session_close(session);
            session = NULL;
        } else if (strcmp(line, "die") == 0) {
            (void)raise(SIGKILL);
        }
        printf("%llu\n", (unsigned long long)job.events);
        (void)fflush(stdout);
    }
    (void)mtprof_session_close(session);
    return 0;
}
