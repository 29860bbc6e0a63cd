/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms of the short stretches (frames) of a signal, and back.
 *
 *     stft    signal ─► frames of n_fft points, hop_length apart ─► times the window ─► transforms
 *     istft   transforms ─► frames ─► times the window ─► added up where they were, divided by the
 *             sum of the squared windows
 */
#include "base/fail.h"
#include "mindtorch/ops/complex/complex_parts.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    TEXT = 1024, /* shapes have at most MT_SHAPE_TEXT characters */
    BY_ROOT = 1, /* `normalization` of ops_signal.def */
    BY_COUNT = 2
};

/* Arguments that both have, 0 to 4. */
typedef struct frames {
    mt_tensor *signal;          /* of istft: the transforms */
    mt_tensor *window;          /* NULL: none */
    int64_t n_fft, hop, length; /* length: of the window */
} frames;

static frames read_frames(const mt__call *call)
{
    int64_t n_fft = mt__arg_int(call, 1);
    return (frames){.signal = call->args[0].of.tensor,
                    .window = mt__arg_tensor(call, 4),
                    .n_fft = n_fft,
                    .hop = mt__arg_given(call, 2) ? mt__arg_int(call, 2) : n_fft / 4,
                    .length = mt__arg_given(call, 3) ? mt__arg_int(call, 3) : n_fft};
}

/* "None", "0", "16": an argument that may be absent. */
static const char *optional_text(const mt__call *call, uint32_t i, char text[24])
{
    snprintf(text, 24, "%" PRId64, mt__arg_int(call, i));
    return mt__arg_given(call, i) ? text : "None";
}

/* How torch's messages begin: the call with its arguments. */
static const char *describe(const mt__call *call, const frames *f, char text[TEXT])
{
    static const char *const names[2][5] = {
        {"normalized", "onesided", "return_complex", "align_to_window", NULL},
        {"center", "normalized", "onesided", "length", "return_complex"}};
    char shape[MT_SHAPE_TEXT];
    char number[24];
    bool back = call->row->n_params > 9;
    const char *type = mt__type_title((mt_dtype)f->signal->dtype);
    int at = snprintf(
        text, TEXT,
        "%s(%s%s%s%s, n_fft=%" PRId64 ", hop_length=%" PRId64 ", win_length=%" PRId64 ", window=",
        mt__op_name(call), back ? "CPU" : "torch.", type, back ? "Type" : "Tensor",
        mt__shape_text(f->signal->sizes, f->signal->n_dims, shape), f->n_fft, f->hop, f->length);
    if (f->window == NULL) {
        at += snprintf(text + at, TEXT - (size_t)at, "None");
    } else {
        at += snprintf(text + at, TEXT - (size_t)at, "torch.%sTensor{%s}",
                       mt__type_title((mt_dtype)f->window->dtype),
                       mt__shape_text(f->window->sizes, f->window->n_dims, shape));
    }
    for (uint32_t i = 0; i < 5 && names[back][i] != NULL; i++) {
        at += snprintf(text + at, TEXT - (size_t)at, ", %s=%s", names[back][i],
                       optional_text(call, 5 + i, number));
    }
    (void)snprintf(text + at, TEXT - (size_t)at, ")");
    return text;
}

static bool has_complex_window(const frames *f)
{
    return f->window != NULL && mt__is_complex(f->window);
}

/* The window with n_fft points: zeros are added on both sides. *out NULL: all are 1. */
static int fit_window(mt__call *call, const frames *f, mt_dtype dtype, mt_tensor **out)
{
    *out = f->window;
    if (f->length == f->n_fft) {
        return MT_OK;
    }
    mt_tensor **all = mt__temp(call);
    mt_tensor **inner = mt__temp(call);
    dtype = f->window != NULL ? (mt_dtype)f->window->dtype : dtype;
    MT_TRY(mt_zeros_with(&f->n_fft, 1, dtype, call->device, all));
    MT_TRY(mt_narrow(*all, 0, (f->n_fft - f->length) / 2, f->length, inner));
    if (f->window != NULL) {
        MT_TRY(mt_copy_(*inner, f->window, false));
    } else {
        MT_TRY(mt_fill_scalar_(*inner, mt_int(1)));
    }
    *out = *all;
    return MT_OK;
}

/* ---- stft ------------------------------------------------------------------------------------ */

