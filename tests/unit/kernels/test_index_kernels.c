/* SPDX-License-Identifier: Apache-2.0
 *
 * INDEX, INDEX_PUT, INDEX_SELECT, INDEX_ADD, GATHER, SCATTER, the masks, CAT and EMBEDDING_BACKWARD
 * against plain loops over row-major element numbers, in all layouts.
 * src/kernels/index/index_rows.h defines IR1 and IR2. The memory around a tensor is checked by
 * strided_array_fini().
 */
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"
#include "support/strided_array.h"

#include <mindtorch/status.h>

#include <string.h>

enum {
    MAX_ARRAYS = 5,
    MAX_ELEMENTS = 4096
};

static const mt_dtype numbers[] = {MT_DTYPE_BOOL, MT_DTYPE_U8,  MT_DTYPE_I32,
                                   MT_DTYPE_I64,  MT_DTYPE_F32, MT_DTYPE_F64};

static int run(mt_kernel_fn *kernel, uint16_t code, uint32_t n, const mt_array *arrays,
               const int64_t *ints, uint32_t n_ints)
{
    const mt_scalar scalars[] = {mt_int(1)};
    const mt_kernel_call call = {
        .struct_size = sizeof(call),
        .code = code,
        .n_tensors = n,
        .tensors = arrays,
        .n_ints = n_ints,
        .ints = ints,
        .n_scalars = 1,
        .scalars = scalars,
    };
    return kernel(NULL, NULL, &call);
}

static void fill_indices(const mt_array *index, int64_t low, int64_t below, uint64_t *seed)
{
    for (int64_t i = 0, n = strided_numel(index); i < n; i++) {
        uint64_t span = (uint64_t)(below - low);
        strided_set(index, i, (double)(low + (int64_t)(mt_test_random(seed) % span)));
    }
}

/* Coordinates of an element, and the number that coordinates have in another array. */
static void coordinates(const mt_array *array, int64_t i, int64_t *at)
{
    for (int32_t d = array->n_dims - 1; d >= 0; d--) {
        at[d] = i % array->sizes[d];
        i /= array->sizes[d];
    }
}

static int64_t number(const mt_array *array, const int64_t *at)
{
    int64_t i = 0;
    for (int32_t d = 0; d < array->n_dims; d++) {
        i = i * array->sizes[d] + at[d];
    }
    return i;
}

static double add_as(mt_dtype dtype, double a, double b)
{
    double sum = a + b;
    if (dtype == MT_DTYPE_BOOL) {
        return a != 0 || b != 0;
    }
    return dtype == MT_DTYPE_U8    ? (double)(uint8_t)(int64_t)sum
           : dtype == MT_DTYPE_F32 ? (double)(float)sum
                                   : sum;
}

static void check_equal(const mt_array *array, const double *expected, const char *what)
{
    for (int64_t i = 0, n = strided_numel(array); i < n; i++) {
        if (strided_get(array, i) != expected[i]) {
            FAIL("%s, %s: element %lld is %g, expected %g", what,
                 mt_dtype_name((mt_dtype)array->dtype), (long long)i, strided_get(array, i),
                 expected[i]);
            return;
        }
    }
}

static void snapshot(const mt_array *array, double *to)
{
    for (int64_t i = 0, n = strided_numel(array); i < n; i++) {
        to[i] = strided_get(array, i);
    }
}

/* ---- advanced indexing ----------------------------------------------------------------------- */

/* x[:, i, j] of [2, 5, 4] with i, j of [3, 2]: dense is [2, 3, 2]; with `apart` x[i, :, j] of
 * [5, 2, 4]: dense is [3, 2, 2]. */
typedef struct index_case {
    strided_array x, dense, i, j;
    int64_t ints[3];
    mt_array arrays[4];
} index_case;

