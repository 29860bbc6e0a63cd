/* SPDX-License-Identifier: Apache-2.0
 *
 * Random draws with probabilities given by a tensor, composed of other ops. The checks of the
 * probabilities read them on the host, so these ops wait for the device.
 *
 * An exponential draw e divides each weight w: the largest w / e is index i with probability
 * w[i] / sum(w), and the k largest are k draws without replacement.
 */
#include "base/fail.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <float.h>

enum {
    SAMPLE_BLOCK = 1 << 22 /* elements of weights worked on at once, when samples repeat */
};

/* Whether all elements of a bool tensor are true; waits. */
static int is_all_true(mt__call *call, mt_tensor *truth, bool *all)
{
    mt_scalar value;
    mt_tensor **reduced = mt__temp(call);
    *all = true;
    if (call->device == MT_META) {
        return MT_OK; /* no elements to check */
    }
    MT_TRY(mt_all(truth, NULL, 0, false, reduced));
    MT_TRY(mt_item(*reduced, &value));
    *all = value.of.integer != 0;
    return MT_OK;
}

/* Whether lower <= self <= upper everywhere: not for NaN. */
static int is_within(mt__call *call, mt_tensor *self, double lower, double upper, bool *within)
{
    mt_tensor **above = mt__temp(call);
    mt_tensor **below = mt__temp(call);
    mt_tensor **both = mt__temp(call);
    MT_TRY(mt_ge_scalar(self, mt_real(lower), above));
    MT_TRY(mt_le_scalar(self, mt_real(upper), below));
    MT_TRY(mt_logical_and(*above, *below, both));
    return is_all_true(call, *both, within);
}

int mt__run_bernoulli(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    bool valid = false;
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mt__refuse_type("bernoulli_tensor_cpu_p_", dtype);
    }
    MT_TRY(is_within(call, self, 0, 1, &valid));
    if (!valid) {
        return mtb_fail(MT_ERUNTIME, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
    }
    mt_tensor **draws = mt__temp(call);
    mt_tensor **hits = mt__temp(call);
    MT_TRY(
        mt_rand_like_with(self, mt__arg_generator(call, 1), MT_DTYPE_NONE, MT_DEVICE_NONE, draws));
    MT_TRY(mt_lt(*draws, self, hits));
    return mt__to_copy_with(*hits, dtype, MT_DEVICE_NONE, false, mt__result_place(call, 0));
}

/* ---- multinomial ----------------------------------------------------------------------------- */

static int check_weights(mt__call *call, mt_tensor *self, int64_t samples, bool replacement)
{
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (self->n_dims != 1 && self->n_dims != 2) {
        return mtb_fail(MT_ERUNTIME, "prob_dist must be 1 or 2 dim");
    }
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "multinomial only supports floating-point dtypes for input, got: %s",
                        mt__type_title(dtype));
    }
    if (samples <= 0) {
        return mtb_fail(MT_ERUNTIME, "cannot sample n_sample <= 0 samples");
    }
    int64_t width = self->sizes[self->n_dims - 1];
    if (!replacement && samples > width) {
        return mtb_fail(MT_ERUNTIME, "cannot sample n_sample > prob_dist.size(-1) samples without "
                                     "replacement");
    }
    if (width == 0 || width > (1 << 24)) {
        return mtb_fail(MT_ERUNTIME, "number of categories cannot exceed 2^24, or be 0");
    }
    bool valid = false;
    MT_TRY(is_within(call, self, 0, mt__type_largest(dtype), &valid));
    if (!valid) {
        return mtb_fail(MT_ERUNTIME,
                        "probability tensor contains either `inf`, `nan` or element < 0");
    }
    static const int64_t last = -1;
    mt_tensor **sums = mt__temp(call);
    mt_tensor **positive = mt__temp(call);
    MT_TRY(mt_sum(self, &last, 1, false, sums));
    MT_TRY(mt_gt_scalar(*sums, mt_int(0), positive));
    MT_TRY(is_all_true(call, *positive, &valid));
    if (!valid) {
        return mtb_fail(MT_ERUNTIME,
                        "invalid multinomial distribution (sum of probabilities <= 0)");
    }
    return MT_OK;
}

/* weights / exponential draws, `copies` times along a new dimension before the last (0: as it is).
 */
static int race(mt_tensor *weights, int64_t copies, mt_generator *generator, mt_tensor **times)
{
    mt_tensor *places[2] = {NULL, NULL};
    mt_tensor *wide = weights;
    int status = MT_OK;
    if (copies > 0) {
        int64_t sizes[3] = {weights->sizes[0], copies, weights->sizes[weights->n_dims - 1]};
        bool flat = weights->n_dims == 1;
        status = mt_unsqueeze(weights, -2, &places[0]);
        if (status == MT_OK) {
            status = mt_expand(places[0], flat ? &sizes[1] : sizes, flat ? 2 : 3, &places[1]);
        }
        wide = places[1];
    }
    if (status == MT_OK) {
        status = mt_empty_like(wide, times);
    }
    if (status == MT_OK) {
        status = mt_exponential_with_(*times, 1.0, generator);
    }
    /* The other way round, in place: the smallest e / w wins. e is held above 0: no 0 / 0. */
    if (status == MT_OK) {
        const mt_scalar tiny = mt_real(0x1p-126);
        status = mt_clamp_(*times, &tiny, NULL);
    }
    if (status == MT_OK) {
        status = mt_div_(*times, wide);
    }
    mt_tensor_release(places[0]);
    mt_tensor_release(places[1]);
    return status;
}

static int with_replacement(mt__call *call, mt_tensor *self, int64_t samples)
{
    int64_t block = SAMPLE_BLOCK / self->numel;
    block = block < 1 ? 1 : block > samples ? samples : block;
    mt__shape shape = mt__tensor_shape(self);
    shape.sizes[shape.n_dims - 1] = samples;
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, MT_DTYPE_I64, &shape, &out));
    static const int64_t last = -1;
    int status = MT_OK;
    for (int64_t at = 0; at < samples && status == MT_OK; at += block) {
        int64_t n = samples - at < block ? samples - at : block;
        mt_tensor *times = NULL;
        mt_tensor *picked = NULL;
        mt_tensor *part = NULL;
        status = race(self, n, mt__arg_generator(call, 3), &times);
        status = status == MT_OK ? mt_argmin(times, &last, false, &picked) : status;
        status = status == MT_OK ? mt_narrow(out, -1, at, n, &part) : status;
        status = status == MT_OK ? mt__copy_elements(part, picked) : status;
        mt_tensor_release(times);
        mt_tensor_release(picked);
        mt_tensor_release(part);
    }
    return status;
}

int mt__run_multinomial(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    int64_t samples = mt__arg_int(call, 1);
    bool replacement = mt__arg_bool(call, 2);
    MT_TRY(check_weights(call, self, samples, replacement));
    if (self->numel == 0) {
        mt__shape shape = mt__tensor_shape(self);
        shape.sizes[shape.n_dims - 1] = samples;
        mt_tensor *out = NULL;
        return mt__result_new(call, 0, MT_DTYPE_I64, &shape, &out);
    }
    if (replacement && samples > 1) {
        return with_replacement(call, self, samples);
    }
    mt_tensor **times = mt__temp(call);
    mt_tensor **values = mt__temp(call);
    MT_TRY(race(self, 0, mt__arg_generator(call, 3), times));
    return mt_topk(*times, samples, -1, false, true, values, mt__result_place(call, 0));
}
