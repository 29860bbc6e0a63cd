/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_FFT: lines of one dimension, in one of two ways.
 *
 *     lanes   several lines side by side, one in each lane (fft_loops.h): short lines, and those
 *             whose neighbours lie together
 *     a line  n = rows columns: the columns are transformed side by side, turned by powers of the
 *             n-th root of unity and transposed, then the rows are. Long lines; both halves are
 *             divided among threads where there is one line.
 *
 * Lengths with a large prime factor are a convolution of a longer length (Bluestein), in either
 * way. A real line of even length is a complex one of half the length. An inverse transform is a
 * forward one with real and imaginary parts exchanged.
 */
#include "kernels/signal/fft_run.h"

#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/scratch.h"
#include "kernels/walk/strided.h"

#include <stdatomic.h>
#include <string.h>

enum {
    SHORT_LINE = 512,
    PIECE_POINTS = 16384 /* elements that a thread is woken for: about 40 us */
};

typedef enum fft_kind {
    KIND_C2C,
    KIND_R2C,
    KIND_C2R
} fft_kind;

static const mt__fft_loops *loops_of(bool is_double)
{
#if defined(__x86_64__)
    const mt__fft_loops *loops = mt__isa_level() == MT_ISA_V4   ? mt__fft_loops_v4
                                 : mt__isa_level() == MT_ISA_V3 ? mt__fft_loops_v3
                                                                : mt__fft_loops_base;
#else
    const mt__fft_loops *loops = mt__fft_loops_base;
#endif
    return &loops[is_double];
}

static int64_t lanes_of(bool is_double)
{
    return is_double ? MT_FFT_LANES / 2 : MT_FFT_LANES;
}

