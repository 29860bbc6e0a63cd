/* SPDX-License-Identifier: Apache-2.0
 *
 * Every request for memory of a forward and a backward is refused once: the call fails with
 * MT_ENOMEM, nothing leaks, and what is left works.
 */
#include "autograd_support.h"
#include "base/alloc.h"

enum {
    MOST_REQUESTS = 4000
};

/* A step that releases all it made and gives a status. */
typedef int step_fn(mt_tensor *x, mt_tensor *w);

/* Refuses the first, the second, ... request until the step comes through. */
static void refuse_each(step_fn *step)
{
    bool reached = true;
    uint64_t refused = 0;
    int status = MT_ENOMEM;
    for (uint64_t n = 1; reached && n < MOST_REQUESTS; n++) {
        mt_tensor *x = LEAF(1, 2, 3);
        mt_tensor *w = LEAF(4, 5, 6);
        mtb_fail_nth(n, false);
        status = step(x, w);
        reached = mtb_fail_nth(0, false) >= n;
        refused += status == MT_ENOMEM;
        if (status != MT_OK && status != MT_ENOMEM) {
            FAIL("request %llu: status %d: %s", (unsigned long long)n, status,
                 mt_last_error()->message);
        }
        CHECK(mt_grad_enabled());
        CHECK_VALUES(w, 4, 5, 6);
        /* The leaves still work. */
        mt_tensor_set_grad(x, NULL);
        mt_tensor *y = mul(x, w);
        mt_tensor *loss = sum_all(y);
        CHECK_OK(mt_backward(loss, NULL, 0));
        CHECK_VALUES(mt_tensor_grad(x), 4, 5, 6);
        RELEASE(x, w, y, loss);
        if (mt_tensors_alive() != 0) {
            FAIL("request %llu: %llu tensors left", (unsigned long long)n,
                 (unsigned long long)mt_tensors_alive());
            return;
        }
    }
    CHECK_OK(status);    /* the last one was not reached */
    CHECK(refused > 10); /* a single refusal may be made good by giving back what is cached */
}

#define STEP(expr)         \
    if (status == MT_OK) { \
        status = (expr);   \
    }

static int product_step(mt_tensor *x, mt_tensor *w)
{
    mt_tensor *y = NULL;
    mt_tensor *z = NULL;
    mt_tensor *e = NULL;
    mt_tensor *loss = NULL;
    int status = mt_mul(x, w, &y);
    STEP(mt_exp(y, &e))
    STEP(mt_mul(e, y, &z))
    STEP(mt_sum(z, NULL, 0, false, &loss))
    STEP(mt_backward(loss, NULL, MT_RETAIN_GRAPH))
    STEP(mt_backward(loss, NULL, 0))
    RELEASE(y, z, e, loss);
    return status;
}

TEST(refused_memory_in_a_step)
{
    refuse_each(product_step);
}

static int double_step(mt_tensor *x, mt_tensor *w)
{
    mt_tensor *y = NULL;
    mt_tensor *z = NULL;
    mt_tensor *loss = NULL;
    mt_tensor *first = NULL;
    mt_tensor *sum = NULL;
    mt_tensor *leaves[] = {x, w};
    mt_tensor *second[2] = {NULL, NULL};
    int status = mt_mul(x, w, &y);
    STEP(mt_mul(y, y, &z))
    STEP(mt_sum(z, NULL, 0, false, &loss))
    STEP(mt_grad(&loss, NULL, 1, &x, 1, MT_CREATE_GRAPH, &first))
    STEP(mt_sum(first, NULL, 0, false, &sum))
    STEP(mt_grad(&sum, NULL, 1, leaves, 2, 0, second))
    RELEASE(y, z, loss, first, sum, second[0], second[1]);
    return status;
}

TEST(refused_memory_in_a_double_backward)
{
    refuse_each(double_step);
}

static int view_step(mt_tensor *x, mt_tensor *w)
{
    mt_tensor *y = NULL;
    mt_tensor *v = NULL;
    mt_tensor *u = NULL;
    mt_tensor *z = NULL;
    mt_tensor *loss = NULL;
    int status = mt_mul_scalar(x, mt_real(2), &y);
    STEP(mt_narrow(y, 0, 1, 2, &v))
    STEP(mt_narrow(w, 0, 0, 2, &u))
    STEP(mt_tensor_retain_grad(y))
    STEP(mt_mul_(v, u))
    STEP(mt_exp_(v))
    STEP(mt_mul(y, y, &z))
    STEP(mt_sum(z, NULL, 0, false, &loss))
    STEP(mt_backward(loss, NULL, 0))
    RELEASE(y, v, u, z, loss);
    return status;
}

