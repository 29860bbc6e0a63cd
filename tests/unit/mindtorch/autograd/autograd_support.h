/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of autograd share: small tensors from numbers, comparisons, statuses with words.
 */
#ifndef TESTS_UNIT_MINDTORCH_AUTOGRAD_AUTOGRAD_SUPPORT_H
#define TESTS_UNIT_MINDTORCH_AUTOGRAD_AUTOGRAD_SUPPORT_H

#include "harness/mt_test.h"

#include <mindtorch/mindtorch.h>

#include <string.h>

enum {
    MAX_NUMBERS = 64
};

/* A double tensor of one dimension. */
#define VECTOR(...)                            \
    make_vector((const double[]){__VA_ARGS__}, \
                sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
#define LEAF(...) as_leaf(VECTOR(__VA_ARGS__))

static inline mt_tensor *make_vector(const double *values, size_t count)
{
    mt_tensor *made = NULL;
    int64_t size = (int64_t)count;
    REQUIRE_OK(mt_tensor_from_data(values, MT_DTYPE_F64, &size, 1, MT_CPU, &made));
    return made;
}

static inline mt_tensor *as_leaf(mt_tensor *tensor)
{
    REQUIRE_OK(mt_tensor_set_requires_grad(tensor, true));
    return tensor;
}

static inline mt_tensor *scalar(double value)
{
    mt_tensor *made = NULL;
    REQUIRE_OK(mt_tensor_from_data(&value, MT_DTYPE_F64, NULL, 0, MT_CPU, &made));
    return made;
}

/* Ops that must succeed, so that tests read as formulas. The result is the caller's to release. */
#define OP1(name)                               \
    static inline mt_tensor *name(mt_tensor *a) \
    {                                           \
        mt_tensor *out = NULL;                  \
        REQUIRE_OK(mt_##name(a, &out));         \
        return out;                             \
    }
#define OP2(name)                                             \
    static inline mt_tensor *name(mt_tensor *a, mt_tensor *b) \
    {                                                         \
        mt_tensor *out = NULL;                                \
        REQUIRE_OK(mt_##name(a, b, &out));                    \
        return out;                                           \
    }
OP1(detach)
OP2(add)
OP2(mul)
OP2(sub)

static inline mt_tensor *mul_number(mt_tensor *a, double b)
{
    mt_tensor *out = NULL;
    REQUIRE_OK(mt_mul_scalar(a, mt_real(b), &out));
    return out;
}

static inline mt_tensor *sum_all(mt_tensor *a)
{
    mt_tensor *out = NULL;
    REQUIRE_OK(mt_sum(a, NULL, 0, false, &out));
    return out;
}

/* Releases the old one: y = next(y, mul(y, x)). */
static inline mt_tensor *next(mt_tensor *old, mt_tensor *made)
{
    mt_tensor_release(old);
    return made;
}

static inline bool has_values(mt_test_place place, const char *text, mt_tensor *tensor,
                              const double *want, size_t count)
{
    double got[MAX_NUMBERS];
    if (tensor == NULL || mt_tensor_numel(tensor) != (int64_t)count ||
        mt_tensor_dtype(tensor) != MT_DTYPE_F64) {
        return mt_test_fail(place, "%s: %s", text,
                            tensor == NULL ? "is NULL" : "has another size or type");
    }
    if (mt_tensor_read(tensor, got, count * sizeof(double)) != MT_OK) {
        return mt_test_fail(place, "%s: cannot be read: %s", text, mt_last_error()->message);
    }
    bool same = true;
    for (size_t i = 0; i < count; i++) {
        double scale = want[i] < 0 ? 1 - want[i] : 1 + want[i];
        same = mt_test_near_f64(place, text, "the value wanted", got[i], want[i], 1e-9 * scale) &&
               same;
    }
    return same;
}
#define CHECK_VALUES(tensor, ...)                                              \
    has_values(MT_TEST_I_HERE, #tensor, tensor, (const double[]){__VA_ARGS__}, \
               sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static inline bool fails_with(mt_test_place place, const char *text, int status, int want,
                              const char *words)
{
    if (status != want) {
        return mt_test_fail(place, "%s: status %d, wanted %d (%s)", text, status, want,
                            status == 0 ? "" : mt_last_error()->message);
    }
    if (strstr(mt_last_error()->message, words) == NULL) {
        return mt_test_fail(place, "%s: says \"%s\", wanted \"%s\"", text, mt_last_error()->message,
                            words);
    }
    return true;
}
#define CHECK_FAILS(expr, status, words) fails_with(MT_TEST_I_HERE, #expr, expr, status, words)

#define RELEASE(...)                                                                     \
    do {                                                                                 \
        mt_tensor *release_[] = {__VA_ARGS__};                                           \
        for (size_t release_i_ = 0; release_i_ < sizeof(release_) / sizeof(release_[0]); \
             release_i_++) {                                                             \
            mt_tensor_release(release_[release_i_]);                                     \
        }                                                                                \
    } while (0)

/* At the end of a case: nothing is left but what there was at its start. */
#define CHECK_NOTHING_LEFT() CHECK_EQ_U64(mt_tensors_alive(), 0)

#endif /* TESTS_UNIT_MINDTORCH_AUTOGRAD_AUTOGRAD_SUPPORT_H */
