/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions of any kind over any dimensions: which loop runs over which memory, see fold_plan.h
 * and reduce_loops.h.
 *
 *      rows       the innermost reduced dimension has the smaller stride: one result after the
 *                 other. Elements that are not contiguous are packed first.
 *      columns    the innermost kept dimension is contiguous: up to MT_FOLD_WIDTH results at once
 *      pieces     few results of very many elements: pieces of one result, joined in their order
 *
 * Which of them it is depends on sizes and strides alone (RL2).
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "kernels/reduce/fold_plan.h"
#include "kernels/walk/narrow.h"
#include "kernels/walk/parallel.h"

#include <math.h>
#include <string.h>

enum {
    GRAIN = 128 * 1024, /* elements: waking a thread costs what adding these up does */
    PIECES = 256,       /* most pieces of one result */
    SHORT_RUN = 64,     /* shorter ones are packed together */
    PACK_BYTES = 8192,
    WIDE_BYTES = MT_FOLD_BLOCK * 8 /* of elements in their wide type: a block, or some columns */
};

typedef struct reduction {
    mt__reduce_plan plan;
    mt__reduce_job job;
    const mt__fold_loops *loops;
    mt_dtype in_dtype;    /* the wide type of the elements (narrow.h) */
    mt__loop_fn *convert; /* to it; NULL where they have it */
    bool real;            /* partial results are */
    bool one_run;         /* a result's elements lie side by side, in one block */
    size_t in_bytes;
    const char *in;
    char *outs[MT_REDUCE_OUTS]; /* NULL where absent */
    size_t out_bytes[MT_REDUCE_OUTS];
    mt_dtype out_dtypes[MT_REDUCE_OUTS];
    /* columns */
    int64_t chunks;
    /* pieces of one result */
    const char *piece_in;
    int64_t piece_length;
    mt__partial partials[PIECES];
} reduction;

/* ---- results ---- */

static void store_real(void *out, mt_dtype dtype, double value)
{
    switch (dtype) {
    case MT_DTYPE_F32: *(float *)out = (float)value; break;
    case MT_DTYPE_F64: *(double *)out = value; break;
    default: { /* narrow */
        const mt_scalar scalar = mt_real(value);
        mt__scalar_store(&scalar, dtype, out);
    }
    }
}

static void store_integer(void *out, mt_dtype dtype, int64_t value)
{
    switch (dtype) {
    case MT_DTYPE_BOOL: *(uint8_t *)out = value != 0; break;
    case MT_DTYPE_U8: *(uint8_t *)out = (uint8_t)value; break;
    case MT_DTYPE_I32: *(int32_t *)out = (int32_t)(uint32_t)value; break;
    case MT_DTYPE_I64: *(int64_t *)out = value; break;
    default: {
        const mt_scalar scalar = mt_int(value);
        mt__scalar_store(&scalar, dtype, out);
    }
    }
}

static double finish_real(const reduction *run, const mt__partial *partial)
{
    double value = partial->a.real;
    double count = (double)run->plan.count;
    switch (run->job.finish) {
    case MT_FINISH_MEAN: return value / count;
    case MT_FINISH_ROOT: return run->job.p == 2 ? sqrt(value) : pow(value, 1 / run->job.p);
    case MT_FINISH_LOG: return value + log(partial->b.real);
    case MT_FINISH_VARIANCE:
    case MT_FINISH_DEVIATION: {
        double divisor = count > run->job.p ? count - run->job.p : 0;
        double variance = partial->b.real / divisor;
        return run->job.finish == MT_FINISH_VARIANCE ? variance : sqrt(variance);
    }
    default: return value;
    }
}

static void finish(const reduction *run, const mt__partial *partial,
                   const int64_t out[MT_REDUCE_OUTS])
{
    void *first = run->outs[0] + (size_t)out[0] * run->out_bytes[0];
    if (run->real) {
        store_real(first, run->out_dtypes[0], finish_real(run, partial));
    } else {
        store_integer(first, run->out_dtypes[0], partial->a.integer);
    }
    if (run->outs[1] != NULL) {
        double mean = run->plan.count == 0 ? (double)NAN : partial->a.real;
        store_real(run->outs[1] + (size_t)out[1] * run->out_bytes[1], run->out_dtypes[1], mean);
    }
}

