/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory: which copies wait, and when a block is handed out again (PIN1).
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "support/devices/held_backend.h"
#include "support/devices/npu_stream.h"

#include <mindtorch/mindtorch.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static mt_tensor *floats(int64_t n, mt_device device)
{
    mt_tensor *made;
    const mt_scalar value = mt_real(3);
    REQUIRE_OK(mt_empty(&n, 1, &made));
    float *data = mt_tensor_data(made);
    for (int64_t i = 0; i < n; i++) {
        data[i] = (float)value.of.real + (float)i;
    }
    if (device != MT_CPU) {
        mt_tensor *on_npu;
        REQUIRE_OK(mt_tensor_from_data(data, MT_DTYPE_F32, &n, 1, device, &on_npu));
        mt_tensor_release(made);
        return on_npu;
    }
    return made;
}

static mt_tensor *pinned(int64_t n)
{
    mt_tensor *plain = floats(n, MT_CPU);
    mt_tensor *made;
    REQUIRE_OK(mt_tensor_pin(plain, &made));
    mt_tensor_release(plain);
    return made;
}

/* copy_ with non_blocking=True. */
static void copy(mt_tensor *to, mt_tensor *from)
{
    REQUIRE_OK(mt_copy_(to, from, true));
}

TEST(pinned_needs_an_accelerator)
{
    mt_tensor *plain = floats(3, MT_CPU);
    mt_tensor *made;
    CHECK(!mt_tensor_is_pinned(plain));
    CHECK(!mt_tensor_is_pinned(NULL));
    CHECK_EQ_I64(mt_tensor_pin(plain, &made), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message,
                 "Cannot access accelerator device when none is available.");
    CHECK(made == NULL);
    CHECK_EQ_I64(mt_tensor_pin(NULL, &made), MT_EVALUE);
    mt_tensor_release(plain);
}

TEST(pinned_is_a_copy)
{
    held_open();
    mt_tensor *plain = floats(6, MT_CPU);
    mt_tensor *made, *again, *view, *turned, *wide;
    REQUIRE_OK(mt_tensor_pin(plain, &made));
    CHECK(mt_tensor_is_pinned(made));
    CHECK(mt_tensor_data(made) != mt_tensor_data(plain));
    CHECK_EQ_MEM(mt_tensor_data(made), mt_tensor_data(plain), 6 * sizeof(float));
    CHECK_EQ_U64(held.pinned, 512);
    REQUIRE_OK(mt_tensor_pin(made, &again));
    CHECK(again == made);
    mt_tensor_release(again);
    REQUIRE_OK(mt_view(made, (const int64_t[]){2, 3}, 2, &view));
    CHECK(mt_tensor_is_pinned(view));
    REQUIRE_OK(mt_view(plain, (const int64_t[]){2, 3}, 2, &wide));
    REQUIRE_OK(mt_t(wide, &turned));
    REQUIRE_OK(mt_tensor_pin(turned, &again)); /* laid out again */
    CHECK_EQ_F64(((const float *)mt_tensor_data(again))[1], 6);
    mt_tensor *on_npu = floats(3, MT_NPU);
    mt_tensor *none;
    CHECK_EQ_I64(mt_tensor_pin(on_npu, &none), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message,
                 "cannot pin a float32 tensor of npu:0, only dense CPU tensors can be pinned");
    mt_tensor *const all[] = {plain, made, again, view, turned, wide, on_npu};
    for (size_t i = 0; i < MT_COUNT(all); i++) {
        mt_tensor_release(all[i]);
    }
    mt_tensor *empty = floats(0, MT_CPU);
    REQUIRE_OK(mt_tensor_pin(empty, &made));
    CHECK(mt_tensor_is_pinned(made));
    mt_tensor_release(made);
    mt_tensor_release(empty);
}

TEST(pinned_copies_do_not_wait)
{
    held_open();
    mt_tensor *on_npu = floats(8, MT_NPU);
    mt_tensor *on_host = pinned(8);
    mt_tensor *plain = floats(8, MT_CPU);
    mt_tensor *moved;
    uint64_t ordinary = held.copies[0];
    copy(on_npu, on_host);
    copy(on_host, on_npu);
    REQUIRE_OK(mt_to_with(on_host, MT_DTYPE_NONE, MT_NPU, true, false, &moved));
    CHECK_EQ_U64(held.copies[1], 3);
    CHECK_EQ_U64(held.copies[0], ordinary);
    CHECK_EQ_U64(held.waits, 0);
    CHECK_EQ_U64(held.events, 1); /* one a stream, recorded again */
    mt_tensor_release(moved);
    /* Pageable memory, or a copy that is to wait, is an ordinary one. */
    copy(on_npu, plain);
    REQUIRE_OK(mt_copy_(on_npu, on_host, false));
    CHECK_EQ_U64(held.copies[0], ordinary + 2);
    CHECK_EQ_U64(held.waits, 0);
    copy(plain, on_npu);
    CHECK_EQ_U64(held.waits, 1);
    CHECK_EQ_U64(held.copies[1], 3);
    mt_tensor_release(on_npu);
    mt_tensor_release(on_host);
    mt_tensor_release(plain);
}

