/* SPDX-License-Identifier: Apache-2.0
 *
 * Hashing: equal keys have equal hashes wherever they lie, and different ones spread.
 */
#include "base/hash.h"
#include "harness/mt_test.h"

enum {
    BUCKETS = 256
};

TEST(the_hash_of_bytes_does_not_depend_on_alignment)
{
    char space[80];
    for (size_t length = 0; length <= 64; length++) {
        uint64_t first = 0;
        for (size_t start = 0; start < 8; start++) {
            for (size_t i = 0; i < length; i++) {
                space[start + i] = (char)(i * 31 + 7);
            }
            uint64_t hash = mtb_hash_bytes(space + start, length);
            first = start == 0 ? hash : first;
            CHECK_EQ_U64(hash, first);
        }
    }
}

TEST(length_is_part_of_the_hash)
{
    static const char zeros[64];
    static const uint64_t zero_words[16];
    for (size_t a = 0; a < 16; a++) {
        for (size_t b = a + 1; b < 16; b++) {
            CHECK(mtb_hash_bytes(zeros, a) != mtb_hash_bytes(zeros, b));
            CHECK(mtb_hash_words(zero_words, a) != mtb_hash_words(zero_words, b));
        }
    }
}

TEST(every_bit_of_the_key_changes_the_hash)
{
    uint64_t words[3] = {1, 2, 3};
    uint64_t whole = mtb_hash_words(words, 3);
    uint64_t whole_bytes = mtb_hash_bytes(words, 21);
    for (size_t bit = 0; bit < 3 * 64; bit++) {
        words[bit / 64] ^= (uint64_t)1 << (bit % 64);
        CHECK(mtb_hash_words(words, 3) != whole);
        CHECK_EQ_I64(mtb_hash_bytes(words, 21) != whole_bytes, bit < 21 * 8);
        words[bit / 64] ^= (uint64_t)1 << (bit % 64);
    }
}

/* Both ends of the hash choose buckets somewhere: neither may be crowded. */
static uint32_t fullest(uint64_t (*hash)(uint64_t i), uint32_t shift)
{
    uint32_t buckets[BUCKETS] = {0};
    uint32_t most = 0;
    for (uint64_t i = 0; i < 16 * BUCKETS; i++) {
        uint32_t *bucket = &buckets[hash(i) >> shift & (BUCKETS - 1)];
        (*bucket)++;
        most = *bucket > most ? *bucket : most;
    }
    return most;
}

static uint64_t of_counter(uint64_t i)
{
    return mtb_hash_words(&i, 1);
}

static uint64_t of_shape(uint64_t i)
{
    uint64_t words[4] = {1 | 2 << 8, i % 64, i / 64 * 8, 6};
    return mtb_hash_words(words, 4);
}

static uint64_t of_name(uint64_t i)
{
    char name[12] = "layer.0000.w";
    for (size_t digit = 0; digit < 4; digit++, i /= 10) {
        name[9 - digit] = (char)('0' + i % 10);
    }
    return mtb_hash_bytes(name, sizeof name);
}

TEST(keys_that_programs_use_spread_over_low_and_high_bits)
{
    CHECK(fullest(of_counter, 0) < 48);
    CHECK(fullest(of_counter, 56) < 48);
    CHECK(fullest(of_shape, 0) < 48);
    CHECK(fullest(of_shape, 56) < 48);
    CHECK(fullest(of_name, 0) < 48);
    CHECK(fullest(of_name, 56) < 48);
}

TEST(round_up_goes_to_the_next_multiple)
{
    CHECK_EQ_U64(mtb_round_up(0, 4096), 0);
    CHECK_EQ_U64(mtb_round_up(1, 4096), 4096);
    CHECK_EQ_U64(mtb_round_up(4096, 4096), 4096);
    CHECK_EQ_U64(mtb_round_up(4097, 8), 4104);
}
