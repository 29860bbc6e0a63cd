/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_COMPLEX: functions of complex elements. Loops take strides, so that nothing is packed.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"

#include <complex.h>
#include <math.h>

enum {
    GRAIN = 16384 /* elements that are worth waking a thread */
};

/* out, a, b with their strides in bytes; b is NULL where there is none. */
typedef struct row {
    char *out;
    const char *a, *b;
    int64_t out_step, a_step, b_step;
    double alpha;
} row;

typedef void row_fn(const row *r, int64_t n);

/* x and y are elements of a and b; IN is their type. */
#define LOOP(name, OUT, IN, expression)                      \
    static void name(const row *r, int64_t n)                \
    {                                                        \
        for (int64_t i = 0; i < n; i++) {                    \
            IN x = *(const IN *)(r->a + i * r->a_step);      \
            IN y = *(const IN *)(r->b + i * r->b_step);      \
            (void)y;                                         \
            *(OUT *)(r->out + i * r->out_step) = expression; \
        }                                                    \
    }

/* Products without the search for infinities that C's operator adds, as in torch. */
#define FUNCTIONS(T, C, suffix, MAKE)                                                             \
    static inline C times_##suffix(C x, C y)                                                      \
    {                                                                                             \
        T a = creal##suffix(x), b = cimag##suffix(x), c = creal##suffix(y), d = cimag##suffix(y); \
        return MAKE(a * c - b * d, a * d + b * c);                                                \
    }                                                                                             \
    static inline C power_##suffix(C x, C y)                                                      \
    {                                                                                             \
        return x == 0 ? (y == 0 ? 1 : 0) : cpow##suffix(x, y);                                    \
    }                                                                                             \
    static inline C sign_##suffix(C x)                                                            \
    {                                                                                             \
        T size = cabs##suffix(x);                                                                 \
        return size == 0 ? 0 : MAKE(creal##suffix(x) / size, cimag##suffix(x) / size);            \
    }                                                                                             \
    static inline C scaled_##suffix(C x, T s)                                                     \
    {                                                                                             \
        return MAKE(creal##suffix(x) * s, cimag##suffix(x) * s);                                  \
    }

FUNCTIONS(float, float complex, f, CMPLXF)
FUNCTIONS(double, double complex, , CMPLX)

#define LOOPS(T, C, name, fn, MAKE)                                \
    LOOP(sum_##name, C, C, x + scaled_##fn(y, (T)r->alpha))        \
    LOOP(difference_##name, C, C, x - scaled_##fn(y, (T)r->alpha)) \
    LOOP(product_##name, C, C, times_##fn(x, y))                   \
    LOOP(quotient_##name, C, C, x / y)                             \
    LOOP(power_all_##name, C, C, power_##fn(x, y))                 \
    LOOP(equal_##name, uint8_t, C, x == y)                         \
    LOOP(of_parts_##name, C, T, MAKE(x, y))                        \
    LOOP(negative_##name, C, C, -x)                                \
    LOOP(conjugate_##name, C, C, conj##fn(x))                      \
    LOOP(reciprocal_##name, C, C, 1 / x)                           \
    LOOP(sqrt_##name, C, C, csqrt##fn(x))                          \
    LOOP(exp_##name, C, C, cexp##fn(x))                            \
    LOOP(log_##name, C, C, clog##fn(x))                            \
    LOOP(sin_##name, C, C, csin##fn(x))                            \
    LOOP(cos_##name, C, C, ccos##fn(x))                            \
    LOOP(tan_##name, C, C, ctan##fn(x))                            \
    LOOP(sinh_##name, C, C, csinh##fn(x))                          \
    LOOP(cosh_##name, C, C, ccosh##fn(x))                          \
    LOOP(tanh_##name, C, C, ctanh##fn(x))                          \
    LOOP(sign_all_##name, C, C, sign_##fn(x))                      \
    LOOP(abs_##name, T, C, cabs##fn(x))                            \
    LOOP(angle_##name, T, C, carg##fn(x))

LOOPS(float, float complex, c64, f, CMPLXF)
LOOPS(double, double complex, c128, , CMPLX)

#define ROW(code, name) [MT_COMPLEX_##code] = {name##_c64, name##_c128}

static row_fn *const loops[MT_COMPLEX_COUNT][2] = {
    ROW(SUM, sum),
    ROW(DIFFERENCE, difference),
    ROW(PRODUCT, product),
    ROW(QUOTIENT, quotient),
    ROW(POWER, power_all),
    ROW(EQUAL, equal),
    ROW(OF_PARTS, of_parts),
    ROW(NEGATIVE, negative),
    ROW(CONJUGATE, conjugate),
    ROW(RECIPROCAL, reciprocal),
    ROW(SQRT, sqrt),
    ROW(EXP, exp),
    ROW(LOG, log),
    ROW(SIN, sin),
    ROW(COS, cos),
    ROW(TAN, tan),
    ROW(SINH, sinh),
    ROW(COSH, cosh),
    ROW(TANH, tanh),
    ROW(SIGN, sign_all),
    ROW(ABS, abs),
    ROW(ANGLE, angle),
};

typedef struct job {
    row_fn *loop;
    const mt_array *arrays;
    uint32_t count;
    int64_t length; /* of a row: the last dimension */
    double alpha;
} job;

/* Elements begin .. end - 1 in row-major order. */
static void run_piece(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    while (begin < end) {
        int64_t at = begin % j->length;
        int64_t n = j->length - at < end - begin ? j->length - at : end - begin;
        char *places[3] = {NULL, NULL, NULL};
        int64_t steps[3] = {0, 0, 0};
        for (uint32_t k = 0; k < j->count; k++) {
            const mt_array *array = &j->arrays[k];
            int64_t bytes = mt__element_bytes(array->dtype);
            int64_t rest = begin;
            places[k] = array->data;
            for (int32_t d = array->n_dims - 1; d >= 0; d--) {
                places[k] += rest % array->sizes[d] * array->strides[d] * bytes;
                rest /= array->sizes[d];
            }
            steps[k] = array->n_dims > 0 ? array->strides[array->n_dims - 1] * bytes : 0;
        }
        if (j->count < 3) { /* loops read b, whether they use it or not */
            places[2] = places[1];
            steps[2] = steps[1];
        }
        const row r = {places[0], places[1], places[2], steps[0], steps[1], steps[2], j->alpha};
        j->loop(&r, n);
        begin += n;
    }
}

MT_HOST_KERNEL(COMPLEX)
{
    const mt_array *out = &call->tensors[0];
    const mt_array *in = &call->tensors[1];
    uint32_t typed = call->code == MT_COMPLEX_OF_PARTS ? out->dtype : in->dtype;
    if (call->code >= MT_COMPLEX_COUNT || (typed != MT_DTYPE_C64 && typed != MT_DTYPE_C128)) {
        return mtb_fail(MT_ENOTSUP, "COMPLEX %u: not implemented for dtype %u", call->code, typed);
    }
    int64_t numel = mt__array_numel(out);
    job j = {
        .loop = loops[call->code][typed == MT_DTYPE_C128],
        .arrays = call->tensors,
        .count = call->n_tensors < 3 ? call->n_tensors : 3,
        .length = out->n_dims > 0 ? out->sizes[out->n_dims - 1] : 1,
        .alpha = call->n_scalars > 0 ? mt__arg_real(call, 0) : 1.0,
    };
    if (numel > 0) {
        mt__parallel_for(numel, GRAIN, run_piece, &j);
    }
    return MT_OK;
}
