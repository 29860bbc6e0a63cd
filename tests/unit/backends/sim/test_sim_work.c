/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels, copies and sets of the simulated accelerator: what a call may point to, who waits, what
 * is refused.
 */
#include "harness/mt_test.h"
#include "support/devices/sim_table.h"

#include <stdlib.h>
#include <string.h>

enum {
    MIB = 1 << 20,
    SLOTS = 4096 /* of a stream */
};

static mt_sim_counts counts_of(uint32_t stream)
{
    mt_sim_counts counts = {.struct_size = sizeof counts};
    CHECK_OK(npu_controls->counts(0, stream, &counts));
    return counts;
}

static int pinned_copy(mt_copy kind, void *to, const void *from, size_t bytes)
{
    mt_copy_call call = {.struct_size = sizeof call,
                         .kind = kind,
                         .flags = MT_COPY_PINNED,
                         .to = to,
                         .from = from,
                         .bytes = bytes};
    return npu->copy(npu->context, NULL, &call);
}

/* A view of any form, as npu_fill() has not. */
static int fill(const mt_array *array, double value)
{
    const mt_scalar scalar = mt_real(value);
    mt_kernel_call call = {.struct_size = sizeof call,
                           .kernel = MT_KERNEL_FILL,
                           .n_tensors = 1,
                           .n_scalars = 1,
                           .tensors = array,
                           .scalars = &scalar};
    return npu->kernels[MT_KERNEL_FILL](npu->context, NULL, &call);
}

TEST(a_kernel_works_on_device_memory)
{
    float host[100];
    float result[100];
    open_npu();
    float *a = npu_take(0, sizeof host);
    float *out = npu_take(0, sizeof host);
    for (int i = 0; i < 100; i++) {
        host[i] = (float)i;
    }
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_DEVICE, a, host, sizeof host, 0));
    memset(host, 0xFF, sizeof host); /* it may be reused at once */
    REQUIRE_OK(npu_add(NULL, out, a, a, 100, 0));
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_HOST, result, out, sizeof result, 0));
    for (int i = 0; i < 100; i++) {
        CHECK_EQ_F64((double)result[i], 2.0 * i);
    }
}

TEST(every_kernel_of_the_host_is_there)
{
    open_npu();
    CHECK_EQ_U64(npu->n_kernels, MT_KERNEL_COUNT);
    for (uint32_t i = 0; i < npu->n_kernels; i++) {
        CHECK(npu->kernels[i] != NULL);
    }
}

/* Far more than a slot holds: the call's parts are on the heap then. */
TEST(a_large_call_is_copied_too)
{
    enum {
        PIECES = 300
    };
    static const int64_t stride = 1;
    static mt_array arrays[PIECES + 1];
    open_npu();
    float *in = npu_take(0, 4 * PIECES);
    float *out = npu_take(0, 4 * PIECES);
    float host[PIECES];
    int64_t *one = malloc(sizeof *one);
    int64_t *all = malloc(sizeof *all);
    REQUIRE(one != NULL && all != NULL);
    *one = 1;
    *all = PIECES;
    for (int i = 0; i < PIECES; i++) {
        host[i] = (float)(i * i);
        arrays[i + 1] = (mt_array){in + i, one, &stride, 1, MT_DTYPE_F32};
    }
    arrays[0] = (mt_array){out, all, &stride, 1, MT_DTYPE_F32};
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_DEVICE, in, host, sizeof host, 0));
    int64_t dim = 0;
    mt_kernel_call call = {.struct_size = sizeof call,
                           .kernel = MT_KERNEL_CAT,
                           .n_tensors = PIECES + 1,
                           .n_ints = 1,
                           .tensors = arrays,
                           .ints = &dim};
    REQUIRE_OK(npu_controls->hold(0, 0, 1000, 0));
    REQUIRE_OK(npu->kernels[MT_KERNEL_CAT](npu->context, NULL, &call));
    memset(arrays, 0, sizeof arrays);
    free(one);
    free(all);
    dim = 77;
    float result[PIECES];
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_HOST, result, out, sizeof result, 0));
    CHECK_EQ_MEM(result, host, sizeof host);
}

TEST(absent_and_empty_views_have_no_place)
{
    static const int64_t zero = 0;
    static const int64_t stride = 1;
    int own = 0;
    open_npu();
    /* An empty view may name any memory: nothing is read. */
    mt_array array = {&own, &zero, &stride, 1, MT_DTYPE_F32};
    CHECK_OK(fill(&array, 1.0));
    CHECK_OK(npu->synchronize(npu->context, 0));
}

/* ---- refusals ---- */

