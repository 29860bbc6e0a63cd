/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs with a planted fault, and programs without one: the right cause comes first, the clean
 * ones have none. Times are exact (timed_trace.h), so the answers are.
 */
#include "harness/mt_test.h"
#include "support/traces/timed_trace.h"

#include <mtprof/explain.h>

#include <stdio.h>
#include <string.h>

enum {
    STEPS = 10,
    US = 1000,
    MS = 1000 * 1000,
    MIB = 1 << 20
};

/* ---- what programs are made of --------------------------------------------------------------- */

/* n ops that launch kernels. */
static void launch_kernels(timed_trace *t, int n, uint64_t host_ns, uint64_t kernel_ns)
{
    for (int i = 0; i < n; i++) {
        uint64_t key = tt_launch(t, 0, "aten::mm", host_ns);
        tt_kernel(t, key, 0, "gemm", kernel_ns);
    }
}

/* The host waits in a launch because the queue is full, and goes on shortly before it is empty. */
static void keep_pace(timed_trace *t)
{
    uint64_t until = t->free_at[0] > 400 * US ? t->free_at[0] - 400 * US : 0;
    uint64_t key = tt_launch(t, 0, "aten::add", until > t->now[0] ? until - t->now[0] : 5 * US);
    tt_kernel(t, key, 0, "add", 20 * US);
}

/* A step that keeps the device busy. */
static void good_step(timed_trace *t)
{
    launch_kernels(t, 10, 5 * US, 500 * US);
    keep_pace(t);
}

static void cpu_step(timed_trace *t)
{
    for (int i = 0; i < 10; i++) {
        tt_span(t, 0, MTPROF_KIND_OP, "aten::mm", 500 * US);
        tt_pass(t, 0, 5 * US);
    }
}

static void drain(timed_trace *t)
{
    t->now[0] = t->now[0] > t->free_at[0] ? t->now[0] : t->free_at[0];
}

#define EACH_STEP(t) for (int step = 0; step < STEPS; tt_step_if(t, step), step++)
static void tt_step_if(timed_trace *t, int step)
{
    if (step + 1 < STEPS) {
        tt_step(t);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void data_device(timed_trace *t)
{
    EACH_STEP(t)
    {
        drain(t);
        tt_span(t, 0, MTPROF_KIND_SCOPE, "enumerate(DataLoader)#_Iter.__next__", 3 * MS);
        good_step(t);
    }
}

static void data_cpu(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_begin(t, 0, MTPROF_KIND_SCOPE, "load_batch");
        tt_span(t, 0, MTPROF_KIND_OP, "aten::stack", 200 * US);
        tt_pass(t, 0, 1 * MS);
        tt_end(t, 0);
        cpu_step(t);
    }
}

static void data_function(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_span(t, 0, MTPROF_KIND_FUNCTION, "torch/utils/data/dataloader.py(701): __next__",
                2 * MS);
        cpu_step(t);
    }
}

static void host_bound(timed_trace *t)
{
    EACH_STEP(t)
    {
        good_step(t);
        drain(t);
        tt_span(t, 0, MTPROF_KIND_OP, "aten::sort", 2 * MS);
    }
}

static void host_bound_many(timed_trace *t)
{
    EACH_STEP(t)
    {
        for (int i = 0; i < 10; i++) {
            tt_span(t, 0, MTPROF_KIND_OP, "aten::index", 100 * US);
            launch_kernels(t, 1, 5 * US, 30 * US);
            drain(t);
        }
    }
}

static void launch_small(timed_trace *t)
{
    EACH_STEP(t)
    {
        launch_kernels(t, 200, 10 * US, 2 * US);
    }
}

static void launch_large(timed_trace *t)
{
    EACH_STEP(t)
    {
        launch_kernels(t, 50, 100 * US, 40 * US);
    }
}

