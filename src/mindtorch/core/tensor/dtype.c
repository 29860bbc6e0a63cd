/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types: the table of dtype.def, promotion, the default type.
 */
#include "base/compiler.h"
#include "base/fail.h"

#include <mindtorch/dtype.h>
#include <mindtorch/status.h>

#include <stdatomic.h>

typedef struct dtype_row {
    const char *name;
    uint8_t bytes;
    uint8_t category; /* mt_category */
} dtype_row;

static const dtype_row rows[] = {
#define X(name, value, text, bytes, category, profiler) \
    [value] = {text, bytes, MT_CATEGORY_##category},
#include <mindtorch/dtype.def>
#undef X
};
static_assert(MT_COUNT(rows) == MT_DTYPE_COUNT, "a row for each type");

static _Atomic uint32_t default_dtype = MT_DTYPE_F32;

static bool is_dtype(mt_dtype dtype)
{
    return (uint32_t)dtype < MT_DTYPE_COUNT;
}

const char *mt_dtype_name(mt_dtype dtype)
{
    return is_dtype(dtype) ? rows[dtype].name : dtype == MT_DTYPE_NONE ? "none" : "unknown";
}

size_t mt_dtype_size(mt_dtype dtype)
{
    return is_dtype(dtype) ? rows[dtype].bytes : 0;
}

mt_category mt_dtype_category(mt_dtype dtype)
{
    return is_dtype(dtype) ? (mt_category)rows[dtype].category : MT_CATEGORY_BOOL;
}

/* A type of a higher rank can represent those of lower ones, except for the pairs that
 * mt_promote_types() names. */
static const uint8_t ranks[MT_DTYPE_COUNT] = {
    [MT_DTYPE_BOOL] = 0, [MT_DTYPE_U8] = 1,   [MT_DTYPE_I8] = 2,    [MT_DTYPE_I16] = 3,
    [MT_DTYPE_I32] = 4,  [MT_DTYPE_I64] = 5,  [MT_DTYPE_U16] = 6,   [MT_DTYPE_U32] = 7,
    [MT_DTYPE_U64] = 8,  [MT_DTYPE_F16] = 9,  [MT_DTYPE_BF16] = 10, [MT_DTYPE_F32] = 11,
    [MT_DTYPE_F64] = 12, [MT_DTYPE_C64] = 13, [MT_DTYPE_C128] = 14,
};

mt_dtype mt_promote_types(mt_dtype a, mt_dtype b)
{
    if (!is_dtype(a) || !is_dtype(b)) {
        return MT_DTYPE_NONE;
    }
    mt_dtype larger = ranks[a] > ranks[b] ? a : b;
    mt_dtype smaller = larger == a ? b : a;
    if (larger == smaller) {
        return larger;
    }
    if (larger == MT_DTYPE_BF16 && smaller == MT_DTYPE_F16) {
        return MT_DTYPE_F32;
    }
    if (larger == MT_DTYPE_C64 && smaller == MT_DTYPE_F64) {
        return MT_DTYPE_C128;
    }
    if (larger == MT_DTYPE_I8 && smaller == MT_DTYPE_U8) {
        return MT_DTYPE_I16;
    }
    if (larger == MT_DTYPE_U16 || larger == MT_DTYPE_U32 || larger == MT_DTYPE_U64 ||
        (larger >= MT_DTYPE_C64 && smaller >= MT_DTYPE_U16 && smaller <= MT_DTYPE_U64)) {
        mtb_fail(MT_ERUNTIME,
                 "Promotion for uint16, uint32, uint64 types is not supported, attempted to "
                 "promote %s and %s",
                 mt_dtype_name(a), mt_dtype_name(b));
        return MT_DTYPE_NONE;
    }
    return larger;
}

mt_dtype mt_default_dtype(void)
{
    return (mt_dtype)atomic_load_explicit(&default_dtype, memory_order_relaxed);
}

mt_status mt_set_default_dtype(mt_dtype dtype)
{
    if (!is_dtype(dtype) || mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ETYPE,
                        "only floating-point types are supported as the default type, "
                        "got %s",
                        mt_dtype_name(dtype));
    }
    atomic_store_explicit(&default_dtype, (uint32_t)dtype, memory_order_relaxed);
    return MT_OK;
}
