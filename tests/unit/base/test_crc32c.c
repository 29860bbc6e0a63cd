/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC32C: the known answers, and that the CPU's form and the portable one are the same function.
 */
#include "base/crc32c.h"
#include "harness/mt_test.h"
#include "support/traces/trace_builder.h"

#include <string.h>

enum {
    LONGEST = 3 * 2048 * 2 + 77 /* two rounds of the three-lane loop and a rest */
};

static unsigned char bytes[LONGEST + 64];

static void fill(void)
{
    uint64_t state = mt_test_seed();
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)mt_test_random(&state);
    }
}

TEST(known_vectors)
{
    static const unsigned char zeros[32];
    unsigned char ones[32], rising[32];
    memset(ones, 0xFF, sizeof ones);
    for (size_t i = 0; i < sizeof rising; i++) {
        rising[i] = (unsigned char)i;
    }
    CHECK_EQ_U64(mtb_crc32c(0, "123456789", 9), 0xE3069283u);
    CHECK_EQ_U64(mtb_crc32c_portable(0, "123456789", 9), 0xE3069283u);
    CHECK_EQ_U64(mtb_crc32c(0, zeros, 32), 0x8A9136AAu); /* RFC 3720, B.4 */
    CHECK_EQ_U64(mtb_crc32c(0, ones, 32), 0x62A8AB43u);
    CHECK_EQ_U64(mtb_crc32c(0, rising, 32), 0x46DD794Eu);
    CHECK_EQ_U64(mtb_crc32c(0, "", 0), 0);
    CHECK_EQ_U64(mtb_crc32c_portable(0, "", 0), 0);
}

TEST(both_forms_agree_at_every_alignment_and_length)
{
    fill();
    for (size_t start = 0; start < 16; start++) {
        for (size_t length = 0; length <= 300; length++) {
            uint32_t fast = mtb_crc32c(0, bytes + start, length);
            if (fast != mtb_crc32c_portable(0, bytes + start, length)) {
                FAIL("alignment %zu, length %zu", start, length);
                return;
            }
        }
    }
}

TEST(both_forms_agree_around_the_lanes)
{
    fill();
    for (size_t lanes = 1; lanes <= 2; lanes++) {
        for (size_t start = 0; start < 8; start++) {
            for (size_t length = lanes * 6144 - 20; length <= lanes * 6144 + 20; length++) {
                if (mtb_crc32c(7, bytes + start, length) !=
                    mtb_crc32c_portable(7, bytes + start, length)) {
                    FAIL("alignment %zu, length %zu", start, length);
                    return;
                }
            }
        }
    }
}

TEST(agrees_with_a_bit_by_bit_form)
{
    fill();
    for (size_t length = 0; length < LONGEST; length += 509) {
        CHECK_EQ_U64(mtb_crc32c(0, bytes + 3, length), tb_crc32c(0, bytes + 3, length));
    }
}

TEST(a_checksum_can_be_continued_at_any_cut)
{
    fill();
    uint32_t whole = mtb_crc32c(0, bytes, 7000);
    for (size_t cut = 0; cut <= 7000; cut += 97) {
        uint32_t front = mtb_crc32c(0, bytes, cut);
        CHECK_EQ_U64(mtb_crc32c(front, bytes + cut, 7000 - cut), whole);
        CHECK_EQ_U64(mtb_crc32c_portable(front, bytes + cut, 7000 - cut), whole);
    }
}

TEST(every_single_bit_matters)
{
    fill();
    uint32_t whole = mtb_crc32c(0, bytes, 64);
    for (size_t bit = 0; bit < 64 * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
        CHECK(mtb_crc32c(0, bytes, 64) != whole);
        bytes[bit / 8] ^= (unsigned char)(1u << (bit % 8));
    }
}