/* ---- one result ---- */

/* The position of a walk over dimensions. */
typedef struct dim_walk {
    const mt__reduce_dim *dims;
    uint32_t n_dims;
    int64_t index[MT_MAX_DIMS];
    int64_t in;
    int64_t out[MT_REDUCE_OUTS];
} dim_walk;

static void walk_to(dim_walk *walk, const mt__reduce_dim *dims, uint32_t n_dims, int64_t position)
{
    walk->dims = dims;
    walk->n_dims = n_dims;
    walk->in = 0;
    walk->out[0] = 0;
    walk->out[1] = 0;
    for (uint32_t i = n_dims; i-- > 0;) {
        int64_t index = position == 0 ? 0 : position % dims[i].size;
        position = position == 0 ? 0 : position / dims[i].size;
        walk->index[i] = index;
        walk->in += index * dims[i].in;
        walk->out[0] += index * dims[i].out[0];
        walk->out[1] += index * dims[i].out[1];
    }
}

static void walk_next(dim_walk *walk)
{
    for (uint32_t i = walk->n_dims; i-- > 0;) {
        const mt__reduce_dim *dim = &walk->dims[i];
        walk->in += dim->in;
        walk->out[0] += dim->out[0];
        walk->out[1] += dim->out[1];
        if (++walk->index[i] < dim->size) {
            return;
        }
        walk->index[i] = 0;
        walk->in -= dim->size * dim->in;
        walk->out[0] -= dim->size * dim->out[0];
        walk->out[1] -= dim->size * dim->out[1];
    }
}

/* The loops for elements of a narrow type, which are converted first. */
static MT_NOINLINE void narrow_row(const reduction *run, const char *in, int64_t n,
                                   mt__partial *partial, int64_t before)
{
    _Alignas(64) char wide[WIDE_BYTES];
    const mt__loop_params plain = {.repeats = 0};
    run->convert((void *[]){wide, (void *)(uintptr_t)in}, n, &plain); /* `in` is only read */
    run->loops->row(wide, n, run->job.p, partial, before);
}

static MT_NOINLINE void narrow_columns(const reduction *run, const char *in, int64_t rows,
                                       int64_t row_stride, int64_t width, mt__partial *partials,
                                       int64_t before)
{
    _Alignas(64) char wide[WIDE_BYTES];
    const mt__loop_params plain = {.repeats = 0};
    size_t row_bytes = (size_t)width * mt_dtype_size(run->in_dtype);
    int64_t capacity = (int64_t)(WIDE_BYTES / row_bytes);
    for (int64_t at = 0; at < rows; at += capacity) {
        int64_t some = rows - at < capacity ? rows - at : capacity;
        for (int64_t i = 0; i < some; i++) {
            const char *row = in + (size_t)((at + i) * row_stride) * run->in_bytes;
            run->convert((void *[]){wide + (size_t)i * row_bytes, (void *)(uintptr_t)row}, width,
                         &plain);
        }
        run->loops->columns(wide, some, width, width, run->job.p, partials, before + at);
    }
}

MT_INLINE void fold_row(const reduction *run, const char *in, int64_t n, mt__partial *partial,
                        int64_t before)
{
    if (MT_LIKELY(run->convert == NULL)) {
        run->loops->row(in, n, run->job.p, partial, before);
    } else {
        narrow_row(run, in, n, partial, before);
    }
}

static void fold_block(const reduction *run, const char *in, int64_t count, mt__partial *partial,
                       int64_t before)
{
    for (int64_t at = 0; at < count; at += MT_FOLD_BLOCK) {
        int64_t n = count - at < MT_FOLD_BLOCK ? count - at : MT_FOLD_BLOCK;
        fold_row(run, in + (size_t)at * run->in_bytes, n, partial, before + at);
    }
}

