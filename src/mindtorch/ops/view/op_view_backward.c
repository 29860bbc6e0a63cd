/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of views: a tensor of zeros with the input's sizes, into which the gradient is
 * written at the place of the view. For views that contain an element more than once, its gradients
 * are added.
 */
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/view/view_geometry.h"

#include <inttypes.h>

static int fill_zero(mt_tensor *tensor)
{
    const mt_scalar zero = mt_int(0);
    return mt__fill(tensor, &zero);
}

/* The result: zeros with the sizes of argument 1, and its geometry. */
static int zeros_result(mt__call *call, mt_tensor **out, mt__view_geometry *g)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt__shape shape;
    MT_TRY(mt__shape_make(mt__op_name(call), call->args[1].of.ints, call->args[1].count, &shape));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)grad->dtype, &shape, out));
    MT_TRY(fill_zero(*out));
    mt__geometry_of(*out, g);
    return 0;
}

static int temp_view(mt__call *call, mt_tensor *base, const mt__view_geometry *g, mt_tensor **out)
{
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__geometry_view(base, g, false, place));
    *out = *place;
    return 0;
}

static int check_grad(const mt__call *call, const mt_tensor *grad, const mt__view_geometry *g)
{
    bool same = grad->n_dims == g->n_dims;
    for (uint32_t i = 0; same && i < g->n_dims; i++) {
        same = grad->sizes[i] == g->sizes[i];
    }
    if (!same) {
        char have[MT_SHAPE_TEXT];
        char want[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "%s: the gradient has sizes %s, but the view has %s",
                        mt__op_name(call), mt__shape_text(grad->sizes, grad->n_dims, have),
                        mt__shape_text(g->sizes, g->n_dims, want));
    }
    return 0;
}

/* Copies the gradient into the view of `out`. */
static int lay_grad(mt__call *call, mt_tensor *out, const mt__view_geometry *g)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *view = NULL;
    MT_TRY(check_grad(call, grad, g));
    MT_TRY(temp_view(call, out, g, &view));
    return mt__copy_elements(view, grad);
}

int mt__run_select_backward(mt__call *call)
{
    mt_tensor *out = NULL;
    mt__view_geometry g;
    MT_TRY(zeros_result(call, &out, &g));
    MT_TRY(mt__geometry_select(&g, mt__arg_int(call, 2), mt__arg_int(call, 3)));
    return lay_grad(call, out, &g);
}

int mt__run_slice_backward(mt__call *call)
{
    mt_tensor *out = NULL;
    mt__view_geometry g;
    MT_TRY(zeros_result(call, &out, &g));
    MT_TRY(mt__geometry_slice(&g, mt__arg_int(call, 2), mt__arg_int(call, 3), mt__arg_int(call, 4),
                              mt__arg_int(call, 5)));
    return lay_grad(call, out, &g);
}

int mt__run_diagonal_backward(mt__call *call)
{
    mt_tensor *out = NULL;
    mt__view_geometry g;
    MT_TRY(zeros_result(call, &out, &g));
    MT_TRY(mt__geometry_diagonal(&g, mt__arg_int(call, 2), mt__arg_int(call, 3),
                                 mt__arg_int(call, 4)));
    return lay_grad(call, out, &g);
}

/* to += from, elements of one type and the same sizes. */
static int add_elements(mt__call *call, mt_tensor *to, mt_tensor *from)
{
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_BINARY,
        .code = MT_BINARY_ADD,
        MT_TENSORS(to, to, from),
        MT_INTS(0),
        .n_scalars = 2,
        .scalars = {{.kind = MT_KIND_INT}, {.kind = MT_KIND_INT, .of.integer = 1}},
    };
    return mt__kernel(call, &args);
}

/* Windows that overlap: the kth elements of all windows are apart from each other, so they are
 * added in one go, k after k. */
static int add_windows(mt__call *call, mt_tensor *out, const mt__view_geometry *windows,
                       uint32_t dim)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    uint32_t last = windows->n_dims - 1;
    mt__view_geometry to = *windows;
    mt__view_geometry from;
    mt__geometry_of(grad, &from);
    MT_ASSERT(dim < last);
    mt__geometry_remove(&to, last);
    mt__geometry_remove(&from, last);
    for (int64_t k = 0; k < windows->sizes[last]; k++) {
        mt_tensor *target = NULL;
        mt_tensor *part = NULL;
        uint32_t before = call->n_temps;
        MT_TRY(temp_view(call, out, &to, &target));
        MT_TRY(temp_view(call, grad, &from, &part));
        MT_TRY(add_elements(call, target, part));
        while (call->n_temps > before) {
            mt_tensor_release(call->temps[--call->n_temps]);
        }
        to.offset += windows->strides[last];
        from.offset += grad->strides[last];
    }
    return 0;
}

