/* SPDX-License-Identifier: Apache-2.0
 *
 * The common norm of gradients, and scaling them down to a largest one. Everything stays on the
 * device; only asking for the number waits for it.
 */
#include "base/alloc.h"
#include "base/fail.h"

#include <mindtorch/autograd.h>
#include <mindtorch/ops.h>
#include <mindtorch/optim.h>
#include <mindtorch/tensor.h>

/* Norms of all gradients that exist, one 0-d tensor each. */
static int take_norms(mt_tensor *const *parameters, size_t count, double norm_type,
                      mt_tensor **norms, size_t *n_norms)
{
    for (size_t i = 0; i < count; i++) {
        mt_tensor *grad = parameters[i] == NULL ? NULL : mt_tensor_grad(parameters[i]);
        if (grad != NULL) {
            MT_TRY(
                mt_linalg_vector_norm(grad, mt_real(norm_type), NULL, 0, false, &norms[*n_norms]));
            (*n_norms)++;
        }
    }
    return MT_OK;
}

/* min(max_norm / (total + 1e-6), 1) */
static int find_factor(mt_tensor *total, double max_norm, mt_tensor **factor)
{
    mt_tensor *raised = NULL;
    mt_tensor *inverse = NULL;
    mt_tensor *scaled = NULL;
    int status = mt_add_scalar(total, mt_real(1e-6), &raised);
    if (status == MT_OK) {
        status = mt_reciprocal(raised, &inverse);
    }
    if (status == MT_OK) {
        status = mt_mul_scalar(inverse, mt_real(max_norm), &scaled);
    }
    if (status == MT_OK) {
        status = mt_clamp_max(scaled, mt_real(1.0), factor);
    }
    mt_tensor_release(raised);
    mt_tensor_release(inverse);
    mt_tensor_release(scaled);
    return status;
}

/* As torch: all gradients are multiplied, by 1 where the norm is small enough. */
static int scale_all(mt_tensor *const *parameters, size_t count, mt_tensor *total, double max_norm)
{
    mt_tensor *factor = NULL;
    int status = find_factor(total, max_norm, &factor);
    for (size_t i = 0; status == MT_OK && i < count; i++) {
        mt_tensor *grad = parameters[i] == NULL ? NULL : mt_tensor_grad(parameters[i]);
        if (grad != NULL) {
            status = mt_mul_(grad, factor);
        }
    }
    mt_tensor_release(factor);
    return status;
}

static int clip(mt_tensor *const *parameters, size_t count, double max_norm, double norm_type,
                mt_tensor **norms, double *total_norm)
{
    size_t n_norms = 0;
    mt_tensor *together = NULL;
    mt_tensor *total = NULL;
    int status = take_norms(parameters, count, norm_type, norms, &n_norms);
    if (status == MT_OK && n_norms > 0) {
        status = mt_stack(norms, n_norms, 0, &together);
        if (status == MT_OK) {
            status = mt_linalg_vector_norm(together, mt_real(norm_type), NULL, 0, false, &total);
        }
        if (status == MT_OK) {
            status = scale_all(parameters, count, total, max_norm);
        }
        mt_scalar value = mt_real(0.0);
        if (status == MT_OK && total_norm != NULL) {
            status = mt_item(total, &value);
            *total_norm = value.kind == MT_KIND_REAL ? value.of.real : 0.0;
        }
    }
    mt_tensor_release(together);
    mt_tensor_release(total);
    for (size_t i = 0; i < n_norms; i++) {
        mt_tensor_release(norms[i]);
    }
    return status;
}

mt_status mt_clip_grad_norm(mt_tensor *const *parameters, size_t count, double max_norm,
                            double norm_type, double *total_norm)
{
    if (total_norm != NULL) {
        *total_norm = 0.0;
    }
    if (count == 0) {
        return MT_OK;
    }
    if (parameters == NULL) {
        return mtb_fail(MT_EVALUE, "mt_clip_grad_norm(): parameters are NULL");
    }
    mt_tensor **norms = mtb_calloc(count, sizeof(mt_tensor *));
    if (norms == NULL) {
        return mtb_fail(MT_ENOMEM, "mt_clip_grad_norm(): no memory for %zu norms", count);
    }
    bool was = mt_set_grad_enabled(false);
    int status = clip(parameters, count, max_norm, norm_type, norms, total_norm);
    mt_set_grad_enabled(was);
    mtb_free(norms);
    return status;
}
