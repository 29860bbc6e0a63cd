/* SPDX-License-Identifier: Apache-2.0
 *
 * From C types to boxed values: what the typed functions do with their arguments.
 */
#ifndef MINDTORCH_DISPATCH_BOXING_H
#define MINDTORCH_DISPATCH_BOXING_H

#include "base/compiler.h"

#include <mindtorch/value.h>

MT_INLINE mt_value mt__box_none(void)
{
    return (mt_value){.kind = MT_KIND_NONE};
}

MT_INLINE mt_value mt__box_tensor(mt_tensor *tensor)
{
    return (mt_value){.kind = tensor == NULL ? MT_KIND_NONE : MT_KIND_TENSOR, .of.tensor = tensor};
}

MT_INLINE mt_value mt__box_tensors(mt_tensor *const *tensors, size_t count)
{
    /* A count that does not fit is refused by the dispatcher as a wrong kind. */
    return count > UINT32_MAX ? mt__box_none()
                              : (mt_value){.kind = MT_KIND_TENSORS,
                                           .count = (uint32_t)count,
                                           .of.tensors = tensors};
}

MT_INLINE mt_value mt__box_scalar(mt_scalar scalar)
{
    return scalar;
}

MT_INLINE mt_value mt__box_optional_scalar(const mt_scalar *scalar)
{
    return scalar == NULL ? mt__box_none() : *scalar;
}

MT_INLINE mt_value mt__box_int(int64_t integer)
{
    return (mt_value){.kind = MT_KIND_INT, .of.integer = integer};
}

MT_INLINE mt_value mt__box_optional_int(const int64_t *integer)
{
    return integer == NULL ? mt__box_none() : mt__box_int(*integer);
}

MT_INLINE mt_value mt__box_ints(const int64_t *ints, size_t count)
{
    return count > UINT32_MAX || (count > 0 && ints == NULL)
               ? mt__box_none()
               : (mt_value){.kind = MT_KIND_INTS, .count = (uint32_t)count, .of.ints = ints};
}

MT_INLINE mt_value mt__box_optional_ints(const int64_t *ints, size_t count)
{
    return ints == NULL ? mt__box_none() : mt__box_ints(ints, count);
}

MT_INLINE mt_value mt__box_real(double real)
{
    return (mt_value){.kind = MT_KIND_REAL, .of.real = real};
}

MT_INLINE mt_value mt__box_optional_real(const double *real)
{
    return real == NULL ? mt__box_none() : mt__box_real(*real);
}

MT_INLINE mt_value mt__box_bool(bool truth)
{
    return (mt_value){.kind = MT_KIND_BOOL, .of.integer = truth};
}

MT_INLINE mt_value mt__box_optional_bool(const bool *truth)
{
    return truth == NULL ? mt__box_none() : mt__box_bool(*truth);
}

MT_INLINE mt_value mt__box_text(const char *text)
{
    return (mt_value){.kind = text == NULL ? MT_KIND_NONE : MT_KIND_TEXT, .of.text = text};
}

MT_INLINE mt_value mt__box_dtype(mt_dtype dtype)
{
    return (mt_value){.kind = dtype == MT_DTYPE_NONE ? MT_KIND_NONE : MT_KIND_DTYPE,
                      .of.integer = (int64_t)dtype};
}

MT_INLINE mt_value mt__box_device(mt_device device)
{
    return (mt_value){.kind = device == MT_DEVICE_NONE ? MT_KIND_NONE : MT_KIND_DEVICE,
                      .of.integer = device};
}

MT_INLINE mt_value mt__box_generator(mt_generator *generator)
{
    return (mt_value){.kind = generator == NULL ? MT_KIND_NONE : MT_KIND_GENERATOR,
                      .of.generator = generator};
}

#endif /* MINDTORCH_DISPATCH_BOXING_H */
