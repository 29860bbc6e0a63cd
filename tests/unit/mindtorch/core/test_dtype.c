/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types, statuses, boxed numbers and devices' names. Promotion is compared with a table
 * that torch 2.13 printed.
 */
#include "harness/mt_test.h"

#include <mindtorch/device.h>
#include <mindtorch/dtype.h>
#include <mindtorch/status.h>
#include <mindtorch/tensor.h>
#include <mindtorch/value.h>

/* torch.promote_types(row, column), by dtype.def's values; X: torch refuses. */
#define X MT_DTYPE_NONE
static const uint8_t promoted[MT_DTYPE_COUNT][MT_DTYPE_COUNT] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, X, X, X, 13, 14},
    {1, 1, 2, 3, 4, 5, 6, 7, 9, 9, X, X, X, 13, 14},
    {2, 2, 2, 3, 4, 5, 6, 7, 2, 2, X, X, X, 13, 14},
    {3, 3, 3, 3, 4, 5, 6, 7, 3, 3, X, X, X, 13, 14},
    {4, 4, 4, 4, 4, 6, 6, 7, 4, 4, 4, 4, 4, 13, 14},
    {5, 5, 5, 5, 6, 5, 6, 7, 5, 5, 5, 5, 5, 13, 14},
    {6, 6, 6, 6, 6, 6, 6, 7, 6, 6, 6, 6, 6, 13, 14},
    {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 14},
    {8, 9, 2, 3, 4, 5, 6, 7, 8, 9, X, X, X, 13, 14},
    {9, 9, 2, 3, 4, 5, 6, 7, 9, 9, X, X, X, 13, 14},
    {X, X, X, X, 4, 5, 6, 7, X, X, 10, X, X, X, X},
    {X, X, X, X, 4, 5, 6, 7, X, X, X, 11, X, X, X},
    {X, X, X, X, 4, 5, 6, 7, X, X, X, X, 12, X, X},
    {13, 13, 13, 13, 13, 13, 13, 14, 13, 13, X, X, X, 13, 14},
    {14, 14, 14, 14, 14, 14, 14, 14, 14, 14, X, X, X, 14, 14},
};
#undef X

TEST(dtype_promotes_as_torch_does)
{
    for (int a = 0; a < MT_DTYPE_COUNT; a++) {
        for (int b = 0; b < MT_DTYPE_COUNT; b++) {
            CHECK_EQ_I64(mt_promote_types((mt_dtype)a, (mt_dtype)b), promoted[a][b]);
        }
    }
    CHECK_EQ_I64(mt_promote_types(MT_DTYPE_NONE, MT_DTYPE_F32), MT_DTYPE_NONE);
    CHECK_EQ_I64(mt_promote_types(MT_DTYPE_U16, MT_DTYPE_I32), MT_DTYPE_NONE);
    CHECK_EQ_STR(
        mt_last_error()->message,
        "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
        "uint16 and int32");
}

TEST(dtype_rows)
{
    CHECK_EQ_STR(mt_dtype_name(MT_DTYPE_BF16), "bfloat16");
    CHECK_EQ_STR(mt_dtype_name(MT_DTYPE_NONE), "none");
    CHECK(mt_dtype_name((mt_dtype)99) != NULL);
    CHECK_EQ_U64(mt_dtype_size(MT_DTYPE_I64), 8);
    CHECK_EQ_U64(mt_dtype_size(MT_DTYPE_F16), 2);
    CHECK_EQ_U64(mt_dtype_size(MT_DTYPE_NONE), 0);
    CHECK_EQ_I64(mt_dtype_category(MT_DTYPE_U8), MT_CATEGORY_INT);
    CHECK_EQ_I64(mt_dtype_category(MT_DTYPE_F16), MT_CATEGORY_REAL);
    CHECK_EQ_I64(mt_dtype_category(MT_DTYPE_BOOL), MT_CATEGORY_BOOL);
}

TEST(dtype_default)
{
    CHECK_EQ_I64(mt_default_dtype(), MT_DTYPE_F32);
    CHECK_OK(mt_set_default_dtype(MT_DTYPE_F64));
    CHECK_EQ_I64(mt_default_dtype(), MT_DTYPE_F64);
    CHECK_EQ_I64(mt_set_default_dtype(MT_DTYPE_I32), MT_ETYPE);
    CHECK_EQ_I64(mt_set_default_dtype(MT_DTYPE_NONE), MT_ETYPE);
    CHECK_EQ_I64(mt_default_dtype(), MT_DTYPE_F64);
}

