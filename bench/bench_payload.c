/* SPDX-License-Identifier: Apache-2.0
 *
 * What events cost that carry more than a place and a time: ops with shapes, memory and details,
 * dynamic names, stacks, allocations, counters, instants. All on warm memory with repeated content,
 * as in a training loop: the caches of the recorder hit.
 */
#include "bench_harness.h"

#include <mtprof/op.h>

#include <stdio.h>
#include <string.h>

enum {
    BATCH = 20000,
    DEPTH = 20 /* frames of a stack */
};

static const int64_t sizes[3][4] = {{32, 64, 56, 56}, {128, 64, 3, 3}, {1, 128, 54, 54}};

static const mtprof_value inputs[3] = {
    {.kind = MTPROF_INPUT_TENSOR, .n_dims = 4, .of.sizes = sizes[0]},
    {.kind = MTPROF_INPUT_TENSOR, .n_dims = 4, .of.sizes = sizes[1]},
    {.kind = MTPROF_INPUT_TENSOR, .n_dims = 4, .of.sizes = sizes[2]},
};

static mtprof_site op_site = MTPROF_SITE_INIT("bench::conv2d", MTPROF_KIND_OP);

/* ---- ops ---- */

static void op_shapes(void *context, uint64_t n)
{
    (void)context;
    mtprof_op op = {.struct_size = sizeof op, .inputs = inputs, .n_inputs = 3};
    for (uint64_t i = 0; i < n; i++) {
        mtprof_token token = mtprof_op_begin(&op_site, &op);
        BENCH_FENCE();
        mtprof_end(token);
    }
}

static void op_all(void *context, uint64_t n)
{
    const uint32_t *strings = context;
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = MTPROF_OP_SEQUENCE | MTPROF_OP_OVERLOAD | MTPROF_OP_FLOPS |
                              MTPROF_OP_MODULE | MTPROF_OP_MEMORY,
                    .inputs = inputs,
                    .n_inputs = 3,
                    .overload = strings[0],
                    .module = strings[1],
                    .flops = 1000000,
                    .memory_before = 1 << 20};
    for (uint64_t i = 0; i < n; i++) {
        op.sequence = i;
        mtprof_token token = mtprof_op_begin(&op_site, &op);
        BENCH_FENCE();
        mtprof_op_end(token, 0, 2 << 20);
    }
}

static void emit_pair(const bench_case *event, const bench_case *floor, double over)
{
    bench_emit(&(bench_figure){.name = event->name,
                               .unit = "ns",
                               .value = event->best_ns,
                               .median = event->median_ns,
                               .floor = floor->best_ns,
                               .limit = over != 0 ? floor->best_ns + over : 0});
}

static void bench_op(bench_case event, uint64_t wants, double over)
{
    mtprof_session *session = bench_start_warm(NULL, wants);
    bench_case cases[] = {{.name = "floor", .run = bench_floor}, event};
    bench_compare(cases, 2, BATCH, (int)bench_pick(150, 60));
    bench_close(session);
    emit_pair(&cases[1], &cases[0], over);
}

/* ---- names and marks ---- */

static void named_scopes(void *context, uint64_t n)
{
    const char *name = context;
    size_t length = strlen(name);
    for (uint64_t i = 0; i < n; i++) {
        mtprof_token token = mtprof_begin_named(name, length, MTPROF_KIND_SCOPE);
        BENCH_FENCE();
        mtprof_end(token);
    }
}

static void instants(void *context, uint64_t n)
{
    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        MTPROF_INSTANT("tick");
        BENCH_FENCE();
    }
}

static void counters(void *context, uint64_t n)
{
    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        MTPROF_COUNTER("queue", (int64_t)i);
        BENCH_FENCE();
    }
}

/* Inside a scope, where an allocation does not read the clock. */
static void allocs(void *context, uint64_t n)
{
    (void)context;
    MTPROF_SCOPE("allocating");
    for (uint64_t i = 0; i < n; i++) {
        mtprof_alloc(0, 0x10000 + 64 * i, 64, 64 * i, 1 << 30);
    }
}

static void one_reading(void *context, uint64_t n)
{
    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t ticks = bench_ticks();
        BENCH_HIDE(ticks);
    }
}

