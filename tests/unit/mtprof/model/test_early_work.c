/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work that waits for its launch (early_work.h).
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/model/events/early_work.h"

enum {
    MANY = 50000,
    KEYS = 40
};

static mtprof__early piece(uint64_t key, uint32_t number)
{
    mtprof__early item = {.track = number};
    item.work.key = key;
    return item;
}

/* EW1: a plain list, searched from its start, gives the same answers. */
TEST(work_comes_out_in_the_order_of_a_list)
{
    uint64_t random = mt_test_seed();
    mtprof__early_work early = {0};
    mtprof__early out;
    uint64_t keys[2000];
    uint32_t numbers[2000];
    size_t n = 0;
    for (uint32_t step = 0; step < 20000; step++) {
        uint64_t key = 1 + mt_test_random(&random) % KEYS;
        uint64_t what = mt_test_random(&random) % (step % 4000 < 2000 ? 3 : 2);
        if (what != 0 && n < 2000 && step % 4000 < 2000) {
            mtprof__early item = piece(key, step);
            REQUIRE(mtprof__early_put(&early, &item));
            keys[n] = key;
            numbers[n++] = step;
            continue;
        }
        size_t at = 0;
        while (what == 0 && at < n && keys[at] != key) {
            at++;
        }
        bool some = what == 0 ? mtprof__early_take(&early, key, &out)
                              : mtprof__early_take_first(&early, &out);
        REQUIRE_EQ_I64(some, at < n);
        if (some) {
            CHECK_EQ_U64(out.work.key, keys[at]);
            CHECK_EQ_U64(out.track, numbers[at]);
            n--;
            memmove(keys + at, keys + at + 1, (n - at) * sizeof *keys);
            memmove(numbers + at, numbers + at + 1, (n - at) * sizeof *numbers);
        }
        REQUIRE_EQ_U64(early.waiting, n);
    }
    mtprof__early_fini(&early);
}

/* What came out leaves its place to others. */
TEST(a_queue_that_is_never_long_stays_small)
{
    mtprof__early_work early = {0};
    mtprof__early out;
    for (uint32_t i = 0; i < MANY; i++) {
        mtprof__early item = piece(i + 1, i);
        REQUIRE(mtprof__early_put(&early, &item));
        if (i >= 5) {
            REQUIRE(mtprof__early_take(&early, i - 4, &out));
            CHECK_EQ_U64(out.track, i - 5);
        }
    }
    CHECK(early.capacity <= 32);
    CHECK(!mtprof__early_take(&early, 1, &out));
    mtprof__early_fini(&early);
}

TEST(without_memory_nothing_has_changed)
{
    mtprof__early_work early = {0};
    mtprof__early item = piece(1, 0);
    for (uint64_t fail = 1; fail <= 2; fail++) {
        (void)mtb_fail_nth(fail, false);
        CHECK(!mtprof__early_put(&early, &item));
        (void)mtb_fail_nth(0, false);
        CHECK_EQ_U64(early.waiting, 0);
        CHECK_EQ_U64(early.capacity, 0);
    }
    CHECK(mtprof__early_put(&early, &item));
    CHECK(mtprof__early_take_first(&early, &item));
    CHECK(!mtprof__early_take_first(&early, &item));
    mtprof__early_fini(&early);
}