static void sync_item(timed_trace *t)
{
    EACH_STEP(t)
    {
        for (int i = 0; i < 10; i++) {
            launch_kernels(t, 2, 15 * US, 150 * US);
            tt_read(t, 0, "aten::item", 5 * US);
        }
    }
}

static void sync_latency(timed_trace *t)
{
    EACH_STEP(t)
    {
        for (int i = 0; i < 5; i++) {
            launch_kernels(t, 4, 5 * US, 100 * US);
            tt_read(t, 0, "aten::nonzero", 120 * US);
        }
    }
}

static void copy_memory(timed_trace *t)
{
    EACH_STEP(t)
    {
        uint64_t key = tt_launch(t, 0, "aten::to", 10 * US);
        tt_work(t, MTPROF_ACTIVITY_COPY, key, 0, "Memcpy HtoD (Pageable -> Device)", 2 * MS,
                8 * MIB);
        good_step(t);
    }
}

static void copy_convert(timed_trace *t)
{
    EACH_STEP(t)
    {
        uint64_t key = tt_launch(t, 0, "aten::_to_copy", 10 * US);
        tt_kernel(t, key, 0, "copy_f32_f16", 2 * MS);
        good_step(t);
    }
}

static void copy_cpu(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_begin(t, 0, MTPROF_KIND_OP, "aten::contiguous");
        tt_span(t, 0, MTPROF_KIND_OP, "aten::clone", 2 * MS);
        tt_end(t, 0);
        cpu_step(t);
    }
}

static void small_paused(timed_trace *t)
{
    t->pause = 2 * US;
    EACH_STEP(t)
    {
        launch_kernels(t, 400, 1 * US, 4 * US);
        keep_pace(t);
    }
}

static void small_cpu(timed_trace *t)
{
    EACH_STEP(t)
    {
        for (int i = 0; i < 1000; i++) {
            tt_span(t, 0, MTPROF_KIND_OP, "aten::add", 2 * US);
        }
        tt_pass(t, 0, 20 * US);
    }
}

static void slow_checkpoint(timed_trace *t)
{
    EACH_STEP(t)
    {
        cpu_step(t);
        tt_span(t, 0, MTPROF_KIND_SCOPE, "save checkpoint", step == 6 ? 20 * MS : 1 * US);
    }
}

static void slow_data(timed_trace *t)
{
    EACH_STEP(t)
    {
        drain(t);
        tt_span(t, 0, MTPROF_KIND_SCOPE, "next_batch", step == 4 ? 30 * MS : 20 * US);
        good_step(t);
    }
}

static void warm_up_cpu(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_span(t, 0, MTPROF_KIND_OP, "aten::mm", step == 0 ? 40 * MS : 5 * MS);
    }
}

static void warm_up_device(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_launch(t, 0, "aten::empty", step < 2 ? 12 * MS : 1 * US);
        good_step(t);
    }
    t->launches -= STEPS; /* these launch nothing */
}

static void memory_kept(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_begin(t, 0, MTPROF_KIND_OP, "aten::zeros");
        tt_alloc(t, 0x100000 + (uint64_t)step * 4 * MIB, 2 * MIB);
        tt_end(t, 0);
        cpu_step(t);
    }
}

static void memory_kept_among_others(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_begin(t, 0, MTPROF_KIND_OP, "aten::mm");
        tt_alloc(t, 0x10, 30 * MIB);
        tt_pass(t, 0, 2 * MS);
        tt_end(t, 0);
        tt_begin(t, 0, MTPROF_KIND_OP, "aten::add");
        tt_alloc(t, 0x100000 + (uint64_t)step * 4 * MIB, 3 * MIB);
        tt_pass(t, 0, 2 * MS);
        tt_end(t, 0);
        tt_alloc(t, 0x10, -30 * MIB);
    }
}

