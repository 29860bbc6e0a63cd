/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of several devices in one op: what torch allows (indices and masks of the host's, 0-d
 * host tensors as numbers, copies) and what it refuses. And zeros, which are set and not computed.
 * On the device whose memory the host cannot read (support/devices/unreadable_backend.c), of which
 * there are two.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "support/devices/unreadable_backend.h"

#include <mindtorch/mindtorch.h>

#include <math.h>
#include <string.h>

enum {
    NPU_0 = MT_NPU,
    NPU_1 = MT_NPU + 1
};

static const int64_t two_three[2] = {2, 3};

static mt_tensor *made(const void *data, mt_dtype dtype, const int64_t *sizes, size_t n_dims,
                       mt_device device)
{
    mt_tensor *tensor;
    REQUIRE_OK(mt_tensor_from_data(data, dtype, sizes, n_dims, device, &tensor));
    return tensor;
}

static mt_tensor *matrix(mt_device device)
{
    return made((const float[]){1, -2, 3, -4, 5, -6}, MT_DTYPE_F32, two_three, 2, device);
}

static mt_tensor *number(double value, mt_device device)
{
    mt_tensor *tensor;
    REQUIRE_OK(mt_scalar_tensor_with(mt_real(value), MT_DTYPE_F32, device, &tensor));
    return tensor;
}

/* Takes the tensor. */
static void check_values(mt_tensor *tensor, mt_device device, const float *expected, size_t count)
{
    float values[16];
    REQUIRE(count <= 16);
    CHECK_EQ_I64(mt_tensor_device(tensor), device);
    REQUIRE_OK(mt_tensor_read(tensor, values, count * sizeof(float)));
    CHECK_EQ_MEM(values, expected, count * sizeof(float));
    mt_tensor_release(tensor);
}