int mt__run_unfold_backward(mt__call *call)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *out = NULL;
    mt__view_geometry g;
    uint32_t dim;
    int64_t size = mt__arg_int(call, 3);
    int64_t step = mt__arg_int(call, 4);
    MT_TRY(zeros_result(call, &out, &g));
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 2), g.n_dims, &dim));
    MT_TRY(mt__geometry_unfold(&g, dim, size, step));
    if (step >= size || grad->numel == 0) {
        return lay_grad(call, out, &g);
    }
    MT_TRY(check_grad(call, grad, &g));
    return add_windows(call, out, &g, dim);
}

/* ---- as_strided ------------------------------------------------------------------------------ */

/*     gradient of the view ──lay or add──► a flat piece of storage ──read──► gradient of the input
 *
 * An input that shows an element of its storage n times has each of them given 1/n of the sum, so
 * that together they are what the element's gradient is.
 */

static int geometry_arg(const mt__call *call, uint32_t sizes_arg, uint32_t offset_arg,
                        mt__view_geometry *g)
{
    const mt_value *sizes = &call->args[sizes_arg];
    const mt_value *strides = &call->args[sizes_arg + 1];
    mt__shape shape;
    MT_TRY(mt__shape_make(mt__op_name(call), sizes->of.ints, sizes->count, &shape));
    if (sizes->count != strides->count) {
        return mtb_fail(MT_ERUNTIME, "%s: mismatch in length of strides and shape",
                        mt__op_name(call));
    }
    g->n_dims = shape.n_dims;
    g->offset = mt__arg_int(call, offset_arg);
    bool negative = g->offset < 0;
    for (uint32_t i = 0; i < g->n_dims; i++) {
        g->sizes[i] = shape.sizes[i];
        g->strides[i] = strides->of.ints[i];
        negative |= g->strides[i] < 0;
    }
    if (negative) {
        return mtb_fail(MT_ERUNTIME, "%s: negative strides and offsets are not supported",
                        mt__op_name(call));
    }
    return 0;
}

static int temp_flat(mt__call *call, mt_dtype dtype, int64_t length, mt_tensor **out)
{
    return mt__temp_new(call, dtype, &(mt__shape){.n_dims = 1, .sizes = {length}}, out);
}

/* Numbers of the elements that the geometry shows, row by row, in one dimension. */
static int element_numbers(mt__call *call, mt_tensor *counter, const mt__view_geometry *g,
                           mt_tensor **out)
{
    mt_tensor *view = NULL;
    mt_tensor *copy = NULL;
    MT_TRY(temp_view(call, counter, g, &view));
    mt__shape shape = mt__tensor_shape(view);
    MT_TRY(mt__temp_new(call, MT_DTYPE_I64, &shape, &copy));
    MT_TRY(mt__copy_elements(copy, view));
    mt__view_geometry flat = {.n_dims = 1, .sizes = {copy->numel}, .strides = {1}};
    return temp_view(call, copy, &flat, out);
}

/* flat[number of element i] += source[i]; with source NULL: += 1. */
static int add_numbered(mt__call *call, mt_tensor *flat, const mt__view_geometry *g,
                        mt_tensor *source)
{
    mt_tensor *counter = NULL;
    mt_tensor *numbers = NULL;
    MT_TRY(temp_flat(call, MT_DTYPE_I64, flat->numel, &counter));
    const mt__kernel_args count = {
        .kernel = MT_KERNEL_ARANGE,
        MT_TENSORS(counter),
        .n_scalars = 2,
        .scalars = {{.kind = MT_KIND_INT}, {.kind = MT_KIND_INT, .of.integer = 1}},
    };
    MT_TRY(mt__kernel(call, &count));
    MT_TRY(element_numbers(call, counter, g, &numbers));
    mt_tensor *values = NULL;
    mt__view_geometry row = {.n_dims = 1, .sizes = {numbers->numel}, .strides = {1}};
    if (source == NULL) {
        mt_tensor *one = NULL;
        MT_TRY(temp_flat(call, (mt_dtype)flat->dtype, 1, &one));
        const mt__kernel_args fill = {
            .kernel = MT_KERNEL_FILL,
            MT_TENSORS(one),
            .n_scalars = 1,
            .scalars = {{.kind = MT_KIND_INT, .of.integer = 1}},
        };
        MT_TRY(mt__kernel(call, &fill));
        row.strides[0] = 0;
        MT_TRY(temp_view(call, one, &row, &values));
    } else {
        mt_tensor *dense = NULL;
        MT_TRY(mt__contiguous(call, source, &dense));
        row.offset = dense->offset;
        MT_TRY(temp_view(call, dense, &row, &values));
    }
    const mt__kernel_args add = {
        .kernel = MT_KERNEL_INDEX_ADD,
        MT_TENSORS(flat, numbers, values),
        MT_INTS(0),
        .n_scalars = 1,
        .scalars = {{.kind = MT_KIND_INT, .of.integer = 1}},
    };
    return mt__kernel(call, &add);
}