static int64_t element_bytes(bool is_double)
{
    return is_double ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

static void note(_Atomic(int) *status, int failed)
{
    if (failed != 0) {
        atomic_store_explicit(status, failed, memory_order_relaxed);
    }
}

static int refuse_memory(int64_t n)
{
    return mtb_fail(MT_ENOMEM, "fft of %lld elements: memory was refused", (long long)n);
}

/* ---- lanes ---- */

/* Two pairs of buffers of the same number of rows; the first is where the numbers are. */
typedef struct lane_block {
    char *memory;
    char *re, *im, *other_re, *other_im;
} lane_block;

static bool block_init(lane_block *block, int64_t rows)
{
    size_t bytes =
        (size_t)rows * MT_FFT_LANE_BYTES + MT_FFT_LANE_BYTES; /* not at 4096's multiples */
    block->memory = mt__scratch_take(4, bytes);
    block->re = block->memory;
    block->im = block->memory + bytes;
    block->other_re = block->memory + 2 * bytes;
    block->other_im = block->memory + 3 * bytes;
    return block->memory != NULL;
}

static void exchange(char **a, char **b)
{
    char *before = *a;
    *a = *b;
    *b = before;
}

/* An inverse transform is one with these exchanged, before and after. */
static void block_conjugate(lane_block *block)
{
    exchange(&block->re, &block->im);
    exchange(&block->other_re, &block->other_im);
}

static void block_stages(const mt__fft_plan *plan, lane_block *block)
{
    const mt__fft_loops *loops = loops_of(plan->is_double);
    if (loops->transform(&plan->stages, block->re, block->im, block->other_re, block->other_im)) {
        exchange(&block->re, &block->other_re);
        exchange(&block->im, &block->other_im);
    }
}

static int64_t block_rows(const mt__fft_plan *plan)
{
    return plan->longer != NULL ? plan->longer->n : plan->n;
}

static void block_transform(const mt__fft_plan *plan, lane_block *block)
{
    if (plan->longer == NULL) {
        block_stages(plan, block);
        return;
    }
    const mt__fft_loops *loops = loops_of(plan->is_double);
    int64_t lanes = lanes_of(plan->is_double);
    int64_t rest = (plan->longer->n - plan->n) * MT_FFT_LANE_BYTES;
    loops->multiply(block->re, block->im, plan->n, MT_FFT_LANE_BYTES, lanes, plan->chirp);
    memset(block->re + plan->n * MT_FFT_LANE_BYTES, 0, (size_t)rest);
    memset(block->im + plan->n * MT_FFT_LANE_BYTES, 0, (size_t)rest);
    block_stages(plan->longer, block);
    loops->multiply(block->re, block->im, plan->longer->n, MT_FFT_LANE_BYTES, lanes, plan->kernel);
    block_conjugate(block);
    block_stages(plan->longer, block);
    block_conjugate(block);
    loops->multiply(block->re, block->im, plan->n, MT_FFT_LANE_BYTES, lanes, plan->chirp);
}

/* ---- one line ---- */

/* A line of rows times columns numbers on its way. */
typedef struct line_job {
    const mt__fft_plan *plan;
    mt__fft_line from, to;
    bool inverse;
    double scale;
    char *re, *im; /* [columns][rows], between the halves */
    _Atomic(int) status;
} line_job;

/* The numbers exp(-2 pi i column k / n), k < rows. */
static void powers_of_column(const mt__fft_plan *plan, int64_t column, double *powers)
{
    for (int64_t k = 0; k < plan->rows; k++) {
        int64_t exponent = column * k;
        const double *low = plan->low + 2 * (exponent % plan->low_count);
        const double *high = plan->high + 2 * (exponent / plan->low_count);
        powers[2 * k] = low[0] * high[0] - low[1] * high[1];
        powers[2 * k + 1] = low[0] * high[1] + low[1] * high[0];
    }
}

static void run_columns(void *context, int64_t begin, int64_t end)
{
    line_job *job = context;
    const mt__fft_plan *plan = job->plan;
    const mt__fft_loops *loops = loops_of(plan->is_double);
    mt__transpose_fn *transpose = MT_ISA_PICK(mt__transpose);
    int64_t bytes = element_bytes(plan->is_double);
    int64_t lanes = lanes_of(plan->is_double);
    lane_block block;
    double *powers = NULL;
    if (plan->turns == NULL) {
        powers = mt__scratch_take((size_t)plan->rows, 2 * sizeof(double));
    }
    bool ready = block_init(&block, plan->rows) && (plan->turns != NULL || powers != NULL);
    for (int64_t number = begin; ready && number < end; number++) {
        int64_t column = number * lanes;
        int64_t left = plan->columns - column;
        char *places[MT_FFT_LANES];
        mt__fft_place from = {.lanes = places,
                              .count = left < lanes ? left : lanes,
                              .step = plan->columns * job->from.step,
                              .im_step = job->from.im_step};
        for (int64_t l = 0; l < from.count; l++) {
            places[l] = job->from.base + (column + l) * job->from.step;
        }
        loops->load(job->inverse ? block.im : block.re, job->inverse ? block.re : block.im, &from,
                    plan->rows);
        block_stages(plan->column_plan, &block);
        if (plan->turns != NULL) {
            loops->twist(block.re, block.im, plan->rows,
                         (const char *)plan->turns + number * plan->rows * 2 * MT_FFT_LANE_BYTES);
        } else {
            powers_of_column(plan, column, powers);
            loops->turn(block.re, block.im, plan->rows, powers, plan->ladder);
        }
        int64_t at = column * plan->rows * bytes;
        transpose(job->re + at, plan->rows * bytes, block.re, MT_FFT_LANE_BYTES, from.count,
                  plan->rows, bytes);
        transpose(job->im + at, plan->rows * bytes, block.im, MT_FFT_LANE_BYTES, from.count,
                  plan->rows, bytes);
    }
    note(&job->status, ready ? 0 : refuse_memory(plan->n));
    mt__scratch_give(block.memory);
    mt__scratch_give(powers);
}

static inline void copy_lanes(char *to, const char *from, int64_t bytes)
{
    if (MT_LIKELY(bytes == MT_FFT_LANE_BYTES)) {
        memcpy(to, from, MT_FFT_LANE_BYTES); /* of a constant size: a move, not a call */
    } else {
        memcpy(to, from, (size_t)bytes);
    }
}

static void run_rows(void *context, int64_t begin, int64_t end)
{
    line_job *job = context;
    const mt__fft_plan *plan = job->plan;
    const mt__fft_loops *loops = loops_of(plan->is_double);
    int64_t bytes = element_bytes(plan->is_double);
    int64_t lanes = lanes_of(plan->is_double);
    lane_block block;
    bool ready = block_init(&block, plan->columns);
    for (int64_t number = begin; ready && number < end; number++) {
        int64_t row = number * lanes;
        int64_t left = plan->rows - row;
        char *places[MT_FFT_LANES];
        mt__fft_place to = {.lanes = places,
                            .count = left < lanes ? left : lanes,
                            .step = plan->rows * job->to.step,
                            .im_step = job->to.im_step};
        for (int64_t l = 0; l < to.count; l++) {
            places[l] = job->to.base + (row + l) * job->to.step;
        }
        for (int64_t j = 0; j < plan->columns; j++) {
            int64_t at = (j * plan->rows + row) * bytes;
            copy_lanes(block.re + j * MT_FFT_LANE_BYTES, job->re + at, to.count * bytes);
            copy_lanes(block.im + j * MT_FFT_LANE_BYTES, job->im + at, to.count * bytes);
        }
        block_stages(plan->row_plan, &block);
        loops->store(&to, job->inverse ? block.im : block.re, job->inverse ? block.re : block.im,
                     plan->columns, job->scale);
    }
    note(&job->status, ready ? 0 : refuse_memory(plan->n));
    mt__scratch_give(block.memory);
}

static int run_divided(const mt__fft_plan *plan, const mt__fft_line *from, const mt__fft_line *to,
                       bool inverse, double scale)
{
    int64_t lanes = lanes_of(plan->is_double);
    size_t bytes = (size_t)plan->n * (size_t)element_bytes(plan->is_double);
    char *memory = mt__scratch_take(2, bytes);
    if (memory == NULL) {
        return refuse_memory(plan->n);
    }
    line_job job = {.plan = plan,
                    .from = *from,
                    .to = *to,
                    .inverse = inverse,
                    .scale = scale,
                    .re = memory,
                    .im = memory + bytes};
    int64_t column_grain = PIECE_POINTS / lanes / plan->rows;
    int64_t row_grain = PIECE_POINTS / lanes / plan->columns;
    mt__parallel_for((plan->columns + lanes - 1) / lanes, column_grain > 0 ? column_grain : 1,
                     run_columns, &job);
    int status = atomic_load_explicit(&job.status, memory_order_relaxed);
    if (status == 0) {
        mt__parallel_for((plan->rows + lanes - 1) / lanes, row_grain > 0 ? row_grain : 1, run_rows,
                         &job);
        status = atomic_load_explicit(&job.status, memory_order_relaxed);
    }
    mt__scratch_give(memory);
    return status;
}

/* A short line: one lane of a block. */
static int run_alone(const mt__fft_plan *plan, const mt__fft_line *from, const mt__fft_line *to,
                     bool inverse, double scale)
{
    const mt__fft_loops *loops = loops_of(plan->is_double);
    lane_block block;
    if (!block_init(&block, block_rows(plan))) {
        return refuse_memory(plan->n);
    }
    char *lane = from->base;
    mt__fft_place place = {&lane, 1, from->step, from->im_step};
    loops->load(inverse ? block.im : block.re, inverse ? block.re : block.im, &place, plan->n);
    block_transform(plan, &block);
    lane = to->base;
    place = (mt__fft_place){&lane, 1, to->step, to->im_step};
    loops->store(&place, inverse ? block.im : block.re, inverse ? block.re : block.im, plan->n,
                 scale);
    mt__scratch_give(block.memory);
    return 0;
}

/* n complex numbers of a line from or to arrays of their parts. */
static void move_parts(const mt__fft_plan *plan, const mt__fft_line *line, int64_t n, char *re,
                       char *im, bool to_line)
{
    int64_t bytes = element_bytes(plan->is_double);
    if (line->step == 2 * bytes && line->im_step == bytes) {
        loops_of(plan->is_double)->line(line->base, n, re, im, 1.0, to_line);
        return;
    }
    char *parts[2] = {re, im};
    for (int part = 0; part < (line->im_step == 0 ? 1 : 2); part++) {
        char *at = line->base + part * line->im_step;
        if (to_line) {
            mt__move_strided(at, line->step, parts[part], bytes, n, bytes);
        } else {
            mt__move_strided(parts[part], bytes, at, line->step, n, bytes);
        }
    }
}

/* Bluestein's convolution of a long line. */
static int run_convolved(const mt__fft_plan *plan, const mt__fft_line *from, const mt__fft_line *to,
                         bool inverse, double scale)
{
    const mt__fft_loops *loops = loops_of(plan->is_double);
    int64_t bytes = element_bytes(plan->is_double);
    int64_t m = plan->longer->n;
    char *re = mt__scratch_take((size_t)m, 2 * (size_t)bytes);
    if (re == NULL) {
        return refuse_memory(plan->n);
    }
    char *im = re + m * bytes;
    char *first = inverse ? im : re;
    char *second = inverse ? re : im;
    memset(re, 0, (size_t)(2 * m * bytes));
    move_parts(plan, from, plan->n, first, second, false);
    const mt__fft_line inner = {re, bytes, im - re};
    loops->multiply(re, im, plan->n, bytes, 1, plan->chirp);
    int status = mt__fft_run_line(plan->longer, &inner, &inner, false, 1.0);
    if (status == 0) {
        loops->multiply(re, im, m, bytes, 1, plan->kernel);
        status = mt__fft_run_line(plan->longer, &inner, &inner, true, scale);
    }
    if (status == 0) {
        loops->multiply(re, im, plan->n, bytes, 1, plan->chirp);
        move_parts(plan, to, plan->n, first, second, true);
    }
    mt__scratch_give(re);
    return status;
}

int mt__fft_run_line(const mt__fft_plan *plan, const mt__fft_line *from, const mt__fft_line *to,
                     bool inverse, double scale)
{
    if (plan->rows > 0) {
        return run_divided(plan, from, to, inverse, scale);
    }
    return block_rows(plan) <= MT_FFT_LANE_ROWS ? run_alone(plan, from, to, inverse, scale)
                                                : run_convolved(plan, from, to, inverse, scale);
}

/* ---- all lines of a call ---- */

typedef struct fft_job {
    fft_kind kind;
    bool inverse;
    double scale;
    int64_t n;          /* of the transform */
    int64_t spectrum;   /* complex elements of a real line's transform: n / 2 + 1, or n of r2c */
    mt__fft_plan *plan; /* `half` where real lines are paired */
    bool paired;
    bool in_lanes;
    const mt_array *out, *in;
    int32_t dim;
    mt__fft_line from, to; /* of line 0 */
    int64_t lines;
    int64_t lanes;
    _Atomic(int) status;
} fft_job;

/* Where line `number` begins in the array, in bytes. */
static int64_t line_offset(const fft_job *job, const mt_array *array, int64_t number)
{
    int64_t offset = 0;
    for (int32_t d = array->n_dims - 1; d >= 0; d--) {
        if (d != job->dim) {
            offset += number % array->sizes[d] * array->strides[d];
            number /= array->sizes[d];
        }
    }
    return offset * mt__element_bytes(array->dtype);
}

/* Whether the lanes are whole lines of complex floats at one distance: then they are turned like a
 * matrix of elements of 8 bytes, through the buffers that are free. */
static bool is_matrix(const mt__fft_place *place, int64_t *apart)
{
    enum {
        PAIR = 2 * sizeof(float)
    };
    *apart = place->count == MT_FFT_LANES ? place->lanes[1] - place->lanes[0] : 0;
    bool even = place->count == MT_FFT_LANES && place->step == PAIR &&
                place->im_step == (int64_t)sizeof(float);
    for (int64_t l = 2; even && l < MT_FFT_LANES; l++) {
        even = place->lanes[l] - place->lanes[0] == l * *apart;
    }
    return even;
}

/* The free buffers as [rows][lanes] complex numbers. */
static mt__fft_place free_place(const lane_block *block, char **lanes)
{
    char *free = block->other_re < block->other_im ? block->other_re : block->other_im;
    for (int64_t l = 0; l < MT_FFT_LANES; l++) {
        lanes[l] = free + l * 2 * (int64_t)sizeof(float);
    }
    return (mt__fft_place){lanes, MT_FFT_LANES, 2 * (int64_t)MT_FFT_LANE_BYTES, sizeof(float)};
}

static void load_lines(const mt__fft_loops *loops, const lane_block *block,
                       const mt__fft_place *from, int64_t n)
{
    int64_t apart;
    if (!is_matrix(from, &apart)) {
        loops->load(block->re, block->im, from, n);
        return;
    }
    char *lanes[MT_FFT_LANES];
    mt__fft_place turned = free_place(block, lanes);
    MT_ISA_PICK(mt__transpose)
    (lanes[0], turned.step, from->lanes[0], apart, n, MT_FFT_LANES, from->step);
    loops->load(block->re, block->im, &turned, n);
}

static void store_lines(const mt__fft_loops *loops, const lane_block *block,
                        const mt__fft_place *to, int64_t n, double scale)
{
    int64_t apart;
    if (!is_matrix(to, &apart)) {
        loops->store(to, block->re, block->im, n, scale);
        return;
    }
    char *lanes[MT_FFT_LANES];
    mt__fft_place turned = free_place(block, lanes);
    loops->store(&turned, block->re, block->im, n, scale);
    MT_ISA_PICK(mt__transpose)
    (to->lanes[0], apart, lanes[0], turned.step, MT_FFT_LANES, n, to->step);
}

/* Lines first .. first + count - 1 side by side. */
static void run_block(const fft_job *job, lane_block *block, int64_t first, int64_t count)
{
    const mt__fft_plan *plan = job->paired ? job->plan->half : job->plan;
    const mt__fft_loops *loops = loops_of(plan->is_double);
    char *in[MT_FFT_LANES];
    char *out[MT_FFT_LANES];
    for (int64_t l = 0; l < count; l++) {
        in[l] = job->from.base + line_offset(job, job->in, first + l);
        out[l] = job->to.base + line_offset(job, job->out, first + l);
    }
    mt__fft_place from = {in, count, job->from.step, job->from.im_step};
    mt__fft_place to = {out, count, job->to.step, job->to.im_step};
    load_lines(loops, block, &from, job->kind == KIND_C2R ? job->spectrum : plan->n);
    if (job->kind == KIND_C2R && job->paired) {
        loops->pack(block->re, block->im, plan->n, MT_FFT_LANE_BYTES, job->lanes,
                    job->plan->half_factors);
    } else if (job->kind == KIND_C2R) {
        loops->mirror(block->re, block->im, job->n, MT_FFT_LANE_BYTES, job->lanes);
    }
    if (job->inverse) {
        block_conjugate(block);
    }
    block_transform(plan, block);
    if (job->inverse) {
        block_conjugate(block);
    }
    if (job->kind == KIND_R2C && job->paired) {
        loops->unpack(block->re, block->im, plan->n, MT_FFT_LANE_BYTES, job->lanes,
                      job->plan->half_factors);
        if (job->spectrum == job->n) {
            loops->mirror(block->re, block->im, job->n, MT_FFT_LANE_BYTES, job->lanes);
        }
    }
    store_lines(loops, block, &to, job->kind == KIND_R2C ? job->spectrum : plan->n, job->scale);
}

/* A real line, with its transform's parts in room of their own. */
static int run_real_line(const fft_job *job, const mt__fft_line *from, const mt__fft_line *to)
{
    const mt__fft_plan *plan = job->paired ? job->plan->half : job->plan;
    const mt__fft_loops *loops = loops_of(plan->is_double);
    int64_t bytes = element_bytes(plan->is_double);
    int64_t rows = job->spectrum > plan->n ? job->spectrum : plan->n;
    char *re = mt__scratch_take((size_t)rows, 2 * (size_t)bytes);
    if (re == NULL) {
        return refuse_memory(job->n);
    }
    char *im = re + rows * bytes;
    const mt__fft_line inner = {re, bytes, im - re};
    int status;
    if (job->kind == KIND_C2R) {
        move_parts(plan, from, job->spectrum, re, im, false);
        if (job->paired) {
            loops->pack(re, im, plan->n, bytes, 1, job->plan->half_factors);
        } else {
            loops->mirror(re, im, job->n, bytes, 1);
        }
        status = mt__fft_run_line(plan, &inner, to, true, job->scale);
    } else {
        status = mt__fft_run_line(plan, from, &inner, false, job->scale);
        if (job->paired) {
            loops->unpack(re, im, plan->n, bytes, 1, job->plan->half_factors);
        }
        if (job->paired && job->spectrum == job->n) {
            loops->mirror(re, im, job->n, bytes, 1);
        }
        move_parts(plan, to, job->spectrum, re, im, true);
    }
    mt__scratch_give(re);
    return status;
}

static int run_line(const fft_job *job, int64_t number)
{
    mt__fft_line from = job->from;
    mt__fft_line to = job->to;
    from.base += line_offset(job, job->in, number);
    to.base += line_offset(job, job->out, number);
    return job->kind == KIND_C2C ? mt__fft_run_line(job->plan, &from, &to, job->inverse, job->scale)
                                 : run_real_line(job, &from, &to);
}

/* Pieces of blocks, or of lines. */
static void run_pieces(void *context, int64_t begin, int64_t end)
{
    fft_job *job = context;
    if (!job->in_lanes) {
        for (int64_t number = begin; number < end; number++) {
            note(&job->status, run_line(job, number));
        }
        return;
    }
    lane_block block;
    int64_t rows = block_rows(job->paired ? job->plan->half : job->plan);
    bool ready = block_init(&block, rows > job->spectrum ? rows : job->spectrum);
    for (int64_t number = begin; ready && number < end; number++) {
        int64_t first = number * job->lanes;
        int64_t left = job->lines - first;
        run_block(job, &block, first, left < job->lanes ? left : job->lanes);
    }
    note(&job->status, ready ? 0 : refuse_memory(job->n));
    mt__scratch_give(block.memory);
}

/* Lanes where the transform is short, or where neighbouring lines lie together. Lines of floats are
 * turned like a matrix, which up to SHORT_LINE costs less than dividing them. */
static bool suits_lanes(const fft_job *job, const mt__fft_plan *plan)
{
    if (block_rows(plan) > MT_FFT_LANE_ROWS || (job->lines < job->lanes / 2 && plan->rows > 0)) {
        return false;
    }
    return plan->rows == 0 || job->in->strides[job->dim] != 1 ||
           (!plan->is_double && plan->n <= SHORT_LINE);
}

static int run_job(fft_job *job)
{
    const mt__fft_plan *plan = job->paired ? job->plan->half : job->plan;
    job->in_lanes = suits_lanes(job, plan);
    int64_t points = plan->n * (job->in_lanes ? job->lanes : 1);
    int64_t count = job->in_lanes ? (job->lines + job->lanes - 1) / job->lanes : job->lines;
    int64_t grain = PIECE_POINTS / points;
    if (count == 1) {
        run_pieces(job, 0, 1); /* a long line divides itself among threads */
    } else {
        mt__parallel_for(count, grain > 0 ? grain : 1, run_pieces, job);
    }
    return atomic_load_explicit(&job->status, memory_order_relaxed);
}

/* Bytes from one element to the next, and from its real to its imaginary part. A pair of real
 * elements counts as one. */
static mt__fft_line lines_of(const mt_array *array, int32_t dim, bool is_double, bool real,
                             bool paired)
{
    int64_t bytes = element_bytes(is_double);
    int64_t step = array->strides[dim] * bytes;
    if (real) {
        return (mt__fft_line){array->data, paired ? 2 * step : step, paired ? step : 0};
    }
    return (mt__fft_line){array->data, 2 * step, bytes};
}

MT_HOST_KERNEL(FFT)
{
    const mt_array *out = &call->tensors[0];
    const mt_array *in = &call->tensors[1];
    int32_t dim = (int32_t)call->ints[0];
    fft_kind kind = (fft_kind)call->code;
    bool is_double = mt__element_bytes(kind == KIND_R2C ? out->dtype : in->dtype) == 16;
    int64_t n = kind == KIND_C2R ? out->sizes[dim] : in->sizes[dim];
    int64_t numel = mt__array_numel(out);
    if (numel == 0) {
        return MT_OK;
    }
    fft_job job = {
        .kind = kind,
        .inverse = call->ints[1] != 0 && kind != KIND_R2C,
        .scale = mt__arg_real(call, 0),
        .n = n,
        .spectrum = kind == KIND_R2C ? out->sizes[dim] : n / 2 + 1,
        .plan = mt__fft_plan_take(n, is_double, kind != KIND_C2C),
        .paired = kind != KIND_C2C && n % 2 == 0,
        .out = out,
        .in = in,
        .dim = dim,
        .lines = numel / out->sizes[dim],
        .lanes = lanes_of(is_double),
    };
    if (job.plan == NULL) {
        return refuse_memory(n);
    }
    job.from = lines_of(in, dim, is_double, kind == KIND_R2C, job.paired);
    job.to = lines_of(out, dim, is_double, kind == KIND_C2R, job.paired);
    int status = run_job(&job);
    mt__fft_plan_give(job.plan);
    return status;
}