static void check_fill_refused(const mt_array *array, const char *why)
{
    CHECK_EQ_I64(fill(array, 1.0), MT_ERUNTIME);
    if (!CHECK(strstr(mt_last_error()->message, why) != NULL)) {
        FAIL("%s", mt_last_error()->message);
    }
}

TEST(foreign_memory_is_refused_at_the_call)
{
    float own[4] = {1, 2, 3, 4};
    int64_t size = 4;
    int64_t stride = 1;
    open_npu();
    char *memory = npu_take(0, 64 * MIB);
    mt_array array = {own, &size, &stride, 1, MT_DTYPE_F32};
    check_fill_refused(&array, "kernel fill_f32 on npu:0: tensor 0");
    check_fill_refused(&array, "is not in the device's memory");
    array.data = memory + 64 * MIB - 12; /* its last element is outside */
    check_fill_refused(&array, "is not in the device's memory");
    array.data = memory;
    stride = -1;
    check_fill_refused(&array, "is not in the device's memory");
    stride = INT64_MAX / 2;
    check_fill_refused(&array, "reaches further than memory does");
    stride = 1;
    array.dtype = 99;
    check_fill_refused(&array, "unknown type");
    CHECK_EQ_F64((double)own[0], 1.0);
    array.dtype = MT_DTYPE_F32;
    array.data = memory + 64 * MIB - 4;
    stride = -1; /* the last one, backwards */
    CHECK_OK(fill(&array, 5.0));
    CHECK_EQ_F64((double)npu_read(NULL, memory + 64 * MIB - 16), 5.0);
    CHECK_EQ_U64(counts_of(0).launches, 2); /* the refused ones never were */
}

TEST(nonsense_calls_are_refused)
{
    open_npu();
    mt_kernel_call call = {.struct_size = sizeof call, .kernel = MT_KERNEL_FILL, .n_tensors = 1};
    mt_kernel_fn *launch = npu->kernels[MT_KERNEL_FILL];
    CHECK_EQ_I64(launch(npu->context, NULL, &call), MT_EVALUE); /* no tensors */
    CHECK_EQ_I64(launch(npu->context, NULL, NULL), MT_EVALUE);
    call.struct_size = 8;
    CHECK_EQ_I64(launch(npu->context, NULL, &call), MT_EVALUE);
    call.struct_size = sizeof call;
    call.kernel = 60000;
    CHECK_EQ_I64(launch(npu->context, NULL, &call), MT_ENOTSUP);
    call.kernel = MT_KERNEL_FILL;
    call.device = 5;
    CHECK_EQ_I64(launch(npu->context, NULL, &call), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, "kernel: there is no npu:5, there are 1");
    mt_copy_call copy = {.struct_size = sizeof copy, .kind = 9};
    CHECK_EQ_I64(npu->copy(npu->context, NULL, &copy), MT_EVALUE);
    CHECK_EQ_I64(npu->copy(npu->context, NULL, NULL), MT_EVALUE);
    CHECK_EQ_I64(npu->set(npu->context, NULL, NULL), MT_EVALUE);
    mt_set_call set = {.struct_size = sizeof set, .to = &set, .bytes = 4};
    CHECK_EQ_I64(npu->set(npu->context, NULL, &set), MT_ERUNTIME);
}

TEST(copies_name_memory_where_it_is)
{
    char host[64];
    open_npu();
    char *memory = npu_take(0, 4096);
    CHECK_EQ_I64(npu_copy(NULL, MT_COPY_TO_DEVICE, host, host, 8, 0), MT_ERUNTIME);
    CHECK_EQ_I64(npu_copy(NULL, MT_COPY_TO_DEVICE, memory, memory + 8, 8, 0), MT_ERUNTIME);
    CHECK_EQ_I64(npu_copy(NULL, MT_COPY_TO_HOST, memory, memory + 8, 8, 0), MT_ERUNTIME);
    CHECK_EQ_I64(npu_copy(NULL, MT_COPY_TO_HOST, host, host, 8, 0), MT_ERUNTIME);
    CHECK_EQ_I64(npu_copy(NULL, MT_COPY_WITHIN, memory, host, 8, 0), MT_ERUNTIME);
    CHECK_EQ_I64(npu_copy(NULL, MT_COPY_TO_HOST, NULL, memory, 8, 0), MT_ERUNTIME);
    CHECK_EQ_I64(npu_copy(NULL, MT_COPY_TO_DEVICE, memory, host, (size_t)1 << 62, 0), MT_ERUNTIME);
    CHECK(strstr(mt_last_error()->message, "Memcpy HtoD (Pageable -> Device) on npu:0") != NULL);
    CHECK_OK(npu_copy(NULL, MT_COPY_WITHIN, NULL, NULL, 0, 0));
}

