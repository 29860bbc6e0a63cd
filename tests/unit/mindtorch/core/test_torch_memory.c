/* SPDX-License-Identifier: Apache-2.0
 *
 * The caching allocator and the pools: exact counters (MEM1), what is reported to the profiler
 * (MEM2), the end of threads (MEM4), blocks given back elsewhere, refusals, fork.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mindtorch/core/memory/memory.h"
#include "mindtorch/core/memory/memory_classes.h"
#include "mindtorch/core/memory/pool.h"
#include "mindtorch/core/tensor/tensor_impl.h"

#include <mtprof/mtprof.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static mt_memory_stats stats_now(void)
{
    mt_memory_stats stats = {.struct_size = sizeof stats};
    CHECK_OK(mt_device_get_memory_stats(MT_CPU, &stats));
    return stats;
}

TEST(memory_classes_fit_tightly)
{
    uint64_t random = mt_test_seed();
    uint64_t before = 0;
    for (uint32_t i = 0; i < MT_SIZE_CLASSES; i++) {
        uint64_t bytes = mt__class_bytes(i);
        CHECK(bytes > before && bytes % 64 == 0);
        if (bytes <= MT_LARGEST_BLOCK) {
            CHECK_EQ_U64(mt__class_of(bytes), i);
            CHECK_EQ_U64(mt__class_of(before + 1), i);
        }
        before = bytes;
    }
    CHECK(before >= MT_LARGEST_BLOCK);
    for (int i = 0; i < 100000; i++) {
        uint64_t bytes = 1 + (mt_test_random(&random) >> (3 + mt_test_random(&random) % 58));
        uint64_t size = mt__class_bytes(mt__class_of(bytes));
        if (!CHECK(size >= bytes && (bytes < 512 || size - bytes <= bytes / 8))) {
            return;
        }
    }
}

enum {
    SLOTS = 200
};

/* A random life of blocks, and what the counters must say of it. */
typedef struct life {
    struct {
        unsigned char *block;
        uint64_t bytes;
        uint32_t block_class;
    } slots[SLOTS];
    uint64_t allocated, peak, allocations, releases;
} life;

static void end_slot(life *all, size_t n)
{
    for (uint64_t k = 0; k < all->slots[n].bytes; k++) { /* nothing else wrote into it */
        REQUIRE(all->slots[n].block[k] == (unsigned char)n);
    }
    mt__memory_give(MT_CPU, all->slots[n].block, all->slots[n].bytes, all->slots[n].block_class);
    all->slots[n].block = NULL;
    all->allocated -= all->slots[n].bytes;
    all->releases++;
}

static void begin_slot(life *all, size_t n, uint64_t bytes)
{
    void *block;
    REQUIRE_OK(mt__memory_take(MT_CPU, bytes, &block, &all->slots[n].block_class));
    CHECK_EQ_U64((uintptr_t)block % 64, 0);
    memset(block, (int)n, bytes);
    all->slots[n].block = block;
    all->slots[n].bytes = bytes;
    all->allocated += bytes;
    all->peak = all->allocated > all->peak ? all->allocated : all->peak;
    all->allocations++;
}

static bool counters_fit(const life *all)
{
    mt_memory_stats stats = stats_now();
    return CHECK(stats.allocated_bytes == all->allocated &&
                 stats.peak_allocated_bytes == all->peak && stats.allocations == all->allocations &&
                 stats.releases == all->releases && stats.reserved_bytes >= all->allocated &&
                 stats.peak_reserved_bytes >= stats.reserved_bytes &&
                 mt__memory_allocated(MT_CPU) == all->allocated);
}

/* MEM1 */
TEST(memory_counters_are_exact_after_every_call)
{
    static life all;
    uint64_t random = mt_test_seed();
    for (int i = 0; i < 20000; i++) {
        size_t n = mt_test_random(&random) % SLOTS;
        if (all.slots[n].block != NULL) {
            end_slot(&all, n);
        } else {
            begin_slot(&all, n, 1 + mt_test_random(&random) % (UINT64_C(1) << (i % 19)));
        }
        if (!counters_fit(&all)) {
            return;
        }
    }
    for (size_t n = 0; n < SLOTS; n++) {
        if (all.slots[n].block != NULL) {
            end_slot(&all, n);
        }
    }
    CHECK_OK(mt_device_reset_peaks(MT_CPU));
    CHECK_EQ_U64(stats_now().peak_allocated_bytes, 0);
    CHECK_OK(mt_device_empty_cache(MT_CPU));
    CHECK_EQ_U64(stats_now().reserved_bytes, 0);
    CHECK_OK(mt_device_reset_peaks(MT_CPU));
    CHECK_EQ_U64(stats_now().peak_reserved_bytes, 0);
}