static void index_case_init(index_case *c, mt_dtype dtype, strided_layout layout, bool apart,
                            bool writes, uint64_t *seed)
{
    const int64_t together[] = {2, 5, 4};
    const int64_t spread[] = {5, 2, 4};
    const int64_t result[] = {apart ? 3 : 2, apart ? 2 : 3, 2};
    const int64_t sizes[] = {3, 2};
    strided_layout written = layout == LAYOUT_REPEATED ? LAYOUT_CONTIGUOUS : layout;
    strided_array_init(&c->x, dtype, apart ? spread : together, 3, writes ? written : layout);
    strided_array_init(&c->dense, dtype, result, 3, writes ? layout : written);
    strided_array_init(&c->i, MT_DTYPE_I64, sizes, 2, layout);
    strided_array_init(&c->j, MT_DTYPE_I64, sizes, 2, LAYOUT_TRANSPOSED);
    strided_fill(&c->x.array, seed);
    strided_fill(&c->dense.array, seed);
    fill_indices(&c->i.array, -5, 5, seed);
    fill_indices(&c->j.array, -4, 4, seed);
    c->ints[0] = apart ? 0 : 1;
    c->ints[1] = apart ? 0 : 1;
    c->ints[2] = 2;
    c->arrays[0] = writes ? c->x.array : c->dense.array;
    c->arrays[1] = writes ? c->dense.array : c->x.array;
    c->arrays[2] = c->i.array;
    c->arrays[3] = c->j.array;
}

static void index_case_fini(index_case *c)
{
    strided_array_fini(&c->x);
    strided_array_fini(&c->dense);
    strided_array_fini(&c->i);
    strided_array_fini(&c->j);
}

/* The element of x that an element of dense goes with. */
static int64_t partner(const index_case *c, bool apart, int64_t element)
{
    int64_t at[3];
    coordinates(&c->dense.array, element, at);
    int64_t row = apart ? at[0] * 2 + at[1] : at[1] * 2 + at[2]; /* of the indices */
    int64_t i = strided_get_integer(&c->i.array, row);
    int64_t j = strided_get_integer(&c->j.array, row);
    i = i < 0 ? i + 5 : i;
    j = j < 0 ? j + 4 : j;
    const int64_t together[] = {at[0], i, j};
    const int64_t spread[] = {i, at[2], j};
    return number(&c->x.array, apart ? spread : together);
}

TEST(index_picks_in_all_layouts)
{
    uint64_t seed = mt_test_seed();
    double expected[MAX_ELEMENTS];
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        for (size_t t = 0; t < sizeof(numbers) / sizeof(numbers[0]) * 2; t++) {
            bool apart = t % 2 == 1;
            index_case c;
            index_case_init(&c, numbers[t / 2], (strided_layout)layout, apart, false, &seed);
            for (int64_t k = 0; k < strided_numel(&c.dense.array); k++) {
                expected[k] = strided_get(&c.x.array, partner(&c, apart, k));
            }
            CHECK_OK(run(mt__host_INDEX, 0, 4, c.arrays, c.ints, 3));
            check_equal(&c.dense.array, expected, "INDEX");
            index_case_fini(&c);
        }
    }
}

/* IR2: equal places are written in order. */
TEST(index_put_sets_and_adds)
{
    uint64_t seed = mt_test_seed();
    double expected[MAX_ELEMENTS];
    for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
        for (size_t t = 0; t < sizeof(numbers) / sizeof(numbers[0]) * 4; t++) {
            mt_dtype dtype = numbers[t / 4];
            bool apart = t % 2 == 1;
            uint16_t adds = t % 4 >= 2;
            index_case c;
            index_case_init(&c, dtype, (strided_layout)layout, apart, true, &seed);
            snapshot(&c.x.array, expected);
            for (int64_t k = 0; k < strided_numel(&c.dense.array); k++) {
                int64_t to = partner(&c, apart, k);
                double value = strided_get(&c.dense.array, k);
                expected[to] = adds ? add_as(dtype, expected[to], value) : value;
            }
            CHECK_OK(run(mt__host_INDEX_PUT, adds, 4, c.arrays, c.ints, 3));
            check_equal(&c.x.array, expected, "INDEX_PUT");
            index_case_fini(&c);
        }
    }
}

