/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the simulated accelerator under real work: what a stream has not read or written yet is
 * not handed out to another, refusals are reported and survived, and failures are reported once.
 */
#include "base/compiler.h"
#include "support/devices/npu_stream.h"
#include "support/devices/sim_device.h"

#include <mindtorch/stream.h>

#include <pthread.h>
#include <string.h>

enum {
    COUNT = 1000, /* elements */
    LONG = 1 << 30
};

static mt_tensor *filled(double value)
{
    mt_tensor *made;
    const int64_t count = COUNT;
    REQUIRE_OK(mt_full_with(&count, 1, mt_real(value), MT_DTYPE_F32, MT_NPU, &made));
    return made;
}

/* On the current stream. */
static bool holds(mt_tensor *tensor, float value)
{
    float values[COUNT];
    CHECK_OK(mt_tensor_read(tensor, values, sizeof values));
    for (size_t i = 0; i < COUNT; i++) {
        if (values[i] != value) {
            return false;
        }
    }
    return true;
}

TEST(sim_memory_recorded_streams_read_what_was_there)
{
    const mt_sim *sim = sim_open("1", "64M");
    mt_stream *side = new_stream();
    mt_stream *home;
    REQUIRE_OK(mt_stream_get_default(MT_NPU, &home));
    mt_tensor *target = filled(0);
    mt_tensor *source = filled(7);
    uint64_t address = mt_tensor_storage_address(source);
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    REQUIRE_OK(mt_stream_set_current(side));
    REQUIRE_OK(sim->hold(0, mt_stream_number(side), LONG, 0));
    REQUIRE_OK(mt_copy_(target, source, false)); /* waits for the hold */
    REQUIRE_OK(mt_tensor_record_stream(source, side));
    mt_tensor_release(source);
    REQUIRE_OK(mt_stream_set_current(home));
    mt_tensor *other = filled(9); /* must not overwrite what the copy reads */
    CHECK(mt_tensor_storage_address(other) != address);
    CHECK(holds(other, 9));
    REQUIRE_OK(sim->release(0, mt_stream_number(side)));
    REQUIRE_OK(mt_stream_synchronize(side));
    CHECK(holds(target, 7));
    mt_tensor *again[3000]; /* every block of the segment, so that one of them is the one */
    bool seen = false;
    for (size_t i = 0; i < MT_COUNT(again); i++) {
        again[i] = filled(1);
        seen = seen || mt_tensor_storage_address(again[i]) == address;
    }
    CHECK(seen);
    for (size_t i = 0; i < MT_COUNT(again); i++) {
        mt_tensor_release(again[i]);
    }
    mt_tensor_release(target);
    mt_tensor_release(other);
}

TEST(sim_memory_pinned_copies_go_on_behind_the_host)
{
    const mt_sim *sim = sim_open("1", "64M");
    float values[COUNT];
    const int64_t count = COUNT;
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = 5;
    }
    mt_tensor *plain, *on_host;
    REQUIRE_OK(mt_tensor_from_data(values, MT_DTYPE_F32, &count, 1, MT_CPU, &plain));
    REQUIRE_OK(mt_tensor_pin(plain, &on_host));
    CHECK(mt_tensor_is_pinned(on_host));
    mt_tensor *on_npu = filled(0);
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    const void *data = mt_tensor_data(on_host);
    REQUIRE_OK(sim->hold(0, 0, LONG, 0));
    REQUIRE_OK(mt_copy_(on_npu, on_host, true));
    CHECK_EQ_U64(sim_counts(sim, 0, 0).waiting, 2); /* the hold, and the copy after it */
    mt_tensor_release(on_host);                     /* its bytes stay until they were read */
    const mt_scalar zero = mt_int(0);
    REQUIRE_OK(mt_fill_scalar_(plain, zero));
    REQUIRE_OK(mt_tensor_pin(plain, &on_host));
    CHECK(mt_tensor_data(on_host) != data);
    REQUIRE_OK(sim->release(0, 0));
    CHECK(holds(on_npu, 5));
    REQUIRE_OK(mt_copy_(on_host, on_npu, true));
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    CHECK_EQ_MEM(mt_tensor_data(on_host), values, sizeof values);
    mt_tensor_release(on_host);
    mt_tensor_release(on_npu);
    mt_tensor_release(plain);
}

