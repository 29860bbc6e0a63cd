/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of an accelerator: lists of streams (MEM5, ML3), further streams that use a tensor,
 * refusals and what they say, failures that are found in between, fork (MEM6). The device is
 * support/devices/held_backend.h: its streams do not run until the test lets them.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "mindtorch/core/device/device_failure.h"
#include "mindtorch/core/device/launch.h"
#include "mindtorch/core/memory/memory.h"
#include "mindtorch/core/tensor/tensor_impl.h"
#include "support/devices/held_backend.h"
#include "support/devices/npu_stream.h"

#include <mindtorch/stream.h>
#include <mtprof/mtprof.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MIB = 1 << 20
};

typedef struct taken {
    void *memory;
    uint64_t bytes;
    uint32_t key;
} taken;

static taken take(mt_device device, uint64_t bytes)
{
    taken t = {.bytes = bytes};
    REQUIRE_OK(mt__memory_take(device, bytes, &t.memory, &t.key));
    return t;
}

static void give(mt_device device, const taken *t)
{
    mt__memory_give(device, t->memory, t->bytes, t->key);
}

static mt_memory_stats stats_of(mt_device device)
{
    mt_memory_stats stats = {.struct_size = sizeof stats};
    REQUIRE_OK(mt_device_get_memory_stats(device, &stats));
    return stats;
}

static mt_tensor *new_tensor(int64_t bytes)
{
    mt_tensor *tensor;
    mt__shape shape = {.n_dims = 1, .sizes = {bytes}};
    REQUIRE_OK(mt__tensor_new("test", MT_DTYPE_U8, MT_NPU, &shape, &tensor));
    return tensor;
}

/* ---- streams ---- */

/* MEM5 */
TEST(device_memory_comes_back_on_its_stream)
{
    held_open();
    mt_stream *a = new_stream();
    mt_stream *b = new_stream();
    static const uint64_t sizes[] = {100, 3 * MIB}; /* of a shared segment, and one of its own */
    for (size_t i = 0; i < MT_COUNT(sizes); i++) {
        use_stream(a);
        taken first = take(MT_NPU, sizes[i]);
        use_stream(b);
        give(MT_NPU, &first); /* where does not matter */
        taken other = take(MT_NPU, sizes[i]);
        CHECK(other.memory != first.memory);
        use_stream(a);
        taken again = take(MT_NPU, sizes[i]);
        CHECK(again.memory == first.memory);
        use_stream(default_stream());
        taken third = take(MT_NPU, sizes[i]);
        CHECK(third.memory != first.memory && third.memory != other.memory);
        give(MT_NPU, &third);
        give(MT_NPU, &other);
        give(MT_NPU, &again);
    }
    CHECK_EQ_U64(held.waits, 0);
    mt_memory_stats stats = stats_of(MT_NPU);
    CHECK_EQ_U64(stats.allocations, 8);
    CHECK_EQ_U64(stats.releases, 8);
    CHECK_EQ_U64(stats.allocated_bytes, 0);
    CHECK_EQ_U64(stats.reserved_bytes, held.given);
    CHECK_EQ_U64(stats.peak_allocated_bytes, 9 * MIB);
    REQUIRE_OK(mt_device_empty_cache(MT_NPU));
    CHECK(held.waits > 0);
    CHECK_EQ_U64(held.given, 0);
    CHECK_EQ_U64(stats_of(MT_NPU).reserved_bytes, 0);
}

/* MEM3: other streams' lists too, and not before the device has passed what used them. */
TEST(device_memory_a_refusal_empties_all_streams)
{
    held_open();
    mt_stream *a = new_stream();
    use_stream(a);
    taken first = take(MT_NPU, 3 * MIB);
    taken small = take(MT_NPU, 64);
    give(MT_NPU, &first);
    use_stream(default_stream());
    held.limit = held.given + MIB;
    taken second = take(MT_NPU, 4 * MIB);
    CHECK_EQ_U64(held.released_early, 0);
    CHECK(held.waits > 0);
    CHECK_EQ_U64(held.given, stats_of(MT_NPU).reserved_bytes);
    CHECK_EQ_U64(held.given, 4 * MIB + 2 * MIB); /* the small one's segment is in use */
    give(MT_NPU, &second);
    give(MT_NPU, &small);
}

