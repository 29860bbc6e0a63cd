/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast a foreign trace is read: a Chrome JSON as torch writes it (ops with shapes two levels
 * deep, runtime calls, kernels, flows, allocations, Python functions), 1 GB, on one core, from the
 * page cache to a model with all columns. For comparison a bare read of the same bytes.
 */
#include "bench_harness.h"

#include <mtprof/model.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    READ_BYTES = 1 << 20
};

typedef struct maker {
    FILE *file;
    uint64_t bytes;
    uint64_t now_ns;
    uint64_t id, index, correlation;
} maker;

__attribute__((format(printf, 2, 3))) static void put(maker *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vfprintf(m->file, format, args);
    va_end(args);
    if (n < 0) {
        perror("bench_import: write");
        exit(1);
    }
    m->bytes += (uint64_t)n;
}

static void put_span(maker *m, const char *category, const char *name, int pid, int tid,
                     uint64_t start_ns, uint64_t ns)
{
    put(m,
        "  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n"
        "    \"ts\": %llu.%03llu, \"dur\": %llu.%03llu,\n    \"args\": {\n      ",
        category, name, pid, tid, (unsigned long long)(3867963656005998 + start_ns) / 1000,
        (unsigned long long)(3867963656005998 + start_ns) % 1000, (unsigned long long)ns / 1000,
        (unsigned long long)ns % 1000);
}

static void put_op(maker *m, const char *name, uint64_t start_ns, uint64_t ns, unsigned rows)
{
    m->id++;
    put_span(m, "cpu_op", name, 515, 515 + (int)(m->id / 100000 % 4), start_ns, ns);
    put(m,
        "\"External id\": %llu,\"Sequence number\": %llu, \"Fwd thread id\": 0, "
        "\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"1\"], "
        "\"Input type\": [\"float\", \"float\", \"Scalar\"], \"Input Strides\": [[%u, 1], [%u, 1], "
        "[]], \"Input Dims\": [[4, %u], [4, %u], []], \"Ev Idx\": %llu\n    }\n  },\n",
        (unsigned long long)m->id, (unsigned long long)m->id / 3, rows, rows, rows, rows,
        (unsigned long long)m->index++);
}

static void put_launch(maker *m, uint64_t start_ns)
{
    uint64_t id = ++m->correlation;
    unsigned long long ts = (3867963656005998 + start_ns) / 1000;
    put_span(m, "cuda_runtime", "cudaLaunchKernel", 515, 515, start_ns, 3500);
    put(m, "\"External id\": %llu, \"cbid\": 211, \"correlation\": %llu\n    }\n  },\n",
        (unsigned long long)m->id, (unsigned long long)id);
    put(m,
        "  {\n    \"ph\": \"s\", \"id\": %llu, \"pid\": 515, \"tid\": 515, \"ts\": %llu.%03llu,\n"
        "    \"cat\": \"ac2g\", \"name\": \"ac2g\"\n  },\n",
        (unsigned long long)id, ts, (unsigned long long)(3867963656005998 + start_ns) % 1000);
    put_span(
        m, "kernel",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
        "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, "
        "3ul>)",
        0, 7, start_ns + 8000, 1300);
    put(m,
        "\"External id\": %llu, \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, "
        "\"correlation\": %llu, \"registers per thread\": 18, \"shared memory\": 0, "
        "\"blocks per SM\": 0.007576, \"warps per SM\": 0.030303, \"grid\": [1, 1, 1], "
        "\"block\": [128, 1, 1], \"est. achieved occupancy %%\": 0\n    }\n  },\n",
        (unsigned long long)m->id, (unsigned long long)id);
}

static void put_memory(maker *m, uint64_t at_ns)
{
    put(m,
        "  {\n    \"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"s\": \"t\", \"name\": "
        "\"[memory]\",\n    \"pid\": 515, \"tid\": 515, \"ts\": %llu.%03llu,\n    \"args\": {\n"
        "      \"Total Reserved\": 69206016, \"Total Allocated\": 68194816, \"Bytes\": 512, "
        "\"Device Id\": 0, \"Device Type\": 1, \"Addr\": %llu, \"Ev Idx\": %llu\n    }\n  },\n",
        (unsigned long long)(3867963656005998 + at_ns) / 1000,
        (unsigned long long)(3867963656005998 + at_ns) % 1000,
        (unsigned long long)(140318124042752 + at_ns % 4096 * 512), (unsigned long long)m->index++);
}

