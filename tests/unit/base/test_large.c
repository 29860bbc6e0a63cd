/* SPDX-License-Identifier: Apache-2.0
 *
 * Large blocks: zeros, growth that keeps what was there, refusals, sizes around the limits.
 */
#include "base/alloc.h"
#include "base/large.h"
#include "harness/mt_test.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum {
    MIB = 1 << 20
};

static bool is_zero(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

TEST(blocks_are_zero_and_writable_to_their_end)
{
    static const size_t sizes[] = {1,   4032,         4033,    MIB - 64,
                                   MIB, 2 * MIB - 64, 2 * MIB, 5 * MIB + 3};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *block = mtb_large_take(sizes[i]);
        REQUIRE(block != NULL);
        CHECK_EQ_U64((uintptr_t)block % 64, 0);
        CHECK(is_zero(block, sizes[i]));
        memset(block, 0xA5, sizes[i]);
        mtb_large_give(block);
    }
    mtb_large_give(NULL);
}

TEST(growth_keeps_what_was_there)
{
    uint64_t seed = mt_test_seed();
    size_t size = 100;
    unsigned char *block = mtb_large_take(size);
    unsigned char *wall = mtb_large_take(100); /* so that growing in place meets something */
    REQUIRE(block != NULL && wall != NULL);
    memset(block, 7, size);
    for (int round = 0; round < 200; round++) {
        size_t next = (size_t)(mt_test_random(&seed) % (9 * MIB)) + 1;
        unsigned char *moved = mtb_large_resize(block, next);
        REQUIRE(moved != NULL);
        block = moved;
        size_t kept = next < size ? next : size;
        CHECK_EQ_U64(block[0], 7);
        CHECK_EQ_U64(block[kept / 2], 7);
        CHECK_EQ_U64(block[kept - 1], 7);
        memset(block, 7, next);
        size = next;
    }
    mtb_large_give(block);
    mtb_large_give(wall);
}

TEST(refused_memory_leaves_the_block)
{
    mtb_fail_nth(1, false);
    CHECK_EQ_PTR(mtb_large_take(MIB), NULL);
    mtb_fail_nth(0, false);
    errno = 77;
    CHECK_EQ_PTR(mtb_large_take(SIZE_MAX), NULL);
    CHECK_EQ_PTR(mtb_large_take(SIZE_MAX / 8), NULL);
    char *block = mtb_large_take(3 * MIB);
    REQUIRE(block != NULL);
    block[3 * MIB - 1] = 'x';
    CHECK_EQ_PTR(mtb_large_resize(block, SIZE_MAX / 8), NULL);
    mtb_fail_nth(1, false);
    CHECK_EQ_PTR(mtb_large_resize(block, 30 * MIB), NULL);
    CHECK_EQ_U64((unsigned char)block[3 * MIB - 1], 'x');
    mtb_fail_nth(1, true);
    CHECK_EQ_PTR(mtb_large_resize(block, MIB), block); /* smaller is never refused */
    mtb_fail_nth(0, false);
    CHECK_EQ_I64(errno, 77);
    mtb_large_give(block);
}

TEST(arrays_of_any_size)
{
    static const size_t counts[] = {0, 1, MIB / 8 - 1, MIB / 8, MIB};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        unsigned char *array = mtb_array_take(counts[i], 8);
        REQUIRE(array != NULL);
        CHECK(is_zero(array, counts[i] * 8));
        memset(array, 1, counts[i] * 8);
        mtb_array_give(array, counts[i], 8);
    }
    CHECK_EQ_PTR(mtb_array_take(SIZE_MAX, 8), NULL);
    CHECK_EQ_PTR(mtb_array_take(SIZE_MAX / 16, 8), NULL);
    mtb_array_give(NULL, 5 * MIB, 8);
    mtb_array_give(NULL, 5, 8);
}
