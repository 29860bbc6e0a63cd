/* SPDX-License-Identifier: Apache-2.0
 *
 * export_sample DIR SEED: records a random program (threads, nested scopes, stacks, shapes, device
 * work, counters, flows, names of any bytes), exports it in every text format and as Perfetto, and
 * writes next to it what the model's columns say: DIR/events.jsonl, one event a line, texts in hex.
 * tests/export/check_exports.py compares the two.
 */
#include <mtprof/export.h>
#include <mtprof/model.h>
#include <mtprof/mtprof.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    THREADS = 3,
    ROUNDS = 60,
    DEPTH_MAX = 6,
    QUEUES = 2,
    PATH_BYTES = 512
};

static mtprof_source *source;
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t queue_free[QUEUES]; /* device time; guarded by the lock */
static uint64_t correlation;

static void must(mtprof_status status)
{
    if (status != MTPROF_OK) {
        fprintf(stderr, "export_sample: %s\n", mtprof_last_error()->message);
        exit(1);
    }
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* ---- a device -------------------------------------------------------------------------------- */

static mtprof_status source_start(void *context, mtprof_source *self, uint64_t wants)
{
    (void)context;
    (void)self;
    (void)wants;
    return MTPROF_OK;
}

static void source_stop(void *context)
{
    (void)context;
}

static uint64_t source_clock(void *context)
{
    (void)context;
    return mtprof_ticks();
}

static void add_source(void)
{
    mtprof_source_ops ops = {.struct_size = sizeof ops,
                             .abi = MTPROF_SOURCE_ABI,
                             .name = "device",
                             .device_type = "NPU",
                             .start = source_start,
                             .stop = source_stop,
                             .clock = source_clock};
    must(mtprof_source_register(&ops, &source));
}

static void push_kernel(uint64_t key, uint64_t length)
{
    static const char *const names[] = {"gemm<float, 128>", "Memcpy HtoD", "reduce;kernel"};
    pthread_mutex_lock(&device_lock);
    uint64_t id = ++correlation;
    uint32_t queue = (uint32_t)(id % QUEUES);
    uint64_t now = mtprof_ticks();
    uint64_t start = queue_free[queue] > now ? queue_free[queue] : now;
    mtprof_activity activity = {
        .struct_size = sizeof activity,
        .kind = id % 3 == 1 ? MTPROF_ACTIVITY_COPY : MTPROF_ACTIVITY_KERNEL,
        .name = names[id % 3],
        .name_length = strlen(names[id % 3]),
        .start = start,
        .end = start + 2000 + length,
        .launch_key = key,
        .device = 1,
        .queue = queue,
        .correlation = id,
        .bytes = id % 3 == 1 ? 4096 : 0,
    };
    queue_free[queue] = activity.end; /* the next one begins right here */
    mtprof_push_activity(source, &activity);
    pthread_mutex_unlock(&device_lock);
}

/* ---- a program ------------------------------------------------------------------------------- */

static mtprof_site step_site = MTPROF_SITE_INIT("train step", MTPROF_KIND_SCOPE);
static mtprof_site op_site = MTPROF_SITE_INIT("aten::add", MTPROF_KIND_OP);
static mtprof_site launch_site =
    MTPROF_SITE_INIT("launchKernel", MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);
static mtprof_site mark_site = MTPROF_SITE_INIT("mark", MTPROF_KIND_SCOPE);
static mtprof_site async_site = MTPROF_SITE_INIT("request", MTPROF_KIND_SCOPE | MTPROF_FLAG_ASYNC);

static void spin(uint64_t *random)
{
    volatile uint64_t sum = 0;
    for (uint64_t n = next(random) % 2000; n > 0; n--) {
        sum += n;
    }
    (void)sum;
}

/* Names with whatever bytes. */
static mtprof_token begin_nasty(uint64_t *random)
{
    static const char bytes[] = "ab;,\"\\\n\r\t \0\xFF\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xC0\xED";
    char name[24];
    size_t n = next(random) % sizeof name;
    for (size_t i = 0; i < n; i++) {
        name[i] = bytes[next(random) % (sizeof bytes - 1)];
    }
    return mtprof_begin_named(name, n, MTPROF_KIND_SCOPE);
}

static mtprof_token begin_op(uint64_t *random, uint32_t stack)
{
    const int64_t sizes[] = {(int64_t)(next(random) % 5), 3};
    const mtprof_value inputs[] = {
        {.kind = MTPROF_INPUT_TENSOR,
         .n_dims = 2,
         .type = mtprof_intern("float", 5),
         .of.sizes = sizes},
        {.kind = MTPROF_INPUT_REAL, .of.real = 0.5},
    };
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = MTPROF_OP_SEQUENCE | MTPROF_OP_FLOPS | MTPROF_OP_MEMORY,
                    .inputs = inputs,
                    .n_inputs = 2,
                    .sequence = next(random) % 50,
                    .flops = 1234,
                    .memory_before = 1 << 20,
                    .stack = stack};
    return mtprof_op_begin(&op_site, &op);
}

