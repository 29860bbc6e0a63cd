/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products that are leaves: mm, bmm, addmm, baddbmm, mv, dot. All are one kernel, GEMM,
 * which sees tensors as batches of matrices:
 *
 *     out [B, M, N] = alpha a [B, M, K] b [B, K, N] + beta out
 *
 * Types do not mix. Transposed and sliced views are passed on as they are; the kernel copies what
 * its library cannot take.
 */
#include "mindtorch/ops/op_support.h"
#include "mindtorch/ops/type_names.h"

/* A tensor as a batch of matrices. */
typedef struct batch_view {
    int64_t sizes[3];
    int64_t strides[3];
    mt_tensor *tensor;
} batch_view;

/* The dimensions of `tensor` come last; those before them have size 1. */
static batch_view batched(mt_tensor *tensor)
{
    batch_view view = {.sizes = {1, 1, 1}, .tensor = tensor};
    uint32_t skip = 3 - tensor->n_dims;
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        view.sizes[skip + i] = tensor->sizes[i];
        view.strides[skip + i] = tensor->strides[i];
    }
    return view;
}

/* A vector as one column. */
static batch_view column(mt_tensor *tensor)
{
    return (batch_view){
        .sizes = {1, tensor->sizes[0], 1}, .strides = {0, tensor->strides[0], 1}, .tensor = tensor};
}

static mt_array array_of(const batch_view *view)
{
    mt_array array = mt__array(view->tensor);
    array.sizes = view->sizes;
    array.strides = view->strides;
    array.n_dims = 3;
    return array;
}

static int launch_gemm(mt__call *call, const batch_view *out, const batch_view *a,
                       const batch_view *b, const mt_scalar alpha_beta[2])
{
    mt_array arrays[3] = {array_of(out), array_of(a), array_of(b)};
    mt_kernel_call kernel = {
        .kernel = MT_KERNEL_GEMM,
        .n_tensors = 3,
        .n_scalars = 2,
        .tensors = arrays,
        .scalars = alpha_beta,
    };
    MT_TRY(mt__check_unsigned(call, MT_KERNEL_GEMM, 0, (mt_dtype)out->tensor->dtype));
    return out->tensor->numel == 0 ? MT_OK : mt__launch(call->device, &kernel);
}

static const mt_scalar plain_product[2] = {{.kind = MT_KIND_INT, .of.integer = 1},
                                           {.kind = MT_KIND_INT, .of.integer = 0}};

/* torch does not multiply bool either; 16-bit floating-point types cannot be computed with. */
static int check_type(const char *kernel, mt_tensor *tensor)
{
    mt_dtype dtype = (mt_dtype)tensor->dtype;
    return dtype == MT_DTYPE_BOOL ? mt__refuse_type(kernel, dtype) : MT_OK;
}

/* torch's error for a tensor that does not broadcast to `shape`. */
static int check_expands(mt_tensor *self, const mt__shape *shape)
{
    char from[MT_SHAPE_TEXT];
    char to[MT_SHAPE_TEXT];
    if (self->n_dims > shape->n_dims) {
        return mtb_fail(
            MT_ERUNTIME,
            "expand(torch.%sTensor{%s}, size=%s): the number of sizes provided (%u) "
            "must be greater or equal to the number of dimensions in the tensor (%u)",
            mt__type_title((mt_dtype)self->dtype), mt__shape_text(self->sizes, self->n_dims, from),
            mt__shape_text(shape->sizes, shape->n_dims, to), shape->n_dims, (unsigned)self->n_dims);
    }
    uint32_t skip = shape->n_dims - self->n_dims;
    for (uint32_t i = self->n_dims; i-- > 0;) {
        if (self->sizes[i] != 1 && self->sizes[i] != shape->sizes[skip + i]) {
            return mtb_fail(MT_ERUNTIME,
                            "The expanded size of the tensor (%lld) must match the existing size "
                            "(%lld) at non-singleton dimension %u.  Target sizes: %s.  Tensor "
                            "sizes: %s",
                            (long long)shape->sizes[skip + i], (long long)self->sizes[i], skip + i,
                            mt__shape_text(shape->sizes, shape->n_dims, to),
                            mt__shape_text(self->sizes, self->n_dims, from));
        }
    }
    return MT_OK;
}

