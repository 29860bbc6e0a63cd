/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of the simulated accelerator (backend.h B7): each launch with a correlation is reported
 * once, with its own times, before a wait for it returns.
 */
#include "harness/mt_test.h"
#include "support/devices/sim_table.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_RECORDS = 30000
};

typedef struct record {
    mt_activity of;
    char name[64];
} record;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static record reported[MAX_RECORDS];
static size_t n_reported;

static void push(void *context, const mt_activity *activity)
{
    (void)context;
    (void)pthread_mutex_lock(&lock);
    if (n_reported < MAX_RECORDS) {
        reported[n_reported].of = *activity;
        (void)snprintf(reported[n_reported].name, sizeof reported[n_reported].name, "%s",
                       activity->name);
    }
    n_reported++;
    (void)pthread_mutex_unlock(&lock);
}

static const mt_activity_sink sink = {.struct_size = sizeof sink, .push = push};

static void start(void)
{
    set_npu("SIM_DEVICES", "2");
    open_npu();
    REQUIRE_OK(npu->activity_start(npu->context, &sink));
}

static size_t count_reported(void)
{
    (void)pthread_mutex_lock(&lock);
    size_t count = n_reported;
    (void)pthread_mutex_unlock(&lock);
    return count;
}

/* The record with that correlation; there is one. */
static const record *find(uint64_t correlation)
{
    static const record none = {.name = ""};
    const record *found = &none;
    int count = 0;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_reported; i++) {
        if (reported[i].of.correlation == correlation) {
            found = &reported[i];
            count++;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    CHECK_EQ_I64(count, 1);
    return found;
}

static void check_record(uint64_t correlation, mt_activity_kind kind, const char *name,
                         uint64_t bytes)
{
    const record *found = find(correlation);
    CHECK_EQ_STR(found->name, name);
    CHECK_EQ_U64(found->of.kind, kind);
    CHECK_EQ_U64(found->of.bytes, bytes);
    CHECK_EQ_U64(found->of.struct_size, sizeof(mt_activity));
    CHECK(found->of.start <= found->of.end);
}

TEST(work_is_reported_with_its_times)
{
    start();
    float *a = npu_take(0, 4096);
    mt_backend_stream *stream = NULL;
    REQUIRE_OK(npu->stream_new(npu->context, 0, 7, 0, &stream));
    uint64_t before = npu->clock(npu->context);
    REQUIRE_OK(npu_fill(NULL, a, 4, 1.0F, 11));
    REQUIRE_OK(npu_add(stream, a + 64, a + 64, a + 64, 4, 12));
    REQUIRE_OK(npu_add(NULL, a, a, a, 4, 0)); /* not asked for */
    REQUIRE_OK(npu_add(NULL, a, a, a, 4, 13));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    uint64_t after = npu->clock(npu->context);
    CHECK_EQ_U64(count_reported(), 3); /* all were reported before the wait ended */
    check_record(11, MT_ACTIVITY_KERNEL, "fill_f32", 0);
    check_record(12, MT_ACTIVITY_KERNEL, "binary_add_f32", 0);
    CHECK(find(11)->of.start >= before && find(13)->of.end <= after);
    CHECK(find(11)->of.end <= find(13)->of.start); /* one stream, one after the other */
    CHECK_EQ_U64(find(12)->of.stream, 7);
    CHECK_EQ_U64(find(13)->of.stream, 0);
    CHECK_EQ_U64(find(13)->of.device, 0);
}

TEST(copies_and_sets_are_reported)
{
    char host[128];
    memset(host, 0, sizeof host);
    start();
    char *a = npu_take(0, 4096);
    char *far_away = npu_take(1, 4096);
    mt_copy_call pinned = {.struct_size = sizeof pinned,
                           .kind = MT_COPY_TO_DEVICE,
                           .flags = MT_COPY_PINNED,
                           .to = a,
                           .from = host,
                           .bytes = 3,
                           .correlation = 3};
    mt_copy_call peer = {.struct_size = sizeof peer,
                         .kind = MT_COPY_PEER,
                         .to_device = 1,
                         .to = far_away,
                         .from = a,
                         .bytes = 6,
                         .correlation = 6};
    mt_set_call set = {
        .struct_size = sizeof set, .to = a, .bytes = 7, .value = 1, .correlation = 7};
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_DEVICE, a, host, 1, 1));
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_HOST, host, a, 2, 2));
    CHECK_EQ_U64(count_reported(), 2);
    REQUIRE_OK(npu->copy(npu->context, NULL, &pinned));
    pinned.kind = MT_COPY_TO_HOST;
    pinned.to = host;
    pinned.from = a;
    pinned.correlation = 4;
    REQUIRE_OK(npu->copy(npu->context, NULL, &pinned));
    REQUIRE_OK(npu_copy(NULL, MT_COPY_WITHIN, a + 100, a, 5, 5));
    REQUIRE_OK(npu->copy(npu->context, NULL, &peer));
    REQUIRE_OK(npu->set(npu->context, NULL, &set));
    REQUIRE_OK(npu_controls->hold(0, 0, 0, 8));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    check_record(1, MT_ACTIVITY_COPY, "Memcpy HtoD (Pageable -> Device)", 1);
    check_record(2, MT_ACTIVITY_COPY, "Memcpy DtoH (Device -> Pageable)", 2);
    check_record(3, MT_ACTIVITY_COPY, "Memcpy HtoD (Pinned -> Device)", 3);
    check_record(4, MT_ACTIVITY_COPY, "Memcpy DtoH (Device -> Pinned)", 3);
    check_record(5, MT_ACTIVITY_COPY, "Memcpy DtoD (Device -> Device)", 5);
    check_record(6, MT_ACTIVITY_COPY, "Memcpy PtoP (Device -> Device)", 6);
    check_record(7, MT_ACTIVITY_SET, "Memset (Device)", 7);
    check_record(8, MT_ACTIVITY_KERNEL, "sim_hold", 0);
}

