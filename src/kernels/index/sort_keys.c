/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and their sorting: by insertion where there are few, byte by byte from the lowest (radix)
 * where there are many. Bytes that are the same in all keys cost no pass.
 */
#include "kernels/index/sort_keys.h"

#include <string.h>

enum {
    FEW = 48, /* up to here insertion beats the counting of bytes */
    DIGITS = 256
};

/* ---- elements to keys ------------------------------------------------------------------------ */

/* A float's bits, sign and magnitude, to an unsigned number of `bits` bits. */
#define REAL_KEY(type, bits)                                                                    \
    static inline type key_of_real_##bits(type value, type inf)                                 \
    {                                                                                           \
        const type sign = (type)((type)1 << ((bits)-1));                                        \
        type magnitude = (type)(value & (type)~sign);                                           \
        if (magnitude > inf) {                                                                  \
            return (type)-1;                                                                    \
        }                                                                                       \
        return (value & sign) != 0 && magnitude != 0 ? (type)~value : (type)(magnitude | sign); \
    }
REAL_KEY(uint16_t, 16)
REAL_KEY(uint32_t, 32)
REAL_KEY(uint64_t, 64)

#define LOAD_WORDS(type, key)                                                   \
    for (int64_t i = 0; i < n; i++) {                                           \
        type v;                                                                 \
        memcpy(&v, row + i * stride, sizeof(type));                             \
        words[i] = (mt__sort_word)((uint32_t)(key) ^ flip) << 32 | (uint64_t)i; \
    }

void mt__sort_load_words(mt__sort_word *words, const char *row, int64_t stride, int64_t n,
                         uint32_t dtype, bool descending)
{
    uint32_t flip = descending ? UINT32_MAX : 0;
    switch ((mt_dtype)dtype) {
    case MT_DTYPE_I8: LOAD_WORDS(uint8_t, v ^ 0x80U) break;
    case MT_DTYPE_I16: LOAD_WORDS(uint16_t, v ^ 0x8000U) break;
    case MT_DTYPE_U16: LOAD_WORDS(uint16_t, v) break;
    case MT_DTYPE_I32: LOAD_WORDS(uint32_t, v ^ 0x80000000U) break;
    case MT_DTYPE_U32: LOAD_WORDS(uint32_t, v) break;
    case MT_DTYPE_F16: LOAD_WORDS(uint16_t, key_of_real_16(v, 0x7C00)) break;
    case MT_DTYPE_BF16: LOAD_WORDS(uint16_t, key_of_real_16(v, 0x7F80)) break;
    case MT_DTYPE_F32: LOAD_WORDS(uint32_t, key_of_real_32(v, 0x7F800000U)) break;
    default: LOAD_WORDS(uint8_t, v) break;
    }
}

#define LOAD_PAIRS(type, key)                                            \
    for (int64_t i = 0; i < n; i++) {                                    \
        type v;                                                          \
        memcpy(&v, row + i * stride, sizeof(type));                      \
        pairs[i] = (mt__sort_pair){(uint64_t)(key) ^ flip, (uint64_t)i}; \
    }

void mt__sort_load_pairs(mt__sort_pair *pairs, const char *row, int64_t stride, int64_t n,
                         uint32_t dtype, bool descending)
{
    uint64_t flip = descending ? UINT64_MAX : 0;
    switch ((mt_dtype)dtype) {
    case MT_DTYPE_I8: LOAD_PAIRS(uint8_t, v ^ 0x80U) break;
    case MT_DTYPE_I16: LOAD_PAIRS(uint16_t, v ^ 0x8000U) break;
    case MT_DTYPE_U16: LOAD_PAIRS(uint16_t, v) break;
    case MT_DTYPE_I32: LOAD_PAIRS(uint32_t, v ^ 0x80000000U) break;
    case MT_DTYPE_U32: LOAD_PAIRS(uint32_t, v) break;
    case MT_DTYPE_U64: LOAD_PAIRS(uint64_t, v) break;
    case MT_DTYPE_F16: LOAD_PAIRS(uint16_t, key_of_real_16(v, 0x7C00)) break;
    case MT_DTYPE_BF16: LOAD_PAIRS(uint16_t, key_of_real_16(v, 0x7F80)) break;
    case MT_DTYPE_F32: LOAD_PAIRS(uint32_t, key_of_real_32(v, 0x7F800000U)) break;
    case MT_DTYPE_F64: LOAD_PAIRS(uint64_t, key_of_real_64(v, 0x7FF0000000000000U)) break;
    case MT_DTYPE_I64: LOAD_PAIRS(uint64_t, v ^ 0x8000000000000000U) break;
    default: LOAD_PAIRS(uint8_t, v) break;
    }
}

bool mt__sort_narrow_i64(mt__sort_word *words, const char *row, int64_t stride, int64_t n,
                         bool descending)
{
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;
    for (int64_t i = 0; i < n; i++) {
        int64_t v;
        memcpy(&v, row + i * stride, sizeof(v));
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    if ((uint64_t)high - (uint64_t)low > UINT32_MAX) {
        return false;
    }
    uint32_t flip = descending ? UINT32_MAX : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t v;
        memcpy(&v, row + i * stride, sizeof(v));
        words[i] = (mt__sort_word)((uint32_t)(v - (uint64_t)low) ^ flip) << 32 | (uint64_t)i;
    }
    return true;
}

bool mt__sort_key_of_nan(uint32_t dtype, uint64_t *key)
{
    if (mt_dtype_category((mt_dtype)dtype) != MT_CATEGORY_REAL) {
        return false;
    }
    *key = UINT64_MAX >> (64 - 8 * mt_dtype_size((mt_dtype)dtype));
    return true;
}

/* ---- sorting: the same for words and pairs --------------------------------------------------- */

#define ITEM         mt__sort_word
#define NAME(verb)   verb##_words
#define KEY_BYTES    4
#define KEY_SHIFT    32
#define KEY(x)       (x)
#define BEFORE(a, b) ((a) < (b))
#include "kernels/index/sort_body.def"

#define ITEM         mt__sort_pair
#define NAME(verb)   verb##_pairs
#define KEY_BYTES    8
#define KEY_SHIFT    0
#define KEY(x)       ((x).key)
#define BEFORE(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).place < (b).place))
#include "kernels/index/sort_body.def"