/* ---- copies ---- */

/* Sizes around what a slot holds, what is staged, and what makes the call wait. */
TEST(copies_of_all_sizes_arrive)
{
    static const size_t sizes[] = {1, 31, 32, 512, 513, 4097, MIB - 1, MIB, MIB + 1, 3 * MIB};
    open_npu();
    char *memory = npu_take(0, 8 * MIB);
    char *host = malloc(3 * MIB);
    char *back = malloc(3 * MIB);
    REQUIRE(host != NULL && back != NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t bytes = sizes[i];
        for (size_t k = 0; k < bytes; k++) {
            host[k] = (char)(k * 31 + i);
        }
        REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_DEVICE, memory + 1, host, bytes, 0));
        memset(host, 0x55, bytes);
        REQUIRE_OK(npu_copy(NULL, MT_COPY_WITHIN, memory + 4 * MIB, memory + 1, bytes, 0));
        memset(back, 0, bytes);
        REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_HOST, back, memory + 4 * MIB, bytes, 0));
        size_t wrong = 0;
        for (size_t k = 0; k < bytes; k++) {
            wrong += back[k] != (char)(k * 31 + i);
        }
        CHECK_EQ_U64(wrong, 0);
    }
    free(host);
    free(back);
}

/* A staged copy returns while the stream is held; a pinned one too; so the bytes of the pinned one
 * are read when it is its turn, those of the other were read at the call. */
TEST(pinned_copies_read_late_and_staged_ones_early)
{
    open_npu();
    char *memory = npu_take(0, 4096);
    char pageable = 'a';
    char *pinned = NULL;
    REQUIRE_OK(npu->host_allocate(npu->context, 2, (void **)&pinned));
    pinned[0] = 'a';
    pinned[1] = '?';
    REQUIRE_OK(npu_controls->hold(0, 0, 1000, 0));
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_DEVICE, memory, &pageable, 1, 0));
    REQUIRE_OK(pinned_copy(MT_COPY_TO_DEVICE, memory + 1, pinned, 1));
    REQUIRE_OK(pinned_copy(MT_COPY_TO_HOST, pinned + 1, memory + 1, 1));
    CHECK_EQ_U64(counts_of(0).waiting, 4);
    CHECK_EQ_I64(pinned[1], '?');
    pageable = 'b';
    pinned[0] = 'b';
    REQUIRE_OK(npu_controls->release(0, 0));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    CHECK_EQ_I64(pinned[1], 'b');
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_HOST, &pageable, memory, 1, 0));
    CHECK_EQ_I64(pageable, 'a');
    CHECK_EQ_U64(counts_of(0).gave_up, 0);
    npu->host_release(npu->context, pinned, 2);
}

/* A large copy from pageable memory waits, so a hold before it must give up. */
TEST(large_pageable_copies_wait)
{
    open_npu();
    char *memory = npu_take(0, 4 * MIB);
    char *host = calloc(2, MIB);
    REQUIRE(host != NULL);
    REQUIRE_OK(npu_controls->hold(0, 0, 1000, 0));
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_DEVICE, memory, host, 2 * MIB, 0));
    CHECK_EQ_U64(counts_of(0).gave_up, 1);
    CHECK_EQ_U64(counts_of(0).waiting, 0);
    free(host);
}

/* Staging has a limit: beyond it copies wait instead. */
TEST(staging_is_bounded)
{
    open_npu();
    char *memory = npu_take(0, MIB);
    char *host = calloc(1, MIB);
    REQUIRE(host != NULL);
    REQUIRE_OK(npu_controls->hold(0, 0, 4000, 0));
    int copies = 0;
    while (counts_of(0).gave_up == 0 && copies < 4000) {
        REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_DEVICE, memory, host, MIB, 0));
        copies++;
    }
    CHECK(copies >= 60 && copies <= 70);
    CHECK_OK(npu->synchronize(npu->context, 0));
    free(host);
}

