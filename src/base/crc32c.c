/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC32C, see crc32c.h.
 *
 * The CPU's instruction takes one word per cycle but its result is ready only three cycles later,
 * so three adjacent blocks are summed in parallel and combined with a table of what BLOCK zero
 * bytes do to a checksum. That keeps a helper thread ahead of any writer.
 */
#include "base/crc32c.h"

#include "base/compiler.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum {
    BLOCK = 2048 /* bytes per lane; a multiple of 8 */
};

#define POLYNOMIAL 0x82F63B78u /* reflected */

static uint32_t byte_table[8][256];
static uint32_t zeros_table[4][256]; /* effect of BLOCK zero bytes, a table per byte of the crc */
static bool have_instruction;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t step_zeros(uint32_t crc, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        crc = (crc >> 8) ^ byte_table[0][crc & 0xFF];
    }
    return crc;
}

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        }
        byte_table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int t = 1; t < 8; t++) {
            uint32_t before = byte_table[t - 1][i];
            byte_table[t][i] = (before >> 8) ^ byte_table[0][before & 0xFF];
        }
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int byte = 0; byte < 4; byte++) {
            zeros_table[byte][i] = step_zeros(i << (8 * byte), BLOCK);
        }
    }
#if defined(__x86_64__)
    have_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

uint32_t mtb_crc32c_portable(uint32_t crc, const void *bytes, size_t length)
{
    pthread_once(&once, make_tables);
    const unsigned char *p = bytes;
    crc = ~crc;
    for (; length >= 8; length -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        word ^= crc;
        crc = 0;
        for (int i = 0; i < 8; i++) {
            crc ^= byte_table[7 - i][(word >> (8 * i)) & 0xFF];
        }
    }
    for (; length > 0; length--, p++) {
        crc = (crc >> 8) ^ byte_table[0][(crc ^ *p) & 0xFF];
    }
    return ~crc;
}

#if defined(__x86_64__)

static uint32_t shift_block(uint32_t crc)
{
    return zeros_table[0][crc & 0xFF] ^ zeros_table[1][(crc >> 8) & 0xFF] ^
           zeros_table[2][(crc >> 16) & 0xFF] ^ zeros_table[3][crc >> 24];
}

__attribute__((target("sse4.2"))) static uint32_t crc_instruction(uint32_t crc,
                                                                  const unsigned char *p,
                                                                  size_t length)
{
    uint64_t sum = ~crc;
    uint64_t word[3];
    for (; length >= 3 * (size_t)BLOCK; length -= 3 * (size_t)BLOCK, p += 3 * (size_t)BLOCK) {
        uint64_t second = 0;
        uint64_t third = 0;
        for (size_t i = 0; i < BLOCK; i += 8) {
            memcpy(&word[0], p + i, 8);
            memcpy(&word[1], p + BLOCK + i, 8);
            memcpy(&word[2], p + 2 * (size_t)BLOCK + i, 8);
            sum = __builtin_ia32_crc32di(sum, word[0]);
            second = __builtin_ia32_crc32di(second, word[1]);
            third = __builtin_ia32_crc32di(third, word[2]);
        }
        sum = shift_block((uint32_t)sum) ^ second;
        sum = shift_block((uint32_t)sum) ^ third;
    }
    for (; length >= 8; length -= 8, p += 8) {
        memcpy(&word[0], p, 8);
        sum = __builtin_ia32_crc32di(sum, word[0]);
    }
    for (; length > 0; length--, p++) {
        sum = __builtin_ia32_crc32qi((uint32_t)sum, *p);
    }
    return ~(uint32_t)sum;
}

#endif

uint32_t mtb_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    pthread_once(&once, make_tables);
#if defined(__x86_64__)
    if (have_instruction) {
        return crc_instruction(crc, bytes, length);
    }
#endif
    return mtb_crc32c_portable(crc, bytes, length);
}