/* Names of kernels: family, code, type of what it works on. */
TEST(kernel_names)
{
    static const int64_t one = 1;
    static const struct {
        uint16_t kernel, code;
        uint32_t types[4];
        uint32_t n_tensors;
        const char *name;
    } cases[] = {
        {MT_KERNEL_BINARY,
         MT_BINARY_EQ,
         {MT_DTYPE_BOOL, MT_DTYPE_I64, MT_DTYPE_I64},
         3,
         "binary_eq_i64"},
        {MT_KERNEL_BINARY,
         MT_BINARY_GELU_TANH_BACKWARD,
         {MT_DTYPE_F64, MT_DTYPE_F64, MT_DTYPE_F64},
         3,
         "binary_gelu_tanh_backward_f64"},
        {MT_KERNEL_COPY, 0, {MT_DTYPE_F32, MT_DTYPE_I64}, 2, "copy_i64_f32"},
        {MT_KERNEL_COPY, 0, {MT_DTYPE_BF16, MT_DTYPE_F32}, 2, "copy_f32_bf16"},
        {MT_KERNEL_UNARY, MT_UNARY_ISNAN, {MT_DTYPE_BOOL, MT_DTYPE_F32}, 2, "unary_isnan_f32"},
        {MT_KERNEL_EYE, 0, {MT_DTYPE_U8}, 1, "eye_u8"},
    };
    start();
    char *memory = npu_take(0, 4096);
    for (uint64_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mt_array arrays[4];
        int64_t sizes[] = {1, 1};
        int64_t form = 0;
        mt_scalar scalars[2] = {{.kind = MT_KIND_REAL}, {.kind = MT_KIND_REAL}};
        int32_t n_dims = cases[i].kernel == MT_KERNEL_EYE ? 2 : 1;
        for (uint32_t k = 0; k < 4; k++) {
            arrays[k] = (mt_array){memory + 64 * k, sizes, sizes, n_dims, cases[i].types[k]};
        }
        mt_kernel_call call = {.struct_size = sizeof call,
                               .kernel = cases[i].kernel,
                               .code = cases[i].code,
                               .n_tensors = cases[i].n_tensors,
                               .n_ints = 1,
                               .n_scalars = 2,
                               .tensors = arrays,
                               .ints = &form,
                               .scalars = scalars,
                               .correlation = i + 1};
        REQUIRE_OK(npu->kernels[call.kernel](npu->context, NULL, &call));
        CHECK_OK(npu->synchronize(npu->context, 0));
        CHECK_EQ_STR(find(i + 1)->name, cases[i].name);
    }
    /* The first tensor that is there gives the type; an absent one has none. */
    mt_array arrays[] = {{NULL, NULL, NULL, -1, MT_DTYPE_F64},
                         {memory, &one, &one, 1, MT_DTYPE_I64},
                         {memory + 64, &one, &one, 1, MT_DTYPE_F32}};
    int64_t dim = 0;
    mt_kernel_call call = {.struct_size = sizeof call,
                           .kernel = MT_KERNEL_REDUCE_INDEX,
                           .code = 1,
                           .n_tensors = 3,
                           .n_ints = 1,
                           .tensors = arrays,
                           .ints = &dim,
                           .correlation = 100};
    REQUIRE_OK(npu->kernels[call.kernel](npu->context, NULL, &call));
    CHECK_OK(npu->synchronize(npu->context, 0));
    CHECK_EQ_STR(find(100)->name, "reduce_index_min_f32");
}

