/* SPDX-License-Identifier: Apache-2.0
 *
 * make_cli_trace FOLDER: writes the traces that the command's expectation files (tests/cli) talk
 * about. Every time in them is given here, so what the command prints is known to the digit.
 *
 *      train.mtt    six steps of a small training loop: ops with shapes, stacks and memory,
 * kernels, a second thread, metadata same.mtt     the same with other jitter: no change beyond
 * noise slow.mtt     aten::addmm takes 40 % longer, aten::gelu is new, aten::relu gone plain.mtt no
 * steps, ops only plain2.mtt   the same, aten::mul 20 % slower empty.mtt    nothing was recorded
 *      killed.mtt   train.mtt as a killed process leaves it: not closed, a scope open
 *      damaged.mtt  train.mtt with a broken chunk
 *      lossy.mtt    train.mtt with losses in its counters
 *      odd.mtt      names with every kind of byte in them
 *      none.mtt     no trace at all
 */
#include "support/traces/trace_builder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define W(...)                                                         \
    sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]) \
    {                                                                  \
        __VA_ARGS__                                                    \
    }
#define MS 1000000u
#define US 1000u

enum {
    STEPS = 6,
    MAIN_SLOT = 1,
    LOADER_SLOT = 2,
    REAL_SECONDS = 1767323045 /* 2026-01-02 03:04:05 UTC */
};

/* Strings of every trace. */
enum string {
    S_NONE,
    S_LINEAR,
    S_ADDMM,
    S_RELU,
    S_GELU,
    S_MUL,
    S_LOSS,
    S_NEXT,
    S_KERNEL,
    S_FLOAT,
    S_MAIN_THREAD,
    S_LOADER_THREAD,
    S_FUNCTION_MAIN,
    S_FUNCTION_FORWARD,
    S_FILE,
    S_SYN,
    S_NPU,
    S_TENSOR,
    S_NET,
    S_ODD,
    S_STEP /* and the STEPS - 1 after it */
};

static const char *const strings[] = {
    "",          "aten::linear", "aten::addmm",  "aten::relu", "aten::gelu",
    "aten::mul", "loss",         "loader::next", "gemm_f32",   "float",
    "main",      "loader",       "main",         "forward",    "train.py",
    "syn",       "NPU",          "Tensor",       "net.linear", "odd \033[31m\xff\"\\\n<b>",
};

typedef struct form {
    bool steps, slow, jitter_other, odd, open_scope;
    unsigned mul_percent; /* plain: of 1 ms */
} form;