/* IR1 */
TEST(index_out_of_range_writes_nothing)
{
    uint64_t seed = mt_test_seed();
    double before[MAX_ELEMENTS];
    const int64_t bad[] = {5, -6, INT64_MAX, INT64_MIN};
    for (size_t b = 0; b < sizeof(bad) / sizeof(bad[0]); b++) {
        for (int writes = 0; writes < 2; writes++) {
            index_case c;
            index_case_init(&c, MT_DTYPE_F32, LAYOUT_SLICED, false, writes != 0, &seed);
            ((int64_t *)c.i.array.data)[strided_offset(&c.i.array, 5)] = bad[b];
            snapshot(&c.arrays[0], before);
            CHECK_EQ_I64(
                run(writes ? mt__host_INDEX_PUT : mt__host_INDEX, 0, 4, c.arrays, c.ints, 3),
                MT_EINDEX);
            if (b == 0) {
                CHECK_EQ_STR(mt_last_error()->message,
                             "index 5 is out of bounds for dimension 1 with size 5");
            }
            check_equal(&c.arrays[0], before, "after a bad index");
            index_case_fini(&c);
        }
    }
}

/* ---- one index for each row ------------------------------------------------------------------ */

TEST(index_select_and_index_add)
{
    uint64_t seed = mt_test_seed();
    double expected[MAX_ELEMENTS];
    const int64_t sizes[] = {3, 4, 5};
    const int64_t count = 7;
    for (int t = 0; t < LAYOUT_COUNT * 3 * 6; t++) {
        strided_layout layout = (strided_layout)(t % LAYOUT_COUNT);
        int64_t dim = t / LAYOUT_COUNT % 3;
        mt_dtype dtype = numbers[t / LAYOUT_COUNT / 3];
        int64_t dense_sizes[] = {3, 4, 5};
        dense_sizes[dim] = count;
        strided_array x, dense, index;
        strided_array_init(&x, dtype, sizes, 3,
                           layout == LAYOUT_REPEATED ? LAYOUT_ROTATED : layout);
        strided_array_init(&dense, dtype, dense_sizes, 3, LAYOUT_TRANSPOSED);
        strided_array_init(&index, MT_DTYPE_I64, &count, 1, layout);
        strided_fill(&x.array, &seed);
        fill_indices(&index.array, 0, sizes[dim], &seed);
        const mt_array select[] = {dense.array, x.array, index.array};
        for (int64_t k = 0; k < strided_numel(&dense.array); k++) {
            int64_t at[3];
            coordinates(&dense.array, k, at);
            at[dim] = strided_get_integer(&index.array, at[dim]);
            expected[k] = strided_get(&x.array, number(&x.array, at));
        }
        CHECK_OK(run(mt__host_INDEX_SELECT, 0, 3, select, &dim, 1));
        check_equal(&dense.array, expected, "INDEX_SELECT");

        const mt_array add[] = {x.array, index.array, dense.array};
        snapshot(&x.array, expected);
        for (int64_t k = 0; k < strided_numel(&dense.array); k++) {
            int64_t at[3];
            coordinates(&dense.array, k, at);
            at[dim] = strided_get_integer(&index.array, at[dim]);
            int64_t to = number(&x.array, at);
            expected[to] = add_as(dtype, expected[to], strided_get(&dense.array, k));
        }
        CHECK_OK(run(mt__host_INDEX_ADD, 0, 3, add, &dim, 1));
        check_equal(&x.array, expected, "INDEX_ADD");

        strided_set(&index.array, 0, (double)sizes[dim]);
        CHECK_EQ_I64(run(mt__host_INDEX_SELECT, 0, 3, select, &dim, 1), MT_EINDEX);
        CHECK_EQ_I64(run(mt__host_INDEX_ADD, 0, 3, add, &dim, 1), MT_ERUNTIME);
        strided_set(&index.array, 0, -1);
        CHECK_EQ_I64(run(mt__host_INDEX_SELECT, 0, 3, select, &dim, 1), MT_EINDEX);
        check_equal(&x.array, expected, "after a bad index");
        strided_array_fini(&x);
        strided_array_fini(&dense);
        strided_array_fini(&index);
    }
}

