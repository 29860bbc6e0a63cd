/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools whose windows follow from the requested output size.
 */
#include "mindtorch/ops/image/op_image.h"
#include "mindtorch/ops/type_names.h"

static int check_input(const char *name, const char *colon, const mt_tensor *self, bool channels)
{
    char text[MT_SHAPE_TEXT];
    uint32_t n = self->n_dims;
    const char *shape = mt__shape_text(self->sizes, n, text);
    if (n != 3 && n != 4) {
        return mtb_fail(MT_ERUNTIME, "%s(): Expected 3D or 4D tensor, but got%s %s", name, colon,
                        shape);
    }
    for (uint32_t i = n - (channels ? 3 : 2); i < n; i++) {
        if (self->sizes[i] == 0) {
            return mtb_fail(MT_ERUNTIME,
                            "%s(): Expected input to have non-zero size for non-batch dimensions, "
                            "but input has sizes %s with dimension %u being empty",
                            name, shape, i);
        }
    }
    return MT_OK;
}

static int check_sizes(const mt__call *call, const mt_value *list)
{
    if (list->of.ints[0] >= 0 && list->of.ints[1] >= 0) {
        return mt__image_limit(call, list->of.ints, 2);
    }
    return mtb_fail(MT_ERUNTIME,
                    "adaptive_avg_pool2d: elements of output_size must be greater than or equal "
                    "to 0 but received {%lld, %lld}",
                    (long long)list->of.ints[0], (long long)list->of.ints[1]);
}

int mt__run_adaptive_avg_pool2d(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    const mt_value *size = &call->args[1];
    if (size->count != 2) {
        return mtb_fail(MT_ERUNTIME, "adaptive_avg_pool2d: output_size must be 2");
    }
    MT_TRY(check_sizes(call, size));
    mt_tensor *out = NULL;
    if (size->of.ints[0] == 1 && size->of.ints[1] == 1 && self->n_dims >= 2) {
        MT_TRY(mt_mean(self, (int64_t[]){-1, -2}, 2, true, &out)); /* as torch does */
    } else {
        MT_TRY(mt__adaptive_avg_pool2d(self, size->of.ints, 2, &out));
    }
    mt__give(call, 0, out);
    return MT_OK;
}

int mt__run__adaptive_avg_pool2d(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    const mt_value *size = &call->args[1];
    if (size->count != 2) {
        return mtb_fail(MT_ERUNTIME, "adaptive_avg_pool2d: output_size must be 2");
    }
    MT_TRY(check_input("adaptive_avg_pool2d", "", self, false));
    MT_TRY(check_sizes(call, size));
    MT_TRY(mt__need_pooled_type(self, "adaptive_avg_pool2d"));
    mt__shape shape = mt__pooled_shape(self, size->of.ints);
    mt__kernel_args args = {.kernel = MT_KERNEL_ADAPTIVE_AVG_POOL, .n_tensors = 2};
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &args.tensors[0]));
    MT_TRY(mt__contiguous(call, self, &args.tensors[1]));
    MT_TRY(args.tensors[0]->numel == 0 ? MT_OK : mt__kernel(call, &args));
    return mt__keep_channels_last(call, 0, self);
}

int mt__run__adaptive_avg_pool2d_backward(mt__call *call)
{
    mt_tensor *grad = call->args[0].of.tensor;
    mt_tensor *self = call->args[1].of.tensor;
    MT_TRY(check_input("adaptive_avg_pool2d_backward", "", self, false));
    MT_TRY(mt__need_pooled_type(self, "adaptive_avg_pool2d_backward"));
    bool fits = grad->n_dims == self->n_dims && grad->dtype == self->dtype;
    for (uint32_t i = 0; fits && i + 2 < self->n_dims; i++) {
        fits = grad->sizes[i] == self->sizes[i];
    }
    if (!fits) {
        char text[2][MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "adaptive_avg_pool2d_backward(): grad_output %s does not belong to an "
                        "input of size %s",
                        mt__shape_text(grad->sizes, grad->n_dims, text[0]),
                        mt__shape_text(self->sizes, self->n_dims, text[1]));
    }
    mt__shape shape = mt__tensor_shape(self);
    mt__kernel_args args = {.kernel = MT_KERNEL_ADAPTIVE_AVG_POOL_BACKWARD, .n_tensors = 2};
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &args.tensors[0]));
    MT_TRY(mt__contiguous(call, grad, &args.tensors[1]));
    MT_TRY(args.tensors[0]->numel == 0 ? MT_OK : mt__kernel(call, &args));
    return mt__keep_channels_last(call, 0, self);
}

int mt__run_adaptive_max_pool2d(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    const mt_value *size = &call->args[1];
    MT_TRY(check_input("adaptive_max_pool2d", ":", self, true));
    if (size->count != 2) {
        return mtb_fail(MT_ERUNTIME,
                        "adaptive_max_pool2d(): internal error: output_size.size() must be 2");
    }
    MT_TRY(mt__image_limit(call, size->of.ints, 2));
    mt__shape shape = mt__pooled_shape(self, size->of.ints);
    if (size->of.ints[0] < 0 || size->of.ints[1] < 0) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "Trying to create tensor with negative dimension %lld: %s",
                        (long long)(size->of.ints[0] < 0 ? size->of.ints[0] : size->of.ints[1]),
                        mt__shape_text(shape.sizes, shape.n_dims, text));
    }
    MT_TRY(mt__need_pooled_type(self, "adaptive_max_pool2d"));
    mt__kernel_args args = {.kernel = MT_KERNEL_ADAPTIVE_MAX_POOL, .n_tensors = 3};
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &args.tensors[0]));
    MT_TRY(mt__result_new(call, 1, MT_DTYPE_I64, &shape, &args.tensors[1]));
    MT_TRY(mt__contiguous(call, self, &args.tensors[2]));
    MT_TRY(args.tensors[0]->numel == 0 ? MT_OK : mt__kernel(call, &args));
    MT_TRY(mt__keep_channels_last(call, 1, self));
    return mt__keep_channels_last(call, 0, self);
}
