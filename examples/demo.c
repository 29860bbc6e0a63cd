/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo: a small "training" program under the profiler. Four threads run ops with shapes and
 * memory, the trace goes to a file, the process that writes it is killed half-way in a second
 * round, and both traces become tables and files for viewers.
 *
 * Everything here uses the public headers only.
 */
#include <mtprof/mtprof.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 4,
    STEPS = 2000
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
    (void)loss;
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

/* ---- what the trace says ---- */

static void must(mtprof_status status)
{
    if (status != MTPROF_OK) {
        fprintf(stderr, "demo: %s\n", mtprof_last_error()->message);
        exit(1);
    }
}

static int print_bytes(void *context, const void *bytes, size_t length)
{
    (void)context;
    return fwrite(bytes, 1, length, stdout) == length ? 0 : EIO;
}

/* The table people know from torch.profiler, made to fit a terminal. */
static void print_table(mtprof_model *model)
{
    mtprof_output output = {.struct_size = sizeof output, .write = print_bytes};
    mtprof_table_options options = {
        .struct_size = sizeof options, .format = MTPROF_TABLE_FIT, .width = 100};
    mtprof_averages *averages;
    must(mtprof_averages_new(model, NULL, &averages));
    must(mtprof_averages_sort(averages, "self_cpu_time_total"));
    must(mtprof_averages_table(averages, &options, &output));
    mtprof_averages_free(averages);
}

static void export_for_viewers(mtprof_model *model, const char *folder)
{
    static const struct {
        enum mtprof_export_format format;
        const char *name, *where;
    } files[] = {
        {MTPROF_EXPORT_CHROME, "demo.json.gz", "ui.perfetto.dev, chrome://tracing, TensorBoard"},
        {MTPROF_EXPORT_PERFETTO, "demo.pftrace", "ui.perfetto.dev"},
        {MTPROF_EXPORT_SPEEDSCOPE, "demo.speedscope.json", "speedscope"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[4096];
        mtprof_export_report report = {.struct_size = sizeof report};
        mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        must(mtprof_export(model, files[i].format, path, &options));
        printf("  %s (%.1f MiB): open it in %s\n", path, (double)report.bytes_written / (1 << 20),
               files[i].where);
    }
}

static mtprof_model *open_trace(const char *path)
{
    mtprof_model *model;
    must(mtprof_model_open(path, NULL, &model));
    mtprof_model_info info = {.struct_size = sizeof info};
    must(mtprof_model_get_info(model, &info));
    printf("  %.1f ms, %s\n", (double)(info.end_ns - info.start_ns) / 1e6,
           info.closed ? "closed by the recorder" : "not closed: the process died");
    return model;
}

/* ---- the two rounds ---- */

static void record_normally(const char *path, const char *folder)
{
    mtprof_session *session = start(path);
    run_threads();
    mtprof_session_stop(session);
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_session_get_health(session, &health);
    mtprof_session_close(session);
    printf("1. %d threads recorded %llu scopes and ops, %llu other events; %llu lost.\n", THREADS,
           (unsigned long long)health.begins, (unsigned long long)health.others,
           (unsigned long long)health.lost);
    printf("   A begin+end pair costs %.1f ns on this machine.\n",
           (double)health.pair_cost_ps / 1e3);
    mtprof_model *model = open_trace(path);
    print_table(model);
    export_for_viewers(model, folder);
    mtprof_model_free(model);
}

static void record_and_die(const char *path)
{
    unlink(path);
    pid_t child = fork();
    if (child == 0) {
        start(path);
        for (;;) {
            run_threads();
        }
    }
    for (int i = 0; i < 10000 && access(path, F_OK) != 0; i++) {
        usleep(1000); /* its file is there when it records */
    }
    usleep(200 * 1000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("\n2. The same, killed with SIGKILL after 200 ms. What it had recorded:\n");
    mtprof_model *model = open_trace(path);
    print_table(model);
    mtprof_model_free(model);
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    char normal[4096], killed[4096];
    snprintf(normal, sizeof normal, "%s/demo.mtt", folder);
    snprintf(killed, sizeof killed, "%s/demo-killed.mtt", folder);
    record_normally(normal, folder);
    record_and_die(killed);
    printf("\nThe traces: %s and %s. Look at them with the mtprof command:\n"
           "  mtprof report %s --group shapes\n  mtprof info %s\n",
           normal, killed, normal, killed);
    return 0;
}
