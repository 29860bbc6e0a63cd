/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of an op, as its implementation sees it.
 *
 *     int mt__run_neg(mt__call *call)
 *     {
 *         mt_tensor *self = mt__arg_tensor(call, 0);
 *         mt_tensor *out = NULL;
 *         MT_TRY(mt__tensor_new_like(self, self->dtype, &out));
 *         mt__give(call, 0, out);                      // from here on the call owns it
 *         ...launch the kernel
 *     }
 *
 *   CA1  Arguments have been checked against the schema and defaults are filled in: args[i] exists
 *        for every parameter and has a kind that the schema allows (NONE if it is optional).
 *   CA2  All tensors are on one device, except in ANY_DEVICE rows, and except for 0-d host tensors
 *        together with tensors of a device in POINTWISE and COMPOSITE rows.
 *   CA3  Inside a leaf, calls of ops are not recorded in graphs.
 *   CA4  On failure the dispatcher releases results and temporaries.
 */
#ifndef MINDTORCH_DISPATCH_CALL_H
#define MINDTORCH_DISPATCH_CALL_H

#include "base/compiler.h"
#include "base/fail.h"
#include "mindtorch/core/tensor/tensor_impl.h"
#include "mindtorch/dispatch/op_row.h"

enum {
    MT_MAX_TEMPS = 24
};

struct mt__call {
    const mt__op_row *row;
    const mt_value *args;
    mt_value *results; /* n_results of them, NONE at entry */
    mt_device device;  /* where the work is done: the tensors', or the device argument */
    uint16_t n_temps;
    bool is_complex;  /* an argument, or the type that is asked for */
    uint16_t cast_to; /* mt_dtype: autocast casts the arguments to it first; NONE: it does not */
    mt_tensor *temps[MT_MAX_TEMPS];
};

MT_INLINE mt_tensor *mt__arg_tensor(const mt__call *call, uint32_t i) /* NULL if absent */
{
    return call->args[i].kind == MT_KIND_TENSOR ? call->args[i].of.tensor : NULL;
}

MT_INLINE bool mt__arg_given(const mt__call *call, uint32_t i)
{
    return call->args[i].kind != MT_KIND_NONE;
}

MT_INLINE int64_t mt__arg_int(const mt__call *call, uint32_t i)
{
    return call->args[i].of.integer;
}

MT_INLINE bool mt__arg_bool(const mt__call *call, uint32_t i)
{
    return call->args[i].of.integer != 0;
}

/* Numbers of any kind as double. */
MT_INLINE double mt__scalar_real(const mt_scalar *scalar)
{
    if (scalar->kind == MT_KIND_INT && scalar->count != 0) {
        return (double)(uint64_t)scalar->of.integer;
    }
    return scalar->kind == MT_KIND_REAL ? scalar->of.real : (double)scalar->of.integer;
}

MT_INLINE double mt__arg_real(const mt__call *call, uint32_t i)
{
    return mt__scalar_real(&call->args[i]);
}

/* MT_DTYPE_NONE where it is not given. */
MT_INLINE mt_dtype mt__arg_dtype(const mt__call *call, uint32_t i)
{
    return call->args[i].kind == MT_KIND_DTYPE ? (mt_dtype)call->args[i].of.integer : MT_DTYPE_NONE;
}

MT_INLINE mt_generator *mt__arg_generator(const mt__call *call, uint32_t i)
{
    return call->args[i].kind == MT_KIND_GENERATOR ? call->args[i].of.generator : NULL;
}

/* The argument of FUSED rows that has the gradients. */
enum {
    MT_FUSED_GRADS = 1
};

/* OPTIMIZER rows: whether argument i is a list that the op writes. */
MT_INLINE bool mt__is_written_list(const mt__call *call, uint32_t i)
{
    bool read_only = i == MT_FUSED_GRADS && (call->row->flags & MT_OP_FUSED) != 0;
    return call->args[i].kind == MT_KIND_TENSORS && !read_only;
}

/* Sets a result; the reference goes to the call. */
MT_INLINE void mt__give(mt__call *call, uint32_t i, mt_tensor *tensor)
{
    call->results[i] = (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = tensor};
}

/* The place of a result, for the call that makes it, NULL at first:
 * `return mt_neg(self, mt__result_place(call, 0))`. */
MT_INLINE mt_tensor **mt__result_place(mt__call *call, uint32_t i)
{
    mt__give(call, i, NULL);
    return &call->results[i].of.tensor;
}

/* A place for a tensor that lives as long as the call: `mt_mul(a, b, mt__temp(call))`. The place is
 * NULL at first; read the tensor from it. At most MT_MAX_TEMPS a call. */
MT_INLINE mt_tensor **mt__temp(mt__call *call)
{
    MT_ASSERT(call->n_temps < MT_MAX_TEMPS);
    mt_tensor **place = &call->temps[call->n_temps++];
    *place = NULL;
    return place;
}

/* Runs a call with complex numbers, or refuses it (ops/complex/complex_run.c). */
int mt__complex_run(mt__call *call);

/* MT_ENOTSUP: the op's derivative is not one for complex numbers. */
int mt__complex_check_derivative(const mt__call *call);

/* MT_ERUNTIME in torch's words: "Expected all tensors to be on the same device, but ...". Arguments
 * of the row are on several. */
int mt__refuse_devices(const mt__op_row *row, const mt_value *args);

/* Gives a list of `count` tensors as a result; the references go to the call. */
int mt__give_list(mt__call *call, uint32_t i, mt_tensor *const *tensors, uint32_t count);

#endif /* MINDTORCH_DISPATCH_CALL_H */