static int check_signal(const mt__call *call, const frames *f)
{
    char text[TEXT];
    char shape[MT_SHAPE_TEXT];
    mt_category category = mt__tensor_category(f->signal);
    if (category != MT_CATEGORY_REAL && category != MT_CATEGORY_COMPLEX) {
        return mtb_fail(MT_ERUNTIME, "%s : expected a tensor of floating point or complex values",
                        describe(call, f, text));
    }
    if (f->signal->n_dims < 1 || f->signal->n_dims > 2) {
        return mtb_fail(MT_ERUNTIME, "%s : expected a 1D or 2D tensor", describe(call, f, text));
    }
    int64_t points = f->signal->sizes[f->signal->n_dims - 1];
    if (f->n_fft <= 0 || f->n_fft > points) {
        return mtb_fail(MT_ERUNTIME,
                        "%s : expected 0 < n_fft < %" PRId64 ", but got n_fft=%" PRId64,
                        describe(call, f, text), points, f->n_fft);
    }
    if (f->hop <= 0) {
        return mtb_fail(MT_ERUNTIME, "%s : expected hop_length > 0, but got hop_length=%" PRId64,
                        describe(call, f, text), f->hop);
    }
    if (f->length <= 0 || f->length > f->n_fft) {
        return mtb_fail(MT_ERUNTIME,
                        "%s : expected 0 < win_length <= n_fft, but got win_length=%" PRId64,
                        describe(call, f, text), f->length);
    }
    if (f->window != NULL && (f->window->n_dims != 1 || f->window->sizes[0] != f->length)) {
        return mtb_fail(MT_ERUNTIME,
                        "%s : expected a 1D window tensor of size equal to win_length=%" PRId64
                        ", but got window with size %s",
                        describe(call, f, text), f->length,
                        mt__shape_text(f->window->sizes, f->window->n_dims, shape));
    }
    return MT_OK;
}

/* A row for each signal; with align_to_window the first and the last window begin and end with the
 * signal, not the transforms' points around them. */
static int as_rows(mt__call *call, frames *f, bool aligned)
{
    if (f->signal->n_dims == 1) {
        mt_tensor **rows = mt__temp(call);
        MT_TRY(mt_unsqueeze(f->signal, 0, rows));
        f->signal = *rows;
    }
    if (aligned && f->length < f->n_fft) {
        mt_tensor **wider = mt__temp(call);
        const int64_t around = (f->n_fft - f->length) / 2;
        const int64_t sides[2] = {around, around};
        MT_TRY(mt_constant_pad_nd(f->signal, sides, 2, mt_int(0), wider));
        f->signal = *wider;
    }
    return MT_OK;
}

/* Frames times the window, as complex numbers where one of them is. */
static int cut(mt__call *call, const frames *f, mt_tensor *window, mt_tensor **out)
{
    const int64_t *strides = f->signal->strides;
    const int64_t count = 1 + (f->signal->sizes[1] - f->n_fft) / f->hop;
    const int64_t sizes[3] = {f->signal->sizes[0], count, f->n_fft};
    const int64_t steps[3] = {strides[0], f->hop * strides[1], strides[1]};
    mt_tensor **parts = mt__temp(call);
    MT_TRY(mt_as_strided(f->signal, sizes, 3, steps, 3, NULL, parts));
    *out = *parts;
    if (window == NULL) {
        return MT_OK;
    }
    mt_tensor **weighted = mt__temp(call);
    MT_TRY(mt_mul(*parts, window, weighted));
    *out = *weighted;
    return MT_OK;
}

int mt__run_stft(mt__call *call)
{
    frames f = read_frames(call);
    bool is_complex = mt__is_complex(f.signal) || has_complex_window(&f);
    bool one_sided = mt__arg_given(call, 6) ? mt__arg_bool(call, 6) : !is_complex;
    if (!is_complex && !mt__arg_given(call, 7)) {
        return mtb_fail(MT_ERUNTIME,
                        "stft requires the return_complex parameter be given for real "
                        "inputs, and will further require that return_complex=True in a "
                        "future PyTorch release.");
    }
    bool return_complex = is_complex && !mt__arg_given(call, 7) ? true : mt__arg_bool(call, 7);
    MT_TRY(check_signal(call, &f));
    if (is_complex && one_sided) {
        return mtb_fail(MT_ERUNTIME, "Cannot have onesided output if window or input is complex");
    }
    bool one = f.signal->n_dims == 1;
    mt_tensor *window = NULL;
    mt_tensor *parts = NULL;
    MT_TRY(as_rows(call, &f, mt__arg_given(call, 8) && mt__arg_bool(call, 8)));
    MT_TRY(fit_window(call, &f, mt__part_type((mt_dtype)f.signal->dtype), &window));
    MT_TRY(cut(call, &f, window, &parts));
    const int64_t last = 2;
    const int64_t scaled = mt__arg_bool(call, 5) ? BY_ROOT : 0;
    mt_tensor **spectra = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    mt_tensor **single = mt__temp(call);
    if (mt__is_complex(parts)) {
        MT_TRY(mt__fft_c2c(parts, &last, 1, scaled, true, spectra));
    } else {
        MT_TRY(mt__fft_r2c(parts, &last, 1, scaled, one_sided, spectra));
    }
    MT_TRY(
        mt_transpose(*spectra, 1, 2, return_complex && !one ? mt__result_place(call, 0) : turned));
    if (one) {
        MT_TRY(mt_squeeze_dim(*turned, 0, return_complex ? mt__result_place(call, 0) : single));
        turned = single;
    }
    return return_complex ? MT_OK : mt_view_as_real(*turned, mt__result_place(call, 0));
}

