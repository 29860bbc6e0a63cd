/* SPDX-License-Identifier: Apache-2.0
 *
 * A complex tensor as a real one with a last dimension of 2, and back: views of the same memory.
 *
 *   VTY1  The graph cannot rebuild a view of another type: where gradients are recorded, such a
 *         view may not be written, nor its base while the view is in use (MT_VIEW_TYPE).
 */
#include "base/fail.h"
#include "mindtorch/ops/complex/complex_parts.h"
#include "mindtorch/ops/type_names.h"
#include "mindtorch/ops/view/view_geometry.h"

#include <inttypes.h>

static int give_typed(mt__call *call, mt_tensor *self, const mt__view_geometry *g, mt_dtype dtype)
{
    MT_TRY(mt__give_view(call, self, g));
    mt_tensor *view = call->results[0].of.tensor;
    view->dtype = (uint8_t)dtype;
    view->view_flags |= MT_VIEW_TYPE;
    return MT_OK;
}

static int read_as_real(const mt_tensor *self, mt__view_geometry *geometry)
{
    mt__view_geometry g = {0};
    if (self->n_dims == MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "view_as_real: %u dimensions, at most %d are supported",
                        self->n_dims + 1U, MT_MAX_DIMS);
    }
    mt__geometry_of(self, &g);
    for (uint32_t d = 0; d < g.n_dims; d++) {
        g.strides[d] *= 2;
    }
    g.offset *= 2;
    mt__geometry_insert(&g, g.n_dims, 2, 1);
    *geometry = g;
    return MT_OK;
}

int mt__run_view_as_real(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt__view_geometry g = {0};
    if (!mt__is_complex(self)) {
        return mtb_fail(MT_ERUNTIME, "view_as_real is only supported for complex tensors");
    }
    MT_TRY(read_as_real(self, &g));
    return give_typed(call, self, &g, mt__part_type((mt_dtype)self->dtype));
}

static int read_as_complex(const mt_tensor *self, mt__view_geometry *geometry)
{
    mt__view_geometry g = {0};
    mt__geometry_of(self, &g);
    uint32_t last = g.n_dims - 1;
    if (self->dtype != MT_DTYPE_F32 && self->dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ERUNTIME,
                        "view_as_complex is only supported for half, float and double tensors, but "
                        "got a tensor of scalar type: %s",
                        mt__type_title((mt_dtype)self->dtype));
    }
    if (g.n_dims == 0) {
        return mtb_fail(MT_ERUNTIME, "Input tensor must have one or more dimensions");
    }
    if (g.sizes[last] != 2) {
        return mtb_fail(MT_ERUNTIME, "Tensor must have a last dimension of size 2");
    }
    if (g.strides[last] != 1) {
        return mtb_fail(MT_ERUNTIME, "Tensor must have a last dimension with stride 1");
    }
    for (uint32_t d = 0; d < last; d++) {
        if (g.strides[d] % 2 != 0) {
            return mtb_fail(MT_ERUNTIME,
                            "Tensor must have a stride divisible by 2 for all but last dimension");
        }
        g.strides[d] /= 2;
    }
    if (g.offset % 2 != 0) {
        return mtb_fail(MT_ERUNTIME, "Tensor must have a storage_offset divisible by 2");
    }
    g.offset /= 2;
    g.n_dims = last;
    *geometry = g;
    return MT_OK;
}

int mt__run_view_as_complex(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt__view_geometry g = {0};
    MT_TRY(read_as_complex(self, &g));
    return give_typed(call, self, &g, mt__complex_type((mt_dtype)self->dtype));
}

int mt__complex_apart(mt_tensor *self, mt_tensor **out)
{
    mt__view_geometry g = {0};
    *out = NULL;
    MT_TRY(read_as_real(self, &g));
    MT_TRY(mt__geometry_view(self, &g, false, out));
    (*out)->dtype = (uint8_t)mt__part_type((mt_dtype)self->dtype);
    return MT_OK;
}

int mt__complex_joined(mt_tensor *parts, mt_tensor **out)
{
    mt__view_geometry g = {0};
    *out = NULL;
    MT_TRY(read_as_complex(parts, &g));
    MT_TRY(mt__geometry_view(parts, &g, false, out));
    (*out)->dtype = (uint8_t)mt__complex_type((mt_dtype)parts->dtype);
    return MT_OK;
}

/* A tensor that stands for the number: a scalar has room for one part only. */
int mt__complex_number(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    double parts[2];
    if (self->numel != 1) {
        return mtb_fail(MT_ERUNTIME,
                        "a Tensor with %" PRId64 " elements cannot be converted to Scalar",
                        self->numel);
    }
    MT_TRY(mt__converted(call, self, MT_DTYPE_C128, &self));
    MT_TRY(mt_tensor_read(self, parts, sizeof(parts)));
    return mt_tensor_from_complex(parts[0], parts[1], mt__result_place(call, 0));
}

/* A real tensor takes no complex number. */
int mt__complex_fill(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    if (!mt__is_complex(self)) {
        return mtb_fail(MT_ERUNTIME, "value cannot be converted to type %s without overflow",
                        mt__type_in_c((mt_dtype)self->dtype));
    }
    return call->row->run(call);
}

static int give_part(mt__call *call, int64_t index)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor **parts = mt__temp(call);
    MT_TRY(mt_view_as_real(self, parts));
    return mt_select(*parts, -1, index, mt__result_place(call, 0));
}

int mt__run_real(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    if (!mt__is_complex(self)) {
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return give_part(call, 0);
}

int mt__run_imag(mt__call *call)
{
    if (!mt__is_complex(call->args[0].of.tensor)) {
        return mtb_fail(MT_ERUNTIME,
                        "imag is not implemented for tensors with non-complex dtypes.");
    }
    return give_part(call, 1);
}