static void memory_one_block(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_begin(t, 0, MTPROF_KIND_OP, "aten::bmm");
        tt_alloc(t, 0x10, 200 * MIB);
        tt_pass(t, 0, 2 * MS);
        tt_end(t, 0);
        tt_alloc(t, 0x20 + (uint64_t)step, step == 0 ? 40 * MIB : 1);
        tt_alloc(t, 0x10, -200 * MIB);
        cpu_step(t);
    }
}

static void memory_refused(timed_trace *t)
{
    EACH_STEP(t)
    {
        cpu_step(t);
        tt_begin(t, 0, MTPROF_KIND_OP, "aten::empty");
        tt_alloc(t, 0x10 + (uint64_t)step, 1 * MIB);
        if (step == 7) {
            tt_refuse(t, 1 << 30);
        }
        tt_alloc(t, 0x10 + (uint64_t)step, -1 * MIB);
        tt_end(t, 0);
    }
}

static void python_cpu(timed_trace *t)
{
    EACH_STEP(t)
    {
        for (int i = 0; i < 100; i++) {
            tt_span(t, 0, MTPROF_KIND_OP, "aten::add", 10 * US);
            tt_pass(t, 0, 20 * US);
        }
    }
}

static void python_device(timed_trace *t)
{
    EACH_STEP(t)
    {
        for (int i = 0; i < 50; i++) {
            launch_kernels(t, 1, 5 * US, 60 * US);
            tt_pass(t, 0, 100 * US);
        }
    }
}

static void lock_scope(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_span(t, 0, MTPROF_KIND_SCOPE, "pthread_mutex_lock", 1 * MS);
        cpu_step(t);
    }
}

static void lock_python(timed_trace *t)
{
    EACH_STEP(t)
    {
        good_step(t);
        drain(t);
        tt_span(t, 0, MTPROF_KIND_FUNCTION, "<method 'acquire' of '_thread.lock' objects>", 2 * MS);
    }
}

static void recompile_some(timed_trace *t)
{
    EACH_STEP(t)
    {
        if (step % 3 == 1) {
            tt_span(t, 0, MTPROF_KIND_SCOPE, "_compile.compile_inner (dynamo_timed)", 20 * MS);
        }
        cpu_step(t);
    }
}

static void recompile_once(timed_trace *t)
{
    EACH_STEP(t)
    {
        drain(t);
        if (step == 5) {
            tt_span(t, 0, MTPROF_KIND_RUNTIME, "cuModuleLoadData", 30 * MS);
        }
        good_step(t);
    }
}

static void imbalance_threads(timed_trace *t)
{
    EACH_STEP(t)
    {
        for (int i = 1; i <= 4; i++) {
            t->now[i] = t->now[0];
            tt_span(t, i, MTPROF_KIND_SCOPE, "worker", i == 2 ? 6 * MS : 2 * MS);
        }
        tt_pass(t, 0, 6 * MS + 10 * US);
    }
}

static void imbalance_queues(timed_trace *t)
{
    EACH_STEP(t)
    {
        drain(t);
        for (int i = 0; i < 5; i++) {
            uint64_t key = tt_launch(t, 0, "aten::mm", 2 * US);
            tt_kernel(t, key, 0, "gemm", 900 * US);
            key = tt_launch(t, 0, "aten::mm", 2 * US);
            tt_kernel(t, key, 1, "gemm", 200 * US);
        }
    }
}

static void profiler_lost(timed_trace *t)
{
    t->lost = 1234;
    EACH_STEP(t)
    {
        cpu_step(t);
    }
}

static void profiler_cost(timed_trace *t)
{
    t->pair_cost_ns = 20 * US;
    EACH_STEP(t)
    {
        for (int i = 0; i < 40; i++) {
            tt_span(t, 0, MTPROF_KIND_OP, "aten::mm", 100 * US);
        }
    }
}

static void profiler_unanswered(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_launch(t, 0, "aten::relu", 1 * US);
        good_step(t);
    }
}

/* ---- clean programs -------------------------------------------------------------------------- */

