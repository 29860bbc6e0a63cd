/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels RNN_CELL and RNN_CELL_BACKWARD: what one step of a recurrent layer does besides its
 * products. Rows are independent, so they are divided among threads.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"

enum {
    MODE_RELU,
    MODE_TANH,
    MODE_LSTM,
    MODE_GRU
};

enum {
    PIECE_UNITS = 1 << 12 /* units that are worth another thread */
};

/* One call: tensors by their place in kernels.def. */
typedef struct job {
    uint16_t mode;
    int64_t width; /* H */
    void *data[9];
    mt__loop_fn *sigmoid;
    mt__loop_fn *tanh;
} job;

static void apply(mt__loop_fn *loop, void *to, void *from, int64_t n)
{
    static const mt__loop_params none;
    void *const arrays[2] = {to, from};
    (void)loop(arrays, n, &none);
}

/* Places of RNN_CELL. */
enum {
    OUT,
    H,
    C,
    GATES,
    HIDDEN,
    H_BEFORE,
    REST
};

/* Places of RNN_CELL_BACKWARD. */
enum {
    GRAD_GATES,
    GRAD_HIDDEN,
    GRAD_H,
    GRAD_C,
    GRAD_OUT,
    BW_OUT,
    BW_GATES,
    BW_H_BEFORE,
    BW_REST
};