TEST(peer_copies)
{
    float value = 42.0F;
    set_npu("SIM_DEVICES", "2");
    open_npu();
    void *first = npu_take(0, 4096);
    void *second = npu_take(1, 4096);
    REQUIRE_OK(npu_copy(NULL, MT_COPY_TO_DEVICE, first, &value, sizeof value, 0));
    mt_copy_call call = {.struct_size = sizeof call,
                         .kind = MT_COPY_PEER,
                         .device = 0,
                         .to_device = 1,
                         .to = second,
                         .from = first,
                         .bytes = sizeof value};
    REQUIRE_OK(npu->copy(npu->context, NULL, &call));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    value = 0.0F;
    mt_copy_call back = {.struct_size = sizeof back,
                         .kind = MT_COPY_TO_HOST,
                         .device = 1,
                         .to = &value,
                         .from = second,
                         .bytes = sizeof value};
    REQUIRE_OK(npu->copy(npu->context, NULL, &back));
    CHECK_EQ_F64((double)value, 42.0);
    call.to_device = 7;
    CHECK_EQ_I64(npu->copy(npu->context, NULL, &call), MT_ERUNTIME);
    call.to_device = 0; /* that is where it does not lie */
    CHECK_EQ_I64(npu->copy(npu->context, NULL, &call), MT_ERUNTIME);
}

/* ---- the queue ---- */

TEST(launches_do_not_wait_for_the_work)
{
    open_npu();
    float *a = npu_take(0, 4096);
    REQUIRE_OK(npu_fill(NULL, a, 1, 1.0F, 0));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    REQUIRE_OK(npu_controls->reset_counts(0, 0));
    REQUIRE_OK(npu_controls->hold(0, 0, 1000, 0));
    for (int i = 0; i < 999; i++) {
        REQUIRE_OK(npu_add(NULL, a, a, a + 1024 - 1, 1, 0));
    }
    CHECK_EQ_U64(counts_of(0).waiting, 1000); /* with the hold itself */
    CHECK_EQ_U64(counts_of(0).done, 0);
    REQUIRE_OK(npu_add(NULL, a, a, a, 1, 0)); /* the thousandth lets them go */
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    mt_sim_counts counts = counts_of(0);
    CHECK_EQ_U64(counts.waiting, 0);
    CHECK_EQ_U64(counts.done, 1001);
    CHECK_EQ_U64(counts.launches, 1001);
    CHECK_EQ_U64(counts.most, 1001);
    CHECK_EQ_U64(counts.gave_up, 0);
    CHECK_EQ_U64(counts.stalled, 0);
}

/* A full stream makes the launching thread wait; a hold then gives up, nothing is lost. */
TEST(a_full_stream_makes_launches_wait)
{
    open_npu();
    float *a = npu_take(0, 4096);
    REQUIRE_OK(npu_fill(NULL, a, 2, 1.0F, 0));
    REQUIRE_OK(npu_controls->hold(0, 0, 3 * SLOTS, 0));
    for (int i = 0; i < 2 * SLOTS; i++) {
        REQUIRE_OK(npu_add(NULL, a, a, a + 1, 1, 0));
    }
    CHECK_EQ_F64((double)npu_read(NULL, a), 2 * SLOTS + 1);
    mt_sim_counts counts = counts_of(0);
    CHECK_EQ_U64(counts.gave_up, 1);
    CHECK(counts.stalled >= 1);
    CHECK_EQ_U64(counts.most, SLOTS);
    REQUIRE_OK(npu_controls->reset_counts(0, 0));
    CHECK_EQ_U64(counts_of(0).stalled, 0);
    CHECK_EQ_U64(counts_of(0).launches, 0);
}

TEST(latency_is_kept)
{
    set_npu("SIM_LATENCY_NS", "3000000");
    open_npu();
    float *a = npu_take(0, 4096);
    uint64_t before = npu->clock(npu->context);
    REQUIRE_OK(npu_fill(NULL, a, 1, 1.0F, 0));
    CHECK_EQ_F64((double)npu_read(NULL, a), 1.0);
    CHECK(npu->clock(npu->context) - before >= 3000000);
}

TEST(kernels_take_their_time)
{
    set_npu("SIM_KERNEL_NS", "1000000");
    open_npu();
    float *a = npu_take(0, 4096);
    uint64_t before = npu->clock(npu->context);
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(npu_fill(NULL, a, 1, 1.0F, 0));
    }
    CHECK_EQ_F64((double)npu_read(NULL, a), 1.0);
    CHECK(npu->clock(npu->context) - before >= 3000000);
}

TEST(blocking_launches_wait)
{
    set_npu("LAUNCH_BLOCKING", "1");
    open_npu();
    float *a = npu_take(0, 4096);
    REQUIRE_OK(npu_fill(NULL, a, 1, 1.0F, 0));
    CHECK_EQ_U64(counts_of(0).waiting, 0);
    CHECK_EQ_U64(counts_of(0).done, 1);
    mt_set_call set = {.struct_size = sizeof set, .to = a, .bytes = 4};
    REQUIRE_OK(npu->set(npu->context, NULL, &set));
    CHECK_EQ_U64(counts_of(0).done, 2);
    CHECK_EQ_F64((double)npu_read(NULL, a), 0.0);
}