static void bench_marks(void)
{
    char name[] = "dataloader_worker_3";
    mtprof_session *session = bench_start_warm(NULL, MTPROF_WANT_ALLOCS);
    bench_case cases[] = {
        {.name = "floor", .run = bench_floor},
        {.name = "one reading", .run = one_reading},
        {.name = "named_scope_ns", .run = named_scopes, .context = name},
        {.name = "instant_ns", .run = instants},
        {.name = "counter_ns", .run = counters},
        {.name = "alloc_ns", .run = allocs},
    };
    bench_compare(cases, 6, BATCH, (int)bench_pick(120, 50));
    bench_close(session);
    emit_pair(&cases[2], &cases[0], 0);
    emit_pair(&cases[3], &cases[1], 0);
    emit_pair(&cases[4], &cases[1], 0);
    bench_emit(&(bench_figure){.name = cases[5].name,
                               .unit = "ns",
                               .value = cases[5].best_ns,
                               .median = cases[5].median_ns});
}

/* ---- stacks ---- */

static void host_stacks(void *context, uint64_t n)
{
    const uint32_t *frames = context;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t node = 0;
        for (int d = 0; d < DEPTH; d++) {
            node = mtprof_stack_push(node, frames[d]);
        }
        BENCH_HIDE(node);
    }
}

static void whole_stacks(void *context, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t node = mtprof_stack(context, DEPTH);
        BENCH_HIDE(node);
    }
}

static BENCH_NOINLINE void native_stacks(void *context, uint64_t n)
{
    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t node = mtprof_stack_native(0);
        BENCH_HIDE(node);
    }
}

/* Calls the measurement from `more` frames further in. */
static BENCH_NOINLINE void go_deeper(bench_case *event, int rounds, int more)
{
    if (more > 0) {
        go_deeper(event, rounds, more - 1);
    } else {
        bench_compare(event, 1, BATCH / 10, rounds);
    }
    BENCH_FENCE(); /* not a tail call: the frame is the point */
}

static void bench_stacks(void)
{
    uint32_t frames[DEPTH];
    for (int i = 0; i < DEPTH; i++) {
        char function[32];
        int length = snprintf(function, sizeof function, "function_%d", i);
        frames[i] = mtprof_define_frame(function, (size_t)length, "model.py", 8, (uint32_t)i + 1);
    }
    int rounds = (int)bench_pick(150, 60);
    mtprof_session *session =
        bench_start_warm(NULL, MTPROF_WANT_STACKS | MTPROF_WANT_NATIVE_STACKS);
    bench_case host[] = {{.name = "stack_push_ns", .run = host_stacks, .context = frames},
                         {.name = "stack_whole_ns", .run = whole_stacks, .context = frames}};
    bench_compare(host, 2, BATCH / 10, rounds);
    /* main, bench_stacks, bench_compare, native_stacks and the first go_deeper are frames, too. */
    bench_case native = {.name = "native_stack_ns", .run = native_stacks};
    go_deeper(&native, rounds, DEPTH - 5);
    bench_close(session);
    bench_emit(&(bench_figure){.name = "stack_push_ns",
                               .unit = "ns/frame",
                               .value = host[0].best_ns / DEPTH,
                               .median = host[0].median_ns / DEPTH});
    bench_emit(&(bench_figure){.name = "stack_whole_ns",
                               .unit = "ns/frame",
                               .value = host[1].best_ns / DEPTH,
                               .median = host[1].median_ns / DEPTH});
    bench_emit(&(bench_figure){.name = "native_stack_ns",
                               .unit = "ns",
                               .value = native.best_ns,
                               .median = native.median_ns});
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    if (bench_wants("scope_shapes_ns")) {
        bench_op((bench_case){.name = "scope_shapes_ns", .run = op_shapes}, MTPROF_WANT_INPUTS, 4);
    }
    if (bench_wants("op_all_ns")) {
        uint32_t strings[] = {mtprof_intern("Tensor", 6), mtprof_intern("model.layer1.conv", 17)};
        bench_op((bench_case){.name = "op_all_ns", .run = op_all, .context = strings},
                 MTPROF_WANT_INPUTS | MTPROF_WANT_MEMORY | MTPROF_WANT_DETAILS | MTPROF_WANT_FLOPS |
                     MTPROF_WANT_MODULES,
                 0);
    }
    if (bench_wants("named_scope_ns instant_ns counter_ns alloc_ns")) {
        bench_marks();
    }
    if (bench_wants("stack_push_ns stack_whole_ns native_stack_ns")) {
        bench_stacks();
    }
    return 0;
}