TEST(embedding_backward_sums_in_order)
{
    uint64_t seed = mt_test_seed();
    static double expected[11 * 300];
    const int64_t rows = 11;
    const int64_t width = 300; /* more than one piece of columns */
    const int64_t n = 500;
    const int64_t padding = 3;
    strided_array out, grad, index;
    strided_array_init(&out, MT_DTYPE_F64, (const int64_t[]){rows, width}, 2, LAYOUT_CONTIGUOUS);
    strided_array_init(&grad, MT_DTYPE_F64, (const int64_t[]){n, width}, 2, LAYOUT_CONTIGUOUS);
    strided_array_init(&index, MT_DTYPE_I64, &n, 1, LAYOUT_SLICED);
    strided_fill(&grad.array, &seed);
    fill_indices(&index.array, 0, rows, &seed);
    memset(expected, 0, sizeof(expected));
    for (int64_t i = 0; i < n; i++) {
        int64_t row = strided_get_integer(&index.array, i);
        for (int64_t k = 0; k < width && row != padding; k++) {
            expected[row * width + k] += strided_get(&grad.array, i * width + k);
        }
    }
    const mt_array arrays[] = {out.array, grad.array, index.array};
    for (uint32_t threads = 1; threads <= 3; threads++) {
        mt__parallel_set_threads(threads);
        CHECK_OK(run(mt__host_EMBEDDING_BACKWARD, 0, 3, arrays, &padding, 1));
        check_equal(&out.array, expected, "EMBEDDING_BACKWARD");
    }
    strided_set(&index.array, 7, (double)rows);
    CHECK_EQ_I64(run(mt__host_EMBEDDING_BACKWARD, 0, 3, arrays, &padding, 1), MT_EINDEX);
    strided_array_fini(&out);
    strided_array_fini(&grad);
    strided_array_fini(&index);
}

/* Many indices, more than one thread: the same as with one. */
TEST(large_reads_do_not_depend_on_threads)
{
    enum {
        ROWS = 3000,
        WIDTH = 40,
        PICKED = 50000
    };
    static float x[ROWS * WIDTH];
    static float out[PICKED * WIDTH];
    static int64_t index[PICKED];
    uint64_t seed = mt_test_seed();
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = (float)i;
    }
    for (int i = 0; i < PICKED; i++) {
        index[i] = (int64_t)(mt_test_random(&seed) % ROWS);
    }
    const int64_t strides[] = {WIDTH, 1};
    const mt_array arrays[] = {
        {out, (const int64_t[]){PICKED, WIDTH}, strides, 2, MT_DTYPE_F32},
        {x, (const int64_t[]){ROWS, WIDTH}, strides, 2, MT_DTYPE_F32},
        {index, (const int64_t[]){PICKED}, (const int64_t[]){1}, 1, MT_DTYPE_I64},
    };
    for (uint32_t threads = 1; threads <= 4; threads++) {
        mt__parallel_set_threads(threads);
        memset(out, 0, sizeof(out));
        REQUIRE_OK(run(mt__host_INDEX_SELECT, 0, 3, arrays, (const int64_t[]){0}, 1));
        for (int64_t i = 0; i < (int64_t)PICKED * WIDTH; i++) {
            REQUIRE(out[i] == x[index[i / WIDTH] * WIDTH + i % WIDTH]);
        }
    }
    index[PICKED - 3] = ROWS;
    CHECK_EQ_I64(run(mt__host_INDEX_SELECT, 0, 3, arrays, (const int64_t[]){0}, 1), MT_EINDEX);
    CHECK_EQ_STR(mt_last_error()->message, "index out of range in self");
}

/* ---- one index for each element -------------------------------------------------------------- */