/* MEM2: what the profiler adds up is what the allocator counted. */
TEST(memory_the_profiler_is_told_every_block)
{
    static life all;
    uint64_t random = mt_test_seed();
    mtprof_config config = {.struct_size = sizeof config,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS};
    mtprof_session *session;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    for (int i = 0; i < 3000; i++) {
        size_t n = mt_test_random(&random) % SLOTS;
        if (all.slots[n].block != NULL) {
            end_slot(&all, n);
        } else {
            begin_slot(&all, n, 1 + mt_test_random(&random) % (UINT64_C(1) << (i % 19)));
        }
    }
    REQUIRE_OK(mtprof_session_stop(session));
    mtprof_model *model;
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    mtprof_memory memory = {.struct_size = sizeof memory};
    REQUIRE_OK(mtprof_model_get_memory(model, 0, &memory));
    CHECK_EQ_U64(memory.allocations, all.allocations);
    CHECK_EQ_U64(memory.frees, all.releases);
    CHECK_EQ_I64(memory.allocated_bytes - memory.freed_bytes, (int64_t)all.allocated);
    CHECK_EQ_I64(memory.peak_bytes, (int64_t)all.peak);
    mtprof_model_free(model);
    REQUIRE_OK(mtprof_session_close(session));
    for (size_t n = 0; n < SLOTS; n++) {
        if (all.slots[n].block != NULL) {
            end_slot(&all, n);
        }
    }
}

TEST(memory_emptying_keeps_what_is_used)
{
    enum {
        N = 3000
    };
    static void *blocks[N];
    uint32_t block_class = 0;
    for (int i = 0; i < N; i++) {
        REQUIRE_OK(mt__memory_take(MT_CPU, 64, &blocks[i], &block_class));
        memset(blocks[i], i & 255, 64);
    }
    uint64_t full = stats_now().reserved_bytes;
    for (int i = 0; i < N; i++) {
        if (i % 1500 != 0) { /* two blocks hold two segments */
            mt__memory_give(MT_CPU, blocks[i], 64, block_class);
        }
    }
    CHECK_EQ_U64(stats_now().reserved_bytes, full);
    CHECK_OK(mt_device_empty_cache(MT_CPU));
    uint64_t left = stats_now().reserved_bytes;
    CHECK(left > 0 && left <= 2 * 65536);
    for (int i = 0; i < N; i += 1500) {
        CHECK_EQ_U64(*(unsigned char *)blocks[i], (unsigned)i & 255U);
    }
    /* What is left serves the next requests, each block once. */
    static void *again[N];
    for (int i = 0; i < N; i++) {
        REQUIRE_OK(mt__memory_take(MT_CPU, 64, &again[i], &block_class));
        memset(again[i], 0xA5, 64);
    }
    CHECK_EQ_U64(*(unsigned char *)blocks[1500], 1500U & 255U);
    for (int i = 0; i < N; i++) {
        mt__memory_give(MT_CPU, again[i], 64, block_class);
    }
    mt__memory_give(MT_CPU, blocks[0], 64, block_class);
    mt__memory_give(MT_CPU, blocks[1500], 64, block_class);
    CHECK_OK(mt_device_empty_cache(MT_CPU));
    CHECK_EQ_U64(stats_now().reserved_bytes, 0);
}

TEST(memory_stats_respect_struct_size)
{
    mt_memory_stats stats = {.struct_size = 0};
    CHECK_EQ_I64(mt_device_get_memory_stats(MT_CPU, &stats), MT_EVALUE);
    CHECK_EQ_I64(mt_device_get_memory_stats(MT_CPU, NULL), MT_EVALUE);
    CHECK_EQ_I64(mt_device_get_memory_stats(MT_NPU, &stats), MT_EVALUE);
    stats = (mt_memory_stats){.struct_size = 16, .peak_allocated_bytes = 4711};
    CHECK_OK(mt_device_get_memory_stats(MT_CPU, &stats));
    CHECK_EQ_U64(stats.peak_allocated_bytes, 4711);
    stats.struct_size = sizeof stats;
    CHECK_EQ_I64(mt_device_get_memory_stats(MT_NPU, &stats), MT_ERUNTIME);
}

TEST(memory_refuses_what_cannot_be)
{
    void *block;
    uint32_t block_class;
    CHECK_EQ_I64(mt__memory_take(MT_CPU, UINT64_MAX, &block, &block_class), MT_ENOMEM);
    CHECK(block == NULL);
    CHECK_EQ_I64(mt__memory_take(MT_CPU, UINT64_C(1) << 60, &block, &block_class), MT_ENOMEM);
    CHECK(strstr(mt_last_error()->message, "cpu: can't allocate memory: you tried to allocate") !=
          NULL);
    CHECK_EQ_U64(stats_now().allocated_bytes, 0);
    CHECK_EQ_U64(stats_now().reserved_bytes, 0);
}