TEST(sim_memory_out_of_it_and_back)
{
    (void)sim_open("1", "8M");
    mt_tensor *kept[64] = {NULL};
    const int64_t half = 1 << 17; /* 512 KiB of float32 */
    size_t n = 0;
    int status = MT_OK;
    while (n < MT_COUNT(kept) && status == MT_OK) {
        status = mt_empty_with(&half, 1, MT_DTYPE_F32, MT_NPU, &kept[n]);
        n += status == MT_OK;
    }
    CHECK_EQ_I64(status, MT_EOOM);
    CHECK_EQ_U64(n, 16);
    CHECK_EQ_STR(mt_last_error()->message,
                 "NPU out of memory. Tried to allocate 512.00 KiB. NPU 0 has a total capacity of "
                 "8.00 MiB of which 0 bytes is free. Of the allocated memory 8.00 MiB is allocated "
                 "by MindTorch, and 0 bytes is reserved by MindTorch but unallocated.");
    for (size_t i = 0; i < n; i++) {
        mt_tensor_release(kept[i]);
    }
    const int64_t all = 7 << 18; /* another class: the lists are given back for it */
    mt_tensor *large;
    REQUIRE_OK(mt_empty_with(&all, 1, MT_DTYPE_F32, MT_NPU, &large));
    mt_tensor_release(large);
    REQUIRE_OK(mt_device_empty_cache(MT_NPU));
    mt_device_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mt_device_get_info(MT_NPU, &info));
    CHECK_EQ_U64(info.free_bytes, info.total_bytes);
}

TEST(sim_memory_a_failed_kernel_is_told_after_a_refusal)
{
    const mt_sim *sim = sim_open("1", "8M");
    const int64_t large = 5 << 18; /* 5 MiB */
    const int64_t larger = 6 << 18;
    mt_tensor *first, *second;
    REQUIRE_OK(mt_empty_with(&large, 1, MT_DTYPE_F32, MT_NPU, &first));
    REQUIRE_OK(sim->fail(0, 0, MT_ERUNTIME, "sim: fell over"));
    REQUIRE_OK(mt_fill_scalar_(first, mt_int(1)));
    mt_tensor_release(first);
    REQUIRE_OK(mt_empty_with(&larger, 1, MT_DTYPE_F32, MT_NPU, &second)); /* empties, so it waits */
    CHECK_EQ_I64(mt_device_synchronize(MT_NPU), MT_ERUNTIME);
    CHECK(strstr(mt_last_error()->message, "fell over") != NULL);
    CHECK_OK(mt_device_synchronize(MT_NPU));
    mt_tensor_release(second);
}

static void *work(void *given)
{
    mt_stream **streams = given;
    uint64_t seed = (uint64_t)(uintptr_t)pthread_self();
    for (int i = 0; i < 200; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        float value = (float)(seed >> 48);
        CHECK_OK(mt_stream_set_current(streams[(seed >> 32) % 3]));
        mt_tensor *a = filled((double)value);
        mt_tensor *b;
        CHECK_OK(mt_add_scalar(a, mt_real(1), &b));
        mt_tensor_release(a);
        mt_tensor *c = filled(0.5); /* may have a's memory: the same stream */
        if (!holds(b, value + 1) || !holds(c, 0.5F)) {
            FAIL("round %d", i);
        }
        mt_tensor_release(b);
        mt_tensor_release(c);
    }
    return NULL;
}

TEST(sim_memory_four_threads_on_three_streams)
{
    (void)sim_open("1", "64M");
    mt_stream *streams[3] = {new_stream(), new_stream(), new_stream()};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work, streams) == 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    mt_memory_stats stats = {.struct_size = sizeof stats};
    REQUIRE_OK(mt_device_get_memory_stats(MT_NPU, &stats));
    CHECK_EQ_U64(stats.allocated_bytes, 0);
    REQUIRE_OK(mt_device_empty_cache(MT_NPU));
    REQUIRE_OK(mt_device_get_memory_stats(MT_NPU, &stats));
    CHECK_EQ_U64(stats.reserved_bytes, 0);
}
