/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators: ranges of draws never overlap, on any thread.
 */
#include "harness/mt_test.h"
#include "mindtorch/core/device/random.h"

#include <pthread.h>

TEST(generator_counts_draws)
{
    mt_generator *generator;
    int64_t place[2];
    REQUIRE_OK(mt_generator_new(42, &generator));
    mt__generator_reserve(generator, 10, place);
    CHECK_EQ_I64(place[0], 42);
    CHECK_EQ_I64(place[1], 0);
    mt__generator_reserve(generator, 0, place);
    CHECK_EQ_I64(place[1], 10);
    CHECK_EQ_U64(mt_generator_offset(generator), 10);
    mt_generator_set_offset(generator, 1000);
    mt__generator_reserve(generator, 1, place);
    CHECK_EQ_I64(place[1], 1000);
    mt_generator_seed(generator, UINT64_MAX);
    CHECK_EQ_U64(mt_generator_initial_seed(generator), UINT64_MAX);
    CHECK_EQ_U64(mt_generator_offset(generator), 0);
    mt_generator_free(generator);
    mt_generator_free(NULL);
}

TEST(generator_default_is_its_own)
{
    mt_generator *other;
    int64_t place[2];
    REQUIRE_OK(mt_generator_new(1, &other));
    mt_manual_seed(7);
    mt__generator_reserve(NULL, 5, place);
    CHECK_EQ_I64(place[0], 7);
    CHECK_EQ_U64(mt_generator_offset(NULL), 5);
    CHECK_EQ_U64(mt_generator_offset(other), 0);
    mt_generator_free(other);
}

enum {
    THREADS = 4,
    ROUNDS = 2000
};

static void *reserve_many(void *sum)
{
    for (int i = 0; i < ROUNDS; i++) {
        int64_t place[2];
        mt__generator_reserve(NULL, 3, place);
        CHECK_EQ_I64(place[1] % 3, 0);
        *(int64_t *)sum += place[1] / 3;
    }
    return NULL;
}

TEST(generator_serves_threads)
{
    pthread_t threads[THREADS];
    int64_t sums[THREADS] = {0};
    mt_manual_seed(7);
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, reserve_many, &sums[i]) == 0);
    }
    int64_t sum = 0;
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        sum += sums[i];
    }
    int64_t n = THREADS * ROUNDS;
    CHECK_EQ_I64(sum, n * (n - 1) / 2); /* each place exactly once */
    CHECK_EQ_U64(mt_generator_offset(NULL), 3 * (uint64_t)n);
}
