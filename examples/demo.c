/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo: a small "training" program under the profiler. Four threads run ops with shapes and
 * memory, the trace goes to a file, the process that writes it is killed half-way in a second
 * round, and both traces are read back and summed up.
 *
 * Everything here uses the public headers only.
 */
#include <mtprof/mtprof.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 4,
    STEPS = 2000,
    NAMES_MAX = 64,
    DEPTH_MAX = 64
};

/* ---- the program that is profiled ---- */

static uint32_t float_type;

static double matmul(int n)
{
    static mtprof_site site = MTPROF_SITE_INIT("demo::matmul", MTPROF_KIND_OP);
    int64_t sizes[2] = {n, n};
    mtprof_value inputs[2] = {
        {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .type = float_type, .of.sizes = sizes},
        {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .type = float_type, .of.sizes = sizes},
    };
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = MTPROF_OP_FLOPS,
                    .inputs = inputs,
                    .n_inputs = 2,
                    .flops = 2ull * (unsigned)n * (unsigned)n * (unsigned)n};
    mtprof_token token = mtprof_op_begin(&site, &op);
    double sum = 0;
    for (int i = 0; i < n * n; i++) {
        sum += (double)i * 1e-3;
    }
    mtprof_end(token);
    return sum;
}

static void *train(void *argument)
{
    char name[32];
    snprintf(name, sizeof name, "trainer %d", *(const int *)argument);
    mtprof_name_thread(name);
    volatile double loss = 0;
    for (int step = 0; step < STEPS; step++) {
        MTPROF_SCOPE("step");
        {
            MTPROF_SCOPE("forward");
            loss += matmul(24) + matmul(32);
        }
        {
            MTPROF_SCOPE("backward");
            loss += matmul(40);
        }
        MTPROF_COUNTER("steps", step);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, train, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static mtprof_session *start(const char *path)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .path = path,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_FLOPS};
    mtprof_session *session = NULL;
    if (mtprof_session_start(&config, &session) != MTPROF_OK) {
        fprintf(stderr, "demo: %s\n", mtprof_last_error()->message);
        exit(1);
    }
    float_type = mtprof_intern("float", 5);
    return session;
}

/* ---- reading a trace back ---- */

typedef struct row {
    uint32_t name;
    uint64_t calls, open;
    int64_t total_ns;
} row;

static row *row_of(row *rows, int *count, uint32_t name)
{
    for (int i = 0; i < *count; i++) {
        if (rows[i].name == name) {
            return &rows[i];
        }
    }
    if (*count == NAMES_MAX) {
        return NULL;
    }
    rows[*count] = (row){.name = name};
    return &rows[(*count)++];
}

/* One thread's records: begins are pushed, ends find theirs by key. */
static void sum_stream(const mtprof_reader *reader, uint32_t stream, row *rows, int *count)
{
    struct {
        uint64_t key;
        uint32_t name;
        int64_t start_ns;
    } open[DEPTH_MAX];
    int depth = 0;
    mtprof_cursor *cursor;
    mtprof_record record;
    if (mtprof_cursor_open(reader, stream, &cursor) != MTPROF_OK) {
        return;
    }
    mtprof_status status;
    while ((status = mtprof_cursor_next(cursor, &record)) != MTPROF_EEND) {
        if (status != MTPROF_OK) {
            printf("  damaged: %s\n", mtprof_last_error()->message);
        } else if (record.kind == MTPROF_REC_BEGIN && depth < DEPTH_MAX) {
            open[depth].key = record.key;
            open[depth].name = record.arg;
            open[depth++].start_ns = mtprof_reader_ns(reader, record.ticks);
        } else if ((record.kind == MTPROF_REC_END || record.kind == MTPROF_REC_END_X) &&
                   depth > 0 && open[depth - 1].key == record.key) {
            row *r = row_of(rows, count, open[--depth].name);
            if (r != NULL) {
                r->calls++;
                r->total_ns += mtprof_reader_ns(reader, record.ticks) - open[depth].start_ns;
            }
        }
    }
    while (depth > 0) {
        row *r = row_of(rows, count, open[--depth].name);
        if (r != NULL) {
            r->open++;
        }
    }
    mtprof_cursor_close(cursor);
}

static void print_trace(const char *path)
{
    mtprof_reader *reader;
    if (mtprof_reader_open(path, &reader) != MTPROF_OK) {
        fprintf(stderr, "demo: %s\n", mtprof_last_error()->message);
        exit(1);
    }
    row rows[NAMES_MAX];
    int count = 0;
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        mtprof_stream_info info = {.struct_size = sizeof info};
        if (mtprof_reader_stream(reader, i, &info) == MTPROF_OK &&
            info.kind == MTPROF_STREAM_THREAD) {
            sum_stream(reader, i, rows, &count);
        }
    }
    printf("  %-16s %10s %14s %12s %8s\n", "name", "calls", "total", "average", "open");
    for (int i = 0; i < count; i++) {
        mtprof_text name = {"?", 1};
        mtprof_reader_string(reader, rows[i].name, &name);
        double average = rows[i].calls != 0 ? (double)rows[i].total_ns / (double)rows[i].calls : 0;
        printf("  %-16.*s %10llu %11.3f ms %9.3f us %8llu\n", (int)name.length, name.bytes,
               (unsigned long long)rows[i].calls, (double)rows[i].total_ns / 1e6, average / 1e3,
               (unsigned long long)rows[i].open);
    }
    mtprof_trace_info info = {.struct_size = sizeof info};
    mtprof_reader_info(reader, &info);
    printf("  %u threads, %.1f MiB, %s\n", mtprof_reader_thread_count(reader),
           (double)info.file_bytes / (1 << 20),
           info.closed ? "closed by the recorder" : "not closed: the process died");
    mtprof_reader_close(reader);
}

/* ---- the two rounds ---- */

static void record_normally(const char *path)
{
    mtprof_session *session = start(path);
    run_threads();
    mtprof_session_stop(session);
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_session_health(session, &health);
    mtprof_session_close(session);
    printf("1. %d threads recorded %llu scopes and ops, %llu other events; %llu lost.\n", THREADS,
           (unsigned long long)health.begins, (unsigned long long)health.others,
           (unsigned long long)health.lost);
    printf("   A begin+end pair costs %.1f ns on this machine.\n",
           (double)health.pair_cost_ps / 1e3);
    print_trace(path);
}

static void record_and_die(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        start(path);
        for (;;) {
            run_threads();
        }
    }
    usleep(200 * 1000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("\n2. The same, killed with SIGKILL after 200 ms. What it had recorded:\n");
    print_trace(path);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    char normal[4096], killed[4096];
    snprintf(normal, sizeof normal, "%s/demo.mtt", folder);
    snprintf(killed, sizeof killed, "%s/demo-killed.mtt", folder);
    record_normally(normal);
    record_and_die(killed);
    printf("\nThe traces: %s and %s (docs/format.md says what is in them).\n", normal, killed);
    return 0;
}