/* The result of matrices, or of batches of them, that have been checked. addend: self, argument 0,
 * of addmm and baddbmm, whose arguments 3 and 4 are beta and alpha; or NULL. */
static int multiply(mt__call *call, mt_tensor *addend, mt_tensor *a, mt_tensor *b)
{
    mt__shape shape = mt__tensor_shape(a);
    shape.sizes[shape.n_dims - 1] = b->sizes[shape.n_dims - 1];
    if (addend != NULL) {
        MT_TRY(check_expands(addend, &shape));
    }
    mt_tensor *out;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)a->dtype, &shape, &out));
    batch_view views[3] = {batched(out), batched(a), batched(b)};
    if (addend == NULL) {
        return launch_gemm(call, &views[0], &views[1], &views[2], plain_product);
    }
    const mt_scalar alpha_beta[2] = {call->args[4], call->args[3]};
    if (mt__scalar_real(&alpha_beta[1]) != 0) { /* spread over the result */
        MT_TRY(mt__copy_elements(out, addend));
    }
    return launch_gemm(call, &views[0], &views[1], &views[2], alpha_beta);
}

/* ---- mm, addmm ------------------------------------------------------------------------------- */

static int check_inner(mt_tensor *a, mt_tensor *b)
{
    if (a->sizes[1] == b->sizes[0]) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME,
                    "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                    (long long)a->sizes[0], (long long)a->sizes[1], (long long)b->sizes[0],
                    (long long)b->sizes[1]);
}

int mt__run_mm(mt__call *call)
{
    mt_tensor *a = call->args[0].of.tensor;
    mt_tensor *b = call->args[1].of.tensor;
    if (a->n_dims != 2 || b->n_dims != 2) {
        return mtb_fail(MT_ERUNTIME, "%s must be a matrix", a->n_dims != 2 ? "self" : "mat2");
    }
    MT_TRY(check_inner(a, b));
    if (a->dtype != b->dtype) {
        return mtb_fail(MT_ERUNTIME, "expected m1 and m2 to have the same dtype, but got: %s != %s",
                        mt__type_in_c((mt_dtype)a->dtype), mt__type_in_c((mt_dtype)b->dtype));
    }
    MT_TRY(check_type("addmm_impl_cpu_", a));
    return multiply(call, NULL, a, b);
}

static int check_addmm(mt_tensor *self, mt_tensor *a, mt_tensor *b)
{
    if (a->n_dims != 2 || b->n_dims != 2) {
        return mtb_fail(MT_ERUNTIME, "%s must be a matrix, got %u-D tensor",
                        a->n_dims != 2 ? "mat1" : "mat2",
                        (unsigned)(a->n_dims != 2 ? a->n_dims : b->n_dims));
    }
    MT_TRY(check_inner(a, b));
    if (self->dtype != b->dtype) {
        return mtb_fail(MT_ERUNTIME, "self and mat2 must have the same dtype, but got %s and %s",
                        mt__type_title((mt_dtype)self->dtype), mt__type_title((mt_dtype)b->dtype));
    }
    if (a->dtype != b->dtype) {
        return mtb_fail(MT_ERUNTIME, "mat1 and mat2 must have the same dtype, but got %s and %s",
                        mt__type_title((mt_dtype)a->dtype), mt__type_title((mt_dtype)b->dtype));
    }
    return check_type("addmm_impl_cpu_", a);
}

int mt__run_addmm(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *a = call->args[1].of.tensor;
    mt_tensor *b = call->args[2].of.tensor;
    MT_TRY(check_addmm(self, a, b));
    return multiply(call, self, a, b);
}

/* ---- bmm, baddbmm ---------------------------------------------------------------------------- */

static int check_batches(mt_tensor *a, mt_tensor *b)
{
    if (a->n_dims != 3 || b->n_dims != 3) {
        return mtb_fail(MT_ERUNTIME, "%s must be a 3D tensor",
                        a->n_dims != 3 ? "batch1" : "batch2");
    }
    if (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1]) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected size for first two dimensions of batch2 tensor to be: [%lld, "
                        "%lld] but got: [%lld, %lld].",
                        (long long)a->sizes[0], (long long)a->sizes[2], (long long)b->sizes[0],
                        (long long)b->sizes[1]);
    }
    return MT_OK;
}