TEST(status_names_and_messages)
{
    CHECK_EQ_STR(mt_status_name(MT_EINDEX), "EINDEX");
    CHECK_EQ_STR(mt_status_exception(MT_EINDEX), "IndexError");
    CHECK_EQ_STR(mt_status_exception(MT_OK), "");
    CHECK(mt_status_name(-1234) != NULL);
    CHECK_EQ_STR(mt_status_text(MT_EINDEX), "index out of range");
    CHECK_EQ_STR(mt_status_text(-1234), "unknown status");
    CHECK_EQ_STR(mt_status_exception(-1234), "RuntimeError");
    CHECK_EQ_I64(mt_fail(MT_EVALUE, "100% mine"), MT_EVALUE);
    CHECK_EQ_STR(mt_last_error()->message, "100% mine");
    CHECK_EQ_I64(mt_last_error()->status, MT_EVALUE);
    CHECK_EQ_I64(mt_last_error()->system_error, 0);
    CHECK_EQ_I64(mt_last_error()->offset, -1);
    CHECK_EQ_I64(mt_fail(MT_EVALUE, NULL), MT_EVALUE);
}

TEST(value_boxes)
{
    CHECK_EQ_I64(mt_bool(true).of.integer, 1);
    CHECK_EQ_I64(mt_bool(true).kind, MT_KIND_BOOL);
    CHECK_EQ_I64(mt_int(-7).of.integer, -7);
    CHECK_EQ_F64(mt_real(0.5).of.real, 0.5);
    mt_value_clear(NULL);
    mt_tensor *tensor;
    REQUIRE_OK(mt_tensor_from_data((const float[]){1}, MT_DTYPE_F32, NULL, 0, MT_CPU, &tensor));
    mt_value value = {.kind = MT_KIND_TENSOR, .of.tensor = tensor};
    mt_value_clear(&value);
    CHECK_EQ_I64(value.kind, MT_KIND_NONE);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
    mt_value_clear(&value);
}

static void check_parse(const char *text, int status, mt_device expected)
{
    mt_device device = 77;
    CHECK_EQ_I64(mt_device_parse(text, &device), status);
    CHECK_EQ_I64(device, expected);
}

TEST(device_names)
{
    check_parse("cpu", MT_OK, MT_CPU);
    check_parse("cpu:0", MT_OK, MT_CPU);
    check_parse("npu", MT_OK, MT_NPU);
    check_parse("npu:1", MT_OK, MT_NPU + 1);
    check_parse("cuda:255", MT_OK, MT_NPU + 255);
    check_parse("cuda:256", MT_ERUNTIME, MT_DEVICE_NONE);
    check_parse("cpu:1", MT_ERUNTIME, MT_DEVICE_NONE);
    check_parse("npu:", MT_ERUNTIME, MT_DEVICE_NONE);
    check_parse("npu:-1", MT_ERUNTIME, MT_DEVICE_NONE);
    check_parse("npu:01", MT_ERUNTIME, MT_DEVICE_NONE);
    check_parse("npu:x", MT_ERUNTIME, MT_DEVICE_NONE);
    CHECK_EQ_STR(mt_last_error()->message, "Invalid device string: 'npu:x'");
    check_parse("", MT_ERUNTIME, MT_DEVICE_NONE);
    CHECK_EQ_STR(mt_last_error()->message, "Device string must not be empty");
    check_parse(NULL, MT_ERUNTIME, MT_DEVICE_NONE);
    check_parse("foo", MT_ERUNTIME, MT_DEVICE_NONE);
    CHECK_EQ_STR(mt_last_error()->message,
                 "Expected one of cpu, npu, cuda, meta device type at start of device string: foo");
    CHECK_EQ_STR(mt_device_name(MT_CPU), "cpu");
    CHECK_EQ_STR(mt_device_name(MT_NPU + 12), "npu:12");
    CHECK(mt_device_name(-5) != NULL);
}