TEST(memory_large_blocks_are_cached_too)
{
    void *first;
    void *second;
    uint32_t block_class;
    REQUIRE_OK(mt__memory_take(MT_CPU, (5 << 20) - 4000, &first, &block_class));
    memset(first, 1, (5 << 20) - 4000);
    mt__memory_give(MT_CPU, first, (5 << 20) - 4000, block_class);
    REQUIRE_OK(mt__memory_take(MT_CPU, (5 << 20) - 8000, &second, &block_class));
    CHECK_EQ_PTR(second, first);
    mt__memory_give(MT_CPU, second, (5 << 20) - 8000, block_class);
    CHECK_OK(mt_device_empty_cache(MT_CPU));
    CHECK_EQ_U64(stats_now().reserved_bytes, 0);
}

/* ---- refusals ---- */

TEST(memory_any_request_may_be_refused)
{
    mt__shape shape = {.n_dims = 2, .sizes = {30, 40}};
    for (uint64_t n = 1;; n++) {
        uint64_t alive = mt_tensors_alive();
        mt_tensor *tensor;
        mt_tensor *view = NULL;
        (void)mtb_fail_nth(n, false);
        int status = mt__tensor_new("test", MT_DTYPE_F32, MT_CPU, &shape, &tensor);
        if (status == MT_OK) {
            int64_t strides[2] = {1, 30};
            status = mt__tensor_view(tensor, (const int64_t[]){40, 30}, strides, 2, 0, true, &view);
        }
        uint64_t made = mtb_fail_nth(0, false);
        CHECK((status == MT_OK) == (view != NULL));
        CHECK(status == MT_OK || status == MT_ENOMEM);
        mt_tensor_release(view);
        mt_tensor_release(tensor);
        CHECK_EQ_U64(mt_tensors_alive(), alive);
        CHECK_EQ_U64(stats_now().allocated_bytes, 0);
        CHECK_OK(mt_device_empty_cache(MT_CPU));
        if (status == MT_OK && made < n) {
            CHECK(n > 1);
            break;
        }
    }
}

/* ---- threads ---- */

enum {
    THREADS = 4,
    ROUNDS = 4000,
    BOX = 64
};

/* Where threads leave tensors for each other. */
static _Atomic(mt_tensor *) box[BOX];

static void *swap_tensors(void *seed)
{
    uint64_t random = *(uint64_t *)seed;
    for (int i = 0; i < ROUNDS; i++) {
        mt__shape shape = {.n_dims = 1, .sizes = {1 + (int64_t)(mt_test_random(&random) % 3000)}};
        mt_tensor *tensor;
        if (!CHECK_OK(mt__tensor_new("test", MT_DTYPE_F32, MT_CPU, &shape, &tensor))) {
            break;
        }
        memset(mt_tensor_data(tensor), (int)(tensor->id & 255), (size_t)shape.sizes[0] * 4);
        mt_tensor *old = atomic_exchange(&box[mt_test_random(&random) % BOX], tensor);
        if (old != NULL) {
            const unsigned char *bytes = mt_tensor_data(old);
            CHECK(bytes[0] == (old->id & 255) && bytes[old->numel * 4 - 1] == (old->id & 255));
            mt_tensor_release(old);
        }
    }
    return NULL;
}

TEST(memory_threads_take_and_give_each_others_tensors)
{
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = mt_test_seed() + (uint64_t)i;
        REQUIRE(pthread_create(&threads[i], NULL, swap_tensors, &seeds[i]) == 0);
    }
    for (int i = 0; i < 100; i++) {
        mt_memory_stats stats = stats_now();
        CHECK(stats.peak_allocated_bytes <= stats.peak_reserved_bytes);
        (void)mt_tensors_alive();
        CHECK_OK(mt_device_empty_cache(MT_CPU));
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    uint64_t alive = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < BOX; i++) {
        mt_tensor *tensor = atomic_load(&box[i]);
        alive += tensor != NULL;
        bytes += tensor != NULL ? (uint64_t)tensor->numel * 4 : 0;
    }
    CHECK_EQ_U64(mt_tensors_alive(), alive);
    mt_memory_stats stats = stats_now();
    CHECK_EQ_U64(stats.allocated_bytes, bytes);
    CHECK_EQ_U64(stats.allocations, THREADS * ROUNDS);
    CHECK_EQ_U64(stats.releases, THREADS * ROUNDS - alive);
    for (int i = 0; i < BOX; i++) {
        mt_tensor_release(atomic_load(&box[i]));
    }
    /* MEM4: all that the threads had in their lists can go. */
    CHECK_OK(mt_device_empty_cache(MT_CPU));
    CHECK_EQ_U64(stats_now().reserved_bytes, 0);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
}

