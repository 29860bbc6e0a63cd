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

/* The values of dtype.def are ordered: a larger type can represent a smaller one, except for the
 * two 16-bit types, of which neither can represent the other. */
mt_dtype mt_promote_types(mt_dtype a, mt_dtype b)
{
    if (!is_dtype(a) || !is_dtype(b)) {
        return MT_DTYPE_NONE;
    }
    mt_dtype larger = a > b ? a : b;
    mt_dtype smaller = a > b ? b : a;
    return larger == MT_DTYPE_BF16 && smaller == MT_DTYPE_F16 ? MT_DTYPE_F32 : larger;
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
