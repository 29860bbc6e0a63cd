/* SPDX-License-Identifier: Apache-2.0
 *
 * SOFTMAX and its derivative, CUMSUM, CUMPROD and REDUCE_INDEX against plain loops: every type,
 * layout and dimension, at every instruction set.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/isa.h"
#include "support/strided_array.h"

#include <math.h>
#include <string.h>

typedef struct shape {
    int32_t n_dims;
    int64_t sizes[4];
} shape;

static const shape shapes[] = {
    {0, {0}},    {1, {1}},      {1, {7}},       {1, {63}},          {1, {64}},      {1, {5000}},
    {2, {3, 5}}, {2, {32, 10}}, {2, {10, 300}}, {2, {300, 10}},     {3, {3, 4, 5}}, {3, {2, 1, 9}},
    {1, {0}},    {2, {3, 0}},   {2, {0, 3}},    {4, {2, 3, 2, 17}}, {2, {2, 70}},   {2, {70, 270}},
};

enum {
    SHAPES = sizeof shapes / sizeof shapes[0]
};

/* A lane: elements `step` row-major numbers apart. */
typedef struct lane_place {
    int64_t first, step, length;
} lane_place;

static int64_t lane_count(const shape *of, int64_t dim)
{
    int64_t count = 1;
    for (int32_t i = 0; i < of->n_dims; i++) {
        count *= i == dim ? 1 : of->sizes[i];
    }
    return count;
}

static lane_place lane_at(const shape *of, int64_t dim, int64_t lane)
{
    lane_place at = {0, 1, of->n_dims == 0 ? 1 : of->sizes[dim]};
    for (int32_t i = of->n_dims; i-- > dim + 1;) {
        at.step *= of->sizes[i];
    }
    at.first = lane / at.step * at.step * at.length + lane % at.step;
    return at;
}

static int call_kernel(mt_kernel_fn *run, uint16_t code, const mt_array *tensors, uint32_t count,
                       int64_t dim)
{
    mt_kernel_call call = {.struct_size = sizeof call,
                           .code = code,
                           .n_tensors = count,
                           .n_ints = 1,
                           .tensors = tensors,
                           .ints = &dim};
    return run(NULL, NULL, &call);
}

/* Every shape, dimension and pair of layouts. */
static void for_all(void (*one)(const shape *, int64_t dim, strided_layout out, strided_layout in,
                                uint64_t *seed))
{
    uint64_t seed = mt_test_seed();
    for (int level = MT_ISA_BASE; level <= MT_ISA_V4; level++) {
        mt__isa_limit((mt__isa)level);
        for (size_t s = 0; s < SHAPES; s++) {
            int64_t dims = shapes[s].n_dims == 0 ? 1 : shapes[s].n_dims;
            for (int64_t dim = 0; dim < dims; dim++) {
                for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
                    strided_layout out = (strided_layout)(mt_test_random(&seed) % LAYOUT_REPEATED);
                    one(&shapes[s], dim, LAYOUT_CONTIGUOUS, (strided_layout)layout, &seed);
                    one(&shapes[s], dim, out, (strided_layout)layout, &seed);
                }
            }
        }
    }
}

/* ---- softmax ---- */

static void check_softmax_lane(const mt_array *y, const mt_array *x, lane_place at, uint16_t code)
{
    double largest = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < at.length; i++) {
        largest = fmax(largest, strided_get(x, at.first + i * at.step));
    }
    for (int64_t i = 0; i < at.length; i++) {
        sum += exp(strided_get(x, at.first + i * at.step) - largest);
    }
    double epsilon = x->dtype == MT_DTYPE_F32 ? 1e-6 : 1e-13;
    for (int64_t i = 0; i < at.length; i++) {
        double off = strided_get(x, at.first + i * at.step) - largest;
        double value = code == 0 ? exp(off) / sum : off - log(sum);
        CHECK_NEAR_F64(strided_get(y, at.first + i * at.step), value,
                       epsilon * (code == 0 ? value : fabs(value) + 1));
    }
}

static void softmax_once(const shape *of, int64_t dim, strided_layout out_layout,
                         strided_layout in_layout, uint64_t *seed)
{
    for (uint16_t code = 0; code < 2; code++) {
        mt_dtype dtype = mt_test_random(seed) % 2 == 0 ? MT_DTYPE_F32 : MT_DTYPE_F64;
        strided_array in, out;
        strided_array_init(&in, dtype, of->sizes, of->n_dims, in_layout);
        strided_array_init(&out, dtype, of->sizes, of->n_dims, out_layout);
        strided_fill(&in.array, seed);
        const mt_array tensors[2] = {out.array, in.array};
        CHECK_OK(call_kernel(mt__host_SOFTMAX, code, tensors, 2, dim));
        for (int64_t lane = 0; lane < lane_count(of, dim); lane++) {
            check_softmax_lane(&out.array, &in.array, lane_at(of, dim, lane), code);
        }
        strided_array_fini(&in);
        strided_array_fini(&out);
    }
}

