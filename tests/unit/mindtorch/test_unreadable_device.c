/* SPDX-License-Identifier: Apache-2.0
 *
 * A device whose memory the host cannot read (support/devices/unreadable_backend.c): whatever
 * dereferences a storage above the backends crashes here. Models train on it with the host's
 * numbers, bit for bit. The op table runs there too: tests/ops/run_ops.py --device npu:0.
 */
#include "harness/mt_test.h"
#include "support/devices/unreadable_backend.h"
#include "support/small_models.h"

#include <mindtorch/mindtorch.h>

#include <string.h>

enum {
    MAX_NUMBERS = 8192,
    STEPS = 4
};

static mt_tensor *on_npu(mt_tensor *tensor)
{
    mt_tensor *moved;
    REQUIRE_OK(mt_to_with(tensor, MT_DTYPE_NONE, MT_NPU, false, false, &moved));
    CHECK_EQ_I64(mt_tensor_device(moved), MT_NPU);
    return moved;
}

static size_t train(const sm_kind *kind, mt_optimizer_kind optimizer, bool on_device, float *values)
{
    sm_model model;
    double loss = 0.0;
    REQUIRE_OK(sm_open(&model, kind, optimizer, 0.01));
    if (on_device) {
        REQUIRE_OK(sm_move(&model, MT_NPU, optimizer, 0.01));
    }
    for (int i = 0; i < STEPS; i++) {
        REQUIRE_OK(sm_step(&model, &loss));
    }
    size_t count = sm_read(&model, values, MAX_NUMBERS - 1);
    REQUIRE(count > 0 && count < MAX_NUMBERS);
    values[count] = (float)loss;
    sm_close(&model);
    return count + 1;
}

static void check_training(const sm_kind *kind, mt_optimizer_kind optimizer)
{
    static float here[MAX_NUMBERS];
    static float there[MAX_NUMBERS];
    uint64_t launches = mt_test_backend_launches();
    size_t count = train(kind, optimizer, false, here);
    CHECK_EQ_U64(mt_test_backend_launches(), launches);
    CHECK_EQ_U64(train(kind, optimizer, true, there), count);
    CHECK(mt_test_backend_launches() > launches);
    if (!CHECK_EQ_MEM(there, here, count * sizeof *here)) {
        FAIL("%s differs on the device", kind->name);
    }
    CHECK_EQ_U64(mt_tensors_alive(), 0);
    mt_memory_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(mt_device_get_memory_stats(MT_NPU, &stats));
    CHECK_EQ_U64(stats.allocated_bytes, 0);
    CHECK(stats.peak_allocated_bytes > 0);
}

TEST(unreadable_mlp_trains_with_every_optimizer)
{
    REQUIRE_OK(mt_test_backend_register());
    for (int kind = 0; kind < MT_OPTIMIZER_COUNT; kind++) {
        check_training(&sm_mlp, (mt_optimizer_kind)kind);
    }
}

TEST(unreadable_cnn_trains)
{
    REQUIRE_OK(mt_test_backend_register());
    check_training(&sm_cnn, MT_OPTIMIZER_ADAM);
}

TEST(unreadable_gpt_trains)
{
    REQUIRE_OK(mt_test_backend_register());
    check_training(&sm_gpt, MT_OPTIMIZER_ADAMW);
}

static mt_tensor *matrix(void)
{
    mt_tensor *made;
    float values[6] = {1, -2, 3, -4, 5, -6};
    REQUIRE_OK(
        mt_tensor_from_data(values, MT_DTYPE_F32, (const int64_t[]){2, 3}, 2, MT_CPU, &made));
    return made;
}

TEST(unreadable_devices_do_not_mix)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *here = matrix();
    mt_tensor *there = on_npu(here);
    mt_tensor *out;
    CHECK_EQ_I64(mt_add(here, there, &out), MT_ERUNTIME);
    CHECK(out == NULL);
    CHECK(strstr(mt_last_error()->message, "Expected all tensors to be on the same device") !=
          NULL);
    CHECK_EQ_I64(mt_add(there, here, &out), MT_ERUNTIME);
    CHECK_EQ_I64(mt_cat((mt_tensor *const[]){there, here}, 2, 0, &out), MT_ERUNTIME);
    mt_tensor *other;
    REQUIRE_OK(mt_to_with(here, MT_DTYPE_NONE, MT_NPU + 1, false, false, &other));
    CHECK_EQ_I64(mt_tensor_device(other), MT_NPU + 1);
    CHECK_EQ_I64(mt_mul(there, other, &out), MT_ERUNTIME);
    CHECK(strstr(mt_last_error()->message, "npu:0") != NULL);
    CHECK(strstr(mt_last_error()->message, "npu:1") != NULL);
    float back[6];
    REQUIRE_OK(mt_tensor_read(other, back, sizeof back));
    CHECK_EQ_F64(back[5], -6);
    mt_tensor_release(other);
    mt_tensor_release(there);
    mt_tensor_release(here);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

/* A 0-d host tensor counts as a number in ops with tensors of a device, as in torch. */
TEST(unreadable_takes_host_numbers)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *here = matrix();
    mt_tensor *there = on_npu(here);
    mt_tensor *number;
    mt_tensor *out;
    mt_tensor *sum;
    mt_scalar value;
    REQUIRE_OK(mt_scalar_tensor(mt_real(2.5), &number));
    REQUIRE_OK(mt_mul(there, number, &out));
    CHECK_EQ_I64(mt_tensor_device(out), MT_NPU);
    REQUIRE_OK(mt_sum(out, NULL, 0, false, &sum));
    REQUIRE_OK(mt_item(sum, &value)); /* waits and copies */
    CHECK_EQ_F64(value.of.real, -7.5);
    mt_tensor_release(sum);
    mt_tensor_release(out);
    REQUIRE_OK(mt_mul(number, there, &out));
    CHECK_EQ_I64(mt_tensor_device(out), MT_NPU);
    mt_tensor_release(out);
    mt_tensor_release(number);
    mt_tensor_release(there);
    mt_tensor_release(here);
}

/* Copies between devices convert types and follow strides. */
TEST(unreadable_copies_convert)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *here = matrix();
    mt_tensor *turned;
    mt_tensor *there;
    mt_tensor *again;
    REQUIRE_OK(mt_transpose(here, 0, 1, &turned));
    REQUIRE_OK(mt_to_with(turned, MT_DTYPE_I32, MT_NPU, false, false, &there));
    CHECK_EQ_I64(mt_tensor_dtype(there), MT_DTYPE_I32);
    int32_t integers[6];
    REQUIRE_OK(mt_tensor_read(there, integers, sizeof integers));
    CHECK_EQ_MEM(integers, ((const int32_t[]){1, -4, -2, 5, 3, -6}), sizeof integers);
    REQUIRE_OK(mt_copy_(turned, there, false)); /* into strided host memory */
    float back[6];
    REQUIRE_OK(mt_tensor_read(here, back, sizeof back));
    CHECK_EQ_MEM(back, ((const float[]){1, -2, 3, -4, 5, -6}), sizeof back);
    REQUIRE_OK(mt_to_with(there, MT_DTYPE_F64, MT_CPU, false, false, &again));
    CHECK_EQ_I64(mt_tensor_device(again), MT_CPU);
    double doubles[6];
    REQUIRE_OK(mt_tensor_read(again, doubles, sizeof doubles));
    CHECK_EQ_F64(doubles[1], -4.0);
    mt_tensor_release(again);
    mt_tensor_release(there);
    mt_tensor_release(turned);
    mt_tensor_release(here);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}