static uint64_t pair(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

/* ---- definitions and control ----------------------------------------------------------------- */

static void write_definitions(trace_builder *b)
{
    char step[32];
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    for (uint32_t i = 1; i < S_STEP; i++) {
        tb_string(b, i, strings[i]);
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        (void)snprintf(step, sizeof step, "ProfilerStep#%u", i);
        tb_string(b, S_STEP + i, step);
    }
    tb_record(b, MTPROF_REC_DEF_INPUTS, 0, 1,
              W(pair(1 | 2 << 8, S_FLOAT), 32, 64, pair(1 | 2 << 8, S_FLOAT), 64, 64));
    tb_record(b, MTPROF_REC_DEF_INPUTS, 0, 2, W(pair(1 | 2 << 8, S_FLOAT), 32, 64));
    tb_record(b, MTPROF_REC_DEF_FRAME, 0, 1, W(pair(S_FUNCTION_MAIN, S_FILE), 10, 0));
    tb_record(b, MTPROF_REC_DEF_FRAME, 0, 2, W(pair(S_FUNCTION_FORWARD, S_FILE), 25, 0));
    tb_record(b, MTPROF_REC_DEF_STACK, 0, 1, W(pair(0, 1)));
    tb_record(b, MTPROF_REC_DEF_STACK, 0, 2, W(pair(1, 2)));
    tb_record(b, MTPROF_REC_DEF_THREAD, 0, 1, W(4242, 0x7F00, S_MAIN_THREAD));
    tb_record(b, MTPROF_REC_DEF_THREAD, 0, 2, W(4243, 0x7F01, S_LOADER_THREAD));
    tb_record(b, MTPROF_REC_DEF_SOURCE, 0, 1, W(pair(S_SYN, S_NPU)));
}

static uint64_t step_ticks(uint32_t step)
{
    return TB_START_TICKS + 1 * MS + step * 10ull * MS;
}

static void write_control(trace_builder *b, const form *f)
{
    const char *meta[] = {"host", "node-1"};
    const char *json[] = {"args", "{\"lr\": 0.1}"};
    uint64_t wants = f->steps ? 0x1FFF : MTPROF_WANT_OPS | MTPROF_WANT_SCOPES;
    tb_chunk(b, MTPROF_STREAM_CONTROL, 0);
    tb_record(b, MTPROF_REC_WINDOW_OPEN, 0, 1, W(TB_START_TICKS, wants, pair(1, 0)));
    tb_record_texts(b, MTPROF_REC_TRACE_META, 0, 0, 1, (uint64_t[]){pair(4, 6)}, 2, meta);
    tb_record_texts(b, MTPROF_REC_TRACE_META, 1, 0, 1, (uint64_t[]){pair(4, 11)}, 2, json);
    for (uint32_t i = 0; f->steps && i < STEPS; i++) {
        tb_record(b, MTPROF_REC_STEP, 2, 0, W(step_ticks(i) - 100, i));
    }
    if (!f->open_scope) {
        tb_record(b, MTPROF_REC_WINDOW_CLOSE, 0, 1, W(step_ticks(STEPS), 1, 1000));
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

static void begin(trace_builder *b, uint16_t flags, uint32_t name, uint64_t ticks)
{
    tb_record(b, MTPROF_REC_BEGIN, flags, name, 1, &ticks);
    b->next_ordinal++;
}

/* What ops have besides their times. */
static void payload(trace_builder *b, uint32_t inputs, uint64_t memory)
{
    tb_single(b, MTPROF_REC_INPUTS, (uint64_t)inputs << 24);
    tb_single(b, MTPROF_REC_STACK, (uint64_t)2 << 24);
    tb_single(b, MTPROF_REC_MEM_BEFORE, memory << 8);
}

static void end(trace_builder *b, uint16_t distance, uint64_t ticks, uint64_t memory)
{
    tb_end(b, distance, ticks);
    if (memory != 0) {
        tb_single(b, MTPROF_REC_MEM_AFTER, memory << 8);
    }
}

static void alloc(trace_builder *b, uint32_t since, uint64_t address, int64_t bytes, uint64_t total)
{
    tb_record(b, MTPROF_REC_ALLOC, 0, since, W(address, (uint64_t)bytes, total));
}

/* Between -1 and 1, the same in every run. */
static int64_t jitter(uint32_t step, bool other)
{
    static const int8_t one[] = {0, 1, -1, 1, 0, -1}, two[] = {1, 0, 0, -1, 1, -1};
    return other ? two[step % STEPS] : one[step % STEPS];
}

/* One step of the main thread; the key of addmm's begin, for its kernel. */
static uint64_t write_step(trace_builder *b, const form *f, uint32_t step)
{
    uint64_t t = step_ticks(step);
    uint64_t shift = (uint64_t)(20 * (int64_t)US * jitter(step, f->jitter_other));
    uint64_t mm = 2 * MS + shift + (f->slow ? 800 * US : 0);
    begin(b, MTPROF_KIND_STEP, S_STEP + step, t);
    begin(b, MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD, S_LINEAR, t + 500 * US);
    payload(b, 1, 1 << 20);
    uint64_t key = (uint64_t)MAIN_SLOT << MTPROF_ORDINAL_BITS | b->next_ordinal;
    begin(b, MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD | MTPROF_FLAG_LAUNCH, S_ADDMM, t + 1 * MS);
    payload(b, 1, 1 << 20);
    alloc(b, 100 * US, 0x10000, 8192, (1 << 20) + 8192);
    end(b, 1, t + 1 * MS + mm, (1 << 20) + 8192);
    end(b, 2, t + 1500 * US + mm, (1 << 20) + 8192);
    begin(b, MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD, f->slow ? S_GELU : S_RELU, t + 5 * MS);
    payload(b, 2, (1 << 20) + 8192);
    alloc(b, 10 * US, 0x20000, 4096, (1 << 20) + 12288);
    end(b, 1, t + 6 * MS - shift, (1 << 20) + 12288);
    begin(b, MTPROF_KIND_SCOPE, S_LOSS, t + 6500 * US);
    alloc(b, 1 * US, 0x10000, -8192, (1 << 20) + 4096);
    alloc(b, 2 * US, 0x20000, -4096, 1 << 20);
    end(b, 1, t + 7500 * US, 0);
    end(b, 5, t + 9 * MS, 0);
    return key;
}

static void write_main(trace_builder *b, const form *f, uint64_t *keys)
{
    b->next_ordinal = 0;
    tb_chunk(b, MTPROF_STREAM_THREAD, MAIN_SLOT);
    tb_set32(b, b->chunk + TB_CHUNK_THREAD, 1);
    for (uint32_t i = 0; f->steps && i < STEPS; i++) {
        keys[i] = write_step(b, f, i);
    }
    for (uint32_t i = 0; !f->steps && f->mul_percent > 0 && i < 4; i++) {
        uint64_t t = step_ticks(i);
        begin(b, MTPROF_KIND_OP, S_MUL, t);
        end(b, 1, t + f->mul_percent * 10ull * US, 0);
        begin(b, MTPROF_KIND_OP, S_RELU, t + 5 * MS);
        end(b, 1, t + 6 * MS, 0);
    }
    if (f->odd) {
        begin(b, MTPROF_KIND_OP, S_ODD, step_ticks(0));
        end(b, 1, step_ticks(0) + 1 * MS, 0);
    }
    if (f->open_scope) {
        begin(b, MTPROF_KIND_SCOPE, S_LOSS, step_ticks(STEPS - 1) + 9500 * US);
    }
}

static void write_loader(trace_builder *b)
{
    b->next_ordinal = 0;
    tb_chunk(b, MTPROF_STREAM_THREAD, LOADER_SLOT);
    tb_set32(b, b->chunk + TB_CHUNK_THREAD, 2);
    for (uint32_t i = 0; i < STEPS; i++) {
        begin(b, MTPROF_KIND_OP, S_NEXT, step_ticks(i) + 2 * MS);
        end(b, 1, step_ticks(i) + 3 * MS, 0);
    }
}

static void write_kernels(trace_builder *b, const uint64_t *keys)
{
    tb_chunk(b, MTPROF_STREAM_SOURCE, 1);
    tb_record(b, MTPROF_REC_CLOCK_PAIR, 0, 0, W(TB_START_TICKS, TB_START_TICKS));
    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t start = step_ticks(i) + 1500 * US;
        tb_record(b, MTPROF_REC_ACTIVITY, MTPROF_ACTIVITY_KERNEL, S_KERNEL,
                  W(start, start + 1 * MS, keys[i], pair(0, 7), i + 1, 0));
    }
    tb_record(b, MTPROF_REC_CLOCK_PAIR, 0, 0, W(step_ticks(STEPS), step_ticks(STEPS)));
}

/* ---- files ----------------------------------------------------------------------------------- */

static void build(trace_builder *b, const form *f)
{
    uint64_t keys[STEPS] = {0};
    tb_init(b);
    tb_set64(b, TB_AT_START + 16, (uint64_t)REAL_SECONDS * 1000000000u);
    b->chunk_bytes = 16384;
    b->chunk_state = f->open_scope ? MTPROF_CHUNK_OPEN : MTPROF_CHUNK_CHECKED;
    write_definitions(b);
    write_control(b, f);
    write_main(b, f, keys);
    if (f->steps) {
        write_loader(b);
        write_kernels(b, keys);
    }
    tb_set64(b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_BEGINS, f->steps ? 36 : 8);
    tb_set64(b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_LAUNCHES, f->steps ? STEPS : 0);
    tb_set64(b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_ACTIVITIES, f->steps ? STEPS : 0);
}

static void save(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        (void)fprintf(stderr, "make_cli_trace: cannot write %s\n", path);
        exit(1);
    }
}

static void make(const char *folder, const char *name, form f)
{
    trace_builder b;
    build(&b, &f);
    if (strcmp(name, "lossy.mtt") == 0) {
        tb_set64(&b, TB_AT_HEALTH + 8 * MTPROF_LOST_DISK, 120);
        tb_set64(&b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_TEXTS_CUT, 3);
    }
    tb_set64(&b, TB_AT_END_TICKS, f.open_scope ? 0 : step_ticks(STEPS));
    tb_finish(&b, !f.open_scope);
    if (strcmp(name, "damaged.mtt") == 0) {
        b.bytes[b.chunk + 64 + 40] ^= 0x10; /* in the kernels' chunk, the last */
    }
    save(folder, name, b.bytes, b.size);
    tb_fini(&b);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: make_cli_trace FOLDER\n", stderr);
        return 2;
    }
    make(argv[1], "train.mtt", (form){.steps = true});
    make(argv[1], "same.mtt", (form){.steps = true, .jitter_other = true});
    make(argv[1], "slow.mtt", (form){.steps = true, .slow = true, .jitter_other = true});
    make(argv[1], "plain.mtt", (form){.mul_percent = 100});
    make(argv[1], "plain2.mtt", (form){.mul_percent = 120});
    make(argv[1], "empty.mtt", (form){0});
    make(argv[1], "killed.mtt", (form){.steps = true, .open_scope = true});
    make(argv[1], "damaged.mtt", (form){.steps = true});
    make(argv[1], "lossy.mtt", (form){.steps = true});
    make(argv[1], "odd.mtt", (form){.odd = true});
    save(argv[1], "none.mtt", "This is not a trace.\n", 21);
    return 0;
}