static void clean_device(timed_trace *t)
{
    EACH_STEP(t)
    {
        good_step(t);
    }
}

static void clean_cpu(timed_trace *t)
{
    EACH_STEP(t)
    {
        cpu_step(t);
    }
}

static void clean_some_data(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_span(t, 0, MTPROF_KIND_SCOPE, "next_batch", 200 * US); /* 4 % */
        cpu_step(t);
    }
}

static void clean_hidden_data(timed_trace *t)
{
    EACH_STEP(t)
    {
        launch_kernels(t, 10, 5 * US, 500 * US);
        tt_span(t, 0, MTPROF_KIND_SCOPE, "next_batch", 3 * MS); /* the device is busy meanwhile */
        keep_pace(t);
    }
}

static void clean_one_read(timed_trace *t)
{
    EACH_STEP(t)
    {
        launch_kernels(t, 20, 5 * US, 500 * US);
        tt_read(t, 0, "aten::item", 10 * US);
    }
}

static void clean_noise(timed_trace *t)
{
    static const int percent[STEPS] = {100, 110, 92, 105, 130, 98, 88, 115, 101, 96};
    EACH_STEP(t)
    {
        for (int i = 0; i < 20; i++) {
            tt_span(t, 0, MTPROF_KIND_OP, "aten::mm", (uint64_t)percent[step] * 5 * US);
            tt_pass(t, 0, 10 * US);
        }
    }
}

static void clean_memory(timed_trace *t)
{
    EACH_STEP(t)
    {
        if (step == 0) {
            tt_alloc(t, 0x99, 100 * MIB); /* the optimizer's state stays */
        }
        for (uint64_t i = 0; i < 10; i++) {
            tt_begin(t, 0, MTPROF_KIND_OP, "aten::mm");
            tt_alloc(t, 0x1000 + i, 10 * MIB);
            tt_pass(t, 0, 500 * US);
            tt_end(t, 0);
        }
        for (uint64_t i = 0; i < 10; i++) {
            tt_alloc(t, 0x1000 + i, -10 * MIB);
        }
    }
}

static void clean_backward_thread(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_span(t, 0, MTPROF_KIND_OP, "aten::mm", 2 * MS);
        t->now[1] = t->now[0];
        tt_span(t, 1, MTPROF_KIND_OP, "autograd::engine::evaluate_function: MmBackward0", 4 * MS);
        t->now[0] = t->now[1];
        tt_span(t, 0, MTPROF_KIND_OP, "aten::_fused_adam_", 1 * MS);
    }
}

static void clean_even_threads(timed_trace *t)
{
    EACH_STEP(t)
    {
        for (int i = 1; i <= 4; i++) {
            t->now[i] = t->now[0];
            tt_span(t, i, MTPROF_KIND_SCOPE, "worker", 4 * MS + (uint64_t)i * 100 * US);
        }
        tt_pass(t, 0, 4 * MS + 500 * US);
    }
}

static void clean_copies_beside(timed_trace *t)
{
    EACH_STEP(t)
    {
        launch_kernels(t, 10, 5 * US, 500 * US);
        uint64_t key = tt_launch(t, 0, "aten::to", 10 * US);
        tt_work(t, MTPROF_ACTIVITY_COPY, key, 1, "Memcpy HtoD (Pinned -> Device)", 3 * MS, 8 * MIB);
        keep_pace(t);
    }
}

static void clean_scopes(timed_trace *t) /* a program in C without ops */
{
    EACH_STEP(t)
    {
        tt_begin(t, 0, MTPROF_KIND_SCOPE, "frame");
        tt_span(t, 0, MTPROF_KIND_SCOPE, "physics", 3 * MS);
        tt_span(t, 0, MTPROF_KIND_SCOPE, "render", 5 * MS);
        tt_end(t, 0);
    }
}

