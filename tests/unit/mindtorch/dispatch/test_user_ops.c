/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls by number, and ops that users register: arguments checked, defaults filled in, results
 * checked, differentiated, found by name.
 */
#include "harness/mt_test.h"

#include <mindtorch/mindtorch.h>

#include <string.h>

static int scale_run(void *context, const mt_value *args, mt_value *results)
{
    ++*(int *)context;
    mt_tensor *out = NULL;
    int status = mt_mul_scalar(args[0].of.tensor, args[1], &out);
    if (status == MT_OK) {
        results[0] = (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = out};
    }
    return status;
}

static int scale_backward(void *context, const mt_value *args, const mt_value *results,
                          mt_tensor *const *grads_out, mt_tensor **grads_in)
{
    (void)context;
    (void)results;
    return mt_mul_scalar(grads_out[0], args[1], &grads_in[0]);
}

static int broken_run(void *context, const mt_value *args, mt_value *results)
{
    (void)context;
    (void)args;
    results[0] = mt_int(3);
    return MT_OK;
}

static int failing_run(void *context, const mt_value *args, mt_value *results)
{
    (void)context;
    (void)args;
    (void)results;
    return mt_fail(MT_EINDEX, "the user's own words");
}

static mt_tensor *ones(int64_t n)
{
    mt_tensor *made = NULL;
    REQUIRE_OK(mt_ones(&n, 1, &made));
    return made;
}

static mt_value boxed(mt_tensor *tensor)
{
    return (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = tensor};
}

TEST(a_users_op_is_dispatched_and_differentiated)
{
    int calls = 0;
    mt_op op;
    REQUIRE_OK(mt_op_register("mylib::scale(Tensor x, float factor=2) -> Tensor", scale_run,
                              scale_backward, &calls, &op));
    mt_op found;
    REQUIRE(mt_op_find("mylib::scale", &found));
    CHECK_EQ_U64(found, op);
    mt_op_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mt_op_get_info(op, &info));
    CHECK_EQ_STR(info.trace_name, "mylib::scale");
    CHECK(info.differentiable);
    mt_tensor *x = ones(3);
    REQUIRE_OK(mt_tensor_set_requires_grad(x, true));
    mt_value arg = boxed(x), result;
    REQUIRE_OK(mt_call(op, &arg, 1, &result, 1)); /* factor has a default */
    CHECK_EQ_I64(calls, 1);
    CHECK_EQ_STR(mt_node_name(mt_tensor_grad_fn(result.of.tensor)), "scaleBackward");
    mt_tensor *loss = NULL;
    REQUIRE_OK(mt_sum(result.of.tensor, NULL, 0, false, &loss));
    REQUIRE_OK(mt_backward(loss, NULL, 0));
    float grad[3];
    REQUIRE(mt_tensor_grad(x) != NULL);
    REQUIRE_OK(mt_tensor_read(mt_tensor_grad(x), grad, sizeof grad));
    CHECK_EQ_F64(grad[0], 2.0);
    CHECK_EQ_F64(grad[2], 2.0);
    mt_value_clear(&result);
    mt_tensor_release(loss);
    mt_tensor_release(x);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(registering_what_cannot_be)
{
    mt_op op;
    CHECK_EQ_I64(mt_op_register("scale(Tensor x) -> Tensor", scale_run, NULL, NULL, &op),
                 MT_EVALUE);
    CHECK(strstr(mt_last_error()->message, "needs a name space") != NULL);
    CHECK_EQ_I64(mt_op_register("a::b(Tensor", scale_run, NULL, NULL, &op), MT_EVALUE);
    CHECK_EQ_I64(mt_op_register("a::b(Tensor x) -> Tensor", NULL, NULL, NULL, &op), MT_EVALUE);
    REQUIRE_OK(mt_op_register("a::twice(Tensor x) -> Tensor", broken_run, NULL, NULL, &op));
    CHECK_EQ_I64(mt_op_register("a::twice(Tensor x) -> Tensor", broken_run, NULL, NULL, &op),
                 MT_EVALUE);
    CHECK(strstr(mt_last_error()->message, "a::twice is registered already") != NULL);
    REQUIRE(mt_op_find("a::twice", &op));
    mt_tensor *x = ones(1);
    mt_value arg = boxed(x), result;
    CHECK_EQ_I64(mt_call(op, &arg, 1, &result, 1), MT_ETYPE); /* an int where a Tensor must be */
    CHECK_EQ_U64(result.kind, MT_KIND_NONE);
    REQUIRE_OK(mt_op_register("a::fails(Tensor x) -> Tensor", failing_run, NULL, NULL, &op));
    CHECK_EQ_I64(mt_call(op, &arg, 1, &result, 1), MT_EINDEX);
    CHECK_EQ_STR(mt_last_error()->message, "the user's own words");
    CHECK_EQ_STR(mt_status_exception(MT_EINDEX), "IndexError");
    mt_tensor_release(x);
}

TEST(calls_that_do_not_fit_are_refused)
{
    mt_op add;
    REQUIRE(mt_op_find("add", &add));
    mt_op same;
    REQUIRE(mt_op_find("aten::add", &same));
    CHECK_EQ_U64(same, add);
    CHECK(!mt_op_find("no_such_op", &same));
    CHECK(!mt_op_find(NULL, &same));
    CHECK_EQ_U64(same, add);
    mt_tensor *x = ones(2);
    mt_value args[4] = {boxed(x), boxed(x), mt_int(1), mt_int(1)}, result[2];
    CHECK_EQ_I64(mt_call(add, args, 1, result, 1), MT_ETYPE); /* too few */
    CHECK_EQ_I64(mt_call(add, args, 4, result, 1), MT_ETYPE); /* too many */
    CHECK_EQ_I64(mt_call(add, args, 2, result, 2), MT_EVALUE);
    CHECK_EQ_I64(mt_call(add, NULL, 2, result, 1), MT_ETYPE);
    args[1] = (mt_value){.kind = MT_KIND_TEXT, .of.text = "x"};
    CHECK_EQ_I64(mt_call(add, args, 2, result, 1), MT_ETYPE);
    CHECK(strstr(mt_last_error()->message, "'other' (position 2) cannot be str") != NULL);
    args[1] = (mt_value){.kind = 77};
    CHECK_EQ_I64(mt_call(add, args, 2, result, 1), MT_ETYPE);
    args[1] = (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = NULL};
    CHECK_EQ_I64(mt_call(add, args, 2, result, 1), MT_ETYPE);
    CHECK_EQ_I64(mt_call(1u << 30, args, 2, result, 1), MT_ENOTSUP);
    mt_tensor *out = x;
    CHECK_EQ_I64(mt_add(x, NULL, &out), MT_ETYPE);
    CHECK_EQ_PTR(out, NULL);
    CHECK_EQ_I64(mt_add(x, x, NULL), MT_EVALUE);
    mt_tensor *list[2] = {x, NULL};
    CHECK_EQ_I64(mt_cat(list, 2, 0, &out), MT_ETYPE); /* a hole in a list that may have none */
    CHECK_EQ_I64(mt_cat(NULL, 2, 0, &out), MT_ETYPE);
    mt_tensor_release(x);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}
