/* SPDX-License-Identifier: Apache-2.0
 *
 * Batches of matrix products (kernels.def, GEMM), divided among threads:
 *
 *     a batch whose b is one matrix and whose a lies in one piece   -> one product of B M rows
 *     several matrices, or small ones                               -> pieces of whole products
 *     one large matrix                                              -> pieces of its longer side
 *
 *   GE1  Cuts of a matrix are multiples of CUT, never along k, and every piece is larger than the
 *        sizes at which the libraries change their loops (1,000,000 multiplications in OpenBLAS):
 *        an element is summed in the same order with any number of threads.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/matrix/product.h"
#include "kernels/walk/parallel.h"

#include <stdatomic.h>

enum {
    PIECE_WORK = 3 << 19, /* m n k that is worth another thread: about 30 us of single precision */
    LEAST_WORK = 1 << 20, /* GE1 */
    CUT = 48              /* a multiple of the libraries' block sizes, 48 and 24 */
};

typedef struct job {
    mt_dtype dtype;
    mt__product product;            /* of the first matrices */
    int64_t a_step, b_step, c_step; /* from a matrix to the next, in bytes */
    bool rows;                      /* one matrix, cut along m; else along n (cut only) */
    _Atomic(int) status;
} job;

static void note(job *j, int status)
{
    if (status != 0) {
        atomic_store_explicit(&j->status, status, memory_order_relaxed);
    }
}

static void run_matrices(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    for (int64_t i = begin; i < end; i++) {
        mt__product p = j->product;
        p.a = (const char *)p.a + i * j->a_step;
        p.b = (const char *)p.b + i * j->b_step;
        p.c = (char *)p.c + i * j->c_step;
        note(j, mt__multiply(j->dtype, &p));
    }
}

static void run_cut(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    mt__product p = j->product;
    int64_t element = (int64_t)mt_dtype_size(j->dtype);
    if (j->rows) {
        p.m = end - begin;
        p.a = (const char *)p.a + begin * p.a_row * element;
        p.c = (char *)p.c + begin * p.c_row * element;
    } else {
        p.n = end - begin;
        p.b = (const char *)p.b + begin * p.b_col * element;
        p.c = (char *)p.c + begin * p.c_col * element;
    }
    note(j, mt__multiply(j->dtype, &p));
}

/* m n k, at most 2^62. */
static int64_t work_of(const mt__product *p)
{
    int64_t work;
    if (__builtin_mul_overflow(p->m, p->n, &work) || __builtin_mul_overflow(work, p->k, &work)) {
        return INT64_MAX / 2;
    }
    return work;
}

/* Lines of the longer side in a piece; `side` where it is better not cut. */
static int64_t lines_of_piece(int64_t side, int64_t work)
{
    int64_t pieces = work / PIECE_WORK;
    int64_t threads = (int64_t)mt__parallel_threads();
    int64_t each = work / side; /* of one line */
    for (pieces = pieces < threads ? pieces : threads; pieces > 1; pieces--) {
        int64_t lines = ((side + pieces - 1) / pieces + CUT - 1) / CUT * CUT;
        int64_t last = side % lines == 0 ? lines : side % lines;
        if (last * each > LEAST_WORK) {
            return lines;
        }
    }
    return side;
}

static int run_one(job *j)
{
    const mt__product *p = &j->product;
    int64_t side = p->m >= p->n ? p->m : p->n;
    int64_t lines = lines_of_piece(side, work_of(p));
    if (lines >= side) {
        return mt__multiply(j->dtype, p);
    }
    j->rows = p->m >= p->n;
    mt__parallel_for(side, lines, run_cut, j);
    return atomic_load_explicit(&j->status, memory_order_relaxed);
}

static int run_batch(job *j, int64_t batch)
{
    int64_t work = work_of(&j->product);
    int64_t grain = work > 0 ? PIECE_WORK / work : batch;
    if (work >= 4 * (int64_t)PIECE_WORK && batch < (int64_t)mt__parallel_threads()) {
        /* Few and large products: one after the other, each divided among threads. */
        const mt__product first = j->product;
        int status = 0;
        for (int64_t i = 0; i < batch && status == 0; i++) {
            j->product = first;
            j->product.a = (const char *)first.a + i * j->a_step;
            j->product.b = (const char *)first.b + i * j->b_step;
            j->product.c = (char *)first.c + i * j->c_step;
            status = run_one(j);
        }
        return status;
    }
    mt__parallel_for(batch, grain > 0 ? grain : 1, run_matrices, j);
    return atomic_load_explicit(&j->status, memory_order_relaxed);
}

/* A batch that multiplies one b and lies without gaps is one product. */
static bool is_one_product(const mt_array *c, const mt_array *a, const mt_array *b)
{
    int64_t rows = c->sizes[1];
    return b->strides[0] == 0 && a->strides[0] == rows * a->strides[1] &&
           c->strides[0] == rows * c->strides[1];
}

/* torch converts alpha and beta to the matrices' type: 1.5 is 1 for integers. */
static int64_t integer_of(const mt_scalar *s)
{
    if (s->kind != MT_KIND_REAL) {
        return s->of.integer;
    }
    bool fits = s->of.real > -0x1p63 && s->of.real < 0x1p63;
    return fits ? (int64_t)s->of.real : 0;
}

static int run_gemm(const mt_kernel_call *call)
{
    const mt_array *c = &call->tensors[0];
    const mt_array *a = &call->tensors[1];
    const mt_array *b = &call->tensors[2];
    int64_t batch = c->sizes[0];
    int64_t element = (int64_t)mt_dtype_size((mt_dtype)c->dtype);
    if (batch == 0 || c->sizes[1] == 0 || c->sizes[2] == 0) {
        return 0;
    }
    job j = {
        .dtype = (mt_dtype)c->dtype,
        .product = {.m = c->sizes[1],
                    .n = c->sizes[2],
                    .k = a->sizes[2],
                    .a = a->data,
                    .a_row = a->strides[1],
                    .a_col = a->strides[2],
                    .b = b->data,
                    .b_row = b->strides[1],
                    .b_col = b->strides[2],
                    .c = c->data,
                    .c_row = c->strides[1],
                    .c_col = c->strides[2],
                    .alpha = mt__scalar_real(&call->scalars[0]),
                    .beta = mt__scalar_real(&call->scalars[1]),
                    .int_alpha = integer_of(&call->scalars[0]),
                    .int_beta = integer_of(&call->scalars[1])},
        .a_step = a->strides[0] * element,
        .b_step = b->strides[0] * element,
        .c_step = c->strides[0] * element,
    };
    if (j.dtype == MT_DTYPE_BF16 && !mt__bf16_suits(&j.product)) {
        return MT_ENOTSUP;
    }
    if (batch > 1 && is_one_product(c, a, b)) {
        j.product.m *= batch;
        batch = 1;
    }
    return batch == 1 ? run_one(&j) : run_batch(&j, batch);
}

/* bfloat16 as it is where the processor multiplies it, else like all narrow types. */
MT_HOST_KERNEL(GEMM)
{
    if (MT_LIKELY(!mt__has_narrow(call))) {
        return run_gemm(call);
    }
    const mt_array *t = call->tensors;
    bool same = t[0].dtype == MT_DTYPE_BF16 && t[1].dtype == t[0].dtype && t[2].dtype == t[0].dtype;
    int status = same ? run_gemm(call) : MT_ENOTSUP;
    return status == MT_ENOTSUP ? mt__run_widened(call, run_gemm, 0x1, 0x1) : status;
}
