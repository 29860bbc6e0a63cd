/* SPDX-License-Identifier: Apache-2.0
 *
 * Images in other sizes: upsample_nearest*, upsample_linear1d and its like, and their derivatives.
 * One kernel (RESAMPLE) does all of them; it sees [planes, depth, height, width].
 */
#include "mindtorch/ops/image/op_image.h"
#include "mindtorch/ops/nn/op_nn_support.h"

#include <stdio.h>
#include <string.h>

/* The kernel's codes. */
typedef enum resampling {
    NEAREST,
    NEAREST_EXACT,
    LINEAR,
    CUBIC,
    LINEAR_SMOOTH,
    CUBIC_SMOOTH
} resampling;

typedef struct resample_plan {
    resampling code;
    uint32_t dims;      /* 1 to 3 */
    uint32_t rest_arg;  /* of align_corners, or of the first scale */
    mt__shape small[2]; /* of the input and the output as users see them */
} resample_plan;

static bool has_corners(resampling code)
{
    return code >= LINEAR;
}

static const char *dim_name(uint32_t dims, uint32_t i)
{
    static const char *const names[] = {"D", "H", "W"};
    return names[3 - dims + i];
}

/* "(H: 4, W: 4)" */
static const char *sides_text(const mt__shape *shape, uint32_t dims, char text[96])
{
    int at = snprintf(text, 96, "(");
    for (uint32_t i = 0; i < dims; i++) {
        at += snprintf(text + at, (size_t)(96 - at), "%s%s: %lld", i == 0 ? "" : ", ",
                       dim_name(dims, i), (long long)shape->sizes[2 + i]);
    }
    (void)snprintf(text + at, (size_t)(96 - at), ")");
    return text;
}

static int check_sides(const mt__call *call, const resample_plan *plan)
{
    bool fine = true;
    for (uint32_t i = 0; i < plan->dims; i++) {
        fine = fine && plan->small[0].sizes[2 + i] > 0 && plan->small[1].sizes[2 + i] > 0;
    }
    if (!fine) {
        char text[2][96];
        return mtb_fail(MT_ERUNTIME,
                        "Input and output sizes should be greater than 0, but got input %s output "
                        "%s",
                        sides_text(&plan->small[0], plan->dims, text[0]),
                        sides_text(&plan->small[1], plan->dims, text[1]));
    }
    MT_TRY(mt__image_limit(call, plan->small[0].sizes, plan->small[0].n_dims));
    return mt__image_limit(call, plan->small[1].sizes, plan->small[1].n_dims);
}

/* `to` and `from` are contiguous; from the gradient to the input's if `turned`; `fixed`: weights
 * as for bytes. */
static int launch(mt__call *call, const resample_plan *plan, mt_tensor *to, mt_tensor *from,
                  bool turned, bool fixed)
{
    mt_tensor *const tensors[2] = {to, from};
    mt__kernel_args args = {
        .kernel = MT_KERNEL_RESAMPLE,
        .code = (uint16_t)plan->code,
        .n_tensors = 2,
        MT_INTS(has_corners(plan->code) && mt__arg_bool(call, plan->rest_arg), turned, fixed),
        MT_SCALARS(mt_real(0.0), mt_real(0.0), mt_real(0.0)),
    };
    for (uint32_t i = 0; i < 2; i++) {
        int64_t sizes[4] = {tensors[i]->sizes[0] * tensors[i]->sizes[1], 1, 1, 1};
        for (uint32_t d = 0; d < plan->dims; d++) {
            sizes[4 - plan->dims + d] = tensors[i]->sizes[2 + d];
        }
        MT_TRY(mt__nn_view(call, tensors[i], sizes, 4, &args.tensors[i]));
    }
    uint32_t scales = plan->rest_arg + (has_corners(plan->code) ? 1 : 0);
    for (uint32_t d = 0; d < plan->dims; d++) {
        bool kept = fixed && to->sizes[2 + d] == from->sizes[2 + d]; /* bytes: another pass */
        if (mt__arg_given(call, scales + d) && !kept) {
            args.scalars[3 - plan->dims + d] = mt_real(mt__arg_real(call, scales + d));
        }
    }
    return mt__kernel(call, &args);
}

static int check_lists(const mt__call *call, uint32_t dims, const mt_value *out,
                       const mt__shape *in)
{
    if (out->count != dims) {
        return mtb_fail(MT_ERUNTIME, "It is expected output_size equals to %u, but got size %u",
                        dims, out->count);
    }
    char text[MT_SHAPE_TEXT];
    bool empty = in->n_dims == dims + 2 && in->sizes[1] == 0;
    if (in->n_dims != dims + 2 || empty) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): Non-empty %uD data tensor expected but got a tensor with sizes %s",
                        mt__op_name(call), dims + 2, mt__shape_text(in->sizes, in->n_dims, text));
    }
    return MT_OK;
}

static int make_plan(const mt__call *call, const mt__shape *in, resample_plan *plan)
{
    MT_TRY(check_lists(call, plan->dims, &call->args[1], in));
    plan->small[0] = *in;
    plan->small[1] = *in;
    for (uint32_t i = 0; i < plan->dims; i++) {
        plan->small[1].sizes[2 + i] = call->args[1].of.ints[i];
    }
    return check_sides(call, plan);
}