/* A function, in it an op with two ops inside, a launch, a kernel; now and then an allocation. */
static void put_group(maker *m)
{
    static const char *const names[] = {"aten::add",    "aten::mul",
                                        "aten::linear", "aten::relu",
                                        "aten::addmm",  "autograd::engine::evaluate_function: X"};
    uint64_t t = m->now_ns;
    unsigned pick = (unsigned)(m->id % 6);
    unsigned rows = 4 << m->id % 7;
    put_span(m, "python_function", "torch/nn/modules/linear.py(125): forward", 515, 515, t, 30000);
    put(m, "\"Python parent id\": %llu, \"Python id\": %llu, \"Ev Idx\": %llu\n    }\n  },\n",
        (unsigned long long)m->index / 2, (unsigned long long)m->index / 2 + 1,
        (unsigned long long)m->index);
    m->index++;
    put_op(m, names[pick], t + 1000, 25000, rows);
    put_op(m, "aten::empty_strided", t + 2000, 3000, rows);
    put_op(m, "aten::copy_", t + 6000, 18000, rows);
    put_launch(m, t + 8000);
    if (m->id % 4 == 0) {
        put_memory(m, t + 2500);
    }
    m->now_ns += 31000;
}

static uint64_t make_file(const char *path, uint64_t bytes)
{
    maker m = {.file = fopen(path, "w")};
    if (m.file == NULL) {
        perror(path);
        exit(1);
    }
    setvbuf(m.file, NULL, _IOFBF, READ_BYTES);
    put(&m, "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, "
            "\"name\": \"a device\"\n    }\n  ],\n  \"record_shapes\": 1,\n  \"displayTimeUnit\": "
            "\"ms\",\n  \"baseTimeNanoseconds\": 1790857026000000000,\n  \"traceEvents\": [\n");
    while (m.bytes < bytes) {
        put_group(&m);
    }
    put(&m, "  {\n    \"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\",\n    \"pid\": "
            "\"\", \"tid\": \"\", \"ts\": 3867963656005.998\n  }\n  ],\n  \"traceName\": "
            "\"bench.json\"\n}\n");
    if (fclose(m.file) != 0) {
        perror(path);
        exit(1);
    }
    return m.bytes;
}

static double read_ns(const char *path)
{
    char *buffer = malloc(READ_BYTES);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    double before = bench_now_ns();
    while (fd >= 0 && buffer != NULL && read(fd, buffer, READ_BYTES) > 0) {
        BENCH_FENCE();
    }
    double ns = bench_now_ns() - before;
    if (fd >= 0) {
        close(fd);
    }
    free(buffer);
    return ns;
}

/* Opens it and makes the columns; how many events there were. */
static uint64_t load(const char *path)
{
    mtprof_model_options options = {.struct_size = sizeof options, .workers = 1};
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    mtprof_model *model = NULL;
    bench_must(mtprof_model_open(path, &options, &model), "model_open");
    bench_must(mtprof_model_get_findings(model, &findings), "model_findings_get");
    if (findings.skipped + findings.problems + findings.orphans != 0) {
        fprintf(stderr, "bench_import: the trace was not read as it was written\n");
        exit(1);
    }
    mtprof_model_free(model);
    return findings.events;
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    if (!bench_wants("import_json_mbps")) {
        return 0;
    }
    const char *path = bench_path();
    uint64_t bytes = make_file(path, bench_pick(1000000000, 100000000));
    bench_pin(0);
    bench_series ns = {.count = 0};
    bench_series bare = {.count = 0};
    uint64_t events = 0;
    for (uint64_t i = 0; i < bench_pick(5, 3); i++) {
        bench_add(&bare, read_ns(path));
        double before = bench_now_ns();
        events = load(path);
        bench_add(&ns, bench_now_ns() - before);
    }
    unlink(path);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    char extra[256];
    snprintf(extra, sizeof extra,
             "\"bytes\": %llu, \"events\": %llu, \"ns_per_event\": %.0f, \"read_mbps\": %.0f, "
             "\"peak_mib\": %ld, \"peak_bytes_per_event\": %.0f",
             (unsigned long long)bytes, (unsigned long long)events,
             bench_best(&ns) / (double)events, (double)bytes * 1e3 / bench_best(&bare),
             usage.ru_maxrss / 1024, (double)usage.ru_maxrss * 1024 / (double)events);
    bench_emit(&(bench_figure){.name = "import_json_mbps",
                               .unit = "MB/s",
                               .value = (double)bytes * 1e3 / bench_best(&ns),
                               .median = (double)bytes * 1e3 / bench_median(&ns),
                               .limit = 300,
                               .at_least = true,
                               .extra = extra});
    return 0;
}