/* Divides what was summed up by how often the geometry shows it. */
static int divide_by_counts(mt__call *call, mt_tensor *flat, const mt__view_geometry *g)
{
    mt_tensor *counts = NULL;
    MT_TRY(temp_flat(call, (mt_dtype)flat->dtype, flat->numel, &counts));
    MT_TRY(fill_zero(counts));
    MT_TRY(add_numbered(call, counts, g, NULL));
    const mt__kernel_args clamp = {
        .kernel = MT_KERNEL_UNARY, /* an element outside the view has count 0; avoid 0 / 0 */
        .code = MT_UNARY_CLAMP,
        MT_TENSORS(counts, counts),
        .n_scalars = 2,
        .scalars = {{.kind = MT_KIND_REAL, .of.real = 1}, {.kind = MT_KIND_NONE}},
    };
    MT_TRY(mt__kernel(call, &clamp));
    const mt__kernel_args divide = {
        .kernel = MT_KERNEL_BINARY,
        .code = MT_BINARY_DIV,
        MT_TENSORS(flat, flat, counts),
        MT_INTS(0),
        .n_scalars = 2,
        .scalars = {{.kind = MT_KIND_INT}, {.kind = MT_KIND_INT, .of.integer = 1}},
    };
    return mt__kernel(call, &divide);
}

int mt__run_as_strided_backward(mt__call *call)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt__view_geometry input = {.n_dims = 0};
    mt__view_geometry view = {.n_dims = 0};
    int64_t input_reach = 0;
    int64_t view_reach = 0;
    MT_TRY(geometry_arg(call, 1, 3, &input));
    MT_TRY(geometry_arg(call, 4, 6, &view));
    MT_TRY(check_grad(call, grad, &view));
    /* Only the part of the storage that both can reach is made. */
    int64_t skipped = input.offset < view.offset ? input.offset : view.offset;
    input.offset -= skipped;
    view.offset -= skipped;
    MT_TRY(mt__geometry_reach(mt__op_name(call), &input, &input_reach));
    MT_TRY(mt__geometry_reach(mt__op_name(call), &view, &view_reach));
    mt_tensor *flat = NULL;
    mt_tensor *laid = NULL;
    mt_tensor *read = NULL;
    mt_tensor *out = NULL;
    MT_TRY(temp_flat(call, (mt_dtype)grad->dtype,
                     input_reach > view_reach ? input_reach : view_reach, &flat));
    MT_TRY(fill_zero(flat));
    bool apart = mt__geometry_is_apart(view.sizes, view.strides, view.n_dims);
    const mt__view_geometry *counted = mt__arg_bool(call, 7) ? &view : &input;
    bool divide = !mt__geometry_is_apart(counted->sizes, counted->strides, counted->n_dims);
    if (!apart || divide) {
    }
    if (apart) {
        MT_TRY(temp_view(call, flat, &view, &laid));
        MT_TRY(mt__copy_elements(laid, grad));
    } else {
        MT_TRY(add_numbered(call, flat, &view, grad));
    }
    if (divide) {
        MT_TRY(divide_by_counts(call, flat, counted));
    }
    mt__shape shape;
    MT_TRY(mt__shape_make(mt__op_name(call), input.sizes, input.n_dims, &shape));
    MT_TRY(temp_view(call, flat, &input, &read));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)grad->dtype, &shape, &out));
    return mt__copy_elements(out, read);
}