static int check_batch_types(const char *kernel, mt_tensor *a, mt_tensor *b)
{
    if (a->dtype != b->dtype) {
        return mtb_fail(MT_ERUNTIME, "expected scalar type %s but found %s",
                        mt__type_title((mt_dtype)a->dtype), mt__type_title((mt_dtype)b->dtype));
    }
    return check_type(kernel, a);
}

int mt__run_bmm(mt__call *call)
{
    mt_tensor *a = call->args[0].of.tensor;
    mt_tensor *b = call->args[1].of.tensor;
    MT_TRY(check_batches(a, b));
    MT_TRY(check_batch_types("bmm", a, b));
    return multiply(call, NULL, a, b);
}

int mt__run_baddbmm(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *a = call->args[1].of.tensor;
    mt_tensor *b = call->args[2].of.tensor;
    MT_TRY(check_batches(a, b));
    if (self->dtype != a->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                        mt__type_in_c((mt_dtype)self->dtype), mt__type_in_c((mt_dtype)a->dtype),
                        mt__type_in_c((mt_dtype)b->dtype));
    }
    MT_TRY(check_batch_types("baddbmm", a, b));
    return multiply(call, self, a, b);
}

/* ---- vectors --------------------------------------------------------------------------------- */

int mt__run_mv(mt__call *call)
{
    mt_tensor *a = call->args[0].of.tensor;
    mt_tensor *v = call->args[1].of.tensor;
    if (a->n_dims != 2 || v->n_dims != 1) {
        return mtb_fail(MT_ERUNTIME, "vector + matrix @ vector expected, got 1, %u, %u",
                        (unsigned)a->n_dims, (unsigned)v->n_dims);
    }
    if (a->sizes[1] != v->sizes[0]) {
        return mtb_fail(MT_ERUNTIME, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                        (long long)a->sizes[0], (long long)a->sizes[0], (long long)a->sizes[1],
                        (long long)v->sizes[0]);
    }
    if (a->dtype != v->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "addmv input tensors must have the same dtype, but got %s, %s, and %s",
                        mt__type_title((mt_dtype)v->dtype), mt__type_title((mt_dtype)a->dtype),
                        mt__type_title((mt_dtype)v->dtype));
    }
    MT_TRY(check_type("addmv_impl_cpu", a));
    mt__shape shape = {.n_dims = 1, .sizes = {a->sizes[0]}};
    mt_tensor *out;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)a->dtype, &shape, &out));
    batch_view views[3] = {column(out), batched(a), column(v)};
    return launch_gemm(call, &views[0], &views[1], &views[2], plain_product);
}

int mt__run_dot(mt__call *call)
{
    mt_tensor *a = call->args[0].of.tensor;
    mt_tensor *b = call->args[1].of.tensor;
    if (a->n_dims != 1 || b->n_dims != 1) {
        return mtb_fail(MT_ERUNTIME, "1D tensors expected, but got %uD and %uD tensors",
                        (unsigned)a->n_dims, (unsigned)b->n_dims);
    }
    if (a->dtype != b->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "dot : expected both vectors to have same dtype, but found %s and %s",
                        mt__type_title((mt_dtype)a->dtype), mt__type_title((mt_dtype)b->dtype));
    }
    if (a->sizes[0] != b->sizes[0]) {
        return mtb_fail(MT_ERUNTIME,
                        "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have "
                        "the same number of elements, but got %lld and %lld elements respectively",
                        (long long)a->sizes[0], (long long)b->sizes[0], (long long)a->sizes[0],
                        (long long)b->sizes[0]);
    }
    MT_TRY(check_type("dot", a));
    mt__shape shape = {.n_dims = 0};
    mt_tensor *out;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)a->dtype, &shape, &out));
    batch_view views[3] = {batched(out), batched(a), column(b)};
    return launch_gemm(call, &views[0], &views[1], &views[2], plain_product);
}