TEST(softmax_everywhere)
{
    for_all(softmax_once);
}

static void softmax_vector(uint16_t code, int n, const float *x, float *y)
{
    int64_t size = n;
    int64_t one = 1;
    const mt_array tensors[2] = {
        {.data = y, .sizes = &size, .strides = &one, .n_dims = 1, .dtype = MT_DTYPE_F32},
        {.data = (void *)(uintptr_t)x,
         .sizes = &size,
         .strides = &one,
         .n_dims = 1,
         .dtype = MT_DTYPE_F32}};
    CHECK_OK(call_kernel(mt__host_SOFTMAX, code, tensors, 2, 0));
}

TEST(softmax_of_special_numbers)
{
    const float inf = INFINITY;
    float y[3];
    for (int level = MT_ISA_BASE; level <= MT_ISA_V4; level++) {
        mt__isa_limit((mt__isa)level);
        softmax_vector(0, 3, (float[]){-inf, 0, 0}, y);
        CHECK_EQ_F64((double)y[0], 0);
        CHECK_EQ_F64((double)y[1], 0.5);
        softmax_vector(0, 3, (float[]){-1000, 0, -1000}, y);
        CHECK_EQ_F64((double)y[0], 0);
        CHECK_EQ_F64((double)y[1], 1);
        softmax_vector(1, 3, (float[]){-1000, 0, -1000}, y);
        CHECK_EQ_F64((double)y[0], -1000);
        softmax_vector(1, 2, (float[]){-inf, 0}, y);
        CHECK_EQ_F64((double)y[0], -(double)INFINITY);
        for (uint16_t code = 0; code < 2; code++) {
            softmax_vector(code, 2, (float[]){-inf, -inf}, y);
            CHECK(isnan(y[0]) && isnan(y[1]));
            softmax_vector(code, 2, (float[]){1, NAN}, y);
            CHECK(isnan(y[0]) && isnan(y[1]));
            softmax_vector(code, 2, (float[]){inf, 1}, y);
            CHECK(isnan(y[0]) && isnan(y[1]));
        }
        softmax_vector(0, 2, (float[]){3e38F, 3e38F}, y);
        CHECK_EQ_F64((double)y[0], 0.5);
    }
}

static void softmax_backward_once(const shape *of, int64_t dim, strided_layout out_layout,
                                  strided_layout in_layout, uint64_t *seed)
{
    for (uint16_t code = 0; code < 2; code++) {
        mt_dtype dtype = mt_test_random(seed) % 2 == 0 ? MT_DTYPE_F32 : MT_DTYPE_F64;
        strided_array grad, y, to;
        strided_array_init(&grad, dtype, of->sizes, of->n_dims, in_layout);
        strided_array_init(&y, dtype, of->sizes, of->n_dims,
                           in_layout == LAYOUT_REPEATED ? LAYOUT_CONTIGUOUS : in_layout);
        strided_array_init(&to, dtype, of->sizes, of->n_dims, out_layout);
        strided_fill(&grad.array, seed);
        strided_fill(&y.array, seed);
        const mt_array tensors[3] = {to.array, grad.array, y.array};
        CHECK_OK(call_kernel(mt__host_SOFTMAX_BACKWARD, code, tensors, 3, dim));
        double epsilon = dtype == MT_DTYPE_F32 ? 3e-6 : 1e-13;
        for (int64_t lane = 0; lane < lane_count(of, dim); lane++) {
            lane_place at = lane_at(of, dim, lane);
            double sum = 0, scale = 1;
            for (int64_t i = at.first, k = 0; k < at.length; k++, i += at.step) {
                double one = strided_get(&grad.array, i);
                one *= code == 0 ? strided_get(&y.array, i) : 1;
                sum += one;
                scale += fabs(one);
            }
            for (int64_t i = at.first, k = 0; k < at.length; k++, i += at.step) {
                double g = strided_get(&grad.array, i), out = strided_get(&y.array, i);
                double value = code == 0 ? (g - sum) * out : g - exp(out) * sum;
                CHECK_NEAR_F64(strided_get(&to.array, i), value, epsilon * scale * 8);
            }
        }
        strided_array_fini(&grad);
        strided_array_fini(&y);
        strided_array_fini(&to);
    }
}