/* PIN1 */
TEST(pinned_blocks_wait_for_their_copies)
{
    held_open();
    mt_tensor *on_npu = floats(8, MT_NPU);
    mt_stream *a = new_stream();
    mt_tensor *on_host = pinned(8);
    const void *data = mt_tensor_data(on_host);
    copy(on_npu, on_host);
    REQUIRE_OK(mt_stream_set_current(a));
    copy(on_npu, on_host);
    CHECK_EQ_U64(held.events, 2);
    mt_tensor_release(on_host);
    mt_tensor *second = pinned(8);
    CHECK(mt_tensor_data(second) != data);
    held_finish(a);
    mt_tensor *third = pinned(8);
    CHECK(mt_tensor_data(third) != data);
    held_finish(default_stream());
    mt_tensor *again = pinned(100); /* the same power of two */
    CHECK(mt_tensor_data(again) == data);
    CHECK_EQ_U64(held.events, 0);
    CHECK_EQ_U64(held.waits, 0);
    mt_tensor *const all[] = {on_npu, second, third, again};
    for (size_t i = 0; i < MT_COUNT(all); i++) {
        mt_tensor_release(all[i]);
    }
}

TEST(pinned_without_events_waits_at_once)
{
    held_open();
    mt_tensor *on_npu = floats(8, MT_NPU);
    mt_tensor *on_host = pinned(8);
    const void *data = mt_tensor_data(on_host);
    held.refuse_events = true;
    copy(on_npu, on_host);
    CHECK_EQ_U64(held.waits, 1);
    held.refuse_events = false;
#if defined(MT_DEBUG) && MT_DEBUG
    mt_tensor *other = pinned(8);
    mtb_fail_nth(1, true);
    copy(on_npu, other);
    mtb_fail_nth(0, false);
    CHECK_EQ_U64(held.waits, 2);
    mt_tensor_release(other);
#endif
    mt_tensor_release(on_host);
    on_host = pinned(8);
    CHECK(mt_tensor_data(on_host) == data);
    mt_tensor_release(on_host);
    mt_tensor_release(on_npu);
}

TEST(pinned_memory_that_is_refused)
{
    held_open();
    mt_tensor *on_npu = floats(200, MT_NPU);
    mt_tensor *plain = floats(1000, MT_CPU);
    mt_tensor *made;
    mt_tensor *on_host = pinned(200); /* 1024 bytes */
    copy(on_npu, on_host);
    mt_tensor_release(on_host);
    held.pinned_limit = 4096;
    REQUIRE_OK(mt_tensor_pin(plain, &made)); /* once the cached one was waited for and given back */
    CHECK_EQ_U64(held.pinned, 4096);
    CHECK_EQ_U64(held.waits, 1);
    CHECK_EQ_U64(held.events, 0);
    mt_tensor *other;
    CHECK_EQ_I64(mt_tensor_pin(plain, &other), MT_ENOMEM);
    CHECK_EQ_STR(mt_last_error()->message,
                 "pin_memory: can't allocate memory: you tried to allocate 4000 bytes");
    CHECK(other == NULL);
    mt_tensor_release(made);
#if defined(MT_DEBUG) && MT_DEBUG
    for (uint64_t n = 1; n < 6; n++) {
        mtb_fail_nth(n, false);
        int status = mt_tensor_pin(plain, &other);
        mtb_fail_nth(0, false);
        CHECK(status == MT_OK || status == MT_ENOMEM);
        CHECK((status == MT_OK) == (other != NULL));
        mt_tensor_release(other);
    }
#endif
    CHECK_EQ_U64(held.pinned, 4096);
    mt_tensor_release(plain);
    mt_tensor_release(on_npu);
}

TEST(pinned_in_the_child_of_a_fork)
{
    held_open();
    mt_tensor *on_host = pinned(8);
    mt_tensor *cached = pinned(8);
    mt_tensor *plain = floats(8, MT_CPU);
    mt_tensor_release(cached);
    pid_t child = fork();
    if (child == 0) {
        mt_tensor *made;
        held.lost = true; /* B6 */
        mt_tensor_release(on_host);
        _exit(mt_tensor_pin(plain, &made) == MT_EDEVICE && made == NULL ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_EQ_I64(status, 0);
    mt_tensor_release(on_host);
    mt_tensor_release(plain);
}

static void *pin_and_copy(void *on_npu)
{
    mt_stream *stream = new_stream();
    CHECK_OK(mt_stream_set_current(stream));
    for (int64_t i = 0; i < 300; i++) {
        mt_tensor *on_host = pinned(1 + i % 300);
        mt_tensor *part;
        CHECK_OK(mt_narrow(on_npu, 0, 0, 1 + i % 300, &part));
        CHECK_OK(mt_copy_(on_host, part, true));
        mt_tensor_release(part);
        mt_tensor_release(on_host);
    }
    return NULL;
}

TEST(pinned_from_four_threads)
{
    held_open();
    held_let_go();
    mt_tensor *on_npu = floats(400, MT_NPU);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, pin_and_copy, on_npu) == 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ_U64(held.copies[1], 1200);
    mt_tensor_release(on_npu);
}