TEST(gather_and_scatter)
{
    uint64_t seed = mt_test_seed();
    double expected[MAX_ELEMENTS];
    const int64_t sizes[] = {3, 4, 5};
    for (int t = 0; t < LAYOUT_COUNT * 3 * 6; t++) {
        strided_layout layout = (strided_layout)(t % LAYOUT_COUNT);
        int64_t dim = t / LAYOUT_COUNT % 3;
        mt_dtype dtype = numbers[t / LAYOUT_COUNT / 3];
        int64_t index_sizes[] = {2, 3, 4};
        index_sizes[dim] = 6;
        strided_array x, dense, index;
        strided_array_init(&x, dtype, sizes, 3,
                           layout == LAYOUT_REPEATED ? LAYOUT_TRANSPOSED : layout);
        strided_array_init(&dense, dtype, index_sizes, 3, LAYOUT_ROTATED);
        strided_array_init(&index, MT_DTYPE_I64, index_sizes, 3, layout);
        strided_fill(&x.array, &seed);
        fill_indices(&index.array, 0, sizes[dim], &seed);
        int64_t places[MAX_ELEMENTS];
        for (int64_t k = 0; k < strided_numel(&index.array); k++) {
            int64_t at[3];
            coordinates(&index.array, k, at);
            at[dim] = strided_get_integer(&index.array, k);
            places[k] = number(&x.array, at);
            expected[k] = strided_get(&x.array, places[k]);
        }
        const mt_array gather[] = {dense.array, x.array, index.array};
        CHECK_OK(run(mt__host_GATHER, 0, 3, gather, &dim, 1));
        check_equal(&dense.array, expected, "GATHER");

        const mt_array scatter[] = {x.array, index.array, dense.array};
        for (uint16_t adds = 0; adds < 2; adds++) {
            strided_fill(&dense.array, &seed);
            snapshot(&x.array, expected);
            for (int64_t k = 0; k < strided_numel(&index.array); k++) {
                double value = strided_get(&dense.array, k);
                expected[places[k]] = adds ? add_as(dtype, expected[places[k]], value) : value;
            }
            CHECK_OK(run(mt__host_SCATTER, adds, 3, scatter, &dim, 1));
            check_equal(&x.array, expected, "SCATTER");
        }
        strided_set(&index.array, 1, (double)sizes[dim]);
        CHECK_EQ_I64(run(mt__host_GATHER, 0, 3, gather, &dim, 1), MT_ERUNTIME);
        CHECK_EQ_I64(run(mt__host_SCATTER, 0, 3, scatter, &dim, 1), MT_ERUNTIME);
        strided_array_fini(&x);
        strided_array_fini(&dense);
        strided_array_fini(&index);
    }
}

TEST(halves_are_moved_and_added)
{
    uint16_t x[] = {1, 2, 3};
    uint16_t out[] = {0, 0};
    int64_t index[] = {2, 0};
    const int64_t one = 1;
    const int64_t dim = 0;
    const mt_array xs = {x, (const int64_t[]){3}, &one, 1, MT_DTYPE_BF16};
    const mt_array outs = {out, (const int64_t[]){2}, &one, 1, MT_DTYPE_BF16};
    const mt_array indices = {index, (const int64_t[]){2}, &one, 1, MT_DTYPE_I64};
    CHECK_OK(run(mt__host_GATHER, 0, 3, (const mt_array[]){outs, xs, indices}, &dim, 1));
    CHECK(out[0] == 3 && out[1] == 1);
    const mt_array written[] = {xs, indices, outs};
    CHECK_OK(run(mt__host_SCATTER, 0, 3, written, &dim, 1));
    CHECK(x[0] == 1 && x[1] == 2 && x[2] == 3);
    x[0] = 0x3f80; /* 1 + 2, 4 + 2 */
    x[2] = 0x4080;
    out[0] = out[1] = 0x4000;
    CHECK_OK(run(mt__host_SCATTER, 1, 3, written, &dim, 1));
    CHECK(x[0] == 0x4040 && x[1] == 2 && x[2] == 0x40c0);
}

/* ---- masks ----------------------------------------------------------------------------------- */