#define PACK_ELEMENTS(T)                              \
    for (int64_t i = 0; i < count; i++) {             \
        ((T *)to)[i] = ((const T *)from)[i * stride]; \
    }

static void pack(void *to, const void *from, int64_t count, int64_t stride, size_t bytes)
{
    if (bytes == 1) {
        PACK_ELEMENTS(uint8_t)
    } else if (bytes == 2) {
        PACK_ELEMENTS(uint16_t)
    } else if (bytes == 4) {
        PACK_ELEMENTS(uint32_t)
    } else {
        PACK_ELEMENTS(uint64_t)
    }
}

/* Elements [begin, end) of a result, gathered into a buffer first. */
static void fold_packed(const reduction *run, const char *in, int64_t begin, int64_t end,
                        mt__partial *partial)
{
    _Alignas(64) char buffer[PACK_BYTES];
    const mt__reduce_plan *plan = &run->plan;
    const mt__reduce_dim *inner = &plan->reduced[plan->n_reduced - 1];
    int64_t capacity = (int64_t)(PACK_BYTES / run->in_bytes);
    int64_t packed = 0;
    int64_t folded = 0;
    dim_walk walk;
    walk_to(&walk, plan->reduced, plan->n_reduced - 1, begin / inner->size);
    int64_t at = begin % inner->size;
    while (begin < end) {
        int64_t n = inner->size - at;
        n = n < end - begin ? n : end - begin;
        n = n < capacity - packed ? n : capacity - packed;
        pack(buffer + (size_t)packed * run->in_bytes,
             in + (size_t)(walk.in + at * inner->in) * run->in_bytes, n, inner->in, run->in_bytes);
        packed += n;
        begin += n;
        at += n;
        if (at == inner->size) {
            at = 0;
            walk_next(&walk);
        }
        if (packed == capacity || begin == end) {
            fold_block(run, buffer, packed, partial, folded);
            folded += packed;
            packed = 0;
        }
    }
}

/* A result's elements lie side by side. */
static bool is_linear(const mt__reduce_plan *plan)
{
    return plan->n_reduced == 0 || (plan->n_reduced == 1 && plan->reduced[0].in == 1);
}

/* Elements [begin, end) of a result. */
static void fold_range(const reduction *run, const char *in, int64_t begin, int64_t end,
                       mt__partial *partial)
{
    const mt__reduce_plan *plan = &run->plan;
    if (begin == end) { /* nothing: a size may be 0 */
        return;
    }
    if (is_linear(plan)) {
        fold_block(run, in + (size_t)begin * run->in_bytes, end - begin, partial, 0);
        return;
    }
    const mt__reduce_dim *inner = &plan->reduced[plan->n_reduced - 1];
    if (inner->in != 1 || inner->size < SHORT_RUN) {
        fold_packed(run, in, begin, end, partial);
        return;
    }
    dim_walk walk;
    walk_to(&walk, plan->reduced, plan->n_reduced - 1, begin / inner->size);
    int64_t at = begin % inner->size;
    for (int64_t done = 0; begin < end; walk_next(&walk)) {
        int64_t n = inner->size - at < end - begin ? inner->size - at : end - begin;
        fold_block(run, in + (size_t)(walk.in + at) * run->in_bytes, n, partial, done);
        begin += n;
        done += n;
        at = 0;
    }
}

/* ---- rows ---- */

static void run_rows(void *context, int64_t begin, int64_t end)
{
    const reduction *run = context;
    const mt__partial nothing = mt__fold_nothing(run->job.fold, run->in_dtype);
    dim_walk walk;
    walk_to(&walk, run->plan.kept, run->plan.n_kept, begin);
    for (int64_t i = begin; i < end; i++) {
        mt__partial partial = nothing;
        const char *in = run->in + (size_t)walk.in * run->in_bytes;
        if (run->one_run) {
            fold_row(run, in, run->plan.count, &partial, 0);
        } else {
            fold_range(run, in, 0, run->plan.count, &partial);
        }
        finish(run, &partial, walk.out);
        walk_next(&walk);
    }
}

/* The most frequent of them, with as little as possible around the loop: rows at one distance, side
 * by side inside, floating-point values or means. */