/* ---- istft ----------------------------------------------------------------------------------- */

static int check_spectra(const mt__call *call, const frames *f, bool one_sided)
{
    char text[TEXT];
    const mt_tensor *self = f->signal;
    if (!mt__is_complex(self)) {
        return mtb_fail(MT_ERUNTIME, "istft requires a complex-valued input tensor matching the "
                                     "output from stft with return_complex=True.");
    }
    if (self->numel == 0) {
        return mtb_fail(MT_ERUNTIME, "%s : input tensor cannot be empty.", describe(call, f, text));
    }
    if (self->n_dims != 2 && self->n_dims != 3) {
        return mtb_fail(MT_ERUNTIME, "%s : expected a tensor with 3 or 4 dimensions, but got %u",
                        describe(call, f, text), self->n_dims + 1U);
    }
    int64_t points = self->sizes[self->n_dims - 2];
    if (one_sided ? points != f->n_fft / 2 + 1 : points != f->n_fft) {
        return mtb_fail(
            MT_ERUNTIME,
            "%s : expected the frequency dimension (3rd to the last) of the input tensor "
            "to match %s when onesided=%s, but got %" PRId64,
            describe(call, f, text), one_sided ? "n_fft / 2 + 1" : "n_fft",
            one_sided ? "True" : "False", points);
    }
    if (f->hop <= 0 || f->hop > f->length) {
        return mtb_fail(MT_ERUNTIME, "%s : expected 0 < hop_length <= win_length",
                        describe(call, f, text));
    }
    if (f->length <= 0 || f->length > f->n_fft) {
        return mtb_fail(MT_ERUNTIME, "%s : expected 0 < win_length <= n_fft",
                        describe(call, f, text));
    }
    if (f->window != NULL && (f->window->n_dims != 1 || f->window->sizes[0] != f->length)) {
        return mtb_fail(MT_ERUNTIME,
                        "%s : Invalid window shape. window has to be 1D and length of `win_length`",
                        describe(call, f, text));
    }
    return MT_OK;
}

/* Frames (rows, count, n_fft) at their places in signals of `points`. */
static int add_up(mt__call *call, const frames *f, mt_tensor *parts, int64_t points,
                  mt_tensor **out)
{
    const int64_t sizes[2] = {parts->sizes[0], points};
    mt_tensor **signals = mt__temp(call);
    if (!mt__is_complex(parts)) {
        MT_TRY(mt_unfold_backward(parts, sizes, 2, 1, f->n_fft, f->hop, signals));
        *out = *signals;
        return MT_OK;
    }
    mt_tensor *sums[2];
    mt_tensor **pairs = mt__temp(call);
    MT_TRY(mt_view_as_real(parts, pairs));
    for (int i = 0; i < 2; i++) {
        mt_tensor **part = mt__temp(call);
        mt_tensor **sum = mt__temp(call);
        MT_TRY(mt_select(*pairs, -1, i, part));
        MT_TRY(mt_unfold_backward(*part, sizes, 2, 1, f->n_fft, f->hop, sum));
        sums[i] = *sum;
    }
    MT_TRY(mt_complex(sums[0], sums[1], signals));
    *out = *signals;
    return MT_OK;
}

/* Transforms (rows, points, frames) to frames (rows, frames, n_fft). */
static int back(mt__call *call, const frames *f, bool one_sided, bool return_complex,
                mt_tensor **out)
{
    const int64_t last = 2;
    const int64_t scaled = mt__arg_bool(call, 6) ? BY_ROOT : BY_COUNT;
    mt_tensor **turned = mt__temp(call);
    mt_tensor **half = mt__temp(call);
    mt_tensor **parts = mt__temp(call);
    MT_TRY(mt_transpose(f->signal, 1, 2, turned));
    if (return_complex) {
        MT_TRY(mt__fft_c2c(*turned, &last, 1, scaled, false, parts));
    } else {
        if (!one_sided) {
            MT_TRY(mt_narrow(*turned, 2, 0, f->n_fft / 2 + 1, half));
            turned = half;
        }
        MT_TRY(mt__fft_c2r(*turned, &last, 1, scaled, f->n_fft, parts));
    }
    *out = *parts;
    return MT_OK;
}

