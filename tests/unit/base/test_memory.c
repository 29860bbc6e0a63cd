/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator seam, pages and arenas.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/pages.h"
#include "harness/mt_test.h"

#include <string.h>

static bool is_zero(const void *block, size_t bytes)
{
    const char *p = block;
    for (size_t i = 0; i < bytes; i++) {
        if (p[i] != 0) {
            return false;
        }
    }
    return true;
}

/* ---- the seam -------------------------------------------------------------------------------- */

TEST(calloc_gives_zeroes_and_refuses_overflow)
{
    void *block = mtb_calloc(7, 9);
    REQUIRE(block != NULL);
    CHECK(is_zero(block, 63));
    mtb_free(block);
    CHECK(mtb_calloc(SIZE_MAX / 2, 3) == NULL);
    CHECK(mtb_resize(NULL, SIZE_MAX / 2, 3) == NULL);
    mtb_free(NULL);
    block = mtb_calloc(0, 0);
    CHECK(block != NULL);
    mtb_free(block);
}

TEST(resize_keeps_the_old_block_when_it_fails)
{
    char *block = mtb_calloc(4, 1);
    REQUIRE(block != NULL);
    memcpy(block, "abc", 4);
    mtb_fail_nth(1, false);
    CHECK(mtb_resize(block, 100, 1) == NULL);
    mtb_fail_nth(0, false);
    CHECK_EQ_STR(block, "abc");
    block = mtb_resize(block, 100, 1);
    REQUIRE(block != NULL);
    CHECK_EQ_STR(block, "abc");
    mtb_free(block);
}

TEST(copied_text_ends_with_a_zero_byte_and_may_hold_some)
{
    char *copy = mtb_copy_text("ab\0cd", 5);
    REQUIRE(copy != NULL);
    CHECK_EQ_MEM(copy, "ab\0cd", 6);
    mtb_free(copy);
    copy = mtb_copy_text(NULL, 0);
    REQUIRE(copy != NULL);
    CHECK_EQ_STR(copy, "");
    mtb_free(copy);
}

TEST(the_hook_fails_exactly_the_request_it_was_told)
{
    mtb_fail_nth(3, false);
    for (int i = 1; i <= 5; i++) {
        void *block = mtb_calloc(1, 8);
        CHECK_EQ_I64(block == NULL, i == 3);
        mtb_free(block);
    }
    CHECK_EQ_U64(mtb_fail_nth(2, true), 5); /* how many there were */
    for (int i = 1; i <= 5; i++) {
        void *block = mtb_calloc(1, 8);
        CHECK_EQ_I64(block == NULL, i >= 2);
        mtb_free(block);
    }
    mtb_fail_nth(0, false);
    void *block = mtb_calloc(1, 8);
    CHECK(block != NULL);
    mtb_free(block);
}

TEST(the_hook_counts_pages_and_texts_too)
{
    mtb_fail_nth(1, true);
    CHECK(mtb_pages_take(4096) == NULL);
    CHECK(mtb_copy_text("x", 1) == NULL);
    CHECK(mtb_fail_here());
    CHECK_EQ_U64(mtb_fail_nth(0, false), 3);
    CHECK(!mtb_fail_here());
}

TEST(grow_makes_room_and_keeps_what_was_there)
{
    uint32_t *array = NULL;
    size_t capacity = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        REQUIRE(mtb_grow((void **)&array, &capacity, i + 1, sizeof *array));
        CHECK(capacity > i);
        array[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK_EQ_U64(array[i], i);
    }
    size_t before = capacity;
    mtb_fail_nth(1, true);
    CHECK(!mtb_grow((void **)&array, &capacity, before + 1, sizeof *array));
    CHECK(mtb_grow((void **)&array, &capacity, before, sizeof *array)); /* nothing to do */
    mtb_fail_nth(0, false);
    CHECK_EQ_U64(capacity, before);
    CHECK_EQ_U64(array[999], 999);
    mtb_free(array);
}

/* ---- pages ----------------------------------------------------------------------------------- */

TEST(pages_are_zeroed_and_may_be_of_any_size)
{
    for (size_t bytes = 1; bytes <= 100000; bytes = bytes * 3 + 1) {
        char *pages = mtb_pages_take(bytes);
        REQUIRE(pages != NULL);
        CHECK(is_zero(pages, bytes));
        memset(pages, 0xAA, bytes);
        mtb_pages_give(pages, bytes);
    }
    mtb_pages_give(NULL, 0);
    mtb_pages_give(NULL, 4096);
}