TEST(masks_pick_and_place)
{
    uint64_t seed = mt_test_seed();
    double expected[MAX_ELEMENTS];
    const int64_t sizes[] = {3, 4, 5};
    for (int t = 0; t < LAYOUT_COUNT * 6; t++) {
        strided_layout layout = (strided_layout)(t % LAYOUT_COUNT);
        mt_dtype dtype = numbers[t / LAYOUT_COUNT];
        strided_array x, mask, picked, places;
        strided_array_init(&x, dtype, sizes, 3,
                           layout == LAYOUT_REPEATED ? LAYOUT_CONTIGUOUS : layout);
        strided_array_init(&mask, MT_DTYPE_BOOL, sizes, 3, layout);
        strided_fill(&x.array, &seed);
        strided_fill(&mask.array, &seed);
        int64_t count = 0;
        for (int64_t i = 0; i < strided_numel(&x.array); i++) {
            if (strided_get(&mask.array, i) != 0) {
                expected[count++] = strided_get(&x.array, i);
            }
        }
        strided_array_init(&picked, dtype, &count, 1, LAYOUT_SLICED);
        const mt_array select[] = {picked.array, x.array, mask.array};
        CHECK_OK(run(mt__host_MASKED_SELECT, 0, 3, select, NULL, 0));
        check_equal(&picked.array, expected, "MASKED_SELECT");

        strided_array_init(&places, MT_DTYPE_I64, (const int64_t[]){count, 3}, 2,
                           LAYOUT_TRANSPOSED);
        CHECK_OK(
            run(mt__host_NONZERO, 0, 2, (const mt_array[]){places.array, mask.array}, NULL, 0));
        for (int64_t i = 0, k = 0; i < strided_numel(&mask.array); i++) {
            if (strided_get(&mask.array, i) != 0) {
                int64_t at[3];
                coordinates(&mask.array, i, at);
                for (int d = 0; d < 3; d++) {
                    CHECK_EQ_I64(strided_get_integer(&places.array, 3 * k + d), at[d]);
                }
                k++;
            }
        }

        strided_fill(&picked.array, &seed);
        snapshot(&x.array, expected);
        for (int64_t i = 0, k = 0; i < strided_numel(&x.array); i++) {
            if (strided_get(&mask.array, i) != 0) {
                expected[i] = strided_get(&picked.array, k++);
            }
        }
        const mt_array scatter[] = {x.array, mask.array, picked.array};
        CHECK_OK(run(mt__host_MASKED_SCATTER, 0, 3, scatter, NULL, 0));
        check_equal(&x.array, expected, "MASKED_SCATTER");
        picked.sizes[0] = count - 1;
        CHECK_EQ_I64(run(mt__host_MASKED_SCATTER, 0, 3, scatter, NULL, 0), MT_ERUNTIME);
        check_equal(&x.array, expected, "after too few elements");
        picked.sizes[0] = count;
        strided_array_fini(&x);
        strided_array_fini(&mask);
        strided_array_fini(&picked);
        strided_array_fini(&places);
    }
}

TEST(nonzero_of_floats)
{
    float x[] = {0.0F, -0.0F, 1e-45F, -1.0F, __builtin_nanf("")};
    int64_t out[3] = {0};
    const int64_t one = 1;
    const mt_array arrays[] = {
        {out, (const int64_t[]){3, 1}, (const int64_t[]){1, 1}, 2, MT_DTYPE_I64},
        {x, (const int64_t[]){5}, &one, 1, MT_DTYPE_F32},
    };
    CHECK_OK(run(mt__host_NONZERO, 0, 2, arrays, NULL, 0));
    CHECK(out[0] == 2 && out[1] == 3 && out[2] == 4);
}

/* ---- cat ------------------------------------------------------------------------------------- */

TEST(cat_of_all_layouts)
{
    uint64_t seed = mt_test_seed();
    double expected[MAX_ELEMENTS];
    for (int t = 0; t < LAYOUT_COUNT * 3 * 2; t++) {
        strided_layout layout = (strided_layout)(t % LAYOUT_COUNT);
        int64_t dim = t / LAYOUT_COUNT % 3;
        bool contiguous = t >= LAYOUT_COUNT * 3;
        const int64_t lengths[] = {2, 0, 4};
        strided_array parts[3], out;
        int64_t sizes[] = {2, 3, 2};
        mt_array arrays[4];
        for (int i = 0; i < 3; i++) {
            sizes[dim] = lengths[i];
            strided_array_init(&parts[i], MT_DTYPE_I32, sizes, 3,
                               contiguous ? LAYOUT_CONTIGUOUS : layout);
            strided_fill(&parts[i].array, &seed);
            arrays[1 + i] = parts[i].array;
        }
        sizes[dim] = 6;
        strided_array_init(&out, MT_DTYPE_I32, sizes, 3,
                           layout == LAYOUT_REPEATED ? LAYOUT_CONTIGUOUS : layout);
        arrays[0] = out.array;
        for (int64_t k = 0; k < strided_numel(&out.array); k++) {
            int64_t at[3];
            coordinates(&out.array, k, at);
            const mt_array *from = at[dim] < 2 ? &parts[0].array : &parts[2].array;
            at[dim] -= at[dim] < 2 ? 0 : 2;
            expected[k] = strided_get(from, number(from, at));
        }
        CHECK_OK(run(mt__host_CAT, 0, 4, arrays, &dim, 1));
        check_equal(&out.array, expected, "CAT");
        strided_array_fini(&out);
        for (int i = 0; i < 3; i++) {
            strided_array_fini(&parts[i]);
        }
    }
}