TEST(refused_memory_in_writes_into_views)
{
    refuse_each(view_step);
}

static int scale_forward(void *context, mt_function_call *call, mt_tensor *const *inputs,
                         size_t n_inputs, mt_tensor **outputs, size_t n_outputs)
{
    (void)context;
    (void)n_inputs;
    (void)n_outputs;
    int status = mt_mul(inputs[0], inputs[1], &outputs[0]);
    STEP(mt_function_save(call, inputs[1]))
    STEP(mt_function_save(call, outputs[0]))
    return status;
}

static int scale_backward(void *context, mt_function_call *call, mt_tensor *const *grads_out,
                          size_t n_outputs, mt_tensor **grads_in, size_t n_inputs)
{
    (void)context;
    (void)n_outputs;
    (void)n_inputs;
    mt_tensor *factor = NULL;
    int status = mt_function_get_saved(call, 0, &factor);
    STEP(mt_mul(grads_out[0], factor, &grads_in[0]))
    mt_tensor_release(factor);
    return status;
}

static int double_it(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    (void)context;
    return mt_mul_scalar(grad, mt_real(2), replacement);
}

static int function_step(mt_tensor *x, mt_tensor *w)
{
    mt_function scale = {.struct_size = sizeof(scale),
                         .name = "ScaleBackward",
                         .forward = scale_forward,
                         .backward = scale_backward};
    mt_tensor *inputs[] = {x, w};
    mt_tensor *y = NULL;
    mt_tensor *loss = NULL;
    mt_hook_handle handle = 0;
    int status = mt_function_apply(&scale, NULL, inputs, 2, &y, 1);
    STEP(mt_tensor_add_hook(y, double_it, NULL, NULL, &handle))
    STEP(mt_tensor_retain_grad(y))
    STEP(mt_sum(y, NULL, 0, false, &loss))
    STEP(mt_backward(loss, NULL, 0))
    RELEASE(y, loss);
    return status;
}

TEST(refused_memory_in_functions_and_hooks)
{
    refuse_each(function_step);
}

static int wide_step(mt_tensor *x, mt_tensor *w)
{
    mt_tensor *parts[60];
    for (int i = 0; i < 60; i++) {
        parts[i] = i % 2 == 0 ? x : w;
    }
    mt_tensor *all = NULL;
    mt_tensor *loss = NULL;
    mt_value pieces = {.kind = MT_KIND_NONE};
    int status = mt_cat(parts, 60, 0, &all);
    STEP(mt_split(all, 30, 0, &pieces))
    STEP(mt_sum(pieces.of.tensors[1], NULL, 0, false, &loss))
    STEP(mt_backward(loss, NULL, 0))
    mt_value_clear(&pieces);
    RELEASE(all, loss);
    return status;
}

TEST(refused_memory_in_wide_nodes)
{
    refuse_each(wide_step);
}

/* An in-place op that was refused has changed neither elements nor graph. */
TEST(a_refused_write_leaves_its_tensor)
{
    for (uint64_t n = 1; n < MOST_REQUESTS; n++) {
        mt_tensor *x = LEAF(1, 2, 3);
        mt_tensor *w = LEAF(4, 5, 6);
        mt_tensor *y = mul_number(x, 2);
        mt_tensor *v = NULL;
        REQUIRE_OK(mt_narrow(y, 0, 0, 3, &v));
        mtb_fail_nth(n, false);
        int status = mt_mul_(v, w);
        uint64_t made = mtb_fail_nth(0, false);
        mt_tensor *loss = sum_all(y);
        CHECK_OK(mt_backward(loss, NULL, 0));
        if (status == MT_OK) {
            CHECK_VALUES(mt_tensor_grad(x), 8, 10, 12);
        } else {
            CHECK_EQ_I64(status, MT_ENOMEM);
            CHECK_VALUES(y, 2, 4, 6);
            CHECK_VALUES(mt_tensor_grad(x), 2, 2, 2);
            CHECK(mt_tensor_grad(w) == NULL);
        }
        RELEASE(x, w, y, v, loss);
        CHECK_NOTHING_LEFT();
        if (made < n) {
            CHECK_OK(status);
            CHECK(n > 3);
            return;
        }
    }
    FAIL("never came through");
}