static bool is_plain(const reduction *run)
{
    return run->one_run && run->real && run->plan.n_kept == 1 && run->outs[1] == NULL &&
           run->job.finish <= MT_FINISH_MEAN;
}

static void run_plain_rows(void *context, int64_t begin, int64_t end)
{
    const reduction *run = context;
    const mt__partial nothing = mt__fold_nothing(run->job.fold, run->in_dtype);
    const mt__reduce_dim dim = run->plan.kept[0];
    const int64_t count = run->plan.count;
    const double divisor = run->job.finish == MT_FINISH_MEAN ? (double)count : 1;
    for (int64_t i = begin; i < end; i++) {
        mt__partial partial = nothing;
        fold_row(run, run->in + (size_t)(i * dim.in) * run->in_bytes, count, &partial, 0);
        store_real(run->outs[0] + (size_t)(i * dim.out[0]) * run->out_bytes[0], run->out_dtypes[0],
                   partial.a.real / divisor);
    }
}

/* ---- pieces of one result ---- */

static void run_piece(void *context, int64_t begin, int64_t end)
{
    reduction *run = context;
    mt__partial *partial = &run->partials[begin / run->piece_length];
    *partial = mt__fold_nothing(run->job.fold, run->in_dtype);
    fold_range(run, run->piece_in, begin, end, partial);
}

static void run_pieces(reduction *run)
{
    int64_t count = run->plan.count;
    int64_t grain = (int64_t)mtb_round_up((uint64_t)(count / PIECES + 1), MT_FOLD_BLOCK);
    grain = grain < GRAIN ? GRAIN : grain;
    run->piece_length = grain;
    dim_walk walk;
    walk_to(&walk, run->plan.kept, run->plan.n_kept, 0);
    for (int64_t i = 0; i < run->plan.results; i++) {
        run->piece_in = run->in + (size_t)walk.in * run->in_bytes;
        mt__parallel_for(count, grain, run_piece, run);
        mt__partial partial = run->partials[0];
        for (int64_t piece = 1, done = grain; done < count; piece++, done += grain) {
            int64_t more = count - done < grain ? count - done : grain;
            mt__fold_join(run->job.fold, run->in_dtype, &partial, done, &run->partials[piece],
                          more);
        }
        finish(run, &partial, walk.out);
        walk_next(&walk);
    }
}

/* ---- columns ---- */

/* All elements of `width` results side by side. */
static void fold_columns(const reduction *run, const char *in, int64_t width, mt__partial *partials)
{
    const mt__reduce_plan *plan = &run->plan;
    const mt__reduce_dim *inner = &plan->reduced[plan->n_reduced - 1];
    dim_walk walk;
    walk_to(&walk, plan->reduced, plan->n_reduced - 1, 0);
    for (int64_t done = 0; done < plan->count; walk_next(&walk)) {
        for (int64_t at = 0; at < inner->size; at += MT_FOLD_ROWS) {
            int64_t rows = inner->size - at < MT_FOLD_ROWS ? inner->size - at : MT_FOLD_ROWS;
            const char *first = in + (size_t)(walk.in + at * inner->in) * run->in_bytes;
            if (MT_LIKELY(run->convert == NULL)) {
                run->loops->columns(first, rows, inner->in, width, run->job.p, partials, done);
            } else {
                narrow_columns(run, first, rows, inner->in, width, partials, done);
            }
            done += rows;
        }
    }
}

