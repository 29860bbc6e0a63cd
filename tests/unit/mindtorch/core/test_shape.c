/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes and strides. Answers that torch gives (2.13) are written down as it gave them.
 */
#include "harness/mt_test.h"
#include "mindtorch/core/tensor/shape.h"

#include <stdint.h>
#include <string.h>

#define LIST(...) \
    (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static mt__shape shape_of(const int64_t *sizes, size_t n_dims)
{
    mt__shape shape;
    REQUIRE_OK(mt__shape_make("test", sizes, n_dims, &shape));
    return shape;
}

TEST(shape_refuses_negative_sizes_and_too_many_dimensions)
{
    mt__shape shape;
    CHECK_EQ_I64(mt__shape_make("empty", LIST(-1, 2), &shape), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message,
                 "empty: Trying to create tensor with negative dimension -1: [-1, 2]");
    int64_t ones[MT_MAX_DIMS + 1];
    for (size_t i = 0; i < MT_MAX_DIMS + 1; i++) {
        ones[i] = 1;
    }
    CHECK_OK(mt__shape_make("empty", ones, MT_MAX_DIMS, &shape));
    CHECK_EQ_I64(mt__shape_make("empty", ones, MT_MAX_DIMS + 1, &shape), MT_ERUNTIME);
}

TEST(shape_numel_checks_every_product)
{
    int64_t numel;
    mt__shape shape = shape_of(LIST(2, 3, 4));
    CHECK_OK(mt__shape_numel("empty", &shape, 8, &numel));
    CHECK_EQ_I64(numel, 24);
    shape = shape_of(LIST(INT64_C(1) << 40, INT64_C(1) << 40));
    CHECK_EQ_I64(mt__shape_numel("empty", &shape, 1, &numel), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, "empty: Storage size calculation overflowed with "
                                           "sizes=[1099511627776, 1099511627776]");
    shape = shape_of(LIST(INT64_C(1) << 61)); /* elements fit, bytes do not */
    CHECK_OK(mt__shape_numel("empty", &shape, 1, &numel));
    CHECK_EQ_I64(mt__shape_numel("empty", &shape, 8, &numel), MT_ERUNTIME);
    shape = shape_of(LIST(INT64_C(1) << 60, 1024, 0)); /* torch refuses it too */
    CHECK_EQ_I64(mt__shape_numel("empty", &shape, 4, &numel), MT_ERUNTIME);
    shape = shape_of(LIST(3, 0, 2));
    CHECK_OK(mt__shape_numel("empty", &shape, 4, &numel));
    CHECK_EQ_I64(numel, 0);
    shape = shape_of(NULL, 0);
    CHECK_OK(mt__shape_numel("empty", &shape, 4, &numel));
    CHECK_EQ_I64(numel, 1);
}

TEST(shape_strides_and_contiguity)
{
    int64_t strides[3];
    mt__shape_strides((const int64_t[]){3, 0, 2}, 3, strides);
    CHECK_EQ_MEM(strides, ((const int64_t[]){2, 2, 1}), sizeof strides);
    CHECK(mt__shape_is_contiguous((const int64_t[]){2, 3}, (const int64_t[]){3, 1}, 2));
    CHECK(!mt__shape_is_contiguous((const int64_t[]){2, 3}, (const int64_t[]){1, 2}, 2));
    CHECK(mt__shape_is_contiguous((const int64_t[]){1, 3}, (const int64_t[]){77, 1}, 2));
    CHECK(mt__shape_is_contiguous((const int64_t[]){2, 0}, (const int64_t[]){9, 9}, 2));
    CHECK(!mt__shape_is_contiguous((const int64_t[]){2, 3}, (const int64_t[]){0, 1}, 2));
    CHECK(mt__shape_is_contiguous(NULL, NULL, 0));
}

TEST(shape_broadcasts_as_torch_does)
{
    mt__shape shape = shape_of(LIST(2, 1));
    CHECK_OK(mt__shape_broadcast(&shape, (const int64_t[]){4, 1, 3}, 3));
    CHECK_EQ_U64(shape.n_dims, 3);
    CHECK_EQ_MEM(shape.sizes, ((const int64_t[]){4, 2, 3}), 24);
    shape = shape_of(LIST(1, 3));
    CHECK_OK(mt__shape_broadcast(&shape, (const int64_t[]){0, 1}, 2));
    CHECK_EQ_MEM(shape.sizes, ((const int64_t[]){0, 3}), 16);
    shape = shape_of(LIST(2, 3));
    CHECK_EQ_I64(mt__shape_broadcast(&shape, (const int64_t[]){4, 1, 2}, 3), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message,
                 "The size of tensor a (3) must match the size of tensor b "
                 "(2) at non-singleton dimension 2");
    int64_t expanded[3];
    shape = shape_of(LIST(4, 2, 3));
    mt__shape_expand_strides((const int64_t[]){2, 1}, (const int64_t[]){1, 9}, 2, &shape, expanded);
    CHECK_EQ_MEM(expanded, ((const int64_t[]){0, 1, 0}), sizeof expanded);
}

TEST(shape_wraps_dimensions)
{
    uint32_t dim;
    CHECK_OK(mt__wrap_dim(-2, 2, &dim));
    CHECK_EQ_U64(dim, 0);
    CHECK_OK(mt__wrap_dim(-1, 0, &dim)); /* 0-d counts as 1-d */
    CHECK_EQ_U64(dim, 0);
    CHECK_EQ_I64(mt__wrap_dim(2, 2, &dim), MT_EINDEX);
    CHECK_EQ_STR(mt_last_error()->message,
                 "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    CHECK_EQ_I64(mt__wrap_dim(1, 0, &dim), MT_EINDEX);
    CHECK_EQ_STR(mt_last_error()->message,
                 "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
    uint32_t mask;
    CHECK_OK(mt__dim_mask(NULL, 0, 3, &mask));
    CHECK_EQ_U64(mask, 7);
    CHECK_OK(mt__dim_mask(LIST(-1, 0), 3, &mask));
    CHECK_EQ_U64(mask, 5);
    CHECK_EQ_I64(mt__dim_mask(LIST(0, -2), 2, &mask), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, "dim 0 appears multiple times in the list of dims");
    CHECK_OK(mt__dim_mask(LIST(0), 0, &mask));
    CHECK_EQ_U64(mask, 0);
}

static void check_infer_fails(const int64_t *sizes, size_t n, int64_t numel, const char *text)
{
    mt__shape shape;
    CHECK_EQ_I64(mt__shape_infer(sizes, n, numel, &shape), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message, text);
}

TEST(shape_infers_one_size)
{
    mt__shape shape;
    CHECK_OK(mt__shape_infer(LIST(2, -1, 3), 24, &shape));
    CHECK_EQ_I64(shape.sizes[1], 4);
    CHECK_OK(mt__shape_infer(LIST(3, -1), 0, &shape));
    CHECK_EQ_I64(shape.sizes[1], 0);
    check_infer_fails(LIST(3, -1), 4, "shape '[3, -1]' is invalid for input of size 4");
    check_infer_fails(LIST(3), 4, "shape '[3]' is invalid for input of size 4");
    check_infer_fails(LIST(-1, -1), 4, "only one dimension can be inferred");
    check_infer_fails(LIST(3, -2), 4, "invalid shape dimension -2 at index 1 of shape [3, -2]");
    check_infer_fails(LIST(0, -1), 0,
                      "cannot reshape tensor of 0 elements into shape [0, -1] because the "
                      "unspecified dimension size -1 can be any value and is ambiguous");
    check_infer_fails(LIST(INT64_C(1) << 62, 8), 0,
                      "shape '[4611686018427387904, 8]' is invalid for input of size 0");
}

static void check_view(const int64_t *sizes, const int64_t *strides, uint32_t n, const int64_t *to,
                       uint32_t n_to, const int64_t *expected)
{
    int64_t found[MT_MAX_DIMS];
    mt__shape shape = shape_of(to, n_to);
    bool can = mt__shape_view_strides(sizes, strides, n, &shape, found);
    CHECK(can == (expected != NULL));
    if (can && expected != NULL) {
        CHECK_EQ_MEM(found, expected, n_to * sizeof *found);
    }
}

#define L(...) ((const int64_t[]){__VA_ARGS__})

TEST(shape_view_strides_are_torchs)
{
    check_view(L(2, 0, 3), L(1, 2, 2), 3, L(2, 0, 3), 3, L(1, 2, 2));
    check_view(L(2, 0, 3), L(1, 2, 2), 3, L(2, 0, 3, 1), 4, L(3, 3, 1, 1));
    check_view(L(6, 4), L(1, 6), 2, L(6, 2, 2), 3, L(1, 12, 6));
    check_view(L(4, 3), L(6, 2), 2, L(2, 2, 3, 1), 4, L(12, 6, 2, 2));
    check_view(L(4, 3), L(6, 2), 2, L(1, 4, 1, 3, 1), 5, L(24, 6, 6, 2, 2));
    check_view(L(1, 1), L(7, 5), 2, L(1, 1, 1), 3, L(5, 5, 5));
    check_view(NULL, NULL, 0, L(1, 1), 2, L(1, 1));
    check_view(L(3, 2), L(0, 1), 2, L(3, 2, 1), 3, L(0, 1, 1));
    check_view(L(4, 3), L(1, 0), 2, L(2, 2, 3), 3, L(2, 1, 0));
    check_view(L(3, 4), L(0, 1), 2, L(12), 1, NULL);
    check_view(L(4, 3), L(1, 0), 2, L(12), 1, NULL);
    check_view(L(6, 4), L(1, 6), 2, L(24), 1, NULL);
    check_view(L(4, 3), L(6, 2), 2, L(2, 6), 2, L(12, 2));
    check_view(L(4, 3), L(7, 2), 2, L(2, 6), 2, NULL);
    check_view(L(2, 3), L(3, 1), 2, NULL, 0, NULL);
}

/* Where a view exists, element n of it is element n of the tensor. */
TEST(shape_views_keep_the_order_of_elements)
{
    uint64_t random = mt_test_seed();
    int found = 0;
    for (int round = 0; round < 20000; round++) {
        int64_t sizes[3];
        int64_t strides[3];
        int64_t to[4];
        for (int i = 0; i < 3; i++) {
            sizes[i] = 1 + (int64_t)(mt_test_random(&random) % 4);
            strides[i] = (int64_t)(mt_test_random(&random) % 9);
        }
        int64_t numel = sizes[0] * sizes[1] * sizes[2];
        int64_t left = numel;
        for (int i = 0; i < 3; i++) {
            do {
                to[i] = 1 + (int64_t)(mt_test_random(&random) % 6);
            } while (left % to[i] != 0);
            left /= to[i];
        }
        to[3] = left;
        mt__shape shape = shape_of(to, 4);
        int64_t made[4];
        if (!mt__shape_view_strides(sizes, strides, 3, &shape, made)) {
            continue;
        }
        found++;
        for (int64_t n = 0; n < numel; n++) {
            int64_t a = n / (sizes[1] * sizes[2]) * strides[0] +
                        n / sizes[2] % sizes[1] * strides[1] + n % sizes[2] * strides[2];
            int64_t b = n / (to[1] * to[2] * to[3]) * made[0] +
                        n / (to[2] * to[3]) % to[1] * made[1] + n / to[3] % to[2] * made[2] +
                        n % to[3] * made[3];
            if (!CHECK_EQ_I64(b, a)) {
                return;
            }
        }
    }
    CHECK(found > 100);
}

TEST(shape_text_is_cut_where_it_is_long)
{
    char text[MT_SHAPE_TEXT];
    CHECK_EQ_STR(mt__shape_text(LIST(2, -3), text), "[2, -3]");
    CHECK_EQ_STR(mt__shape_text(NULL, 0, text), "[]");
    int64_t many[MT_MAX_DIMS];
    for (size_t i = 0; i < MT_MAX_DIMS; i++) {
        many[i] = INT64_MIN;
    }
    CHECK(strlen(mt__shape_text(many, MT_MAX_DIMS, text)) < MT_SHAPE_TEXT);
    CHECK_EQ_STR(text + strlen(text) - 4, "...]");
}