static void *alloc_on_three_streams(void *given)
{
    mt_stream **streams = given;
    unsigned seed = (unsigned)(uintptr_t)pthread_self();
    taken kept[8] = {{0}};
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1664525u + 1013904223u;
        size_t slot = seed >> 8 & 7;
        CHECK_OK(mt_stream_set_current(streams[(seed >> 16) % 3]));
        if (kept[slot].memory != NULL) {
            give(MT_NPU, &kept[slot]);
            kept[slot].memory = NULL;
        } else {
            uint64_t bytes = 1 + (seed >> 12) % 5000;
            kept[slot].bytes = bytes;
            CHECK_OK(mt__memory_take(MT_NPU, bytes, &kept[slot].memory, &kept[slot].key));
            memset(kept[slot].memory, (int)slot, bytes);
        }
        if (i % 500 == 0) {
            CHECK_OK(mt_device_empty_cache(MT_NPU));
        }
    }
    for (size_t i = 0; i < 8; i++) {
        if (kept[i].memory != NULL) {
            give(MT_NPU, &kept[i]);
        }
    }
    return NULL;
}

TEST(device_memory_four_threads_on_three_streams)
{
    held_open();
    held_let_go();
    mt_stream *streams[3] = {default_stream(), new_stream(), new_stream()};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, alloc_on_three_streams, streams) == 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    mt_memory_stats stats = stats_of(MT_NPU);
    CHECK_EQ_U64(stats.allocated_bytes, 0);
    CHECK_EQ_U64(stats.allocations, stats.releases);
    REQUIRE_OK(mt_device_empty_cache(MT_NPU));
    CHECK_EQ_U64(held.given, 0);
    CHECK_EQ_U64(held.released_early, 0);
}

/* ---- other streams that use it ---- */

TEST(device_memory_waits_for_recorded_streams)
{
    held_open();
    mt_stream *a = new_stream();
    mt_stream *b = new_stream();
    use_stream(a);
    mt_tensor *tensor = new_tensor(3 * MIB);
    uint64_t address = mt_tensor_storage_address(tensor);
    CHECK_OK(mt_tensor_record_stream(tensor, a)); /* its own: nothing to wait for */
    CHECK_OK(mt_tensor_record_stream(tensor, b));
    CHECK_OK(mt_tensor_record_stream(tensor, default_stream()));
    CHECK_OK(mt_tensor_record_stream(tensor, b));
    held_work(b);
    held_work(default_stream());
    mt_tensor_release(tensor);
    CHECK_EQ_U64(stats_of(MT_NPU).allocated_bytes, 0);
    CHECK_EQ_U64(held.events, 2);
    mt_tensor *other = new_tensor(3 * MIB);
    CHECK(mt_tensor_storage_address(other) != address);
    held_finish(b);
    mt_tensor *third = new_tensor(3 * MIB);
    CHECK(mt_tensor_storage_address(third) != address);
    held_finish(default_stream());
    CHECK_EQ_U64(held.waits, 0);
    mt_tensor *again = new_tensor(3 * MIB);
    CHECK(mt_tensor_storage_address(again) == address);
    CHECK_EQ_U64(held.waits, 0);
    CHECK_EQ_U64(held.events, 0);
    mt_tensor_release(other);
    mt_tensor_release(third);
    mt_tensor_release(again);
}

