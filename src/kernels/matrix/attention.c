/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention, softmax(scale q k^T + mask) v, without the whole matrix of scores: tiles of QUERIES x
 * KEYS fit in a cache, and the sums of a row so far are rescaled when a larger score comes.
 *
 *     forward     for each tile of keys: S = q k^T, P = exp(S - most), out = out factor + P v
 *                 then out /= total, lse = most + log(total)
 *     backward    P = exp(S - lse), dv += P^T do, dS = P (do v^T - delta) scale,
 *                 dq += dS k, dk += dS^T q          with delta = sum of do out
 *
 * With `causal`, query i sees keys 0 ... i: tiles after the last query's key are left out.
 *
 *   AT1  Tiles depend on sizes alone. Forward's pieces are tiles of queries, backward's are heads,
 *        which add to dk and dv in the order of the queries: results do not depend on the number of
 *        threads.
 *   AT2  A row that sees nothing has out 0, lse 0 and gradients 0.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/rows/attention_loops.h"
#include "kernels/matrix/product.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/scratch.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
    QUERIES = 64,
    KEYS = 512,
    ALL = INT32_MAX
};

/* One head's matrix [T, D], or a mask [Tq, Tk]. */
typedef struct matrix {
    char *data;
    int64_t row, col; /* strides in elements */
} matrix;

typedef struct job {
    mt_dtype dtype;
    int64_t element;
    int64_t heads, queries, keys, depth, value_depth;
    bool causal;
    double scale;
    const mt_array *out, *lse, *q, *k, *v, *mask;
    const mt_array *grad, *grad_q, *grad_k, *grad_v;
    mt__attention_loops loops;
    _Atomic(int) status;
} job;

static mt__attention_loops pick_loops(mt_dtype dtype)
{
    return dtype == MT_DTYPE_F32 ? MT_ISA_PICK(mt__attention_f32) : MT_ISA_PICK(mt__attention_f64);
}

static bool is_empty(const mt_array *a)
{
    bool empty = false;
    for (int32_t i = 0; i < a->n_dims; i++) {
        empty |= a->sizes[i] == 0;
    }
    return empty;
}

/* Head number `head` of [B, H, ...]; n_dims 3 is lse, which has one column. Without elements there
 * may be no memory to step through: strides of 0. */
static matrix matrix_of(const job *j, const mt_array *a, int64_t head)
{
    if (is_empty(a)) {
        return (matrix){.data = a->data};
    }
    int64_t offset = head / j->heads * a->strides[0] + head % j->heads * a->strides[1];
    return (matrix){.data = (char *)a->data + offset * j->element,
                    .row = a->strides[2],
                    .col = a->n_dims > 3 ? a->strides[3] : 1};
}

/* data NULL: there is none. */
static matrix mask_of(const job *j, int64_t head)
{
    return j->mask->n_dims < 0 ? (matrix){.data = NULL} : matrix_of(j, j->mask, head);
}

static char *at(const job *j, matrix m, int64_t row, int64_t col)
{
    return m.data + (row * m.row + col * m.col) * j->element;
}

static matrix part(const job *j, matrix m, int64_t row)
{
    m.data = at(j, m, row, 0);
    return m;
}

static matrix turned(matrix m)
{
    return (matrix){.data = m.data, .row = m.col, .col = m.row};
}

/* c = alpha a b + beta c, sizes m, n, k. */
static int multiply(const job *j, const int64_t size[3], matrix a, matrix b, matrix c,
                    const double alpha_beta[2])
{
    mt__product p = {.m = size[0],
                     .n = size[1],
                     .k = size[2],
                     .a = a.data,
                     .a_row = a.row,
                     .a_col = a.col,
                     .b = b.data,
                     .b_row = b.row,
                     .b_col = b.col,
                     .c = c.data,
                     .c_row = c.row,
                     .c_col = c.col,
                     .alpha = alpha_beta[0],
                     .beta = alpha_beta[1]};
    return mt__multiply(j->dtype, &p);
}

/* Keys that the last of the queries before `end` sees. */
static int64_t keys_seen(const job *j, int64_t end)
{
    return j->causal && end < j->keys ? end : j->keys;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A tile of scores for queries from `i` and keys from `k`. */
static mt__attention_tile tile_of(const job *j, matrix scores, matrix mask, const int64_t place[2],
                                  const int64_t size[2])
{
    return (mt__attention_tile){
        .scores = scores.data,
        .line = scores.row,
        .rows = size[0],
        .columns = size[1],
        .seen = j->causal ? place[0] - place[1] + 1 : ALL,
        .mask = mask.data == NULL ? NULL : at(j, mask, place[0], place[1]),
        .mask_row = mask.row,
        .mask_col = mask.col,
        .scale = j->scale,
    };
}

static void clear_matrix(const job *j, matrix m, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        if (m.col == 1) {
            memset(at(j, m, r, 0), 0, (size_t)(columns * j->element));
            continue;
        }
        for (int64_t i = 0; i < columns; i++) {
            memset(at(j, m, r, i), 0, (size_t)j->element);
        }
    }
}

