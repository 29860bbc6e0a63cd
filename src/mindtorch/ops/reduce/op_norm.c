/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms, logsumexp, sums down to a size.
 */
#include "base/fail.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/reduce/reduction_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <math.h>

/* dims: the argument, not checked to be given. */
static MT_COLD int refuse_empty(double p, const mt_tensor *self, const mt_value *dims, bool all)
{
    if (all) {
        return mtb_fail(
            MT_ERUNTIME,
            "linalg.vector_norm cannot compute the %.6g norm on an empty tensor because "
            "the operation does not have an identity",
            p);
    }
    uint32_t i = 0;
    while (self->sizes[dims->of.ints[i] + (dims->of.ints[i] < 0 ? self->n_dims : 0)] != 0) {
        i++;
    }
    return mtb_fail(MT_ERUNTIME,
                    "linalg.vector_norm cannot compute the %.6g norm on the dimension %" PRId64
                    " because this dimension is empty and the operation does not have an identity",
                    p, dims->of.ints[i]);
}

/* |self| for the norms that are extremes. */
static int absolute(mt__call *call, mt_tensor *self, mt_tensor **out)
{
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *packed = NULL;
    MT_TRY(mt__contiguous(call, self, &packed));
    MT_TRY(mt__temp_new(call, (mt_dtype)self->dtype, &shape, out));
    mt_tensor *const tensors[] = {*out, packed};
    return mt__pointwise_flat(call, MT_KERNEL_UNARY, MT_UNARY_ABS, 2, tensors, 0, NULL);
}

int mt__run_linalg_vector_norm(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    double p = mt__arg_real(call, 1);
    bool keepdim = mt__arg_bool(call, 3);
    uint32_t mask = 0;
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "linalg.vector_norm: Expected a floating point or complex tensor as input. "
                        "Got %s",
                        mt__type_title(dtype));
    }
    MT_TRY(mt__reduced_dims(call, 2, self, &mask));
    bool all = call->args[2].kind == MT_KIND_NONE || call->args[2].count == 0;
    if ((p < 0 || isinf(p)) && mt__reduced_count(self, mask) == 0) {
        return refuse_empty(p, self, &call->args[2], all);
    }
    /* Of one element every norm but 0 is its absolute value; its square might not fit. */
    if (isinf(p) || (p != 0 && mt__reduced_count(self, mask) == 1)) {
        MT_TRY(absolute(call, self, &self));
        return mt__reduction_result(call, p > 0 ? MT_REDUCE_MAX : MT_REDUCE_MIN, self, dtype, mask,
                                    keepdim, mt_int(0));
    }
    if (p == 1) {
        return mt__reduction_result(call, MT_REDUCE_SUM_ABS, self, dtype, mask, keepdim, mt_int(0));
    }
    mt__shape shape = mt__reduced_shape(self, mask, keepdim);
    mt_scalar number = mt_real(p);
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &out));
    mt__reduction what = {.kernel = MT_KERNEL_REDUCE,
                          .code = MT_REDUCE_NORM,
                          .mask = mask,
                          .n_outputs = 1,
                          .outputs = {out},
                          .input = self,
                          .number = &number};
    if (p != 0) {
        return mt__reduction_run(call, &what, mt_int(0));
    }
    what.code = MT_REDUCE_COUNT_NONZERO;
    what.number = NULL;
    MT_TRY(mt__temp_new(call, MT_DTYPE_I64, &shape, &what.outputs[0]));
    MT_TRY(mt__reduction_run(call, &what, mt_int(0)));
    return mt__copy_elements(out, what.outputs[0]);
}

int mt__run_norm(mt__call *call)
{
    const mt_value *dim = &call->args[2];
    return mt_linalg_vector_norm(call->args[0].of.tensor, call->args[1],
                                 dim->kind == MT_KIND_NONE ? NULL : dim->of.ints,
                                 dim->kind == MT_KIND_NONE ? 0 : dim->count, mt__arg_bool(call, 3),
                                 mt__result_place(call, 0));
}

int mt__run_logsumexp(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = mt__to_floating((mt_dtype)self->dtype);
    uint32_t mask = 0;
    MT_TRY(mt__reduced_dims(call, 1, self, &mask));
    MT_TRY(mt__converted(call, self, dtype, &self));
    return mt__reduction_result(call, MT_REDUCE_LOGSUMEXP, self, dtype, mask, mt__arg_bool(call, 2),
                                mt_real(-INFINITY));
}

/* ---- sum_to_size ----------------------------------------------------------------------------- */

static MT_COLD int refuse_size(const mt__shape *size, const mt_tensor *self)
{
    char wants[MT_SHAPE_TEXT];
    char has[MT_SHAPE_TEXT];
    return mtb_fail(MT_ERUNTIME, "size {%s} is not expandable to size {%s}.",
                    mt__shape_text(size->sizes, size->n_dims, wants),
                    mt__shape_text(self->sizes, self->n_dims, has));
}

int mt__run_sum_to_size(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt__shape size;
    MT_TRY(mt__shape_make("sum_to_size", call->args[1].of.ints, call->args[1].count, &size));
    if (size.n_dims > self->n_dims) {
        return refuse_size(&size, self);
    }
    int64_t dims[MT_MAX_DIMS];
    uint32_t n = 0;
    uint32_t more = self->n_dims - size.n_dims;
    for (uint32_t d = 0; d < self->n_dims; d++) {
        int64_t wanted = d < more ? 1 : size.sizes[d - more];
        if (d >= more && wanted != 1 && wanted != self->sizes[d]) {
            return refuse_size(&size, self);
        }
        if (d < more || (wanted == 1 && self->sizes[d] != 1)) {
            dims[n++] = d;
        }
    }
    if (n == 0 && size.n_dims > 0) {
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    mt_tensor *out = NULL;
    if (size.n_dims == 0) {
        MT_TRY(mt_sum(self, NULL, 0, false, &out));
    } else if (more == 0) {
        MT_TRY(mt_sum(self, dims, n, true, &out));
    } else {
        mt_tensor **kept = mt__temp(call);
        MT_TRY(mt_sum(self, dims, n, true, kept));
        MT_TRY(mt_view(*kept, size.sizes, size.n_dims, &out));
    }
    mt__give(call, 0, out);
    return MT_OK;
}
