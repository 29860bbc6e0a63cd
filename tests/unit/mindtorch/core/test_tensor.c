/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors and storages: made, borrowed, viewed, read.
 */
#include "harness/mt_test.h"
#include "mindtorch/core/tensor/tensor_impl.h"

#include <mindtorch/ops.h>

#include <pthread.h>
#include <string.h>

#define L(...) ((const int64_t[]){__VA_ARGS__})

static mt_tensor *make(const float *values, const int64_t *sizes, size_t n_dims)
{
    mt_tensor *tensor;
    REQUIRE_OK(mt_tensor_from_data(values, MT_DTYPE_F32, sizes, n_dims, MT_CPU, &tensor));
    return tensor;
}

TEST(tensor_from_data_copies)
{
    float values[6] = {1, 2, 3, 4, 5, 6};
    mt_tensor *tensor = make(values, L(2, 3), 2);
    values[0] = 99;
    float back[6];
    REQUIRE_OK(mt_tensor_read(tensor, back, sizeof back));
    CHECK_EQ_F64(back[0], 1);
    CHECK_EQ_F64(back[5], 6);
    CHECK_EQ_I64(mt_tensor_dtype(tensor), MT_DTYPE_F32);
    CHECK_EQ_I64(mt_tensor_device(tensor), MT_CPU);
    CHECK_EQ_U64(mt_tensor_n_dims(tensor), 2);
    CHECK_EQ_MEM(mt_tensor_sizes(tensor), L(2, 3), 16);
    CHECK_EQ_MEM(mt_tensor_strides(tensor), L(3, 1), 16);
    CHECK_EQ_I64(mt_tensor_numel(tensor), 6);
    CHECK_EQ_I64(mt_tensor_offset(tensor), 0);
    CHECK_EQ_U64(mt_tensor_storage_bytes(tensor), 24);
    CHECK_EQ_U64(mt_tensor_storage_address(tensor), (uintptr_t)mt_tensor_data(tensor));
    CHECK_EQ_U64(mt_tensor_version(tensor), 0);
    CHECK(mt_tensor_is_contiguous(tensor));
    CHECK_EQ_I64(mt_tensor_read(tensor, back, 20), MT_EVALUE);
    CHECK_EQ_I64(mt_tensor_read(tensor, NULL, 24), MT_EVALUE);
    mt_tensor_release(tensor);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(tensor_empty_and_0d)
{
    mt_tensor *tensor;
    REQUIRE_OK(mt_tensor_from_data(NULL, MT_DTYPE_F64, L(3, 0), 2, MT_CPU, &tensor));
    CHECK_EQ_I64(mt_tensor_numel(tensor), 0);
    CHECK(mt_tensor_data(tensor) == NULL);
    CHECK_EQ_U64(mt_tensor_storage_bytes(tensor), 0);
    CHECK_OK(mt_tensor_read(tensor, NULL, 0));
    mt_tensor_release(tensor);
    int64_t number = 5;
    REQUIRE_OK(mt_tensor_from_data(&number, MT_DTYPE_I64, NULL, 0, MT_DEVICE_NONE, &tensor));
    CHECK_EQ_I64(mt_tensor_numel(tensor), 1);
    CHECK_EQ_I64(*(int64_t *)mt_tensor_data(tensor), 5);
    mt_tensor_release(tensor);
    mt_tensor_release(NULL);
    CHECK(mt_tensor_retain(NULL) == NULL);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(tensor_bad_arguments)
{
    mt_tensor *tensor;
    float value = 1;
    CHECK_EQ_I64(mt_tensor_from_data(NULL, MT_DTYPE_F32, L(2), 1, MT_CPU, &tensor), MT_EVALUE);
    CHECK(tensor == NULL);
    CHECK_EQ_I64(mt_tensor_from_data(&value, MT_DTYPE_NONE, L(1), 1, MT_CPU, &tensor), MT_ETYPE);
    CHECK_EQ_I64(mt_tensor_from_data(&value, MT_DTYPE_F32, L(-1), 1, MT_CPU, &tensor), MT_ERUNTIME);
    CHECK_EQ_I64(mt_tensor_from_data(&value, MT_DTYPE_F32, L(1), 1, MT_NPU, &tensor), MT_ERUNTIME);
    CHECK_EQ_I64(mt_tensor_from_data(&value, MT_DTYPE_F32, L(INT64_C(1) << 58), 1, MT_CPU, &tensor),
                 MT_ENOMEM);
    CHECK_EQ_I64(mt_tensor_from_data(&value, MT_DTYPE_F32, L(INT64_MAX, 3), 2, MT_CPU, &tensor),
                 MT_ERUNTIME);
    CHECK(tensor == NULL);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

static int n_freed;

static void note_free(void *context, void *data)
{
    CHECK_EQ_PTR(data, context);
    n_freed++;
}

TEST(tensor_borrowed_memory_is_told_when_it_is_free)
{
    float values[12];
    for (int i = 0; i < 12; i++) {
        values[i] = (float)i;
    }
    mt_tensor *tensor;
    REQUIRE_OK(
        mt_tensor_borrow(values, MT_DTYPE_F32, L(2, 3), L(6, 2), 2, note_free, values, &tensor));
    CHECK_EQ_PTR(mt_tensor_data(tensor), values);
    CHECK(!mt_tensor_is_contiguous(tensor));
    CHECK_EQ_U64(mt_tensor_storage_bytes(tensor), 11 * sizeof(float));
    float back[6];
    REQUIRE_OK(mt_tensor_read(tensor, back, sizeof back));
    CHECK_EQ_MEM(back, ((const float[]){0, 2, 4, 6, 8, 10}), sizeof back);
    mt_tensor *view;
    REQUIRE_OK(mt__tensor_view(tensor, L(2), L(6), 1, 2, true, &view));
    mt_tensor_release(tensor);
    CHECK_EQ_I64(n_freed, 0);
    REQUIRE_OK(mt_tensor_read(view, back, 8));
    CHECK_EQ_F64(back[1], 8);
    mt_tensor_release(view);
    CHECK_EQ_I64(n_freed, 1);
    mt_memory_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(mt_device_get_memory_stats(MT_CPU, &stats));
    CHECK_EQ_U64(stats.allocated_bytes, 0);
}

TEST(tensor_borrow_checks)
{
    float value = 1;
    mt_tensor *tensor;
    CHECK_EQ_I64(mt_tensor_borrow(NULL, MT_DTYPE_F32, L(1), NULL, 1, NULL, NULL, &tensor),
                 MT_EVALUE);
    CHECK_EQ_I64(mt_tensor_borrow(&value, MT_DTYPE_F32, L(2), L(-1), 1, NULL, NULL, &tensor),
                 MT_EVALUE);
    CHECK_EQ_I64(
        mt_tensor_borrow(&value, MT_DTYPE_F32, L(5), L(INT64_MAX / 2), 1, NULL, NULL, &tensor),
        MT_ERUNTIME);
    CHECK_EQ_I64(mt_tensor_borrow(&value, MT_DTYPE_NONE, L(1), NULL, 1, NULL, NULL, &tensor),
                 MT_ETYPE);
    CHECK(tensor == NULL);
    REQUIRE_OK(mt_tensor_borrow(NULL, MT_DTYPE_F32, L(0), NULL, 1, NULL, NULL, &tensor));
    mt_tensor_release(tensor);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

/* TN1, TN3 */
TEST(tensor_views_hold_the_first_tensor)
{
    float values[6] = {1, 2, 3, 4, 5, 6};
    mt_tensor *base = make(values, L(2, 3), 2);
    mt_tensor *first;
    mt_tensor *second;
    mt_tensor *detached;
    REQUIRE_OK(mt__tensor_view(base, L(3, 2), L(1, 3), 2, 0, true, &first));
    REQUIRE_OK(mt__tensor_view(first, L(2), L(3), 1, 1, true, &second));
    REQUIRE_OK(mt__tensor_view(first, L(2), L(3), 1, 1, false, &detached));
    CHECK_EQ_PTR(first->base, base);
    CHECK_EQ_PTR(second->base, base);
    CHECK(detached->base == NULL);
    CHECK(first->id != base->id && second->id != first->id);
    mt__tensor_bump(second);
    CHECK_EQ_U64(mt_tensor_version(base), 1);
    CHECK_EQ_U64(mt_tensor_version(detached), 1);
    CHECK_EQ_U64(first->view_version, 0);
    mt_tensor *third;
    REQUIRE_OK(mt__tensor_view(second, L(2), L(3), 1, 1, true, &third));
    CHECK_EQ_U64(third->view_version, 1);
    float back[6];
    REQUIRE_OK(mt_tensor_read(first, back, sizeof back));
    CHECK_EQ_MEM(back, ((const float[]){1, 4, 2, 5, 3, 6}), sizeof back);
    mt_tensor_release(third);
    mt_tensor_release(base);
    mt_tensor_release(first);
    REQUIRE_OK(mt_tensor_read(second, back, 8));
    CHECK_EQ_F64(back[0], 2);
    CHECK_EQ_F64(back[1], 5);
    mt_tensor_release(second);
    mt_tensor_release(detached);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

TEST(tensor_like_is_contiguous)
{
    float values[6] = {1, 2, 3, 4, 5, 6};
    mt_tensor *base = make(values, L(2, 3), 2);
    mt_tensor *view;
    mt_tensor *like;
    REQUIRE_OK(mt__tensor_view(base, L(3, 2), L(1, 3), 2, 0, true, &view));
    REQUIRE_OK(mt__tensor_new_like(view, MT_DTYPE_F64, &like));
    CHECK_EQ_MEM(mt_tensor_sizes(like), L(3, 2), 16);
    CHECK_EQ_MEM(mt_tensor_strides(like), L(2, 1), 16);
    CHECK_EQ_U64(mt_tensor_storage_bytes(like), 48);
    mt_tensor_release(like);
    mt_tensor_release(view);
    mt_tensor_release(base);
}

enum {
    THREADS = 4,
    ROUNDS = 20000
};

static void *retain_and_release(void *tensor)
{
    for (int i = 0; i < ROUNDS; i++) {
        (void)mt_tensor_retain(tensor);
        mt_tensor_release(tensor);
    }
    mt_tensor_release(tensor);
    return NULL;
}

TEST(tensor_references_are_counted_from_all_threads)
{
    float value = 1;
    mt_tensor *tensor = make(&value, NULL, 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, retain_and_release, mt_tensor_retain(tensor)) ==
                0);
    }
    mt_tensor_release(tensor);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

static void *collect_ids(void *ids)
{
    float value = 1;
    for (int i = 0; i < 100; i++) {
        mt_tensor *tensor = make(&value, NULL, 0);
        ((uint64_t *)ids)[i] = mt_tensor_id(tensor);
        mt_tensor_release(tensor);
    }
    return NULL;
}

TEST(tensor_ids_are_never_given_twice)
{
    static uint64_t ids[THREADS + 1][100];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, collect_ids, ids[i]) == 0);
    }
    (void)collect_ids(ids[THREADS]);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    const uint64_t *all = &ids[0][0];
    for (int i = 0; i < (THREADS + 1) * 100; i++) {
        CHECK(all[i] != 0);
        for (int k = 0; k < i; k++) {
            if (all[k] == all[i]) {
                FAIL("id %llu twice", (unsigned long long)all[i]);
            }
        }
    }
}

TEST(meta_tensors_have_no_elements)
{
    mt_device device = MT_CPU;
    REQUIRE_OK(mt_device_parse("meta", &device));
    CHECK_EQ_I64(device, MT_META);
    CHECK_EQ_STR(mt_device_name(device), "meta");
    CHECK_EQ_I64(mt_device_parse("meta:1", &device), MT_ERUNTIME);
    const int64_t sizes[] = {INT64_C(1) << 20, INT64_C(1) << 20};
    mt_tensor *large = NULL;
    mt_tensor *sum = NULL;
    REQUIRE_OK(mt_ones_with(sizes, 2, MT_DTYPE_F64, MT_META, &large));
    REQUIRE_OK(mt_sum(large, (const int64_t[]){0}, 1, false, &sum));
    CHECK_EQ_I64(mt_tensor_device(sum), MT_META);
    CHECK_EQ_I64(mt_tensor_numel(sum), sizes[1]);
    CHECK(mt_tensor_data(sum) == NULL);
    CHECK_EQ_U64(mt_tensor_storage_bytes(large), UINT64_C(1) << 43);
    mt_tensor *host = NULL;
    CHECK_EQ_I64(mt_to_with(sum, MT_DTYPE_NONE, MT_CPU, false, false, &host), MT_ENOTSUP);
    CHECK_EQ_STR(mt_last_error()->message, "Cannot copy out of meta tensor; no data!");
    CHECK(host == NULL);
    double number = 0;
    CHECK_EQ_I64(mt_tensor_read(sum, &number, sizeof number), MT_EVALUE);
    CHECK_EQ_I64(mt_device_synchronize(MT_META), MT_ERUNTIME); /* no device to wait for */
    mt_tensor_release(large);
    mt_tensor_release(sum);
}
