/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows: weights of the points of a stretch of a signal. A periodic one is one point longer and
 * loses the last, so that its repetitions fit together.
 */
#include "base/fail.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <math.h>

/* The window while it is made; its points are all that it has. */
typedef struct window {
    int64_t length;          /* that was asked for */
    double last;             /* the number of the last point */
    mt_dtype dtype, compute; /* compute: float32 for the half types */
    mt_tensor *ramp;         /* 0, 1, ... */
} window;

/* The dtype is argument `at`. *done: the result is there, as for lengths of 0 and 1. */
static int begin(mt__call *call, uint32_t at, window *w, bool *done)
{
    const char *name = mt__op_name(call);
    w->length = mt__arg_int(call, 0);
    w->dtype = mt__arg_dtype(call, at);
    w->dtype = w->dtype == MT_DTYPE_NONE ? mt_default_dtype() : w->dtype;
    if (mt_dtype_category(w->dtype) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME, "%s expects floating point dtypes, got: %s", name,
                        mt__type_in_c(w->dtype));
    }
    if (w->length < 0) {
        return mtb_fail(MT_ERUNTIME,
                        "%s requires non-negative window_length, got window_length=%" PRId64, name,
                        w->length);
    }
    bool half = w->dtype == MT_DTYPE_F16 || w->dtype == MT_DTYPE_BF16;
    w->compute = half ? MT_DTYPE_F32 : w->dtype;
    *done = w->length < 2;
    if (*done) {
        return mt_full_with(&w->length, 1, mt_int(1), w->dtype, call->device,
                            mt__result_place(call, 0));
    }
    int64_t points = w->length + mt__arg_bool(call, 1);
    mt_tensor **ramp = mt__temp(call);
    w->last = (double)(points - 1);
    MT_TRY(mt_arange_with(mt_int(0), mt_int(points), mt_int(1), w->compute, call->device, ramp));
    w->ramp = *ramp;
    return MT_OK;
}

/* The points that were asked for. */
static int end(mt__call *call, const window *w, mt_tensor *all)
{
    mt_tensor **kept = mt__temp(call);
    if (all->sizes[0] != w->length) {
        MT_TRY(mt_narrow(all, 0, 0, w->length, kept));
        all = *kept;
    }
    if (w->compute != w->dtype) {
        return mt_to_with(all, w->dtype, call->device, false, false, mt__result_place(call, 0));
    }
    mt__result_same(call, 0, all);
    return MT_OK;
}

/* alpha - beta cos(2 pi i / last) */
static int run_cosine(mt__call *call, uint32_t dtype_at, double alpha, double beta)
{
    window w;
    bool done;
    MT_TRY(begin(call, dtype_at, &w, &done));
    if (done) {
        return MT_OK;
    }
    MT_TRY(mt_mul_scalar_(w.ramp, mt_real(2 * M_PI / w.last)));
    MT_TRY(mt_cos_(w.ramp));
    MT_TRY(mt_mul_scalar_(w.ramp, mt_real(-beta)));
    MT_TRY(mt_add_scalar_(w.ramp, mt_real(alpha)));
    return end(call, &w, w.ramp);
}

MT_RUN(hann_window, run_cosine, 2, 0.5, 0.5)

int mt__run_hamming_window(mt__call *call)
{
    return run_cosine(call, 4, mt__arg_real(call, 2), mt__arg_real(call, 3));
}

/* 0.42 - 0.5 cos(2 pi i / last) + 0.08 cos(4 pi i / last) */
int mt__run_blackman_window(mt__call *call)
{
    window w;
    bool done;
    MT_TRY(begin(call, 2, &w, &done));
    if (done) {
        return MT_OK;
    }
    mt_tensor **fast = mt__temp(call);
    mt_tensor **slow = mt__temp(call);
    mt_tensor **both = mt__temp(call);
    mt_tensor **all = mt__temp(call);
    MT_TRY(mt_mul_scalar_(w.ramp, mt_real(M_PI / w.last)));
    MT_TRY(mt_mul_scalar(w.ramp, mt_int(4), fast));
    MT_TRY(mt_cos_(*fast));
    MT_TRY(mt_mul_scalar_(*fast, mt_real(0.08)));
    MT_TRY(mt_mul_scalar(w.ramp, mt_int(2), slow));
    MT_TRY(mt_cos_(*slow));
    MT_TRY(mt_mul_scalar_(*slow, mt_real(0.5)));
    MT_TRY(mt_sub(*fast, *slow, both));
    MT_TRY(mt_add_scalar(*both, mt_real(0.42), all));
    return end(call, &w, *all);
}

/* Up to 1 in the middle, and down again. */
int mt__run_bartlett_window(mt__call *call)
{
    window w;
    bool done;
    MT_TRY(begin(call, 2, &w, &done));
    if (done) {
        return MT_OK;
    }
    int64_t up = ((int64_t)w.last >> 1) + 1;
    mt_tensor **down = mt__temp(call);
    MT_TRY(mt_mul_scalar_(w.ramp, mt_real(2 / w.last)));
    MT_TRY(mt_narrow(w.ramp, 0, up, w.ramp->sizes[0] - up, down));
    MT_TRY(mt_mul_scalar_(*down, mt_int(-1)));
    MT_TRY(mt_add_scalar_(*down, mt_int(2)));
    return end(call, &w, w.ramp);
}

/* i0(beta sqrt(1 - (2 i / last - 1)^2)) / i0(beta) */
int mt__run_kaiser_window(mt__call *call)
{
    window w;
    bool done;
    double beta = mt__arg_real(call, 2);
    MT_TRY(begin(call, 3, &w, &done));
    if (done) {
        return MT_OK;
    }
    mt_tensor **whole = mt__temp(call);
    MT_TRY(mt_sub_scalar_(w.ramp, mt_real(w.last / 2)));
    MT_TRY(mt_div_scalar_(w.ramp, mt_real(w.last / 2)));
    MT_TRY(mt_pow_scalar_(w.ramp, mt_int(2)));
    MT_TRY(mt_neg_(w.ramp));
    MT_TRY(mt_add_scalar_(w.ramp, mt_int(1)));
    MT_TRY(mt_sqrt_(w.ramp));
    MT_TRY(mt_mul_scalar_(w.ramp, mt_real(beta)));
    MT_TRY(mt_i0_(w.ramp));
    MT_TRY(mt_full_with(NULL, 0, mt_real(beta), w.compute, call->device, whole));
    MT_TRY(mt_i0_(*whole));
    MT_TRY(mt_div_(w.ramp, *whole));
    return end(call, &w, w.ramp);
}