static void clean_trainer(timed_trace *t)
{
    EACH_STEP(t)
    {
        tt_span(t, 0, MTPROF_KIND_SCOPE, "enumerate(DataLoader)#_Iter.__next__", 30 * US);
        tt_begin(t, 0, MTPROF_KIND_SCOPE, "forward");
        launch_kernels(t, 30, 6 * US, 80 * US);
        tt_end(t, 0);
        tt_pass(t, 0, 50 * US);
        tt_begin(t, 0, MTPROF_KIND_SCOPE, "Optimizer.step#SGD.step");
        launch_kernels(t, 4, 6 * US, 100 * US);
        tt_end(t, 0);
        keep_pace(t);
    }
}

/* ---- the suite ------------------------------------------------------------------------------- */

typedef struct program {
    const char *name;
    void (*run)(timed_trace *t);
    int cause; /* that comes first; -1: the program is clean */
    bool no_steps;
} program;

#define FAULT(run_, cause_)                       \
    {                                             \
#        run_, run_, MTPROF_CAUSE_##cause_, false \
    }
#define CLEAN(run_)            \
    {                          \
#        run_, run_, -1, false \
    }

static const program programs[] = {
    FAULT(data_device, DATA_WAIT),
    FAULT(data_cpu, DATA_WAIT),
    FAULT(data_function, DATA_WAIT),
    FAULT(host_bound, HOST_BOUND),
    FAULT(host_bound_many, HOST_BOUND),
    FAULT(launch_small, LAUNCH_BOUND),
    FAULT(launch_large, LAUNCH_BOUND),
    FAULT(sync_item, SYNC),
    FAULT(sync_latency, SYNC),
    FAULT(copy_memory, COPY),
    FAULT(copy_convert, COPY),
    FAULT(copy_cpu, COPY),
    FAULT(small_paused, SMALL_KERNELS),
    FAULT(small_cpu, SMALL_KERNELS),
    FAULT(slow_checkpoint, SLOW_STEPS),
    FAULT(slow_data, SLOW_STEPS),
    FAULT(warm_up_cpu, WARM_UP),
    FAULT(warm_up_device, WARM_UP),
    FAULT(memory_kept, MEMORY_GROWTH),
    FAULT(memory_kept_among_others, MEMORY_GROWTH),
    FAULT(memory_one_block, MEMORY_PEAK),
    FAULT(memory_refused, MEMORY_PEAK),
    FAULT(python_cpu, PYTHON_OVERHEAD),
    FAULT(python_device, PYTHON_OVERHEAD),
    FAULT(lock_scope, LOCK_OR_GIL_WAIT),
    FAULT(lock_python, LOCK_OR_GIL_WAIT),
    FAULT(recompile_some, RECOMPILE),
    FAULT(recompile_once, RECOMPILE),
    FAULT(imbalance_threads, IMBALANCE),
    FAULT(imbalance_queues, IMBALANCE),
    FAULT(profiler_lost, PROFILER),
    FAULT(profiler_cost, PROFILER),
    FAULT(profiler_unanswered, PROFILER),
    CLEAN(clean_device),
    CLEAN(clean_cpu),
    CLEAN(clean_some_data),
    CLEAN(clean_hidden_data),
    CLEAN(clean_one_read),
    CLEAN(clean_noise),
    CLEAN(clean_memory),
    CLEAN(clean_backward_thread),
    CLEAN(clean_even_threads),
    CLEAN(clean_copies_beside),
    CLEAN(clean_scopes),
    CLEAN(clean_trainer),
    /* the same without steps, where they do not matter */
    {"data_device, no steps", data_device, MTPROF_CAUSE_DATA_WAIT, true},
    {"sync_item, no steps", sync_item, MTPROF_CAUSE_SYNC, true},
    {"clean_device, no steps", clean_device, -1, true},
    {"clean_cpu, no steps", clean_cpu, -1, true},
};

typedef struct printed {
    char text[8192];
    size_t n;
} printed;

