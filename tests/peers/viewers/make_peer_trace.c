/* SPDX-License-Identifier: Apache-2.0
 *
 * make_peer_trace FOLDER: a small training run on two ranks, FOLDER/rank0.mtt and rank1.mtt, for
 * programs that analyse traces of CUDA devices (tools/peers). Every time is given here, in whole
 * microseconds, since some of those programs round.
 *
 *      step      0    forward  3000  3100  backward   6000    copy  set   sync   9000
 *      main      [ [ linear [addmm] relu ] [ node [mm] all_reduce ]  [ ]  [ ]  [ ]   ]
 *      stream 7            [gemm]   [relu]     [gemm]              [copy][set]
 *      stream 20                                  [all reduce]
 */
#include "support/traces/trace_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define W(...)                                                         \
    sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]) \
    {                                                                  \
        __VA_ARGS__                                                    \
    }

enum {
    STEPS = 4,
    SLOT = 1,
    US = 1000,
    STEP_NS = 10000 * US,
    MOST_WORK = STEPS * 8,
    COMPUTE = 7,
    COMMUNICATION = 20,
    REAL_SECONDS = 1767323045, /* 2026-01-02 03:04:05 UTC */
    PERIOD = 7889238           /* seconds of a slot of base times, torch-contract 5.3.2 */
};

enum string {
    S_NONE,
    S_LINEAR,
    S_ADDMM,
    S_RELU,
    S_NODE,
    S_WRAPPER,
    S_MM,
    S_ALL_REDUCE,
    S_COPY,
    S_ZERO,
    S_FORWARD,
    S_BACKWARD,
    S_LAUNCH,
    S_COPY_CALL,
    S_SET_CALL,
    S_SYNC,
    S_GEMM,
    S_RELU_KERNEL,
    S_NCCL,
    S_COPY_WORK,
    S_SET_WORK,
    S_FLOAT,
    S_MAIN,
    S_SOURCE,
    S_CUDA,
    S_REGISTERS,
    S_SHARED,
    S_BLOCKS,
    S_WARPS,
    S_OCCUPANCY,
    S_STEP /* and the STEPS - 1 after it */
};

static const char *const strings[S_STEP] = {
    "",
    "aten::linear",
    "aten::addmm",
    "aten::relu",
    "AddmmBackward0",
    "autograd::engine::evaluate_function: AddmmBackward0",
    "aten::mm",
    "nccl:all_reduce",
    "aten::copy_",
    "aten::zero_",
    "forward",
    "backward",
    "cudaLaunchKernel",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "cudaDeviceSynchronize",
    "gemm_f32",
    "relu_kernel",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
    "Memcpy HtoD (Pageable -> Device)",
    "Memset (Device)",
    "float",
    "main",
    "peer",
    "CUDA",
    "registers per thread",
    "shared memory",
    "blocks per SM",
    "warps per SM",
    "est. achieved occupancy %",
};

typedef struct work {
    enum string name;
    uint16_t kind; /* MTPROF_ACTIVITY_... */
    uint32_t queue;
    uint64_t start, end, key, bytes;
} work;

typedef struct run {
    trace_builder b;
    unsigned rank;
    work todo[MOST_WORK];
    size_t n_todo;
    uint64_t open[8]; /* ordinals of open scopes */
    size_t n_open;
} run;