TEST(device_memory_that_waits_is_emptied_too)
{
    held_open();
    mt_stream *b = new_stream();
    mt_tensor *tensor = new_tensor(100);
    CHECK_OK(mt_tensor_record_stream(tensor, b));
    held_work(b);
    mt_tensor_release(tensor);
    CHECK_EQ_U64(held.events, 1);
    REQUIRE_OK(mt_device_empty_cache(MT_NPU)); /* waits, which finishes the work */
    CHECK_EQ_U64(held.given, 0);
    CHECK_EQ_U64(held.events, 0);
    CHECK_EQ_U64(held.released_early, 0);
}

/* SU1 */
TEST(device_memory_without_events_waits_at_once)
{
    held_open();
    mt_stream *b = new_stream();
    for (int i = 0; i < 2; i++) {
        mt_tensor *tensor = new_tensor(3 * MIB);
        uint64_t address = mt_tensor_storage_address(tensor);
        CHECK_OK(mt_tensor_record_stream(tensor, b));
        held_work(b);
        held.refuse_events = i == 0;
        held.refuse_records = i == 1;
        uint64_t waits = held.waits;
        mt_tensor_release(tensor);
        CHECK_EQ_U64(held.waits, waits + 1);
        CHECK_EQ_U64(held.events, 0);
        held.refuse_events = held.refuse_records = false;
        mt_tensor *again = new_tensor(3 * MIB);
        CHECK(mt_tensor_storage_address(again) == address);
        mt_tensor_release(again);
    }
}

TEST(device_memory_record_stream_checks)
{
    held_open();
    float value = 1;
    mt_tensor *host;
    REQUIRE_OK(mt_tensor_from_data(&value, MT_DTYPE_F32, NULL, 0, MT_CPU, &host));
    CHECK_EQ_I64(mt_tensor_record_stream(NULL, new_stream()), MT_EVALUE);
    CHECK_EQ_I64(mt_tensor_record_stream(host, NULL), MT_EVALUE);
    CHECK_EQ_I64(mt_tensor_record_stream(host, new_stream()), MT_ERUNTIME);
    mt_tensor_release(host);
    mt_tensor *empty = new_tensor(0);
    CHECK_OK(mt_tensor_record_stream(empty, new_stream()));
    mt_tensor_release(empty);
    mt_tensor *on_npu = new_tensor(64);
#if defined(MT_DEBUG) && MT_DEBUG
    mt_stream *one = new_stream();
    mtb_fail_nth(1, false);
    CHECK_EQ_I64(mt_tensor_record_stream(on_npu, one), MT_ENOMEM);
    mtb_fail_nth(0, false);
#endif
    for (int i = 0; i < 20; i++) { /* more than there is room for at first */
        CHECK_OK(mt_tensor_record_stream(on_npu, new_stream()));
    }
    mt_tensor_release(on_npu);
    CHECK_OK(mt_device_empty_cache(MT_NPU));
    CHECK_EQ_U64(held.events, 0);
}

/* ---- refusals ---- */

