/* SPDX-License-Identifier: Apache-2.0
 *
 * SORT and TOPK against insertion by the definition: NaN is the largest, -0 equals 0, equal
 * elements keep their order (SK1 and SK2 of src/kernels/index/sort_keys.h). Rows of all lengths
 * around the
 * changes of method.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"
#include "support/strided_array.h"

#include <mindtorch/status.h>

#include <math.h>
#include <string.h>

enum {
    LONGEST = 3000
};

static const mt_dtype numbers[] = {MT_DTYPE_BOOL, MT_DTYPE_U8,  MT_DTYPE_I32,
                                   MT_DTYPE_I64,  MT_DTYPE_F32, MT_DTYPE_F64};

static bool less(double a, double b)
{
    return isnan(b) ? !isnan(a) : a < b;
}

/* Places of a row in sorted order: a merge sort by the definition. */
static void reference(const double *row, int64_t n, bool descending, int64_t *places,
                      int64_t *spare)
{
    for (int64_t i = 0; i < n; i++) {
        places[i] = i;
    }
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width) {
            int64_t middle = begin + width < n ? begin + width : n;
            int64_t end = begin + 2 * width < n ? begin + 2 * width : n;
            int64_t a = begin;
            int64_t b = middle;
            for (int64_t to = begin; to < end; to++) {
                bool second =
                    a >= middle || (b < end && (descending ? less(row[places[a]], row[places[b]])
                                                           : less(row[places[b]], row[places[a]])));
                spare[to] = second ? places[b++] : places[a++];
            }
        }
        memcpy(places, spare, (size_t)n * sizeof(int64_t));
    }
}

static void fill(const mt_array *array, uint64_t *seed)
{
    bool real = array->dtype == MT_DTYPE_F32 || array->dtype == MT_DTYPE_F64;
    for (int64_t i = 0, n = strided_numel(array); i < n; i++) {
        uint64_t bits = mt_test_random(seed);
        double value = (double)(int64_t)(bits >> 8 & 0xFFFF) - 32768;
        switch (bits & 15) {
        case 0: value = real ? (double)NAN : 7; break;
        case 1: value = real ? -0.0 : 0; break;
        case 2: value = 0; break;
        case 3: value = real ? (double)INFINITY : 2147483647; break;
        case 4: value = real ? -(double)INFINITY : -2147483647.0; break;
        case 5:
        case 6: value = (double)(bits >> 8 & 3); break;
        case 7: value = real ? value * 0.001 : value; break;
        default: break;
        }
        if (array->dtype == MT_DTYPE_U8 || array->dtype == MT_DTYPE_BOOL) {
            value = (double)(bits >> 8 & 0xFF);
        }
        strided_set(array, i, value);
    }
}

static int run(mt_kernel_fn *kernel, const mt_array *arrays, const int64_t *ints)
{
    const mt_kernel_call call = {
        .struct_size = sizeof(call),
        .n_tensors = 3,
        .tensors = arrays,
        .n_ints = 4,
        .ints = ints,
    };
    return kernel(NULL, NULL, &call);
}

/* One row in a tensor of [2, n] or [n, 2]: everything against the definition. k 0: SORT. */
static void check_rows(mt_dtype dtype, int64_t n, int64_t k, bool descending, int64_t dim,
                       strided_layout layout, uint64_t *seed)
{
    static double row[LONGEST];
    static int64_t places[LONGEST];
    static int64_t spare[LONGEST];
    int64_t given = k > 0 ? k : n;
    const int64_t sizes[] = {dim == 0 ? n : 2, dim == 0 ? 2 : n};
    const int64_t out_sizes[] = {dim == 0 ? given : 2, dim == 0 ? 2 : given};
    strided_array in, values, indices;
    strided_array_init(&in, dtype, sizes, 2, layout);
    strided_array_init(&values, dtype, out_sizes, 2, LAYOUT_SLICED);
    strided_array_init(&indices, MT_DTYPE_I64, out_sizes, 2, LAYOUT_TRANSPOSED);
    fill(&in.array, seed);
    const mt_array arrays[] = {values.array, indices.array, in.array};
    const int64_t sort[] = {dim, descending, 0, 0};
    const int64_t topk[] = {dim, k, descending, 1};
    CHECK_OK(run(k > 0 ? mt__host_TOPK : mt__host_SORT, arrays, k > 0 ? topk : sort));
    bool same = true;
    for (int64_t r = 0; r < 2; r++) {
        for (int64_t i = 0; i < n; i++) {
            row[i] = strided_get(&in.array, dim == 0 ? i * 2 + r : r * n + i);
        }
        reference(row, n, descending, places, spare);
        for (int64_t i = 0; i < given; i++) {
            int64_t at = dim == 0 ? i * 2 + r : r * given + i;
            double value = strided_get(&values.array, at);
            double wanted = row[places[i]];
            same = same && strided_get_integer(&indices.array, at) == places[i] &&
                   (value == wanted || (isnan(value) && isnan(wanted))) &&
                   !signbit(value) == !signbit(wanted);
        }
    }
    if (!same) {
        FAIL("%s, %lld of %lld, descending %d, dim %d, layout %d", mt_dtype_name(dtype),
             (long long)given, (long long)n, descending, (int)dim, (int)layout);
    }
    strided_array_fini(&in);
    strided_array_fini(&values);
    strided_array_fini(&indices);
}