TEST(softmax_backward_everywhere)
{
    for_all(softmax_backward_once);
}

/* ---- running sums and products ---- */

static const mt_dtype running_types[] = {MT_DTYPE_U8, MT_DTYPE_I32, MT_DTYPE_I64, MT_DTYPE_F32,
                                         MT_DTYPE_F64};

static void check_running_lane(const mt_array *y, const mt_array *x, lane_place at, uint16_t code)
{
    double total = code;
    uint64_t whole = code;
    bool real = mt_dtype_category((mt_dtype)y->dtype) == MT_CATEGORY_REAL;
    for (int64_t i = at.first, k = 0; k < at.length; k++, i += at.step) {
        double one = strided_get(x, i);
        total = code == 0 ? total + one : total * one;
        whole = code == 0 ? whole + (uint64_t)(int64_t)one : whole * (uint64_t)(int64_t)one;
        if (real) {
            double epsilon = y->dtype == MT_DTYPE_F32 ? 1e-6 : 1e-12;
            if (fabs(total) < 1e30) {
                CHECK_NEAR_F64(strided_get(y, i), total, epsilon * (fabs(total) + 1));
            }
        } else {
            uint64_t got = (uint64_t)strided_get_integer(y, i);
            uint64_t mask = y->dtype == MT_DTYPE_U8    ? 0xFF
                            : y->dtype == MT_DTYPE_I32 ? 0xFFFFFFFF
                                                       : ~(uint64_t)0;
            CHECK_EQ_U64(got & mask, whole & mask);
        }
    }
}

static void running_once(const shape *of, int64_t dim, strided_layout out_layout,
                         strided_layout in_layout, uint64_t *seed)
{
    for (uint16_t code = 0; code < 2; code++) {
        mt_dtype dtype = running_types[mt_test_random(seed) % 5];
        mt_dtype in_dtype = dtype;
        if (dtype == MT_DTYPE_I64 && mt_test_random(seed) % 2 == 0) {
            in_dtype = MT_DTYPE_BOOL; /* widened */
        }
        strided_array in, out;
        strided_array_init(&in, in_dtype, of->sizes, of->n_dims, in_layout);
        strided_array_init(&out, dtype, of->sizes, of->n_dims, out_layout);
        strided_fill(&in.array, seed);
        if (code == 1 && mt_dtype_category(dtype) == MT_CATEGORY_REAL) {
            for (int64_t i = 0, n = strided_numel(&in.array); i < n; i++) {
                strided_set(&in.array, i, exp(strided_get(&in.array, i) / 50));
            }
        }
        const mt_array tensors[2] = {out.array, in.array};
        CHECK_OK(call_kernel(code == 0 ? mt__host_CUMSUM : mt__host_CUMPROD, 0, tensors, 2, dim));
        for (int64_t lane = 0; lane < lane_count(of, dim); lane++) {
            check_running_lane(&out.array, &in.array, lane_at(of, dim, lane), code);
        }
        strided_array_fini(&in);
        strided_array_fini(&out);
    }
}

TEST(running_sums_everywhere)
{
    for_all(running_once);
}

TEST(running_sum_in_place)
{
    float x[300];
    int64_t sizes[2] = {100, 3};
    int64_t strides[2] = {3, 1};
    for (int i = 0; i < 300; i++) {
        x[i] = 1;
    }
    mt_array array = {
        .data = x, .sizes = sizes, .strides = strides, .n_dims = 2, .dtype = MT_DTYPE_F32};
    const mt_array tensors[2] = {array, array};
    CHECK_OK(call_kernel(mt__host_CUMSUM, 0, tensors, 2, 0));
    CHECK_EQ_F64((double)x[299], 100);
    CHECK_OK(call_kernel(mt__host_CUMSUM, 0, tensors, 2, 1));
    CHECK_EQ_F64((double)x[299], 300);
}

/* ---- places ---- */

static const mt_dtype place_types[] = {MT_DTYPE_BOOL, MT_DTYPE_U8,  MT_DTYPE_I32,
                                       MT_DTYPE_I64,  MT_DTYPE_F32, MT_DTYPE_F64};

static bool wins(double x, double best, uint16_t code)
{
    return (code == 0 ? x > best : x < best) || (isnan(x) && !isnan(best));
}

