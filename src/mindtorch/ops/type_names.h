/* SPDX-License-Identifier: Apache-2.0
 *
 * The names that element types have in torch's messages, and the checks whose messages need them.
 */
#ifndef MINDTORCH_OPS_TYPE_NAMES_H
#define MINDTORCH_OPS_TYPE_NAMES_H

#include "mindtorch/ops/op_support.h"

/* "Long", "Float"; "None" for an invalid type. */
const char *mt__type_title(mt_dtype dtype);

/* "long int", "float". */
const char *mt__type_in_c(mt_dtype dtype);

/* The largest finite number of the type. */
double mt__type_largest(mt_dtype dtype);

/* MT_ENOTSUP: "\"abs_cpu\" not implemented for 'Bool'". `kernel` is torch's name for it. */
int mt__refuse_type(const char *kernel, mt_dtype dtype);

/* MT_ENOTSUP: the kernel computes with elements of type uint16, uint32 or uint64, for which, as in
 * torch, there are few (kernels.def). */
int mt__check_unsigned(const mt__call *call, mt_kernel kernel, uint32_t code, mt_dtype dtype);

/* MT_ERUNTIME: "value cannot be converted to type uint8_t without overflow". Negative
 * integers fit unsigned types as far as their absolute values do; infinities fit floating point. */
int mt__number_fits(const mt_scalar *number, mt_dtype dtype);

/* The number as kernels of `dtype` take it: REAL for floating point, INT for integers (fractions
 * cut off, what does not fit wraps around; uint64: its bits), BOOL for bool. */
mt_scalar mt__number_as(const mt_scalar *number, mt_dtype dtype);

#endif /* MINDTORCH_OPS_TYPE_NAMES_H */