TEST(device_memory_says_what_is_missing)
{
    held_open();
    void *block;
    uint32_t key;
    held.limit = 12 * MIB + 512 * 1024;
    taken first = take(MT_NPU, 8 * MIB);
    taken cached = take(MT_NPU, 100);
    CHECK_EQ_I64(mt__memory_take(MT_NPU, 20 * MIB, &block, &key), MT_EOOM);
    CHECK(block == NULL);
    CHECK_EQ_STR(mt_last_error()->message,
                 "NPU out of memory. Tried to allocate 20.00 MiB. NPU 0 has a total capacity of "
                 "12.50 MiB of which 2.50 MiB is free. Of the allocated memory 8.00 MiB is "
                 "allocated by MindTorch, and 2.00 MiB is reserved by MindTorch but unallocated.");
    CHECK_EQ_STR(mt_status_exception(MT_EOOM), "OutOfMemoryError");
    CHECK_EQ_I64(mt__memory_take(MT_NPU, UINT64_MAX, &block, &key), MT_EOOM);
    CHECK(strstr(mt_last_error()->message, "Tried to allocate 17179869184.00 GiB.") != NULL);
    held.limit = 0;
    held.no_info = true;
    CHECK_EQ_I64(mt__memory_take(MT_NPU, 3 * MIB, &block, &key), MT_EOOM);
    CHECK_EQ_STR(mt_last_error()->message,
                 "NPU out of memory. Tried to allocate 3.00 MiB. Of the allocated memory 8.00 MiB "
                 "is allocated by MindTorch, and 2.00 MiB is reserved by MindTorch but "
                 "unallocated.");
    CHECK_EQ_I64(mt__memory_take(MT_NPU + 1, 1 << 30, &block, &key), MT_EOOM);
    CHECK(strstr(mt_last_error()->message,
                 "allocate 1024.00 MiB. Of the allocated memory 0 bytes is") != NULL);
    CHECK_EQ_I64(mt__memory_take(MT_NPU + 200, 1, &block, &key), MT_ERUNTIME);
    mt_memory_stats stats = stats_of(MT_NPU);
    CHECK_EQ_U64(stats.allocations, 2);
    CHECK_EQ_U64(stats.allocated_bytes, 8 * MIB + 100);
    give(MT_NPU, &first);
    give(MT_NPU, &cached);
    CHECK_OK(mt_device_empty_cache(MT_NPU));
    CHECK_EQ_U64(held.given, 0);
}

#if defined(MT_DEBUG) && MT_DEBUG
/* Our own tables are host memory: that is no affair of the device. */
TEST(device_memory_without_tables)
{
    held_open();
    int oom = 0;
    int nomem = 0;
    for (uint64_t n = 1; n < 8; n++) {
        void *block;
        uint32_t key;
        mtb_fail_nth(n, false);
        int status = mt__memory_take(MT_NPU, 100, &block, &key);
        mtb_fail_nth(0, false);
        oom += status == MT_EOOM; /* the block itself, refused on purpose */
        nomem += status == MT_ENOMEM;
        CHECK((status == MT_OK) == (block != NULL));
        if (status == MT_OK) {
            mt__memory_give(MT_NPU, block, 100, key);
            break;
        }
    }
    CHECK_EQ_I64(oom, 1);
    CHECK(nomem >= 2);
    CHECK_EQ_U64(stats_of(MT_NPU).allocated_bytes, 0);
    CHECK_OK(mt_device_empty_cache(MT_NPU));
    CHECK_EQ_U64(held.given, 0);
}
#endif

/* A kernel failed, and the allocator was the first to wait: the program still gets the error. */
TEST(device_memory_keeps_failures_for_who_asks)
{
    held_open();
    mt_stream *stream = default_stream();
    void *block;
    uint32_t key;
    taken first = take(MT_NPU, 3 * MIB);
    give(MT_NPU, &first);
    held.limit = 4 * MIB;
    held.failure = "kernel fell over";
    REQUIRE_OK(mt__memory_take(MT_NPU, 4 * MIB, &block, &key));
    CHECK(held.failure == NULL); /* the backend has reported it */
    CHECK_EQ_I64(mt_device_synchronize(MT_NPU), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, "kernel fell over");
    CHECK_OK(mt_device_synchronize(MT_NPU)); /* once */

    mt__failure_keep(MT_NPU, mt_fail(MT_ERUNTIME, "first"));
    mt__failure_keep(MT_NPU, mt_fail(MT_ERUNTIME, "second")); /* one is enough */
    mt__failure_keep(MT_NPU + 1, mt_fail(MT_EINDEX, "of another"));
    mt__failure_keep(MT_NPU, mt_fail(MT_EDEVICE, "lost"));
    held.failure = "third";
    CHECK_EQ_I64(mt_stream_synchronize(stream), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, "first");
    char bytes[4];
    CHECK_EQ_I64(mt__copy_to_host(MT_NPU, bytes, block, sizeof bytes, false), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, "third"); /* what came with the first one */
    CHECK_OK(mt_stream_synchronize(stream));
    CHECK_EQ_I64(mt_device_synchronize(MT_NPU + 1), MT_EINDEX);
    CHECK_OK(mt_device_synchronize(MT_CPU));

    held.failure = "while emptying";
    mt__memory_give(MT_NPU, block, 4 * MIB, key);
    CHECK_EQ_I64(mt_device_empty_cache(MT_NPU), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, "while emptying");
    CHECK_EQ_U64(held.given, 0);
    CHECK_OK(mt_device_empty_cache(MT_NPU));
}

