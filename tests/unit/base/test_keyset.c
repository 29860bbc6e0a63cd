/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of keys against a plain array.
 */
#include "base/alloc.h"
#include "base/keyset.h"
#include "harness/mt_test.h"

#include <string.h>

enum {
    KEYS = 400,
    ROUNDS = 60000
};

TEST(keyset_is_a_set)
{
    bool there[KEYS + 1] = {false};
    size_t n = 0;
    mtb_keyset set = {.count = 0};
    uint64_t seed = mt_test_seed();
    CHECK(!mtb_keyset_has(&set, 1));
    CHECK(!mtb_keyset_remove(&set, 1));
    for (int i = 0; i < ROUNDS; i++) {
        /* Phases of growing and of shrinking, keys that lie close together and far apart. */
        bool growing = i / 3000 % 2 == 0;
        uint64_t key = mt_test_random(&seed) % KEYS + 1;
        uint64_t spread = key % 2 == 0 ? key : key << 40;
        if (mt_test_random(&seed) % 4 < (growing ? 3u : 1u)) {
            REQUIRE(mtb_keyset_add(&set, spread));
            n += !there[key];
            there[key] = true;
        } else {
            CHECK(mtb_keyset_remove(&set, spread) == there[key]);
            n -= there[key];
            there[key] = false;
        }
        if (!CHECK_EQ_U64(set.count, n) || !CHECK(mtb_keyset_has(&set, spread) == there[key])) {
            break;
        }
        if (i % 1000 == 0) {
            for (uint64_t k = 1; k <= KEYS; k++) {
                CHECK(mtb_keyset_has(&set, k % 2 == 0 ? k : k << 40) == there[k]);
            }
        }
    }
    mtb_keyset_clear(&set);
    CHECK_EQ_U64(set.count, 0);
    CHECK(!mtb_keyset_has(&set, 2));
    mtb_keyset_fini(&set);
}

TEST(keyset_survives_refused_memory)
{
    mtb_keyset set = {.count = 0};
    uint64_t n = 0;
    for (uint64_t key = 1; key <= 1000; key++) {
        mtb_fail_nth(1, false);
        bool added = mtb_keyset_add(&set, key);
        mtb_fail_nth(0, false);
        if (!added) {
            n++;
            CHECK(!mtb_keyset_has(&set, key));
            REQUIRE(mtb_keyset_add(&set, key));
        }
    }
    CHECK(n > 3);
    CHECK_EQ_U64(set.count, 1000);
    for (uint64_t key = 1; key <= 1000; key++) {
        CHECK(mtb_keyset_has(&set, key));
    }
    mtb_keyset_fini(&set);
}