#define MT_I_DEFINE_CELLS(T, suffix)                                                            \
    static void lstm_row_##suffix(const job *j, int64_t row)                                    \
    {                                                                                           \
        int64_t n = j->width;                                                                   \
        T *gates = (T *)j->data[GATES] + row * 4 * n;                                           \
        T *out = (T *)j->data[OUT] + row * n;                                                   \
        T *h = (T *)j->data[H] + row * n;                                                       \
        T *c = (T *)j->data[C] + row * n;                                                       \
        T *before = (T *)j->data[H_BEFORE] + row * n;                                           \
        T *rest = (T *)j->data[REST] + row * 2 * n;                                             \
        apply(j->sigmoid, gates, gates, 2 * n);                                                 \
        apply(j->tanh, gates + 2 * n, gates + 2 * n, n);                                        \
        apply(j->sigmoid, gates + 3 * n, gates + 3 * n, n);                                     \
        for (int64_t k = 0; k < n; k++) {                                                       \
            rest[k] = c[k];                                                                     \
            c[k] = gates[n + k] * c[k] + gates[k] * gates[2 * n + k];                           \
        }                                                                                       \
        apply(j->tanh, rest + n, c, n);                                                         \
        for (int64_t k = 0; k < n; k++) {                                                       \
            before[k] = h[k];                                                                   \
            out[k] = gates[3 * n + k] * rest[n + k];                                            \
            h[k] = out[k];                                                                      \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void gru_row_##suffix(const job *j, int64_t row)                                     \
    {                                                                                           \
        int64_t n = j->width;                                                                   \
        T *gates = (T *)j->data[GATES] + row * 3 * n;                                           \
        const T *hidden = (const T *)j->data[HIDDEN] + row * 3 * n;                             \
        T *out = (T *)j->data[OUT] + row * n;                                                   \
        T *h = (T *)j->data[H] + row * n;                                                       \
        T *before = (T *)j->data[H_BEFORE] + row * n;                                           \
        T *rest = (T *)j->data[REST] + row * n;                                                 \
        for (int64_t k = 0; k < 2 * n; k++) {                                                   \
            gates[k] += hidden[k];                                                              \
        }                                                                                       \
        apply(j->sigmoid, gates, gates, 2 * n);                                                 \
        for (int64_t k = 0; k < n; k++) {                                                       \
            rest[k] = hidden[2 * n + k];                                                        \
            gates[2 * n + k] += gates[k] * rest[k];                                             \
        }                                                                                       \
        apply(j->tanh, gates + 2 * n, gates + 2 * n, n);                                        \
        for (int64_t k = 0; k < n; k++) {                                                       \
            before[k] = h[k];                                                                   \
            out[k] = gates[2 * n + k] + gates[n + k] * (h[k] - gates[2 * n + k]);               \
            h[k] = out[k];                                                                      \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void plain_row_##suffix(const job *j, int64_t row)                                   \
    {                                                                                           \
        int64_t n = j->width;                                                                   \
        T *gates = (T *)j->data[GATES] + row * n;                                               \
        T *out = (T *)j->data[OUT] + row * n;                                                   \
        T *h = (T *)j->data[H] + row * n;                                                       \
        T *before = (T *)j->data[H_BEFORE] + row * n;                                           \
        if (j->mode == MODE_TANH) {                                                             \
            apply(j->tanh, gates, gates, n);                                                    \
        }                                                                                       \
        for (int64_t k = 0; k < n; k++) {                                                       \
            before[k] = h[k];                                                                   \
            out[k] = j->mode == MODE_RELU && gates[k] <= 0 ? 0 : gates[k]; /* NaN is kept */    \
            h[k] = out[k];                                                                      \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void run_##suffix(void *context, int64_t begin, int64_t end)                         \
    {                                                                                           \
        const job *j = context;                                                                 \
        for (int64_t row = begin; row < end; row++) {                                           \
            if (j->mode == MODE_LSTM) {                                                         \
                lstm_row_##suffix(j, row);                                                      \
            } else if (j->mode == MODE_GRU) {                                                   \
                gru_row_##suffix(j, row);                                                       \
            } else {                                                                            \
                plain_row_##suffix(j, row);                                                     \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void lstm_back_##suffix(const job *j, const T *grad_out, int64_t row)                \
    {                                                                                           \
        int64_t n = j->width;                                                                   \
        T *grad = (T *)j->data[GRAD_GATES] + row * 4 * n;                                       \
        const T *grad_h = (const T *)j->data[GRAD_H] + row * n;                                 \
        T *grad_c = (T *)j->data[GRAD_C] + row * n;                                             \
        const T *gates = (const T *)j->data[BW_GATES] + row * 4 * n;                            \
        const T *rest = (const T *)j->data[BW_REST] + row * 2 * n;                              \
        for (int64_t k = 0; k < n; k++) {                                                       \
            T i = gates[k];                                                                     \
            T f = gates[n + k];                                                                 \
            T g = gates[2 * n + k];                                                             \
            T o = gates[3 * n + k];                                                             \
            T bent = rest[n + k];                                                               \
            T dh = grad_h[k] + (grad_out == NULL ? 0 : grad_out[k]);                            \
            T dc = grad_c[k] + dh * o * (1 - bent * bent);                                      \
            grad[k] = dc * g * i * (1 - i);                                                     \
            grad[n + k] = dc * rest[k] * f * (1 - f);                                           \
            grad[2 * n + k] = dc * i * (1 - g * g);                                             \
            grad[3 * n + k] = dh * bent * o * (1 - o);                                          \
            grad_c[k] = dc * f;                                                                 \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void gru_back_##suffix(const job *j, const T *grad_out, int64_t row)                 \
    {                                                                                           \
        int64_t n = j->width;                                                                   \
        T *grad = (T *)j->data[GRAD_GATES] + row * 3 * n;                                       \
        T *hidden = (T *)j->data[GRAD_HIDDEN] + row * 3 * n;                                    \
        T *grad_h = (T *)j->data[GRAD_H] + row * n;                                             \
        const T *gates = (const T *)j->data[BW_GATES] + row * 3 * n;                            \
        const T *before = (const T *)j->data[BW_H_BEFORE] + row * n;                            \
        const T *rest = (const T *)j->data[BW_REST] + row * n;                                  \
        for (int64_t k = 0; k < n; k++) {                                                       \
            T r = gates[k];                                                                     \
            T z = gates[n + k];                                                                 \
            T fresh = gates[2 * n + k];                                                         \
            T dh = grad_h[k] + (grad_out == NULL ? 0 : grad_out[k]);                            \
            T dn = dh * (1 - z) * (1 - fresh * fresh);                                          \
            T dr = dn * rest[k] * r * (1 - r);                                                  \
            T dz = dh * (before[k] - fresh) * z * (1 - z);                                      \
            grad[k] = hidden[k] = dr;                                                           \
            grad[n + k] = hidden[n + k] = dz;                                                   \
            grad[2 * n + k] = dn;                                                               \
            hidden[2 * n + k] = dn * r;                                                         \
            grad_h[k] = dh * z;                                                                 \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void plain_back_##suffix(const job *j, const T *grad_out, int64_t row)               \
    {                                                                                           \
        int64_t n = j->width;                                                                   \
        T *grad = (T *)j->data[GRAD_GATES] + row * n;                                           \
        const T *grad_h = (const T *)j->data[GRAD_H] + row * n;                                 \
        const T *out = (const T *)j->data[BW_OUT] + row * n;                                    \
        for (int64_t k = 0; k < n; k++) {                                                       \
            T dh = grad_h[k] + (grad_out == NULL ? 0 : grad_out[k]);                            \
            grad[k] = j->mode == MODE_TANH ? dh * (1 - out[k] * out[k]) : out[k] <= 0 ? 0 : dh; \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void run_back_##suffix(void *context, int64_t begin, int64_t end)                    \
    {                                                                                           \
        const job *j = context;                                                                 \
        for (int64_t row = begin; row < end; row++) {                                           \
            const T *given = j->data[GRAD_OUT];                                                 \
            const T *grad_out = given == NULL ? NULL : given + row * j->width;                  \
            if (j->mode == MODE_LSTM) {                                                         \
                lstm_back_##suffix(j, grad_out, row);                                           \
            } else if (j->mode == MODE_GRU) {                                                   \
                gru_back_##suffix(j, grad_out, row);                                            \
            } else {                                                                            \
                plain_back_##suffix(j, grad_out, row);                                          \
            }                                                                                   \
        }                                                                                       \
    }

MT_I_DEFINE_CELLS(float, f32)
MT_I_DEFINE_CELLS(double, f64)

/* `rows` and `width` are those of tensor `sized`. */
static int run_cells(const mt_kernel_call *call, uint32_t sized, mt__piece_fn *f32,
                     mt__piece_fn *f64)
{
    const mt_array *array = &call->tensors[sized];
    job j = {.mode = call->code, .width = array->sizes[1]};
    bool wide = array->dtype == MT_DTYPE_F64;
    if (!wide && array->dtype != MT_DTYPE_F32) {
        return mtb_fail(MT_ENOTSUP, "recurrent cell: not implemented for %s",
                        mt_dtype_name((mt_dtype)array->dtype));
    }
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        j.data[i] = mt__arg_data(call, i);
    }
    j.sigmoid = mt__unary_loop(MT_UNARY_SIGMOID, array->dtype);
    j.tanh = mt__unary_loop(MT_UNARY_TANH, array->dtype);
    if (j.width > 0) {
        mt__parallel_for(array->sizes[0], 1 + PIECE_UNITS / j.width, wide ? f64 : f32, &j);
    }
    return MT_OK;
}

MT_HOST_KERNEL_WIDENED(RNN_CELL, 0x6F, 0xE)
{
    return run_cells(call, H, run_f32, run_f64);
}

MT_HOST_KERNEL_WIDENED(RNN_CELL_BACKWARD, 0xF, 0xC)
{
    return run_cells(call, GRAD_H, run_back_f32, run_back_f64);
}
