/* SPDX-License-Identifier: Apache-2.0
 *
 * Boxed values: arguments and results of ops that are called by number (op.h). The typed functions
 * of ops.h box and unbox them.
 */
#ifndef MINDTORCH_VALUE_H
#define MINDTORCH_VALUE_H

#include <mindtorch/device.h>
#include <mindtorch/dtype.h>

#include <stdbool.h>
#include <stdint.h>

MT_BEGIN_DECLS

typedef struct mt_tensor mt_tensor;
typedef struct mt_generator mt_generator;

typedef enum mt_kind {
    MT_KIND_NONE, /**< absent: an optional argument that is not given */
    MT_KIND_BOOL,
    MT_KIND_INT,
    MT_KIND_REAL,
    MT_KIND_TENSOR,
    MT_KIND_INTS,    /**< `count` of them */
    MT_KIND_TENSORS, /**< `count` of them; NULL where the schema says Tensor?[] */
    MT_KIND_TEXT,
    MT_KIND_DTYPE,
    MT_KIND_DEVICE,
    MT_KIND_GENERATOR,
    MT_KIND_COUNT
} mt_kind;

typedef struct mt_value {
    uint32_t kind;  /**< mt_kind */
    uint32_t count; /**< INTS, TENSORS; INT: 1 if `integer` has the bits of 2^63 or more (uint64) */
    union {
        int64_t integer; /**< INT, BOOL, DTYPE, DEVICE */
        double real;
        mt_tensor *tensor;
        mt_tensor *const *tensors;
        const int64_t *ints;
        const char *text;
        mt_generator *generator;
    } of;
} mt_value;

/** How a loss combines the losses of its elements: the parameter `reduction` of ops.h. */
typedef enum mt_reduction {
    MT_REDUCTION_NONE = 0, /**< leaves them as they are */
    MT_REDUCTION_MEAN = 1,
    MT_REDUCTION_SUM = 2
} mt_reduction;

/** A number: a value of kind BOOL, INT or REAL. The kind takes part in type promotion. */
typedef mt_value mt_scalar;

/** Numbers as arguments of ops. */
MT_API mt_scalar mt_bool(bool value);
MT_API mt_scalar mt_int(int64_t value);
MT_API mt_scalar mt_real(double value);

/** Releases what a result holds (tensors, lists) and makes it NONE. Accepts NULL. */
MT_API void mt_value_clear(mt_value *value);

MT_END_DECLS

#endif /* MINDTORCH_VALUE_H */