TEST(device_memory_of_a_lost_device)
{
    held_open();
    void *block;
    uint32_t key;
    taken first = take(MT_NPU, 3 * MIB);
    held.lost = true;
    CHECK_EQ_I64(mt__memory_take(MT_NPU, 3 * MIB, &block, &key), MT_EDEVICE);
    CHECK_EQ_STR(mt_last_error()->message, "held: lost");
    give(MT_NPU, &first);
    CHECK_EQ_I64(mt_device_empty_cache(MT_NPU), MT_EDEVICE);
    CHECK(held.given != 0); /* no wait, so nothing is freed */
    held.lost = false;
    CHECK_OK(mt_device_empty_cache(MT_NPU));
    CHECK_EQ_U64(held.given, 0);
}

/* MEM6 */
TEST(device_memory_in_the_child_of_a_fork)
{
    held_open();
    mt_stream *b = new_stream();
    mt_tensor *plain = new_tensor(100);
    mt_tensor *used = new_tensor(3 * MIB);
    mt_tensor *cached = new_tensor(5 * MIB);
    mt_tensor_release(cached);
    CHECK_OK(mt_tensor_record_stream(used, b));
    pid_t child = fork();
    if (child == 0) {
        held.lost = true; /* B6 */
        mt_tensor_release(plain);
        mt_tensor_release(used);
        mt_memory_stats stats = {.struct_size = sizeof stats};
        bool fine =
            mt_device_get_memory_stats(MT_NPU, &stats) == MT_OK && stats.allocated_bytes == 0;
        void *block;
        uint32_t key;
        fine = fine && mt__memory_take(MT_NPU, 5 * MIB, &block, &key) == MT_EDEVICE;
        fine = fine && mt__memory_take(MT_CPU, 100, &block, &key) == MT_OK;
        _exit(fine ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_EQ_I64(status, 0);
    mt_tensor_release(plain);
    mt_tensor_release(used);
}

/* ---- the profile ---- */

TEST(device_memory_refusals_are_recorded)
{
    held_open();
    void *block;
    uint32_t key;
    mtprof_config config = {.struct_size = sizeof config,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS};
    mtprof_session *session;
    mtprof_model *model;
    mtprof_column kinds, bytes;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    taken first = take(MT_NPU, 100);
    held.limit = 4 * MIB;
    CHECK_EQ_I64(mt__memory_take(MT_NPU, 20 * MIB, &block, &key), MT_EOOM);
    CHECK_EQ_I64(mt__memory_take(MT_CPU, UINT64_MAX / 4, &block, &key), MT_ENOMEM);
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    REQUIRE_OK(mtprof_model_get_column(model, MTPROF_COLUMN_KIND, &kinds));
    REQUIRE_OK(mtprof_model_get_column(model, MTPROF_COLUMN_BYTES, &bytes));
    uint64_t seen[2] = {0};
    size_t n = 0;
    for (uint64_t i = 0; i < kinds.count; i++) {
        if (((const uint8_t *)kinds.data)[i] == MTPROF_EVENT_KIND_OUT_OF_MEMORY && n < 2) {
            seen[n++] = ((const uint64_t *)bytes.data)[i];
        }
    }
    CHECK_EQ_U64(n, 2);
    CHECK_EQ_U64(seen[0], 20 * MIB);
    CHECK_EQ_U64(seen[1], UINT64_MAX / 4);
    mtprof_model_free(model);
    REQUIRE_OK(mtprof_session_close(session));
    give(MT_NPU, &first);
}