static uint64_t pair(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

static uint64_t at(unsigned step, uint64_t us)
{
    return TB_START_TICKS + 1000 * US + step * (uint64_t)STEP_NS + us * US;
}

/* ---- the host -------------------------------------------------------------------------------- */

static void begin(run *r, uint16_t flags, enum string name, uint64_t ticks)
{
    tb_record(&r->b, MTPROF_REC_BEGIN, flags, name, 1, &ticks);
    r->open[r->n_open++] = r->b.next_ordinal++;
}

static void end(run *r, uint64_t ticks)
{
    r->n_open--;
    tb_end(&r->b, (uint16_t)(r->b.next_ordinal - r->open[r->n_open]), ticks);
}

/* An op with shapes, and with a sequence number if that is not 0; forward: the forward thread. */
static void begin_op(run *r, enum string name, uint64_t ticks, uint64_t sequence, uint64_t forward)
{
    begin(r, MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD, name, ticks);
    tb_single(&r->b, MTPROF_REC_INPUTS, (uint64_t)1 << 24);
    if (sequence != 0) {
        tb_record(&r->b, MTPROF_REC_OPINFO,
                  1 << MTPROF_OPINFO_SEQUENCE | 1 << MTPROF_OPINFO_FORWARD_THREAD |
                      1 << MTPROF_OPINFO_RECORD_SCOPE,
                  0, W(sequence, forward, forward != 0 && name == S_NODE));
    }
}

/* A runtime call of 10 us that starts this work on the device. */
static void launch(run *r, enum string call, uint64_t ticks, work what)
{
    what.key = (uint64_t)SLOT << MTPROF_ORDINAL_BITS | r->b.next_ordinal;
    r->todo[r->n_todo++] = what;
    begin(r, MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH, call, ticks);
    end(r, ticks + 10 * US);
}

static void alloc(run *r, uint32_t since, uint64_t address, int64_t bytes, uint64_t total)
{
    tb_record(&r->b, MTPROF_REC_ALLOC, 0, since, W(address, (uint64_t)bytes, total));
}

static work kernel(enum string name, uint32_t queue, uint64_t start, uint64_t us)
{
    return (work){.name = name,
                  .kind = MTPROF_ACTIVITY_KERNEL,
                  .queue = queue,
                  .start = start,
                  .end = start + us * US};
}

static void write_forward(run *r, unsigned k)
{
    begin(r, MTPROF_KIND_SCOPE, S_FORWARD, at(k, 100));
    begin_op(r, S_LINEAR, at(k, 200), k + 1, 0);
    begin_op(r, S_ADDMM, at(k, 300), k + 1, 0);
    alloc(r, 10 * US, 0x10000, 8192, 8192);
    launch(r, S_LAUNCH, at(k, 500),
           kernel(S_GEMM, COMPUTE, at(k, 600), 800 + 10 * r->rank + 20 * k));
    end(r, at(k, 1300));
    end(r, at(k, 1400));
    begin_op(r, S_RELU, at(k, 1500), 0, 0);
    launch(r, S_LAUNCH, at(k, 1600), kernel(S_RELU_KERNEL, COMPUTE, at(k, 1800), 200));
    end(r, at(k, 2000));
    end(r, at(k, 3000));
}

static void write_backward(run *r, unsigned k)
{
    begin(r, MTPROF_KIND_SCOPE, S_BACKWARD, at(k, 3100));
    begin_op(r, S_WRAPPER, at(k, 3150), k + 1, 1);
    begin_op(r, S_NODE, at(k, 3200), k + 1, 1);
    begin_op(r, S_MM, at(k, 3250), 0, 0);
    launch(r, S_LAUNCH, at(k, 3300), kernel(S_GEMM, COMPUTE, at(k, 3500), 900));
    end(r, at(k, 3600));
    end(r, at(k, 3650));
    end(r, at(k, 3700));
    begin_op(r, S_ALL_REDUCE, at(k, 3800), 0, 0);
    launch(r, S_LAUNCH, at(k, 3900),
           kernel(S_NCCL, COMMUNICATION, at(k, 4000), 1200 - 300 * r->rank));
    end(r, at(k, 4000));
    end(r, at(k, 6000));
}

static void write_rest(run *r, unsigned k)
{
    work copy = {.name = S_COPY_WORK,
                 .kind = MTPROF_ACTIVITY_COPY,
                 .queue = COMPUTE,
                 .start = at(k, 6300),
                 .end = at(k, 6400),
                 .bytes = 1 << 20};
    work set = {.name = S_SET_WORK,
                .kind = MTPROF_ACTIVITY_SET,
                .queue = COMPUTE,
                .start = at(k, 6600),
                .end = at(k, 6620),
                .bytes = 4096};
    begin_op(r, S_COPY, at(k, 6100), 0, 0);
    launch(r, S_COPY_CALL, at(k, 6200), copy);
    alloc(r, 20 * US, 0x10000, -8192, 0);
    end(r, at(k, 6400));
    begin_op(r, S_ZERO, at(k, 6450), 0, 0);
    launch(r, S_SET_CALL, at(k, 6500), set);
    end(r, at(k, 6550));
    begin(r, MTPROF_KIND_RUNTIME, S_SYNC, at(k, 7000));
    end(r, at(k, 7100));
}

static void write_host(run *r)
{
    tb_chunk(&r->b, MTPROF_STREAM_THREAD, SLOT);
    tb_set32(&r->b, r->b.chunk + TB_CHUNK_THREAD, 1);
    for (unsigned k = 0; k < STEPS; k++) {
        begin(r, MTPROF_KIND_STEP, S_STEP + k, at(k, 0));
        write_forward(r, k);
        write_backward(r, k);
        write_rest(r, k);
        end(r, at(k, 9000));
    }
}

/* ---- the device ------------------------------------------------------------------------------ */

static void meta(run *r, enum string key, uint16_t type, uint64_t value)
{
    tb_record(&r->b, MTPROF_REC_META, type, key, 1, &value);
}

static void meta_double(run *r, enum string key, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    meta(r, key, MTPROF_META_REAL, bits);
}

static void write_device(run *r)
{
    tb_chunk(&r->b, MTPROF_STREAM_SOURCE, 1);
    tb_record(&r->b, MTPROF_REC_CLOCK_PAIR, 0, 0, W(TB_START_TICKS, TB_START_TICKS));
    for (size_t i = 0; i < r->n_todo; i++) {
        const work *w = &r->todo[i];
        tb_record(&r->b, MTPROF_REC_ACTIVITY, w->kind, w->name,
                  W(w->start, w->end, w->key, pair(0, w->queue), i + 1, w->bytes));
        if (w->kind == MTPROF_ACTIVITY_KERNEL) {
            meta(r, S_REGISTERS, MTPROF_META_INT, 32);
            meta(r, S_SHARED, MTPROF_META_INT, 1024);
            meta_double(r, S_BLOCKS, 1.5);
            meta_double(r, S_WARPS, 12.0);
            meta(r, S_OCCUPANCY, MTPROF_META_INT, 40);
        }
    }
    tb_record(&r->b, MTPROF_REC_CLOCK_PAIR, 0, 0, W(at(STEPS, 0), at(STEPS, 0)));
}

/* ---- files ----------------------------------------------------------------------------------- */

static void write_definitions(trace_builder *b)
{
    char step[32];
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    for (uint32_t i = 1; i < S_STEP; i++) {
        tb_string(b, i, strings[i]);
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        (void)snprintf(step, sizeof step, "ProfilerStep#%u", i + 1);
        tb_string(b, S_STEP + i, step);
    }
    tb_record(b, MTPROF_REC_DEF_INPUTS, 0, 1, W(pair(1 | 2 << 8, S_FLOAT), 32, 64));
    tb_record(b, MTPROF_REC_DEF_THREAD, 0, 1, W(4242, 0x7F00, S_MAIN));
    tb_record(b, MTPROF_REC_DEF_SOURCE, 0, 1, W(pair(S_SOURCE, S_CUDA)));
}

static void write_control(run *r)
{
    char info[128];
    int length = snprintf(info, sizeof info,
                          "{\"backend\": \"nccl\", \"rank\": %u, \"world_size\": 2}", r->rank);
    const char *device = "[{\"id\": 0, \"name\": \"Peer\", \"totalGlobalMem\": 1073741824, "
                         "\"computeMajor\": 8, \"computeMinor\": 0, \"numSms\": 108, "
                         "\"maxThreadsPerBlock\": 1024, \"warpSize\": 32}]";
    const char *ranks[] = {"distributedInfo", info};
    const char *devices[] = {"deviceProperties", device};
    tb_chunk(&r->b, MTPROF_STREAM_CONTROL, 0);
    tb_record(&r->b, MTPROF_REC_WINDOW_OPEN, 0, 1,
              W(TB_START_TICKS, (1u << 13) - 1 - MTPROF_WANT_STACKS, pair(1, 0)));
    tb_record_texts(&r->b, MTPROF_REC_TRACE_META, 1, 0, 1, (uint64_t[]){pair(15, (uint32_t)length)},
                    2, ranks);
    tb_record_texts(&r->b, MTPROF_REC_TRACE_META, 1, 0, 1,
                    (uint64_t[]){pair(16, (uint32_t)strlen(device))}, 2, devices);
    for (uint32_t k = 0; k < STEPS; k++) {
        tb_record(&r->b, MTPROF_REC_STEP, 2, 0, W(at(k, 0) - 100, k + 1));
    }
    tb_record(&r->b, MTPROF_REC_WINDOW_CLOSE, 0, 1, W(at(STEPS, 0), 1, 1000));
}

static void make(const char *folder, unsigned rank)
{
    char path[4096];
    run r = {.rank = rank};
    tb_init(&r.b);
    /* Early in a slot of base times. */
    tb_set64(&r.b, TB_AT_START + 16,
             (uint64_t)(REAL_SECONDS / PERIOD * PERIOD + 100) * 1000000000u);
    r.b.chunk_bytes = 16384;
    r.b.chunk_state = MTPROF_CHUNK_CHECKED;
    write_definitions(&r.b);
    write_control(&r);
    write_host(&r);
    write_device(&r);
    tb_set64(&r.b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_BEGINS, r.b.next_ordinal);
    tb_set64(&r.b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_LAUNCHES, r.n_todo);
    tb_set64(&r.b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_ACTIVITIES, r.n_todo);
    tb_set64(&r.b, TB_AT_END_TICKS, at(STEPS, 0));
    tb_finish(&r.b, true);
    (void)snprintf(path, sizeof path, "%s/rank%u.mtt", folder, rank);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(r.b.bytes, 1, r.b.size, file) != r.b.size || fclose(file) != 0) {
        (void)fprintf(stderr, "make_peer_trace: cannot write %s\n", path);
        exit(1);
    }
    tb_fini(&r.b);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: make_peer_trace FOLDER\n", stderr);
        return 2;
    }
    make(argv[1], 0);
    make(argv[1], 1);
    return 0;
}
