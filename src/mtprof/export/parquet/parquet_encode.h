/* SPDX-License-Identifier: Apache-2.0
 *
 * The encodings of Parquet that our files use, appended to a buffer that grows: Thrift's compact
 * protocol for what describes the data, and three encodings of values.
 *
 *     delta      DELTA_BINARY_PACKED: blocks of 128 differences in four groups of 32, each group
 *                with as many bits as its largest needs
 *     indices    RLE_DICTIONARY: runs of equal numbers, and groups of 8 packed bit by bit
 *     levels     RLE: which rows have a value
 */
#ifndef MTPROF_EXPORT_PARQUET_PARQUET_ENCODE_H
#define MTPROF_EXPORT_PARQUET_PARQUET_ENCODE_H

#include "mtprof/export/protobuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Thrift's compact protocol --------------------------------------------------------------- */

enum {
    MTPROF__THRIFT_TRUE = 1,
    MTPROF__THRIFT_FALSE = 2,
    MTPROF__THRIFT_I8 = 3,
    MTPROF__THRIFT_I32 = 5,
    MTPROF__THRIFT_I64 = 6,
    MTPROF__THRIFT_TEXT = 8,
    MTPROF__THRIFT_LIST = 9,
    MTPROF__THRIFT_STRUCT = 12,
    MTPROF__THRIFT_DEPTH = 6
};

/* Structs that are being written, one inside the other; fields of each in growing order. */
typedef struct mtprof__thrift {
    mtprof__pb *to;
    uint32_t depth;
    uint32_t last[MTPROF__THRIFT_DEPTH]; /* the number of the field that was written last */
} mtprof__thrift;

void mtprof__thrift_number(mtprof__thrift *thrift, uint32_t field, uint32_t type, int64_t value);
void mtprof__thrift_text(mtprof__thrift *thrift, uint32_t field, const void *bytes, size_t n);
/* What follows are n values of the type: structs, each between begin and end with field 0, or what
 * mtprof__thrift_item() writes. */
void mtprof__thrift_list(mtprof__thrift *thrift, uint32_t field, uint32_t type, size_t n);
void mtprof__thrift_item(mtprof__thrift *thrift, int64_t value);
/* field 0: an item of a list, or the outermost struct. */
void mtprof__thrift_begin(mtprof__thrift *thrift, uint32_t field);
void mtprof__thrift_end(mtprof__thrift *thrift);

/* ---- values ---------------------------------------------------------------------------------- */

/* bits: 32 or 64, of the type; values of 32 bits come with their sign. */
void mtprof__parquet_delta(mtprof__pb *pb, const int64_t *values, size_t n, unsigned bits);
/* Without the byte that says the width in front; width: at most 32. */
void mtprof__parquet_indices(mtprof__pb *pb, const uint32_t *indices, size_t n, unsigned width);
/* valid: a bit a row from bit `first` on; NULL: all rows have a value, or none has. */
void mtprof__parquet_levels(mtprof__pb *pb, const uint8_t *valid, uint64_t first, size_t n,
                            bool has_values);
/* Bits that a number needs. */
static inline unsigned mtprof__parquet_width(uint64_t most)
{
    return most == 0 ? 0 : 64 - (unsigned)__builtin_clzll(most);
}

#endif /* MTPROF_EXPORT_PARQUET_PARQUET_ENCODE_H */
