/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels NLL_LOSS and NLL_LOSS_BACKWARD: the negative logarithm of each row's target class.
 * Rows whose target is ignore_index are skipped; any other target that is not a class is MT_EINDEX.
 * Sums are computed in double.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"

#include <math.h>
#include <string.h>

enum {
    GRAIN = 256 * 1024 /* elements to clear */
};

/* Data of both directions. */
typedef struct nll_rows {
    int64_t rows, classes, ignore;
    int64_t reduction;
    const mt_array *target;
    const mt_array *weight; /* may be absent */
} nll_rows;

static double load(const mt_array *array, int64_t offset)
{
    return array->dtype == MT_DTYPE_F32 ? (double)((const float *)array->data)[offset]
                                        : ((const double *)array->data)[offset];
}

static void store(const mt_array *array, int64_t offset, double value)
{
    if (array->dtype == MT_DTYPE_F32) {
        ((float *)array->data)[offset] = (float)value;
    } else {
        ((double *)array->data)[offset] = value;
    }
}

static int begin(nll_rows *nll, const char *name, const mt_kernel_call *call, uint32_t in)
{
    const mt_array *array = &call->tensors[in];
    if (array->dtype != MT_DTYPE_F32 && array->dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ENOTSUP, "%s: not implemented for %s", name,
                        mt_dtype_name((mt_dtype)array->dtype));
    }
    nll->rows = array->sizes[0];
    nll->classes = array->sizes[1];
    nll->target = &call->tensors[in + 1];
    nll->weight = &call->tensors[in + 2];
    nll->reduction = call->ints[0];
    nll->ignore = call->ints[1];
    return MT_OK;
}

/* The row's class, -1 where it is ignored. */
static int class_of(const nll_rows *nll, int64_t row, int64_t *class_index)
{
    int64_t target = ((const int64_t *)nll->target->data)[row * nll->target->strides[0]];
    if (target == nll->ignore) {
        *class_index = -1;
        return MT_OK;
    }
    if (target < 0 || target >= nll->classes) {
        return mtb_fail(MT_EINDEX, "Target %lld is out of bounds.", (long long)target);
    }
    *class_index = target;
    return MT_OK;
}

static double weight_of(const nll_rows *nll, int64_t class_index)
{
    return nll->weight->n_dims < 0 ? 1 : load(nll->weight, class_index * nll->weight->strides[0]);
}

MT_HOST_KERNEL_WIDENED(NLL_LOSS, 0x3, 0)
{
    const mt_array *out = &call->tensors[0];
    const mt_array *in = &call->tensors[2];
    nll_rows nll = {0};
    MT_TRY(begin(&nll, "nll_loss", call, 2));
    double loss = 0, total = 0;
    for (int64_t row = 0; row < nll.rows; row++) {
        int64_t class_index = -1;
        MT_TRY(class_of(&nll, row, &class_index));
        double weight = class_index < 0 ? 0 : weight_of(&nll, class_index);
        double one = 0;
        if (class_index >= 0) {
            one = -weight * load(in, row * in->strides[0] + class_index * in->strides[1]);
        }
        if (nll.reduction == MT_REDUCTION_NONE) {
            store(out, row * out->strides[0], one);
        } else {
            loss += one;
            total += weight;
        }
    }
    if (nll.reduction != MT_REDUCTION_NONE) {
        store(out, 0, nll.reduction == MT_REDUCTION_MEAN ? loss / total : loss);
    }
    store(&call->tensors[1], 0, total);
    return MT_OK;
}

static void clear_rows(void *context, int64_t first, int64_t end)
{
    const mt_array *array = context;
    size_t bytes = (size_t)mt__element_bytes(array->dtype);
    for (int64_t i = first; i < end; i++) {
        if (array->strides[1] == 1) {
            memset((char *)array->data + (size_t)(i * array->strides[0]) * bytes, 0,
                   (size_t)array->sizes[1] * bytes);
            continue;
        }
        for (int64_t j = 0; j < array->sizes[1]; j++) {
            store(array, i * array->strides[0] + j * array->strides[1], 0);
        }
    }
}

static void clear(const mt_array *array)
{
    mt_array all = *array;
    int64_t numel = array->sizes[0] * array->sizes[1];
    if (array->strides[1] == 1 && array->strides[0] == array->sizes[1] && numel <= GRAIN) {
        if (numel > 0) {
            memset(array->data, 0, (size_t)(numel * mt__element_bytes(array->dtype)));
        }
    } else {
        mt__parallel_for(array->sizes[0], 1 + GRAIN / (array->sizes[1] + 1), clear_rows, &all);
    }
}

MT_HOST_KERNEL_WIDENED(NLL_LOSS_BACKWARD, 0x1, 0)
{
    const mt_array *to = &call->tensors[0];
    const mt_array *grad = &call->tensors[1];
    nll_rows nll = {0};
    MT_TRY(begin(&nll, "nll_loss_backward", call, 2));
    clear(to);
    double scale = 1;
    if (nll.reduction == MT_REDUCTION_MEAN) {
        scale = 1 / load(&call->tensors[5], 0);
    }
    for (int64_t row = 0; row < nll.rows; row++) {
        int64_t class_index = -1;
        MT_TRY(class_of(&nll, row, &class_index));
        if (class_index >= 0) {
            int64_t at = nll.reduction == MT_REDUCTION_NONE ? row * grad->strides[0] : 0;
            store(to, row * to->strides[0] + class_index * to->strides[1],
                  -weight_of(&nll, class_index) * load(grad, at) * scale);
        }
    }
    return MT_OK;
}