/* Bytes of images: as wide numbers along the rows, rounded, then down the columns. */
static int resample_bytes(mt__call *call, const resample_plan *plan)
{
    mt_tensor *self = call->args[0].of.tensor;
    bool nearest = plan->code <= NEAREST_EXACT;
    const mt_scalar low = mt_int(0);
    const mt_scalar high = mt_int(UINT8_MAX);
    mt_tensor **wide = mt__temp(call);
    mt_tensor *dense = NULL;
    MT_TRY(mt_to_with(self, MT_DTYPE_F64, call->device, false, false, wide));
    MT_TRY(mt__contiguous(call, *wide, &dense));
    mt__shape shape = plan->small[0];
    for (uint32_t i = nearest ? 1 : plan->dims; i > 0; i--) {
        uint32_t dim = 1U + i;
        if (nearest) {
            shape = plan->small[1];
        } else if (shape.sizes[dim] == plan->small[1].sizes[dim]) {
            continue;
        }
        shape.sizes[dim] = plan->small[1].sizes[dim];
        mt_tensor *out = NULL;
        mt_tensor **half = mt__temp(call);
        mt_tensor **whole = mt__temp(call);
        mt_tensor **held = mt__temp(call);
        MT_TRY(mt__temp_new(call, MT_DTYPE_F64, &shape, &out));
        MT_TRY(launch(call, plan, out, dense, false, !nearest));
        MT_TRY(mt_add_scalar(out, mt_real(nearest ? 0.0 : 0.5), half));
        MT_TRY(mt_floor(*half, whole));
        MT_TRY(mt_clamp(*whole, &low, &high, held));
        dense = *held;
    }
    return mt_to_with(dense, MT_DTYPE_U8, call->device, false, true, mt__result_place(call, 0));
}

static int run_resample(mt__call *call, resampling code, uint32_t dims)
{
    mt_tensor *self = call->args[0].of.tensor;
    resample_plan plan = {.code = code, .dims = dims, .rest_arg = 2};
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *out = NULL;
    mt_tensor *dense = NULL;
    MT_TRY(make_plan(call, &shape, &plan));
    if (self->dtype == MT_DTYPE_U8 && (code <= NEAREST_EXACT || dims == 2)) {
        return resample_bytes(call, &plan);
    }
    MT_TRY(mt__need_pooled_type(self, mt__op_name(call)));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &plan.small[1], &out));
    MT_TRY(mt__contiguous(call, self, &dense));
    MT_TRY(launch(call, &plan, out, dense, false, false));
    return mt__keep_channels_last(call, 0, self);
}

static int run_resample_backward(mt__call *call, resampling code, uint32_t dims)
{
    mt_tensor *grad = call->args[0].of.tensor;
    const mt_value *sizes = &call->args[2];
    resample_plan plan = {.code = code, .dims = dims, .rest_arg = 3};
    mt__shape in = {.n_dims = sizes->count};
    mt_tensor *out = NULL;
    mt_tensor *dense = NULL;
    if (sizes->count != dims + 2) {
        return mtb_fail(MT_ERUNTIME, "It is expected input_size equals to %u, but got size %u",
                        dims + 2, sizes->count);
    }
    memcpy(in.sizes, sizes->of.ints, sizes->count * sizeof(int64_t));
    MT_TRY(make_plan(call, &in, &plan));
    mt__shape have = mt__tensor_shape(grad);
    if (!mt__shape_equal(&have, &plan.small[1])) {
        char text[2][MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "%s(): expected grad_output of size %s, but got %s",
                        mt__op_name(call),
                        mt__shape_text(plan.small[1].sizes, plan.small[1].n_dims, text[0]),
                        mt__shape_text(have.sizes, have.n_dims, text[1]));
    }
    MT_TRY(mt__need_pooled_type(grad, mt__op_name(call)));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)grad->dtype, &in, &out));
    MT_TRY(mt__contiguous(call, grad, &dense));
    MT_TRY(launch(call, &plan, out, dense, true, false));
    return mt__keep_channels_last(call, 0, grad);
}

#define MT_I_BOTH(name, code, dims)        \
    MT_RUN(name, run_resample, code, dims) \
    MT_RUN(name##_backward, run_resample_backward, code, dims)

MT_I_BOTH(upsample_nearest1d, NEAREST, 1)
MT_I_BOTH(upsample_nearest2d, NEAREST, 2)
MT_I_BOTH(upsample_nearest3d, NEAREST, 3)
MT_I_BOTH(_upsample_nearest_exact1d, NEAREST_EXACT, 1)
MT_I_BOTH(_upsample_nearest_exact2d, NEAREST_EXACT, 2)
MT_I_BOTH(_upsample_nearest_exact3d, NEAREST_EXACT, 3)
MT_I_BOTH(upsample_linear1d, LINEAR, 1)
MT_I_BOTH(upsample_bilinear2d, LINEAR, 2)
MT_I_BOTH(upsample_trilinear3d, LINEAR, 3)
MT_I_BOTH(upsample_bicubic2d, CUBIC, 2)
MT_I_BOTH(_upsample_bilinear2d_aa, LINEAR_SMOOTH, 2)
MT_I_BOTH(_upsample_bicubic2d_aa, CUBIC_SMOOTH, 2)