static void work(uint64_t *random, int depth, uint32_t stack)
{
    char function[16];
    int n = snprintf(function, sizeof function, "f%u x;y", (unsigned)(next(random) % 4));
    uint32_t line = (uint32_t)(next(random) % 3);
    stack = mtprof_stack_push(stack, mtprof_define_frame(function, (size_t)n, "a b.py", 6, line));
    for (uint64_t count = next(random) % 4; count > 0 && depth < DEPTH_MAX; count--) {
        uint64_t what = next(random) % 8;
        mtprof_token token = what < 4   ? begin_op(random, stack)
                             : what < 6 ? mtprof_begin(&step_site)
                             : what < 7 ? begin_nasty(random)
                                        : mtprof_begin(&launch_site);
        spin(random);
        if (what == 7) {
            push_kernel(mtprof_launch_key(token), next(random) % 3000);
        }
        if (what == 3) {
            mtprof_alloc(0, 4096 * (1 + next(random) % 9), 256, 256 * (uint64_t)depth, 1 << 20);
        }
        work(random, depth + 1, stack);
        if (what == 5) {
            mtprof_meta_int(token, mtprof_intern("answer", 6), -42);
        }
        if (what == 0) {
            mtprof_op_end(token, 0, 2 << 20);
        } else {
            mtprof_end(token);
        }
    }
    spin(random);
}

typedef struct program {
    uint64_t random;
    uint64_t number;
} program;

static void *run(void *context)
{
    program *p = context;
    char name[32];
    (void)snprintf(name, sizeof name, "worker \"%u\"", (unsigned)p->number);
    mtprof_name_thread(name);
    mtprof_token requests[4] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        if (p->number == 0 && i == ROUNDS / 2) { /* a gap of more than 2^28 nanoseconds */
            nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        }
        work(&p->random, 0, 0);
        mtprof_end(requests[i % 4]);
        requests[i % 4] = mtprof_begin(&async_site);
        mtprof_counter(&mark_site, i - 30);
        mtprof_counter_real(&step_site, 0.25 * i);
        mtprof_instant(&mark_site);
        mtprof_flow(&mark_site, (enum mtprof_flow_phase)(i % 3), p->number);
    }
    mtprof_end(requests[0]); /* the others are cut off by the end */
    return NULL;
}

/* ---- what the columns say -------------------------------------------------------------------- */

static void put_hex(FILE *file, const char *key, mtprof_text text)
{
    fprintf(file, "\"%s\":\"", key);
    for (size_t i = 0; i < text.length; i++) {
        fprintf(file, "%02x", (unsigned char)text.bytes[i]);
    }
    fprintf(file, "\"");
}

static const void *column(mtprof_model *model, enum mtprof_column_id id)
{
    mtprof_column c;
    must(mtprof_model_get_column(model, id, &c));
    return c.data;
}

static void put_stack(FILE *file, const mtprof_model *model, uint32_t node)
{
    mtprof_frame frame;
    fprintf(file, ",\"stack\":[");
    for (bool first = true; node != 0; first = false) {
        if (!mtprof_model_stack(model, node, &node, &frame)) {
            break;
        }
        fprintf(file, "%s{", first ? "" : ",");
        put_hex(file, "file", frame.file);
        fprintf(file, ",");
        put_hex(file, "function", frame.function);
        fprintf(file, ",\"line\":%" PRIu64 "}", frame.line);
    }
    fprintf(file, "]");
}