static void run_columns(void *context, int64_t begin, int64_t end)
{
    const reduction *run = context;
    const mt__reduce_plan *plan = &run->plan;
    const mt__reduce_dim *inner = &plan->kept[plan->n_kept - 1];
    const mt__partial nothing = mt__fold_nothing(run->job.fold, run->in_dtype);
    mt__partial partials[MT_FOLD_WIDTH];
    dim_walk walk;
    walk_to(&walk, plan->kept, plan->n_kept - 1, begin / run->chunks);
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % run->chunks * MT_FOLD_WIDTH;
        int64_t width = inner->size - first < MT_FOLD_WIDTH ? inner->size - first : MT_FOLD_WIDTH;
        for (int64_t j = 0; j < width; j++) {
            partials[j] = nothing;
        }
        fold_columns(run, run->in + (size_t)(walk.in + first) * run->in_bytes, width, partials);
        for (int64_t j = 0; j < width; j++) {
            int64_t out[MT_REDUCE_OUTS] = {walk.out[0] + (first + j) * inner->out[0],
                                           walk.out[1] + (first + j) * inner->out[1]};
            finish(run, &partials[j], out);
        }
        if (i % run->chunks == run->chunks - 1) {
            walk_next(&walk);
        }
    }
}

/* ---- the choice ---- */

/* What depends on elements being 0 or not. */
static bool asks_for_zero(mt__fold fold)
{
    return fold == MT_FOLD_COUNT || fold == MT_FOLD_ALL || fold == MT_FOLD_ANY;
}

static bool is_real(mt__fold fold, mt_dtype dtype)
{
    return mt_dtype_category(dtype) == MT_CATEGORY_REAL && !asks_for_zero(fold);
}

static bool fits_columns(const mt__reduce_plan *plan)
{
    return plan->n_kept > 0 && plan->n_reduced > 0 && plan->kept[plan->n_kept - 1].in == 1 &&
           plan->count > 0;
}

int mt__reduce_run(const mt__reduce_job *job, const mt_array outs[MT_REDUCE_OUTS],
                   const mt_array *in)
{
    reduction run;
    run.job = *job;
    run.in_dtype = (mt_dtype)mt__wide_type(in->dtype);
    if (in->dtype == MT_DTYPE_U64 && asks_for_zero(job->fold)) {
        run.in_dtype = MT_DTYPE_I64;
    }
    run.convert = mt__is_narrow(in->dtype) ? mt__convert_loop(in->dtype, run.in_dtype) : NULL;
    run.loops = &MT_ISA_PICK(mt__folds)->of[job->fold][run.in_dtype];
    const mt__fold_loops *own = &MT_ISA_PICK(mt__folds)->of[job->fold][in->dtype];
    if (run.convert != NULL && own->row != NULL) { /* converts elements itself */
        run.convert = NULL;
        run.loops = own;
    }
    if (run.loops->row == NULL) {
        return mtb_fail(MT_ENOTSUP, "reduce: not implemented for %s",
                        mt_dtype_name((mt_dtype)in->dtype));
    }
    run.in = in->data;
    run.in_bytes = mt_dtype_size((mt_dtype)in->dtype);
    for (uint32_t i = 0; i < MT_REDUCE_OUTS; i++) {
        run.outs[i] = outs[i].n_dims < 0 ? NULL : outs[i].data;
        run.out_dtypes[i] = (mt_dtype)outs[i].dtype;
        run.out_bytes[i] = run.outs[i] == NULL ? 0 : mt_dtype_size((mt_dtype)outs[i].dtype);
    }
    mt__reduce_plan_make(&run.plan, outs, in);
    int64_t results = run.plan.results;
    int64_t count = run.plan.count;
    if (results == 0) {
        return MT_OK;
    }
    run.real = is_real(job->fold, run.in_dtype);
    run.one_run = is_linear(&run.plan) && count > 0 && count <= MT_FOLD_BLOCK;
    if (fits_columns(&run.plan)) {
        int64_t width = run.plan.kept[run.plan.n_kept - 1].size;
        run.chunks = (width + MT_FOLD_WIDTH - 1) / MT_FOLD_WIDTH;
        width = width < MT_FOLD_WIDTH ? width : MT_FOLD_WIDTH;
        mt__parallel_for(results / run.plan.kept[run.plan.n_kept - 1].size * run.chunks,
                         1 + GRAIN / (width * count), run_columns, &run);
    } else if (results < 16 && count >= 2 * GRAIN) {
        run_pieces(&run);
    } else {
        mt__parallel_for(results, 1 + GRAIN / (count + 1),
                         is_plain(&run) ? run_plain_rows : run_rows, &run);
    }
    return MT_OK;
}
