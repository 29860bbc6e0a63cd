/* SPDX-License-Identifier: Apache-2.0
 *
 * What the op-test harness does not try of ops that work element by element: writing through views
 * that overlap (pointwise_plan.h PW1), layouts of results, results of small ops without a copy, and
 * that a failure of any allocation is an error that leaks nothing.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"

#include <mindtorch/mindtorch.h>

#include <string.h>

/* 0, 1, 2, ... */
static mt_tensor *counting(const int64_t *sizes, size_t n_dims)
{
    double values[64];
    mt_tensor *made = NULL;
    for (int i = 0; i < 64; i++) {
        values[i] = i;
    }
    REQUIRE_OK(mt_tensor_from_data(values, MT_DTYPE_F64, sizes, n_dims, MT_CPU, &made));
    return made;
}

static void check_values(mt_tensor *tensor, const double *expected, size_t count)
{
    double values[64];
    REQUIRE_EQ_I64(mt_tensor_numel(tensor), (int64_t)count);
    REQUIRE_OK(mt_tensor_read(tensor, values, count * sizeof(double)));
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ_F64(values[i], expected[i]);
    }
}

/* x[1:] += x[:-1]: every sum is of the old elements. */
TEST(an_overlapping_operand_is_read_before_it_is_written)
{
    mt_tensor *x = counting((const int64_t[]){5}, 1);
    mt_tensor *to = NULL;
    mt_tensor *from = NULL;
    REQUIRE_OK(mt_narrow(x, 0, 1, 4, &to));
    REQUIRE_OK(mt_narrow(x, 0, 0, 4, &from));
    REQUIRE_OK(mt_add_(to, from));
    check_values(x, (const double[]){0, 1, 3, 5, 7}, 5);
    REQUIRE_OK(mt_copy_(from, to, false));
    check_values(x, (const double[]){1, 3, 5, 7, 7}, 5);
    mt_tensor_release(to);
    mt_tensor_release(from);
    mt_tensor_release(x);
}

/* x += x^T */
TEST(a_matrix_may_be_added_to_its_own_transpose)
{
    mt_tensor *x = counting((const int64_t[]){2, 2}, 2);
    mt_tensor *turned = NULL;
    REQUIRE_OK(mt_t(x, &turned));
    REQUIRE_OK(mt_add_(x, turned));
    check_values(x, (const double[]){0, 3, 3, 6}, 4);
    REQUIRE_OK(mt_mul_(x, x));
    check_values(x, (const double[]){0, 9, 9, 36}, 4);
    mt_tensor_release(turned);
    mt_tensor_release(x);
}

TEST(an_expanded_tensor_is_not_written)
{
    mt_tensor *one = counting((const int64_t[]){1}, 1);
    mt_tensor *many = NULL;
    const int64_t three = 3;
    REQUIRE_OK(mt_expand(one, &three, 1, &many));
    CHECK_EQ_I64(mt_add_scalar_(many, mt_int(1)), MT_ERUNTIME);
    CHECK(strstr(mt_last_error()->message, "more than one element of the written-to tensor") !=
          NULL);
    CHECK_EQ_I64(mt_uniform_(many, 0, 1), MT_ERUNTIME);
    CHECK_EQ_I64(mt_exp_(many), MT_ERUNTIME);
    check_values(one, (const double[]){0}, 1);
    CHECK_OK(mt_fill_scalar_(many, mt_int(7))); /* every writer writes the same */
    check_values(one, (const double[]){7}, 1);
    mt_tensor_release(many);
    mt_tensor_release(one);
}

/* A dense result keeps the order of the first operand's dimensions; gaps close. */
TEST(results_keep_the_layout)
{
    mt_tensor *x = counting((const int64_t[]){2, 3, 4}, 3);
    mt_tensor *turned = NULL;
    mt_tensor *sum = NULL;
    const int64_t order[] = {2, 0, 1};
    const int64_t strides[] = {1, 12, 4};
    REQUIRE_OK(mt_permute(x, order, 3, &turned));
    REQUIRE_OK(mt_add_scalar(turned, mt_int(1), &sum));
    CHECK_EQ_MEM(mt_tensor_strides(sum), strides, sizeof(strides));
    mt_tensor_release(sum);
    REQUIRE_OK(mt_contiguous(turned, &sum));
    CHECK(mt_tensor_is_contiguous(sum));
    mt_tensor_release(sum);
    mt_tensor_release(turned);
    mt_tensor_release(x);
}

/* ---- every allocation may fail --------------------------------------------------------------- */

/* One round over the kinds of ops of this part; stops at the first failure. */
static int work(mt_tensor *x, mt_tensor *row)
{
    enum {
        N = 12
    };
    mt_tensor *t[N] = {NULL};
    const int64_t dim = 1;
    const int64_t sizes[] = {3, 4};
    const mt_scalar low = mt_real(1);
    bool same = false;
    int status = mt_add(x, row, &t[0]);
    status = status != MT_OK ? status : mt_mul(t[0], t[0], &t[1]);
    status = status != MT_OK ? status : mt_clamp(t[1], &low, NULL, &t[2]);
    status = status != MT_OK ? status : mt_std(t[2], &dim, 1, true, &t[3]);
    status = status != MT_OK ? status : mt_div(t[2], t[3], &t[4]);
    status = status != MT_OK ? status : mt_max_dim(t[4], 0, false, &t[5], &t[6]);
    status = status != MT_OK ? status : mt_prod(t[5], &t[7]);
    status = status != MT_OK ? status : mt_rand(sizes, 2, &t[8]);
    status = status != MT_OK ? status : mt_where(t[8], x, t[8], &t[9]);
    status = status == MT_ERUNTIME ? MT_OK : status; /* the condition is not bool */
    status = status != MT_OK ? status : mt_linspace(mt_int(0), mt_int(9), 4, &t[10]);
    status = status != MT_OK ? status : mt_allclose(t[2], t[2], 1e-5, 1e-8, false, &same);
    status = status != MT_OK ? status : mt_multinomial(t[8], 2, true, &t[11]);
    status = status != MT_OK ? status : mt_backward(t[7], NULL, 0);
    for (int i = 0; i < N; i++) {
        mt_tensor_release(t[i]);
    }
    return status;
}

TEST(a_failed_allocation_is_an_error_and_leaves_nothing_behind)
{
    mt_tensor *x = counting((const int64_t[]){3, 4}, 2);
    mt_tensor *row = counting((const int64_t[]){4}, 1);
    REQUIRE_OK(mt_tensor_set_requires_grad(x, true));
    REQUIRE_OK(work(x, row));
    REQUIRE_OK(mt_tensor_set_grad(x, NULL));
    uint64_t alive = mt_tensors_alive();
    mtb_fail_nth(0, false);
    REQUIRE_OK(work(x, row));
    uint64_t requests = mtb_fail_nth(0, false);
    REQUIRE_OK(mt_tensor_set_grad(x, NULL));
    CHECK(requests > 50);
    for (uint64_t n = 1; n <= requests; n++) {
        mtb_fail_nth(n, false);
        int status = work(x, row);
        mtb_fail_nth(0, false);
        CHECK(status == MT_OK || status == MT_ENOMEM);
        REQUIRE_OK(mt_tensor_set_grad(x, NULL));
        REQUIRE_EQ_U64(mt_tensors_alive(), alive);
    }
    REQUIRE_OK(work(x, row));
    mt_tensor_release(x);
    mt_tensor_release(row);
}