static void places_once(const shape *of, int64_t dim, strided_layout out_layout,
                        strided_layout in_layout, uint64_t *seed)
{
    (void)out_layout;
    if (of->n_dims > 0 && of->sizes[dim] == 0) {
        return; /* ops refuse it */
    }
    for (uint16_t code = 0; code < 2; code++) {
        mt_dtype dtype = place_types[mt_test_random(seed) % 6];
        shape small = *of;
        small.sizes[dim] = 1;
        strided_array in, values, places;
        strided_array_init(&in, dtype, of->sizes, of->n_dims, in_layout);
        strided_array_init(&values, dtype, small.sizes, of->n_dims, out_layout);
        strided_array_init(&places, MT_DTYPE_I64, small.sizes, of->n_dims, LAYOUT_CONTIGUOUS);
        strided_fill(&in.array, seed);
        int64_t numel = strided_numel(&in.array);
        bool with_nan = mt_dtype_category(dtype) == MT_CATEGORY_REAL && mt_test_random(seed) % 2;
        for (int k = 0; with_nan && k < 3 && numel > 0; k++) {
            strided_set(&in.array, (int64_t)(mt_test_random(seed) % (uint64_t)numel), (double)NAN);
        }
        mt_array tensors[3] = {values.array, places.array, in.array};
        bool with_values = mt_test_random(seed) % 4 != 0;
        if (!with_values) {
            tensors[0] = (mt_array){.n_dims = -1};
        }
        CHECK_OK(call_kernel(mt__host_REDUCE_INDEX, code, tensors, 3, dim));
        for (int64_t lane = 0; lane < lane_count(of, dim); lane++) {
            lane_place at = lane_at(of, dim, lane);
            int64_t place = 0;
            for (int64_t i = 1; i < at.length; i++) {
                double one = strided_get(&in.array, at.first + i * at.step);
                if (wins(one, strided_get(&in.array, at.first + place * at.step), code)) {
                    place = i;
                }
            }
            CHECK_EQ_I64(strided_get_integer(&places.array, lane), place);
            if (with_values) {
                CHECK_EQ_F64(strided_get(&values.array, lane),
                             strided_get(&in.array, at.first + place * at.step));
            }
        }
        strided_array_fini(&in);
        strided_array_fini(&values);
        strided_array_fini(&places);
    }
}

TEST(places_everywhere)
{
    for_all(places_once);
}

/* The first of equal elements, wherever it is. */
TEST(first_place_of_equals)
{
    enum {
        N = 10000
    };
    static float x[N];
    int64_t place;
    int64_t size = N, one = 1;
    const mt_array tensors[3] = {
        {.n_dims = -1},
        {.data = &place, .sizes = &one, .strides = &one, .n_dims = 1, .dtype = MT_DTYPE_I64},
        {.data = x, .sizes = &size, .strides = &one, .n_dims = 1, .dtype = MT_DTYPE_F32}};
    for (int level = MT_ISA_BASE; level <= MT_ISA_V4; level++) {
        mt__isa_limit((mt__isa)level);
        for (int at = 0; at < N; at += 37) {
            memset(x, 0, sizeof x);
            x[at] = 1;
            x[N - 1] = 1;
            CHECK_OK(call_kernel(mt__host_REDUCE_INDEX, 0, tensors, 3, 0));
            CHECK_EQ_I64(place, at);
            x[N / 2] = NAN;
            CHECK_OK(call_kernel(mt__host_REDUCE_INDEX, 0, tensors, 3, 0));
            CHECK_EQ_I64(place, N / 2);
            CHECK_OK(call_kernel(mt__host_REDUCE_INDEX, 1, tensors, 3, 0));
            CHECK_EQ_I64(place, N / 2);
        }
    }
}

/* A refused copy is an error, and nothing is lost. */
TEST(no_memory_for_a_copy)
{
    enum {
        N = 700
    };
    const int64_t sizes[3] = {N, N, 2};
    strided_array in, out;
    strided_array_init(&in, MT_DTYPE_F32, sizes, 3, LAYOUT_SLICED);
    strided_array_init(&out, MT_DTYPE_F32, sizes, 3, LAYOUT_CONTIGUOUS);
    uint64_t seed = mt_test_seed();
    strided_fill(&in.array, &seed);
    const mt_array tensors[2] = {out.array, in.array};
    for (uint64_t n = 1; n <= 2; n++) {
        mtb_fail_nth(n, true);
        int status = call_kernel(mt__host_SOFTMAX, 0, tensors, 2, 1);
        mtb_fail_nth(0, false);
        CHECK(status == MT_OK || status == MT_ENOMEM);
    }
    CHECK_OK(call_kernel(mt__host_SOFTMAX, 0, tensors, 2, 1));
    strided_array_fini(&in);
    strided_array_fini(&out);
}