TEST(failed_work_is_reported_too)
{
    start();
    float *a = npu_take(0, 4096);
    float *index = npu_take(0, 4096);
    REQUIRE_OK(npu_select(NULL, a + 64, a, index, 5, 21));
    REQUIRE_OK(npu_controls->fail(0, 0, MT_ERUNTIME, "ordered"));
    REQUIRE_OK(npu_fill(NULL, a, 1, 1.0F, 22));
    CHECK_EQ_I64(npu->synchronize(npu->context, 0), MT_EINDEX);
    check_record(21, MT_ACTIVITY_KERNEL, "index_select_f32", 0);
    check_record(22, MT_ACTIVITY_KERNEL, "fill_f32", 0);
}

/* Work queued before the stop is reported; the host waits for it only in flush. */
TEST(flush_waits_for_what_is_recorded)
{
    start();
    float *a = npu_take(0, 4096);
    mt_backend_stream *stream = NULL;
    REQUIRE_OK(npu->stream_new(npu->context, 0, 1, 0, &stream));
    REQUIRE_OK(npu_controls->hold(0, 0, 100, 0));
    REQUIRE_OK(npu_controls->hold(0, 1, 100, 0));
    REQUIRE_OK(npu_fill(NULL, a, 1, 1.0F, 1));
    REQUIRE_OK(npu_fill(stream, a + 64, 1, 1.0F, 0));
    npu->activity_stop(npu->context);
    CHECK_EQ_U64(count_reported(), 0);
    REQUIRE_OK(npu->activity_flush(npu->context, UINT64_MAX));
    CHECK_EQ_U64(count_reported(), 1);
    mt_sim_counts counts = {.struct_size = sizeof counts};
    REQUIRE_OK(npu_controls->counts(0, 1, &counts));
    CHECK_EQ_U64(counts.gave_up, 0); /* nothing on that stream is recorded */
    CHECK_EQ_U64(counts.waiting, 2);
    CHECK_OK(npu->activity_flush(npu->context, 0)); /* nothing is left */
}

TEST(flush_has_an_end)
{
    set_npu("SIM_LATENCY_NS", "1000000000");
    start();
    float *a = npu_take(0, 4096);
    REQUIRE_OK(npu_fill(NULL, a, 1, 1.0F, 1));
    CHECK_EQ_I64(npu->activity_flush(npu->context, 1000), MT_ERUNTIME);
    CHECK(strstr(mt_last_error()->message, "1000 ns") != NULL);
}

TEST(sinks_must_be_complete)
{
    open_npu();
    mt_activity_sink bad = {.struct_size = sizeof bad};
    CHECK_EQ_I64(npu->activity_start(npu->context, &bad), MT_EVALUE);
    CHECK_EQ_I64(npu->activity_start(npu->context, NULL), MT_EVALUE);
    bad.push = push;
    bad.struct_size = 8;
    CHECK_EQ_I64(npu->activity_start(npu->context, &bad), MT_EVALUE);
    /* Without one, work with a correlation is done and not reported. */
    float *a = npu_take(0, 4096);
    REQUIRE_OK(npu_fill(NULL, a, 1, 1.0F, 5));
    CHECK_OK(npu->synchronize(npu->context, 0));
}

/* ---- many threads ---- */

enum {
    THREADS = 4,
    STREAMS = 3,
    LAUNCHES = 2000 /* of a thread on each stream */
};

static mt_backend_stream *streams[STREAMS];
static float *memory;

static void *launch_many(void *argument)
{
    uint64_t thread = (uint64_t)(uintptr_t)argument;
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        for (uint64_t s = 0; s < STREAMS; s++) {
            uint64_t correlation = 1 + (thread * LAUNCHES + i) * STREAMS + s;
            CHECK_OK(npu_fill(streams[s], memory + 16 * s, 1, 1.0F, correlation));
        }
    }
    return NULL;
}

TEST(every_launch_of_many_threads_is_reported_once)
{
    static uint8_t seen[THREADS * STREAMS * LAUNCHES + 1];
    pthread_t threads[THREADS];
    uint64_t last[STREAMS] = {0, 0, 0};
    start();
    memory = npu_take(0, 4096);
    for (uint32_t s = 0; s < STREAMS; s++) {
        REQUIRE_OK(npu->stream_new(npu->context, 0, s + 1, 0, &streams[s]));
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE_EQ_I64(pthread_create(&threads[i], NULL, launch_many, (void *)i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ_I64(pthread_join(threads[i], NULL), 0);
    }
    REQUIRE_OK(npu->activity_flush(npu->context, UINT64_MAX));
    REQUIRE_EQ_U64(count_reported(), THREADS * STREAMS * LAUNCHES);
    for (size_t i = 0; i < n_reported; i++) {
        const mt_activity *of = &reported[i].of;
        CHECK(of->correlation < sizeof seen && ++seen[of->correlation] == 1);
        CHECK_EQ_U64(of->stream, 1 + (of->correlation - 1) % STREAMS);
        uint64_t *before = &last[of->stream - 1];
        CHECK(of->start >= *before); /* a stream does one thing at a time */
        *before = of->end;
    }
}
