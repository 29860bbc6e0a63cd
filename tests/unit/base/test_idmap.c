/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash table from keys to ids.
 */
#include "base/alloc.h"
#include "base/idmap.h"
#include "harness/mt_test.h"

#include <string.h>

enum {
    KEYS = 5000
};

/* A key is the number at its id's index. */
static uint64_t keys[KEYS + 1];
static uint64_t comparisons;

static bool same_key(const void *context, uint32_t id, const void *key)
{
    const uint64_t *all = context;
    comparisons++;
    return all[id] == *(const uint64_t *)key;
}

static uint32_t find(const mtb_idmap *map, uint64_t hash, uint64_t key)
{
    return mtb_idmap_find(map, hash, same_key, keys, &key);
}

static void add_all(mtb_idmap *map, uint64_t (*hash)(uint64_t key))
{
    for (uint32_t id = 1; id <= KEYS; id++) {
        keys[id] = (uint64_t)id * 7919;
        REQUIRE(mtb_idmap_add(map, hash(keys[id]), id));
    }
}

static uint64_t spread(uint64_t key)
{
    return key * 0x9E3779B97F4A7C15u;
}

static uint64_t crowded(uint64_t key)
{
    return key % 64 + ((uint64_t)1 << 63);
}

TEST(an_empty_map_finds_nothing_and_resets)
{
    mtb_idmap map = {0};
    CHECK_EQ_U64(find(&map, 1, 1), 0);
    mtb_idmap_reset(&map);
    CHECK_EQ_U64(map.count, 0);
}

TEST(every_key_is_found_after_many_growths)
{
    mtb_idmap map = {0};
    add_all(&map, spread);
    CHECK_EQ_U64(map.count, KEYS);
    for (uint32_t id = 1; id <= KEYS; id++) {
        CHECK_EQ_U64(find(&map, spread(keys[id]), keys[id]), id);
    }
    for (uint64_t absent = 1; absent < 1000; absent++) {
        CHECK_EQ_U64(find(&map, spread(absent), absent), 0);
    }
    mtb_idmap_reset(&map);
}

TEST(keys_with_equal_hashes_are_told_apart_by_comparison)
{
    mtb_idmap map = {0};
    add_all(&map, crowded);
    for (uint32_t id = 1; id <= KEYS; id += 13) {
        CHECK_EQ_U64(find(&map, crowded(keys[id]), keys[id]), id);
    }
    uint64_t absent = 3;
    CHECK_EQ_U64(find(&map, crowded(absent), absent), 0);
    mtb_idmap_reset(&map);
}

TEST(the_caller_compares_only_keys_with_the_same_hash)
{
    mtb_idmap map = {0};
    add_all(&map, spread);
    comparisons = 0;
    CHECK_EQ_U64(find(&map, spread(1), 1), 0);
    CHECK_EQ_U64(comparisons, 0);
    CHECK_EQ_U64(find(&map, spread(keys[9]), keys[9]), 9);
    CHECK_EQ_U64(comparisons, 1);
    mtb_idmap_reset(&map);
}

TEST(a_hash_of_zero_and_of_all_ones_are_hashes_like_others)
{
    mtb_idmap map = {0};
    keys[1] = 11;
    keys[2] = 22;
    REQUIRE(mtb_idmap_add(&map, 0, 1));
    REQUIRE(mtb_idmap_add(&map, UINT64_MAX, 2));
    CHECK_EQ_U64(find(&map, 0, 11), 1);
    CHECK_EQ_U64(find(&map, UINT64_MAX, 22), 2);
    CHECK_EQ_U64(find(&map, 0, 22), 0);
    mtb_idmap_reset(&map);
}

TEST(refused_memory_changes_nothing)
{
    mtb_idmap map = {0};
    keys[1] = 5;
    mtb_fail_nth(1, true);
    CHECK(!mtb_idmap_add(&map, 5, 1));
    CHECK(!mtb_idmap_reserve(&map));
    mtb_fail_nth(0, false);
    CHECK_EQ_U64(map.count, 0);
    add_all(&map, spread);
    /* The next growth fails: everything that was there is still found. */
    mtb_fail_nth(1, true);
    uint32_t id = KEYS;
    while (mtb_idmap_reserve(&map) && id > 0) {
        map.count++; /* pretend to be fuller */
        id--;
    }
    CHECK(id > 0);
    mtb_fail_nth(0, false);
    for (uint32_t i = 1; i <= KEYS; i += 17) {
        CHECK_EQ_U64(find(&map, spread(keys[i]), keys[i]), i);
    }
    mtb_idmap_reset(&map);
}

TEST(after_a_reserve_the_add_needs_no_memory)
{
    mtb_idmap map = {0};
    for (uint32_t id = 1; id <= 2000; id++) {
        keys[id] = id;
        REQUIRE(mtb_idmap_reserve(&map));
        mtb_fail_nth(1, true);
        CHECK(mtb_idmap_add(&map, spread(id), id));
        mtb_fail_nth(0, false);
    }
    CHECK_EQ_U64(find(&map, spread(2000), 2000), 2000);
    mtb_idmap_reset(&map);
}

TEST(a_reset_map_can_be_used_again)
{
    mtb_idmap map = {0};
    add_all(&map, spread);
    mtb_idmap_reset(&map);
    CHECK_EQ_U64(find(&map, spread(keys[1]), keys[1]), 0);
    REQUIRE(mtb_idmap_add(&map, spread(keys[1]), 1));
    CHECK_EQ_U64(find(&map, spread(keys[1]), keys[1]), 1);
    mtb_idmap_reset(&map);
}
