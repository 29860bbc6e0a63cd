/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types. Ops on float16 and bfloat16 compute in float32 and round each result once; those
 * on integers wrap at the width of the type. uint16, uint32 and uint64 are for data from elsewhere,
 * as in torch: they are stored, moved, converted, compared for equality, multiplied and sorted;
 * most arithmetic refuses them.
 */
#ifndef MINDTORCH_DTYPE_H
#define MINDTORCH_DTYPE_H

#include <mindtorch/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MT_BEGIN_DECLS

typedef enum mt_dtype {
#define X(name, value, text, bytes, category, profiler) MT_DTYPE_##name = (value),
#include <mindtorch/dtype.def>
#undef X
    MT_DTYPE_COUNT,
    MT_DTYPE_NONE = 255 /**< not given: the default, or that of the input */
} mt_dtype;

/** What decides in type promotion: a higher category wins, whatever the width. */
typedef enum mt_category {
    MT_CATEGORY_BOOL,
    MT_CATEGORY_INT,
    MT_CATEGORY_REAL,
    MT_CATEGORY_COMPLEX
} mt_category;

/** "float32" and so on; "none" for MT_DTYPE_NONE; never NULL. */
MT_API const char *mt_dtype_name(mt_dtype dtype);

/** Bytes of one element; 0 for values that are none of the types. */
MT_API size_t mt_dtype_size(mt_dtype dtype);

/** Bool, integer or real: what decides between types in promotion. */
MT_API mt_category mt_dtype_category(mt_dtype dtype);

/** The smallest type that holds both, as torch.promote_types() has it. MT_DTYPE_NONE if an argument
 * is none of the types, or one of them is uint16, uint32 or uint64 and the other is bool or another
 * integer type: torch does not promote these (mt_last_error() then names both). */
MT_API mt_dtype mt_promote_types(mt_dtype a, mt_dtype b);

/** What creation ops use when no type is given: float32 unless it was changed. */
MT_API mt_dtype mt_default_dtype(void);

/** MT_ETYPE unless it is a floating-point type. */
MT_API mt_status mt_set_default_dtype(mt_dtype dtype);

MT_END_DECLS

#endif /* MINDTORCH_DTYPE_H */