TEST(pages_grow_with_new_elements_zeroed)
{
    uint64_t *array = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 5000; i++) {
        size_t before = capacity;
        REQUIRE(mtb_pages_grow((void **)&array, &capacity, i + 1, sizeof *array));
        if (capacity != before) {
            CHECK(is_zero(array + i, (capacity - i) * sizeof *array));
        }
        array[i] = i;
    }
    for (size_t i = 0; i < 5000; i++) {
        CHECK_EQ_U64(array[i], i);
    }
    size_t before = capacity;
    mtb_fail_nth(1, true);
    CHECK(!mtb_pages_grow((void **)&array, &capacity, capacity + 1, sizeof *array));
    mtb_fail_nth(0, false);
    CHECK_EQ_U64(capacity, before);
    CHECK_EQ_U64(array[4999], 4999);
    mtb_pages_give(array, capacity * sizeof *array);
}

/* ---- arenas ---------------------------------------------------------------------------------- */

TEST(pieces_of_an_arena_are_aligned_and_never_move)
{
    mtb_arena arena = {0};
    uint64_t state = mt_test_seed();
    char *pieces[600];
    size_t sizes[600];
    for (size_t i = 0; i < 600; i++) {
        sizes[i] = i % 50 == 49 ? 70000 : mt_test_random(&state) % 900;
        pieces[i] = mtb_arena_take(&arena, sizes[i]);
        REQUIRE(pieces[i] != NULL);
        CHECK_EQ_U64((uintptr_t)pieces[i] % 8, 0);
        memset(pieces[i], (int)(i % 251), sizes[i]);
    }
    for (size_t i = 0; i < 600; i++) {
        for (size_t at = 0; at < sizes[i]; at++) {
            if ((unsigned char)pieces[i][at] != i % 251) {
                FAIL("piece %zu was overwritten at byte %zu", i, at);
                break;
            }
        }
    }
    mtb_arena_reset(&arena);
}

TEST(texts_in_an_arena_end_with_a_zero_byte)
{
    mtb_arena arena = {0};
    const char *a = mtb_arena_copy_text(&arena, "a\0b", 3);
    const char *b = mtb_arena_copy_text(&arena, NULL, 0);
    REQUIRE(a != NULL && b != NULL);
    CHECK_EQ_MEM(a, "a\0b", 4);
    CHECK_EQ_STR(b, "");
    mtb_arena_reset(&arena);
}

TEST(what_was_undone_is_used_again)
{
    mtb_arena arena = {0};
    REQUIRE(mtb_arena_take(&arena, 100) != NULL);
    mtb_arena before = arena;
    char *first = mtb_arena_take(&arena, 200);
    mtb_arena_undo(&arena, before);
    CHECK_EQ_PTR(mtb_arena_take(&arena, 50), first);
    /* Across a new block it does nothing, and harms nothing. */
    before = arena;
    char *large = mtb_arena_take(&arena, 200000);
    REQUIRE(large != NULL);
    memset(large, 1, 200000);
    mtb_arena_undo(&arena, before);
    char *next = mtb_arena_take(&arena, 8);
    REQUIRE(next != NULL);
    memset(next, 2, 8);
    CHECK_EQ_I64(large[0], 1);
    CHECK_EQ_I64(large[199999], 1);
    mtb_arena_reset(&arena);
}

TEST(an_arena_without_memory_refuses_and_goes_on_later)
{
    mtb_arena arena = {0};
    mtb_fail_nth(1, true);
    CHECK(mtb_arena_take(&arena, 10) == NULL);
    CHECK(mtb_arena_copy_text(&arena, "x", 1) == NULL);
    mtb_fail_nth(0, false);
    CHECK(mtb_arena_take(&arena, SIZE_MAX) == NULL);
    CHECK(mtb_arena_take(&arena, SIZE_MAX / 2 + 1) == NULL);
    CHECK(mtb_arena_take(&arena, 10) != NULL);
    mtb_arena_reset(&arena);
    CHECK(mtb_arena_take(&arena, 10) != NULL);
    mtb_arena_reset(&arena);
    mtb_arena_reset(&arena);
}