/* ---- forward --------------------------------------------------------------------------------- */

#define MT_I_DEFINE_ROWS(T, suffix, LOG)                                                        \
    static void begin_rows_##suffix(T *most, T *total, int64_t rows)                            \
    {                                                                                           \
        for (int64_t r = 0; r < rows; r++) {                                                    \
            most[r] = -(T)INFINITY;                                                             \
            total[r] = 0;                                                                       \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void scale_rows_##suffix(matrix out, const T *factor, int64_t rows, int64_t depth)   \
    {                                                                                           \
        for (int64_t r = 0; r < rows; r++) {                                                    \
            T *line = (T *)(void *)out.data + r * out.row;                                      \
            for (int64_t i = 0; factor[r] != 1 && i < depth; i++) {                             \
                line[i * out.col] *= factor[r];                                                 \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void finish_rows_##suffix(T *most, T *total, T *factor, int64_t rows, matrix lse)    \
    {                                                                                           \
        for (int64_t r = 0; r < rows; r++) {                                                    \
            bool nothing = total[r] == 0; /* AT2 */                                             \
            factor[r] = nothing ? 0 : 1 / total[r];                                             \
            *((T *)(void *)lse.data + r * lse.row) = nothing ? 0 : most[r] + LOG(total[r]);     \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void deltas_##suffix(matrix grad, matrix out, int64_t rows, int64_t depth, T *delta) \
    {                                                                                           \
        for (int64_t r = 0; r < rows; r++) {                                                    \
            const T *a = (const T *)(const void *)grad.data + r * grad.row;                     \
            const T *b = (const T *)(const void *)out.data + r * out.row;                       \
            T sum = 0;                                                                          \
            for (int64_t i = 0; i < depth; i++) {                                               \
                sum += a[i * grad.col] * b[i * out.col];                                        \
            }                                                                                   \
            delta[r] = sum;                                                                     \
        }                                                                                       \
    }                                                                                           \
                                                                                                \
    static void copy_rows_##suffix(matrix from, int64_t rows, T *to)                            \
    {                                                                                           \
        for (int64_t r = 0; r < rows; r++) {                                                    \
            to[r] = *((const T *)(const void *)from.data + r * from.row);                       \
        }                                                                                       \
    }

MT_I_DEFINE_ROWS(float, f32, logf)
MT_I_DEFINE_ROWS(double, f64, log)

/* Scratch of a tile of queries. */
typedef struct work {
    char *block;
    matrix scores, grads;
    char *most, *total, *factor;
} work;

/* False: no memory. */
static bool take_work(const job *j, bool backward, work *w)
{
    int64_t columns = smaller(j->keys, KEYS);
    columns = (columns + 15) / 16 * 16;
    int64_t tile = QUERIES * columns;
    int64_t elements = (backward ? 2 : 1) * tile + 3 * QUERIES;
    w->block = mt__scratch_take((size_t)elements, (size_t)j->element);
    if (w->block == NULL) {
        return false;
    }
    w->most = w->block;
    w->total = w->most + QUERIES * j->element;
    w->factor = w->total + QUERIES * j->element;
    w->scores = (matrix){w->factor + QUERIES * j->element, columns, 1};
    w->grads = (matrix){w->scores.data + tile * j->element, columns, 1};
    return true;
}

static int fail_memory(void)
{
    return mtb_fail(MT_ENOMEM, "attention: no memory for a tile of scores");
}

static void scale_rows(const job *j, const work *w, matrix out, int64_t rows)
{
    if (j->dtype == MT_DTYPE_F32) {
        scale_rows_f32(out, (const float *)(void *)w->factor, rows, j->value_depth);
    } else {
        scale_rows_f64(out, (const double *)(void *)w->factor, rows, j->value_depth);
    }
}

static void begin_rows(const job *j, const work *w, int64_t rows)
{
    if (j->dtype == MT_DTYPE_F32) {
        begin_rows_f32((float *)(void *)w->most, (float *)(void *)w->total, rows);
    } else {
        begin_rows_f64((double *)(void *)w->most, (double *)(void *)w->total, rows);
    }
}

static void finish_rows(const job *j, const work *w, int64_t rows, matrix lse)
{
    if (j->dtype == MT_DTYPE_F32) {
        finish_rows_f32((float *)(void *)w->most, (float *)(void *)w->total,
                        (float *)(void *)w->factor, rows, lse);
    } else {
        finish_rows_f64((double *)(void *)w->most, (double *)(void *)w->total,
                        (double *)(void *)w->factor, rows, lse);
    }
}

/* Queries [begin, end) of a head, at most QUERIES of them. */
static int forward_rows(const job *j, int64_t head, int64_t begin, int64_t end)
{
    work w = {.block = NULL};
    if (!take_work(j, false, &w)) {
        return fail_memory();
    }
    int64_t rows = end - begin;
    matrix q = part(j, matrix_of(j, j->q, head), begin);
    matrix out = part(j, matrix_of(j, j->out, head), begin);
    matrix lse = part(j, matrix_of(j, j->lse, head), begin);
    matrix k = matrix_of(j, j->k, head);
    matrix v = matrix_of(j, j->v, head);
    matrix mask = mask_of(j, head);
    begin_rows(j, &w, rows);
    int status = 0;
    int64_t keys = keys_seen(j, end);
    if (keys == 0) {
        clear_matrix(j, out, rows, j->value_depth);
    }
    for (int64_t key = 0; key < keys && status == 0; key += KEYS) {
        int64_t n = smaller(KEYS, keys - key);
        status = multiply(j, (int64_t[]){rows, n, j->depth}, q, turned(part(j, k, key)), w.scores,
                          (double[]){j->scale, 0});
        mt__attention_tile tile =
            tile_of(j, w.scores, mask, (int64_t[]){begin, key}, (int64_t[]){rows, n});
        tile.most = w.most;
        tile.total = w.total;
        tile.factor = w.factor;
        j->loops.softmax(&tile);
        if (key > 0) {
            scale_rows(j, &w, out, rows);
        }
        if (status == 0) {
            status = multiply(j, (int64_t[]){rows, j->value_depth, n}, w.scores, part(j, v, key),
                              out, (double[]){1, key > 0 ? 1 : 0});
        }
    }
    finish_rows(j, &w, rows, lse);
    scale_rows(j, &w, out, rows);
    mt__scratch_give(w.block);
    return status;
}

static void run_forward(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    int64_t tiles = (j->queries + QUERIES - 1) / QUERIES;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % tiles * QUERIES;
        int status = forward_rows(j, i / tiles, first, smaller(first + QUERIES, j->queries));
        if (status != 0) {
            atomic_store_explicit(&j->status, status, memory_order_relaxed);
        }
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The matrices of a head. */
typedef struct head_view {
    matrix q, k, v, out, lse, mask, grad, grad_q, grad_k, grad_v;
} head_view;

static void prepare_rows(const job *j, const work *w, const head_view *h, const int64_t range[2])
{
    int64_t rows = range[1] - range[0];
    matrix grad = part(j, h->grad, range[0]);
    matrix out = part(j, h->out, range[0]);
    matrix lse = part(j, h->lse, range[0]);
    if (j->dtype == MT_DTYPE_F32) {
        deltas_f32(grad, out, rows, j->value_depth, (float *)(void *)w->total);
        copy_rows_f32(lse, rows, (float *)(void *)w->most);
    } else {
        deltas_f64(grad, out, rows, j->value_depth, (double *)(void *)w->total);
        copy_rows_f64(lse, rows, (double *)(void *)w->most);
    }
}

/* Queries `range` against keys [key, key + n). */
static int backward_tile(const job *j, const work *w, const head_view *h, const int64_t range[2],
                         const int64_t keys[2])
{
    int64_t rows = range[1] - range[0];
    int64_t key = keys[0];
    int64_t n = keys[1] - key;
    matrix q = part(j, h->q, range[0]);
    matrix grad = part(j, h->grad, range[0]);
    matrix k = part(j, h->k, key);
    MT_TRY(multiply(j, (int64_t[]){rows, n, j->depth}, q, turned(k), w->scores,
                    (double[]){j->scale, 0}));
    mt__attention_tile tile =
        tile_of(j, w->scores, h->mask, (int64_t[]){range[0], key}, (int64_t[]){rows, n});
    tile.lse = w->most;
    tile.delta = w->total;
    tile.grad = w->grads.data;
    j->loops.repeat(&tile);
    MT_TRY(multiply(j, (int64_t[]){n, j->value_depth, rows}, turned(w->scores), grad,
                    part(j, h->grad_v, key), (double[]){1, 1}));
    MT_TRY(multiply(j, (int64_t[]){rows, n, j->value_depth}, grad, turned(part(j, h->v, key)),
                    w->grads, (double[]){1, 0}));
    j->loops.grade(&tile);
    MT_TRY(multiply(j, (int64_t[]){rows, j->depth, n}, w->scores, k, part(j, h->grad_q, range[0]),
                    (double[]){1, key > 0 ? 1 : 0}));
    return multiply(j, (int64_t[]){n, j->depth, rows}, turned(w->scores), q,
                    part(j, h->grad_k, key), (double[]){1, 1});
}

static int backward_head(const job *j, int64_t head)
{
    head_view h = {
        .q = matrix_of(j, j->q, head),
        .k = matrix_of(j, j->k, head),
        .v = matrix_of(j, j->v, head),
        .out = matrix_of(j, j->out, head),
        .lse = matrix_of(j, j->lse, head),
        .mask = mask_of(j, head),
        .grad = matrix_of(j, j->grad, head),
        .grad_q = matrix_of(j, j->grad_q, head),
        .grad_k = matrix_of(j, j->grad_k, head),
        .grad_v = matrix_of(j, j->grad_v, head),
    };
    clear_matrix(j, h.grad_k, j->keys, j->depth);
    clear_matrix(j, h.grad_v, j->keys, j->value_depth);
    if (j->keys == 0) {
        clear_matrix(j, h.grad_q, j->queries, j->depth);
        return 0;
    }
    work w = {.block = NULL};
    if (!take_work(j, true, &w)) {
        return fail_memory();
    }
    int status = 0;
    for (int64_t i = 0; i < j->queries && status == 0; i += QUERIES) {
        int64_t range[2] = {i, smaller(i + QUERIES, j->queries)};
        prepare_rows(j, &w, &h, range);
        int64_t keys = keys_seen(j, range[1]);
        for (int64_t key = 0; key < keys && status == 0; key += KEYS) {
            int64_t tile[2] = {key, smaller(key + KEYS, keys)};
            status = backward_tile(j, &w, &h, range, tile);
        }
    }
    mt__scratch_give(w.block);
    return status;
}

static void run_backward(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    for (int64_t head = begin; head < end; head++) {
        int status = backward_head(j, head);
        if (status != 0) {
            atomic_store_explicit(&j->status, status, memory_order_relaxed);
        }
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static job job_of(const mt_kernel_call *call, const mt_array *q, const mt_array *k,
                  const mt_array *v)
{
    const mt_scalar *scale = &call->scalars[0];
    return (job){
        .dtype = (mt_dtype)q->dtype,
        .element = (int64_t)mt_dtype_size((mt_dtype)q->dtype),
        .heads = q->sizes[1],
        .queries = q->sizes[2],
        .keys = k->sizes[2],
        .depth = q->sizes[3],
        .value_depth = v->sizes[3],
        .causal = call->ints[0] != 0,
        .scale = scale->kind == MT_KIND_REAL ? scale->of.real : (double)scale->of.integer,
        .q = q,
        .k = k,
        .v = v,
        .loops = pick_loops((mt_dtype)q->dtype),
    };
}

MT_HOST_KERNEL_WIDENED(ATTENTION, 0x3, 0)
{
    const mt_array *t = call->tensors;
    job j = job_of(call, &t[2], &t[3], &t[4]);
    j.out = &t[0];
    j.lse = &t[1];
    j.mask = &t[5];
    int64_t heads = j.heads * t[2].sizes[0];
    int64_t tiles = (j.queries + QUERIES - 1) / QUERIES;
    if (heads * tiles > 0) {
        mt__parallel_for(heads * tiles, 1, run_forward, &j);
    }
    return atomic_load_explicit(&j.status, memory_order_relaxed);
}

MT_HOST_KERNEL_WIDENED(ATTENTION_BACKWARD, 0x7, 0)
{
    const mt_array *t = call->tensors;
    job j = job_of(call, &t[4], &t[5], &t[6]);
    j.grad_q = &t[0];
    j.grad_k = &t[1];
    j.grad_v = &t[2];
    j.grad = &t[3];
    j.out = &t[7];
    j.lse = &t[8];
    j.mask = &t[9];
    int64_t heads = j.heads * t[4].sizes[0];
    if (heads > 0) {
        mt__parallel_for(heads, 1, run_backward, &j);
    }
    return atomic_load_explicit(&j.status, memory_order_relaxed);
}