/* The sum of the squared windows must not vanish anywhere: each point is divided by it. */
static int check_sum(mt__call *call, const frames *f, mt_tensor *sum)
{
    char text[TEXT];
    mt_scalar least;
    mt_tensor **sizes = mt__temp(call);
    mt_tensor **smallest = mt__temp(call);
    if (sum->numel == 0) {
        return MT_OK;
    }
    MT_TRY(mt_abs(sum, sizes));
    MT_TRY(mt_min(*sizes, smallest));
    MT_TRY(mt_item(*smallest, &least));
    return mt__scalar_real(&least) >= 1e-11
               ? MT_OK
               : mtb_fail(MT_ERUNTIME, "%s window overlap add min: 1", describe(call, f, text));
}

/* What stft() padded at both ends is cut off; `points` is what the frames cover. */
typedef struct stretch {
    int64_t start, end, points;
} stretch;

static int slice(mt__call *call, mt_tensor *signals, const stretch *s, mt_tensor **out)
{
    mt_tensor **kept = mt__temp(call);
    MT_TRY(mt_slice(signals, 1, &s->start, &s->end, 1, kept));
    *out = *kept;
    return MT_OK;
}

/* Signals divided by the sum of the windows' squares, in the stretch. */
static int weigh(mt__call *call, const frames *f, mt_tensor *signals, mt_tensor *window,
                 const stretch *s, mt_tensor **out)
{
    const int64_t sizes[3] = {1, f->signal->sizes[2], f->n_fft};
    mt_tensor *sum = NULL;
    mt_tensor **squares = mt__temp(call);
    mt_tensor **repeated = mt__temp(call);
    mt_tensor **ratio = mt__temp(call);
    MT_TRY(mt_pow_tensor_scalar(window, mt_int(2), squares));
    MT_TRY(mt_expand(*squares, sizes, 3, repeated));
    MT_TRY(add_up(call, f, *repeated, s->points, &sum));
    MT_TRY(slice(call, signals, s, &signals));
    MT_TRY(slice(call, sum, s, &sum));
    MT_TRY(check_sum(call, f, sum));
    MT_TRY(mt_div(signals, sum, ratio));
    *out = *ratio;
    return MT_OK;
}

int mt__run_istft(mt__call *call)
{
    frames f = read_frames(call);
    bool return_complex = mt__arg_bool(call, 9);
    bool one_sided = mt__arg_given(call, 7)
                         ? mt__arg_bool(call, 7)
                         : f.signal->n_dims < 2 || f.signal->sizes[f.signal->n_dims - 2] != f.n_fft;
    MT_TRY(check_spectra(call, &f, one_sided));
    if (return_complex && one_sided) {
        return mtb_fail(MT_ERUNTIME, "Cannot have onesided output if window or input is complex");
    }
    if (has_complex_window(&f)) {
        return return_complex ? mtb_fail(MT_ENOTSUP, "istft: complex windows are not supported")
                              : mtb_fail(MT_ERUNTIME, "Complex windows are incompatible with "
                                                      "return_complex=False");
    }
    bool one = f.signal->n_dims == 2;
    if (one) {
        mt_tensor **rows = mt__temp(call);
        MT_TRY(mt_unsqueeze(f.signal, 0, rows));
        f.signal = *rows;
    }
    mt_tensor *window = NULL;
    mt_tensor *parts = NULL;
    mt_tensor *signals = NULL;
    MT_TRY(fit_window(call, &f, mt__part_type((mt_dtype)f.signal->dtype), &window));
    if (window == NULL) {
        mt_tensor **ones = mt__temp(call);
        MT_TRY(mt_ones_with(&f.n_fft, 1, mt__part_type((mt_dtype)f.signal->dtype), call->device,
                            ones));
        window = *ones;
    }
    MT_TRY(back(call, &f, one_sided, return_complex, &parts));
    mt_tensor **weighted = mt__temp(call);
    stretch s = {.points = f.n_fft + f.hop * (f.signal->sizes[2] - 1)};
    bool center = mt__arg_bool(call, 5);
    s.start = center ? f.n_fft / 2 : 0;
    s.end = mt__arg_given(call, 8) ? s.start + mt__arg_int(call, 8)
                                   : s.points - (center ? f.n_fft / 2 : 0);
    MT_TRY(mt_mul(parts, window, weighted));
    MT_TRY(add_up(call, &f, *weighted, s.points, &signals));
    MT_TRY(weigh(call, &f, signals, window, &s, &signals));
    if (s.end > s.points) { /* longer than what the frames cover */
        const int64_t sides[2] = {0, s.end - s.points};
        mt_tensor **longer = mt__temp(call);
        MT_TRY(mt_constant_pad_nd(signals, sides, 2, mt_int(0), longer));
        signals = *longer;
    }
    if (one) {
        return mt_squeeze_dim(signals, 0, mt__result_place(call, 0));
    }
    mt__result_same(call, 0, signals);
    return MT_OK;
}