TEST(sort_is_stable_and_knows_nan)
{
    uint64_t seed = mt_test_seed();
    const int64_t lengths[] = {1, 2, 3, 16, 47, 48, 49, 64, 100, 255, 1000, LONGEST};
    for (size_t t = 0; t < sizeof(numbers) / sizeof(numbers[0]); t++) {
        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
            for (int way = 0; way < 4; way++) {
                check_rows(numbers[t], lengths[l], 0, way % 2 == 1, way / 2, LAYOUT_CONTIGUOUS,
                           &seed);
            }
        }
    }
}

TEST(sort_in_all_layouts)
{
    uint64_t seed = mt_test_seed();
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        for (size_t t = 0; t < sizeof(numbers) / sizeof(numbers[0]); t++) {
            check_rows(numbers[t], 70, 0, true, 1, (strided_layout)layout, &seed);
            check_rows(numbers[t], 20, 7, false, 0, (strided_layout)layout, &seed);
        }
    }
}

/* The heap's part (k up to n / 16), the sort's, and their edge. */
TEST(topk_takes_the_first_of_equals)
{
    uint64_t seed = mt_test_seed();
    const int64_t lengths[] = {1, 16, 17, 100, 1024, LONGEST};
    for (size_t t = 1; t < sizeof(numbers) / sizeof(numbers[0]); t++) {
        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
            int64_t n = lengths[l];
            const int64_t ks[] = {1, 2, n / 16, n / 16 + 1, n / 2, n - 1, n};
            for (size_t i = 0; i < sizeof(ks) / sizeof(ks[0]); i++) {
                if (ks[i] >= 1 && ks[i] <= n) {
                    check_rows(numbers[t], n, ks[i], i % 2 == 0, (int64_t)(l % 2),
                               LAYOUT_CONTIGUOUS, &seed);
                }
            }
        }
    }
}

TEST(halves_sort_by_value)
{
    /* -inf, -1, -0, 0, 1, inf, NaN, -NaN as float16 */
    uint16_t in[] = {0x7E00, 0x3C00, 0x8000, 0x7C00, 0xFC00, 0x0000, 0xFE00, 0xBC00};
    const uint16_t ordered[] = {0xFC00, 0xBC00, 0x8000, 0x0000, 0x3C00, 0x7C00, 0x7E00, 0xFE00};
    uint16_t values[8];
    int64_t indices[8];
    const int64_t size = 8;
    const int64_t one = 1;
    const mt_array arrays[] = {
        {values, &size, &one, 1, MT_DTYPE_F16},
        {indices, &size, &one, 1, MT_DTYPE_I64},
        {in, &size, &one, 1, MT_DTYPE_F16},
    };
    CHECK_OK(run(mt__host_SORT, arrays, (const int64_t[]){0, 0, 0, 0}));
    CHECK_EQ_MEM(values, ordered, sizeof(values));
}

TEST(extreme_integers)
{
    int64_t in[] = {0, INT64_MAX, INT64_MIN, -1, 1, INT64_MIN + 1, INT64_MAX - 1};
    const int64_t ordered[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
    int64_t values[7];
    int64_t indices[7];
    const int64_t size = 7;
    const int64_t one = 1;
    const mt_array arrays[] = {
        {values, &size, &one, 1, MT_DTYPE_I64},
        {indices, &size, &one, 1, MT_DTYPE_I64},
        {in, &size, &one, 1, MT_DTYPE_I64},
    };
    CHECK_OK(run(mt__host_SORT, arrays, (const int64_t[]){0, 0, 0, 0}));
    CHECK_EQ_MEM(values, ordered, sizeof(values));
    CHECK_OK(run(mt__host_SORT, arrays, (const int64_t[]){0, 1, 0, 0}));
    for (int i = 0; i < 7; i++) {
        CHECK_EQ_I64(values[i], ordered[6 - i]);
    }
}

TEST(no_memory_is_told)
{
    uint64_t seed = mt_test_seed();
    strided_array in, values, indices;
    const int64_t sizes[] = {2, 1 << 19};
    strided_array_init(&in, MT_DTYPE_F32, sizes, 2, LAYOUT_CONTIGUOUS);
    strided_array_init(&values, MT_DTYPE_F32, sizes, 2, LAYOUT_CONTIGUOUS);
    strided_array_init(&indices, MT_DTYPE_I64, sizes, 2, LAYOUT_CONTIGUOUS);
    fill(&in.array, &seed);
    const mt_array arrays[] = {values.array, indices.array, in.array};
    const int64_t ints[] = {1, 0, 0, 0};
    mt__parallel_set_threads(1);
    mtb_fail_nth(1, true);
    int status = run(mt__host_SORT, arrays, ints);
    mtb_fail_nth(0, false);
    CHECK_EQ_I64(status, MT_ENOMEM);
    CHECK_OK(run(mt__host_SORT, arrays, ints));
    strided_array_fini(&in);
    strided_array_fini(&values);
    strided_array_fini(&indices);
}