static int print(void *context, const void *bytes, size_t length)
{
    printed *p = context;
    length = length < sizeof p->text - 1 - p->n ? length : sizeof p->text - 1 - p->n;
    memcpy(p->text + p->n, bytes, length);
    p->n += length;
    p->text[p->n] = '\0';
    return 0;
}

/* XPL1, XPL3: parts add up to the wall time, in each step and in all; gains to no more. */
static void check_sums(const mtprof_explain *e, const char *name)
{
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    int64_t all = 0;
    int64_t gains = 0;
    REQUIRE_OK(mtprof_explain_get_facts(e, &facts));
    for (uint32_t s = 0; s < mtprof_explain_step_count(e); s++) {
        mtprof_explain_step step = {.struct_size = sizeof step};
        int64_t sum = 0;
        REQUIRE_OK(mtprof_explain_get_step(e, s, &step));
        for (uint32_t p = 0; p < MTPROF_PART_COUNT; p++) {
            int64_t ns = mtprof_explain_part_ns(e, s, p);
            CHECK(ns >= 0);
            sum += ns;
        }
        CHECK_EQ_I64(sum, step.end_ns - step.start_ns);
        all += sum;
    }
    CHECK_EQ_I64(all, facts.wall_ns);
    for (uint32_t i = 0; i < facts.findings; i++) {
        mtprof_explain_finding finding = {.struct_size = sizeof finding};
        REQUIRE_OK(mtprof_explain_get_finding(e, i, &finding));
        CHECK(finding.gain_ns >= 0);
        CHECK(finding.evidence > 0);
        gains += finding.gain_ns;
    }
    if (gains > facts.wall_ns) {
        FAIL("%s: findings gain %lld of %lld ns", name, (long long)gains, (long long)facts.wall_ns);
    }
}

static void run_program(const program *p)
{
    timed_trace t;
    mtprof_explain *e = NULL;
    mtprof_explain_finding first = {.struct_size = sizeof first};
    mtprof_explain_facts facts = {.struct_size = sizeof facts};
    tt_init(&t);
    t.no_steps = p->no_steps;
    tt_step(&t);
    p->run(&t);
    mtprof_model *model = tt_model(&t);
    REQUIRE_OK(mtprof_explain_new(model, NULL, &e));
    REQUIRE_OK(mtprof_explain_get_facts(e, &facts));
    CHECK_EQ_U64(facts.steps, p->no_steps ? 0 : STEPS);
    bool has_one = facts.findings > 0 && mtprof_explain_get_finding(e, 0, &first) == MTPROF_OK;
    int cause = has_one ? (int)first.cause : -1;
    if (cause != p->cause) {
        printed text = {.n = 0};
        mtprof_output output = {.struct_size = sizeof output, .context = &text, .write = print};
        (void)mtprof_explain_write(e, NULL, &output);
        FAIL("%s: %s instead of %s\n%s", p->name,
             cause < 0 ? "clean" : mtprof_cause_id(first.cause),
             p->cause < 0 ? "clean" : mtprof_cause_id((uint32_t)p->cause), text.text);
    }
    check_sums(e, p->name);
    mtprof_explain_free(e);
    mtprof_model_free(model);
    tt_fini(&t);
}

TEST(planted_faults_come_first_and_clean_programs_are_clean)
{
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        run_program(&programs[i]);
    }
}

TEST(every_cause_is_planted_at_least_twice)
{
    int planted[MTPROF_CAUSE_COUNT] = {0};
    int clean = 0;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (programs[i].cause < 0) {
            clean++;
        } else {
            planted[programs[i].cause]++;
        }
    }
    for (uint32_t i = 0; i < MTPROF_CAUSE_COUNT; i++) {
        if (planted[i] < 2) {
            FAIL("%s is planted %d times", mtprof_cause_id(i), planted[i]);
        }
    }
    CHECK(clean >= 10);
}