/* A key whose destructor runs after ours may still release a tensor. */
static pthread_key_t late_key;

static void release_late(void *tensor)
{
    static _Thread_local int round;
    if (++round < 3) {
        (void)pthread_setspecific(late_key, tensor); /* again, when the cache is gone */
        return;
    }
    mt_tensor_release(tensor);
    mt_tensor *other;
    mt__shape shape = {.n_dims = 1, .sizes = {5}};
    CHECK_OK(mt__tensor_new("late", MT_DTYPE_F32, MT_CPU, &shape, &other));
    mt_tensor_release(other);
}

static void *leave_tensor(void *unused)
{
    (void)unused;
    mt_tensor *tensor;
    mt__shape shape = {.n_dims = 1, .sizes = {5}};
    CHECK_OK(mt__tensor_new("late", MT_DTYPE_F32, MT_CPU, &shape, &tensor));
    (void)pthread_setspecific(late_key, tensor);
    return NULL;
}

TEST(memory_serves_threads_that_are_ending)
{
    pthread_t thread;
    REQUIRE(pthread_key_create(&late_key, release_late) == 0);
    REQUIRE(pthread_create(&thread, NULL, leave_tensor, NULL) == 0);
    (void)pthread_join(thread, NULL);
    CHECK_EQ_U64(mt_tensors_alive(), 0);
    mt_memory_stats stats = stats_now();
    CHECK_EQ_U64(stats.allocations, 2);
    CHECK_EQ_U64(stats.releases, 2);
    CHECK_EQ_U64(stats.allocated_bytes, 0);
    CHECK_OK(mt_device_empty_cache(MT_CPU));
    CHECK_EQ_U64(stats_now().reserved_bytes, 0);
}

/* ---- fork ---- */

static atomic_bool stop;

static void *churn(void *unused)
{
    (void)unused;
    uint64_t random = 3;
    while (!atomic_load(&stop)) {
        void *blocks[100];
        uint32_t block_class = 0;
        uint64_t bytes = 1 + mt_test_random(&random) % 5000;
        for (int i = 0; i < 100; i++) {
            CHECK_OK(mt__memory_take(MT_CPU, bytes, &blocks[i], &block_class));
        }
        for (int i = 0; i < 100; i++) {
            mt__memory_give(MT_CPU, blocks[i], bytes, block_class);
        }
    }
    return NULL;
}

TEST(memory_a_child_of_fork_goes_on)
{
#if defined(__SANITIZE_ADDRESS__)
    MT_SKIP("AddressSanitizer's heap is locked in the child when another thread was in it");
#endif
#if defined(__SANITIZE_THREAD__)
    /* Its pthread_once() waits forever in the child for a thread that does not exist there; libc's
     * own does not. */
    mt__shape first = {.n_dims = 1, .sizes = {1}};
    mt_tensor *tensor = NULL;
    REQUIRE(mt__tensor_new("first", MT_DTYPE_F64, MT_CPU, &first, &tensor) == MT_OK);
    mt_tensor_release(tensor);
#endif
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, churn, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            mt__shape shape = {.n_dims = 1, .sizes = {100}};
            mt_tensor *tensors[500];
            bool good = true;
            for (int k = 0; k < 500; k++) {
                good &= mt__tensor_new("child", MT_DTYPE_F64, MT_CPU, &shape, &tensors[k]) == MT_OK;
            }
            for (int k = 0; good && k < 500; k++) {
                mt_tensor_release(tensors[k]);
            }
            good &= mt_device_empty_cache(MT_CPU) == MT_OK && mt_tensors_alive() == 0;
            _exit(good ? 0 : 1);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK_EQ_I64(status, 0);
    }
    atomic_store(&stop, true);
    (void)pthread_join(thread, NULL);
}

/* ---- pools ---- */

TEST(pool_objects_are_each_ones_own)
{
    enum {
        N = 1000
    };
    static uint64_t *objects[N];
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < N; i++) {
            objects[i] = mt__pool_take(MT_POOL_NODE, 200);
            REQUIRE(objects[i] != NULL);
            for (int k = 0; k < 25; k++) {
                objects[i][k] = i;
            }
        }
        for (uint64_t i = 0; i < N; i++) {
            CHECK(objects[i][0] == i && objects[i][24] == i);
            mt__pool_give(MT_POOL_NODE, objects[i]);
        }
    }
}