static void put_columns(mtprof_model *model, const char *path)
{
    FILE *file = fopen(path, "w");
    mtprof_column start;
    must(mtprof_model_get_column(model, MTPROF_COLUMN_START_NS, &start));
    const int64_t *end = column(model, MTPROF_COLUMN_END_NS);
    const int64_t *self = column(model, MTPROF_COLUMN_SELF_NS);
    const int64_t *self_device = column(model, MTPROF_COLUMN_SELF_DEVICE_NS);
    const uint32_t *parent = column(model, MTPROF_COLUMN_PARENT);
    const uint32_t *name = column(model, MTPROF_COLUMN_NAME);
    const uint32_t *track = column(model, MTPROF_COLUMN_TRACK);
    const uint8_t *kind = column(model, MTPROF_COLUMN_KIND);
    const uint16_t *flags = column(model, MTPROF_COLUMN_FLAGS);
    const uint32_t *stack = column(model, MTPROF_COLUMN_STACK);
    const uint64_t *id = column(model, MTPROF_COLUMN_CORRELATION);
    for (uint64_t i = 0; i < start.count && file != NULL; i++) {
        mtprof_track t;
        if (!mtprof_model_track(model, track[i], &t)) {
            exit(1);
        }
        fprintf(file,
                "{\"start\":%" PRId64 ",\"end\":%" PRId64 ",\"self\":%" PRId64
                ",\"self_device\":%" PRId64 ",\"parent\":%d,\"tid\":%" PRId64
                ",\"device\":%u,\"kind\":%u,\"flags\":%u,\"id\":%" PRIu64 ",",
                ((const int64_t *)start.data)[i], end[i], self[i], self_device[i],
                parent[i] == MTPROF_NO_EVENT ? -1 : (int)parent[i], t.tid, t.device, kind[i],
                flags[i], id[i]);
        put_hex(file, "name", mtprof_model_name(model, name[i]));
        put_stack(file, model, stack[i]);
        fprintf(file, "}\n");
    }
    if (file == NULL || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

static void put_info(mtprof_model *model, const char *path)
{
    mtprof_model_info info = {.struct_size = sizeof info};
    must(mtprof_model_get_info(model, &info));
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        exit(1);
    }
    fprintf(file, "{\"start\":%" PRId64 ",\"real_offset\":%" PRId64 ",\"pid\":%" PRIu64 "}\n",
            info.start_ns, info.real_offset_ns, info.pid);
    fclose(file);
}

/* ---- exports --------------------------------------------------------------------------------- */

static void export_all(mtprof_model *model, const char *folder)
{
    static const struct {
        enum mtprof_export_format format;
        const char *file, *metric;
    } exports[] = {
        {MTPROF_EXPORT_PERFETTO, "t.pftrace", NULL},
        {MTPROF_EXPORT_CSV, "t.csv", NULL},
        {MTPROF_EXPORT_STACKS, "cpu.stacks", NULL},
        {MTPROF_EXPORT_STACKS, "device.stacks", "self_npu_time_total"},
        {MTPROF_EXPORT_FOLDED, "cpu.folded", "self_cpu_time_total"},
        {MTPROF_EXPORT_FOLDED, "device.folded", "self_device_time_total"},
        {MTPROF_EXPORT_PPROF, "t.pb", NULL},
        {MTPROF_EXPORT_SPEEDSCOPE, "cpu.speedscope.json", NULL},
        {MTPROF_EXPORT_SPEEDSCOPE, "device.speedscope.json", "self_cuda_time_total"},
    };
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof exports / sizeof exports[0]; i++) {
        mtprof_export_report report = {.struct_size = sizeof report};
        mtprof_export_options options = {
            .struct_size = sizeof options, .metric = exports[i].metric, .report = &report};
        (void)snprintf(path, sizeof path, "%s/%s", folder, exports[i].file);
        must(mtprof_export(model, exports[i].format, path, &options));
        printf("%s: %" PRIu64 " events, %" PRIu64 " clamped, %" PRIu64 " bytes\n", exports[i].file,
               report.events, report.clamped, report.bytes);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: export_sample DIR SEED\n");
        return 2;
    }
    char path[PATH_BYTES];
    uint64_t random = strtoull(argv[2], NULL, 0);
    add_source();
    mtprof_config config = {.struct_size = sizeof config,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_STACKS | MTPROF_WANT_INPUTS |
                                     MTPROF_WANT_MEMORY | MTPROF_WANT_ALLOCS | MTPROF_WANT_FLOPS |
                                     MTPROF_WANT_DETAILS};
    mtprof_session *session = NULL;
    must(mtprof_session_start(&config, &session));
    must(mtprof_session_add_metadata(session, "host", 4, "a\"b", 3, false));
    pthread_t threads[THREADS];
    program programs[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        programs[i] = (program){.random = next(&random), .number = i};
        if (pthread_create(&threads[i], NULL, run, &programs[i]) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    must(mtprof_session_stop(session));
    mtprof_model *model = NULL;
    mtprof_model_options options = {.struct_size = sizeof options, .keep_duplicates = 1};
    must(mtprof_model_from_session(session, &options, &model));
    export_all(model, argv[1]);
    (void)snprintf(path, sizeof path, "%s/events.jsonl", argv[1]);
    put_columns(model, path);
    (void)snprintf(path, sizeof path, "%s/info.json", argv[1]);
    put_info(model, path);
    mtprof_model_free(model);
    must(mtprof_session_close(session));
    return 0;
}
