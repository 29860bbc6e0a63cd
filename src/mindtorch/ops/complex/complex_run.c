/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls with complex tensors. The dispatcher hands them over, so that no op computes with elements
 * that its kernels do not know: what complex_ops.def does not list is refused.
 */
#include "base/fail.h"
#include "mindtorch/ops/complex/complex_parts.h"
#include "mindtorch/ops/type_names.h"

static mt__run_fn *const ways[] = {
#define X(id, way, gradients) [MT__OP_##id] = mt__complex_##way,
#include "mindtorch/ops/complex/complex_ops.def"
#undef X
};

enum {
    no,
    yes
};
static const bool has_gradients[] = {
#define X(id, way, gradients) [MT__OP_##id] = gradients,
#include "mindtorch/ops/complex/complex_ops.def"
#undef X
};

int mt__complex_own(mt__call *call)
{
    return call->row->run(call);
}

static mt__run_fn *ways_of(uint32_t op)
{
    return op < MT_COUNT(ways) ? ways[op] : NULL;
}

/* The type of the first complex argument, or the one that is asked for. */
static mt_dtype complex_type_of(const mt__call *call)
{
    for (uint32_t i = 0; i < call->row->n_params; i++) {
        const mt_value *value = &call->args[i];
        bool list = value->kind == MT_KIND_TENSORS;
        for (uint32_t k = 0; k < (list ? value->count : 1); k++) {
            const mt_tensor *tensor = list                            ? value->of.tensors[k]
                                      : value->kind == MT_KIND_TENSOR ? value->of.tensor
                                                                      : NULL;
            if (tensor != NULL && mt__is_complex(tensor)) {
                return (mt_dtype)tensor->dtype;
            }
        }
    }
    for (uint32_t i = 0; i < call->row->n_params; i++) {
        mt_dtype dtype = mt__arg_dtype(call, i);
        if (mt_dtype_category(dtype) == MT_CATEGORY_COMPLEX) {
            return dtype;
        }
    }
    return MT_DTYPE_NONE;
}

int mt__complex_run(mt__call *call)
{
    uint32_t op = call->row->op;
    mt__run_fn *run = ways_of(op);
    if (run != NULL) {
        return run(call);
    }
    if (call->row->run == mt__run_behind) {
        return call->row->run(call); /* another name of an op, which is asked in its turn */
    }
    return mt__refuse_type(mt__op_name(call), complex_type_of(call));
}

int mt__complex_check_derivative(const mt__call *call)
{
    uint32_t op = call->row->op;
    if ((op < MT_COUNT(has_gradients) && has_gradients[op]) || ways_of(op) == NULL) {
        return MT_OK; /* or the op is refused when it runs */
    }
    return mtb_fail(MT_ENOTSUP, "the derivative for '%s' of complex tensors is not implemented",
                    mt__op_name(call));
}