#define CHECK_VALUES(tensor, device, ...)                      \
    check_values(tensor, device, (const float[]){__VA_ARGS__}, \
                 sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

static void check_refused(int status, const char *words)
{
    CHECK_EQ_I64(status, MT_ERUNTIME);
    if (strstr(mt_last_error()->message, words) == NULL) {
        FAIL("'%s' does not say '%s'", mt_last_error()->message, words);
    }
}

TEST(mixed_indices_of_the_host_pick_from_a_device)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *there = matrix(NPU_0);
    mt_tensor *rows =
        made((const int64_t[]){1, 0, 1}, MT_DTYPE_I64, (const int64_t[]){3}, 1, MT_CPU);
    mt_tensor *columns =
        made((const int32_t[]){2, -1, 0}, MT_DTYPE_I32, (const int64_t[]){3}, 1, MT_CPU);
    mt_tensor *mask =
        made((const uint8_t[]){0, 1, 1, 1, 0, 0}, MT_DTYPE_BOOL, two_three, 2, MT_CPU);
    mt_tensor *out;
    REQUIRE_OK(mt_index(there, (mt_tensor *const[]){rows, columns}, 2, &out));
    CHECK_VALUES(out, NPU_0, -6, 3, -4);
    REQUIRE_OK(mt_index(there, &mask, 1, &out));
    CHECK_VALUES(out, NPU_0, -2, 3, -4);
    REQUIRE_OK(mt_index(there, (mt_tensor *const[]){NULL, columns}, 2, &out));
    CHECK_VALUES(out, NPU_0, 3, 3, 1, -6, -6, -4);
    mt_tensor *here = matrix(MT_CPU);
    mt_tensor *npu_rows;
    REQUIRE_OK(mt_to_with(rows, MT_DTYPE_NONE, NPU_0, false, false, &npu_rows));
    check_refused(
        mt_index(here, &npu_rows, 1, &out),
        "indices should be either on cpu or on the same device as the indexed tensor (cpu)");
    mt_tensor *other = matrix(NPU_1);
    check_refused(mt_index(other, &npu_rows, 1, &out), "the indexed tensor (npu:1)");
    mt_tensor *const all[] = {there, rows, columns, mask, here, npu_rows, other};
    for (size_t i = 0; i < MT_COUNT(all); i++) {
        mt_tensor_release(all[i]);
    }
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(mixed_indices_of_the_host_write_to_a_device)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *there = matrix(NPU_0);
    mt_tensor *rows = made((const int64_t[]){1}, MT_DTYPE_I64, (const int64_t[]){1}, 1, MT_CPU);
    mt_tensor *mask =
        made((const uint8_t[]){1, 0, 0, 0, 0, 1}, MT_DTYPE_BOOL, two_three, 2, MT_CPU);
    mt_tensor *seven = number(7, MT_CPU);
    mt_tensor *row = made((const float[]){8, 8, 8}, MT_DTYPE_F32, (const int64_t[]){3}, 1, MT_CPU);
    mt_tensor *npu_row;
    REQUIRE_OK(mt_to_with(row, MT_DTYPE_NONE, NPU_0, false, false, &npu_row));
    REQUIRE_OK(mt_index_put_(there, &rows, 1, npu_row, true));
    REQUIRE_OK(mt_index_put_(there, &mask, 1, seven, false));
    check_refused(mt_index_put_(there, &rows, 1, row, false), "npu:0 and cpu!");
    CHECK_VALUES(there, NPU_0, 7, -2, 3, 4, 13, 7);
    mt_tensor *const all[] = {rows, mask, seven, row, npu_row};
    for (size_t i = 0; i < MT_COUNT(all); i++) {
        mt_tensor_release(all[i]);
    }
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(mixed_gradients_go_home)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *there = matrix(NPU_0);
    mt_tensor *factor = number(2, MT_CPU);
    mt_tensor *rows = made((const int64_t[]){1, 1}, MT_DTYPE_I64, (const int64_t[]){2}, 1, MT_CPU);
    REQUIRE_OK(mt_tensor_set_requires_grad(there, true));
    REQUIRE_OK(mt_tensor_set_requires_grad(factor, true));
    mt_tensor *picked;
    mt_tensor *product;
    mt_tensor *sum;
    REQUIRE_OK(mt_index(there, &rows, 1, &picked));
    REQUIRE_OK(mt_mul(picked, factor, &product));
    REQUIRE_OK(mt_sum(product, NULL, 0, false, &sum));
    REQUIRE_OK(mt_backward(sum, NULL, 0));
    CHECK_VALUES(mt_tensor_retain(mt_tensor_grad(there)), NPU_0, 0, 0, 0, 4, 4, 4);
    CHECK_VALUES(mt_tensor_retain(mt_tensor_grad(factor)), MT_CPU, -10);
    mt_tensor *const all[] = {there, factor, rows, picked, product, sum};
    for (size_t i = 0; i < MT_COUNT(all); i++) {
        mt_tensor_release(all[i]);
    }
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(mixed_numbers_of_the_host)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *there = matrix(NPU_0);
    mt_tensor *two = number(2, MT_CPU);
    mt_tensor *mask;
    mt_tensor *out;
    REQUIRE_OK(mt_gt_scalar(there, mt_int(0), &mask));
    REQUIRE_OK(mt_where(mask, there, two, &out));
    CHECK_VALUES(out, NPU_0, 1, 2, 3, 2, 5, 2);
    REQUIRE_OK(mt_masked_fill(there, mask, two, &out));
    CHECK_VALUES(out, NPU_0, 2, -2, 2, -4, 2, -6);
    REQUIRE_OK(mt_clamp_tensor(there, NULL, two, &out));
    CHECK_VALUES(out, NPU_0, 1, -2, 2, -4, 2, -6);
    REQUIRE_OK(mt_addcmul(there, there, two, &out));
    CHECK_VALUES(out, NPU_0, 3, -6, 9, -12, 15, -18);
    REQUIRE_OK(mt_lerp(there, there, two, &out));
    CHECK_VALUES(out, NPU_0, 1, -2, 3, -4, 5, -6);
    mt_tensor *npu_two = number(2, NPU_0);
    REQUIRE_OK(mt_add(two, npu_two, &out)); /* both 0-d: the device wins, on either side */
    CHECK_VALUES(out, NPU_0, 4);
    REQUIRE_OK(mt_add(npu_two, two, &out));
    CHECK_VALUES(out, NPU_0, 4);
    REQUIRE_OK(mt_fill_(there, two));
    CHECK_VALUES(there, NPU_0, 2, 2, 2, 2, 2, 2);
    mt_tensor *here = matrix(MT_CPU);
    REQUIRE_OK(mt_fill_(here, npu_two));
    CHECK_VALUES(here, MT_CPU, 2, 2, 2, 2, 2, 2);
    mt_tensor_release(mask);
    mt_tensor_release(npu_two);
    mt_tensor_release(two);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(mixed_devices_are_refused_elsewhere)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *there = matrix(NPU_0);
    mt_tensor *here = matrix(MT_CPU);
    mt_tensor *two = number(2, MT_CPU);
    mt_tensor *npu_two = number(2, NPU_0);
    mt_tensor *npu_three = number(3, NPU_1);
    mt_tensor *first;
    mt_tensor *out;
    bool same;
    REQUIRE_OK(mt_scalar_tensor_with(mt_int(0), MT_DTYPE_I64, MT_CPU, &first));
    check_refused(mt_add(here, npu_two, &out), "npu:0 and cpu!"); /* only the host's may mix */
    check_refused(mt_add(npu_two, npu_three, &out), "npu:0 and npu:1!");
    check_refused(mt_mul(there, npu_three, &out), "npu:0 and npu:1!");
    check_refused(mt_add_(two, npu_two), "npu:0 and cpu!");
    mt_tensor *other = matrix(NPU_1);
    check_refused(mt_addcmul(two, there, other, &out), "npu:0 and npu:1!"); /* two is a number */
    mt_tensor_release(other);
    CHECK_VALUES(mt_tensor_retain(two), MT_CPU, 2);
    check_refused(
        mt_index_select(there, 0, first, &out),
        "got index is on cpu, different from other tensors on npu:0 (when checking argument in method wrapper_NPU_index_select)");
    check_refused(mt_mse_loss(there, two, 1, &out), "got target is on cpu");
    check_refused(mt_mm(there, here, &out), "got mat2 is on cpu");
    check_refused(mt_equal(npu_two, two, &same), "got other is on cpu");
    check_refused(mt_cat((mt_tensor *const[]){here, there}, 2, 0, &out),
                  "got tensors is on npu:0, different from other tensors on cpu");
    mt_tensor *mask;
    REQUIRE_OK(mt_gt_scalar(here, mt_int(0), &mask));
    check_refused(
        mt_masked_fill_scalar(there, mask, mt_int(1), &out),
        "expected self and mask to be on the same device, but got mask on cpu and self on npu:0");
    mt_tensor_release(mask);
    mt_tensor *const all[] = {there, here, two, npu_two, npu_three, first};
    for (size_t i = 0; i < MT_COUNT(all); i++) {
        mt_tensor_release(all[i]);
    }
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

/* A set is no launch. */
TEST(zeros_of_a_device_are_set)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *there = matrix(NPU_0);
    mt_tensor *turned;
    mt_tensor *out[6];
    REQUIRE_OK(mt_transpose(there, 0, 1, &turned));
    uint64_t launches = mt_test_backend_launches();
    REQUIRE_OK(mt_zeros_with(two_three, 2, MT_DTYPE_F32, NPU_0, &out[0]));
    REQUIRE_OK(mt_full_with(two_three, 2, mt_real(0), MT_DTYPE_F32, NPU_0, &out[1]));
    REQUIRE_OK(mt_zeros_like(turned, &out[2]));
    REQUIRE_OK(mt_new_zeros(there, two_three, 2, &out[3]));
    REQUIRE_OK(mt_full_with(two_three, 2, mt_bool(false), MT_DTYPE_F32, NPU_0, &out[4]));
    REQUIRE_OK(mt_zeros_with((const int64_t[]){6}, 1, MT_DTYPE_F32, NPU_1, &out[5]));
    CHECK(!mt_tensor_is_contiguous(out[2]));
    for (size_t i = 0; i < MT_COUNT(out); i++) {
        CHECK_EQ_U64(mt_test_backend_launches(), launches);
        mt_tensor *flat;
        REQUIRE_OK(mt_reshape(out[i], (const int64_t[]){6}, 1, &flat));
        launches = mt_test_backend_launches(); /* of the copy that a turned one needs */
        CHECK_VALUES(flat, i == 5 ? NPU_1 : NPU_0, 0, 0, 0, 0, 0, 0);
        mt_tensor_release(out[i]);
    }
    REQUIRE_OK(mt_zero_(turned)); /* dense, in another order */
    CHECK_EQ_U64(mt_test_backend_launches(), launches);
    CHECK_VALUES(there, NPU_0, 0, 0, 0, 0, 0, 0);
    mt_tensor_release(turned);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

/* What has gaps, repeats itself, or is -0.0, is not set. */
TEST(zeros_with_gaps_are_computed)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *there = matrix(NPU_0);
    mt_tensor *gaps;
    mt_tensor *wide;
    uint64_t launches = mt_test_backend_launches();
    REQUIRE_OK(mt_slice(there, 1, NULL, NULL, 2, &gaps));
    REQUIRE_OK(mt_zero_(gaps));
    CHECK_EQ_U64(mt_test_backend_launches(), launches + 1);
    CHECK_VALUES(mt_tensor_retain(there), NPU_0, 0, -2, 0, 0, 5, 0);
    REQUIRE_OK(mt_fill_scalar_(there, mt_real(-0.0)));
    CHECK_EQ_U64(mt_test_backend_launches(), launches + 2);
    CHECK_VALUES(mt_tensor_retain(there), NPU_0, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F, -0.0F);
    /* It reaches over as many elements as it has, but has some twice and others not at all. */
    mt_tensor *nine;
    REQUIRE_OK(mt_ones_with((const int64_t[]){9}, 1, MT_DTYPE_F32, NPU_0, &nine));
    REQUIRE_OK(
        mt_as_strided(nine, (const int64_t[]){3, 3}, 2, (const int64_t[]){2, 2}, 2, NULL, &wide));
    REQUIRE_OK(mt_zero_(wide));
    CHECK_VALUES(nine, NPU_0, 0, 1, 0, 1, 0, 1, 0, 1, 0);
    mt_tensor_release(there);
    mt_tensor_release(wide);
    mt_tensor_release(gaps);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(mixed_copies_between_devices)
{
    REQUIRE_OK(mt_test_backend_register());
    mt_tensor *first = matrix(NPU_0);
    mt_tensor *turned;
    mt_tensor *second;
    REQUIRE_OK(mt_transpose(first, 0, 1, &turned));
    REQUIRE_OK(mt_to_with(turned, MT_DTYPE_F64, NPU_1, false, false, &second));
    CHECK_EQ_I64(mt_tensor_device(second), NPU_1);
    double doubles[6];
    mt_tensor *dense;
    REQUIRE_OK(mt_contiguous(second, &dense));
    REQUIRE_OK(mt_tensor_read(dense, doubles, sizeof doubles));
    CHECK_EQ_MEM(doubles, ((const double[]){1, -4, -2, 5, 3, -6}), sizeof doubles);
    REQUIRE_OK(mt_mul_scalar_(second, mt_int(2)));
    REQUIRE_OK(mt_copy_(turned, second, false)); /* another type, into strides */
    CHECK_VALUES(first, NPU_0, 2, -4, 6, -8, 10, -12);
    mt_tensor_release(dense);
    mt_tensor_release(turned);
    mt_tensor_release(second);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}
