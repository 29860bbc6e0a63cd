/* SPDX-License-Identifier: Apache-2.0
 *
 * Strided walks, see strided.h.
 */
#include "kernels/walk/strided.h"

#include "base/compiler.h"
#include "kernels/walk/parallel.h"

#include <stdatomic.h>
#include <string.h>

enum {
    SHORT_ROW = 48,    /* shorter rows are packed, several into a tile */
    MEDIUM_ROW = 256,  /* also these, where packing is needed once for many */
    TURN_SMALLEST = 8, /* shorter sides are not worth a transpose */
    BLOCK_SIDE = 32,   /* of the squares in which turned operands are visited: a tile each */
    BLOCK_NUMEL = 8192 /* fewer elements fit in the first-level cache */
};

/* ---- shape of the walk ---- */

bool mt__all_contiguous(const mt_array *arrays, int32_t count, int64_t *numel)
{
    int64_t expected = 1;
    bool is_contiguous = true;
    const int64_t *sizes = arrays[0].sizes;
    for (int32_t d = arrays[0].n_dims - 1; d >= 0; d--) {
        int64_t size = sizes[d];
        if (size != 1) {
            for (int32_t k = 0; k < count; k++) {
                is_contiguous = is_contiguous && arrays[k].strides[d] == expected;
            }
            expected *= size;
        }
    }
    *numel = expected;
    return is_contiguous;
}

/* Whether dimension a should be outside dimension b. */
static bool is_outer(const mt__strided *it, int32_t a, int32_t b)
{
    for (int32_t k = 0; k < it->n_operands; k++) {
        if (it->strides[k][a] != it->strides[k][b]) {
            return it->strides[k][a] > it->strides[k][b];
        }
    }
    return false;
}

static void swap_dims(mt__strided *it, int32_t a, int32_t b)
{
    int64_t size = it->sizes[a];
    it->sizes[a] = it->sizes[b];
    it->sizes[b] = size;
    for (int32_t k = 0; k < it->n_operands; k++) {
        int64_t stride = it->strides[k][a];
        it->strides[k][a] = it->strides[k][b];
        it->strides[k][b] = stride;
    }
}

/* Few dimensions, mostly in order already: insertion. Innermost first. */
static void sort_dims(mt__strided *it)
{
    for (int32_t i = 1; i < it->n_dims; i++) {
        for (int32_t j = i; j > 0 && is_outer(it, j - 1, j); j--) {
            swap_dims(it, j - 1, j);
        }
    }
}

static void merge_dims(mt__strided *it)
{
    int32_t last = 0;
    for (int32_t d = 1; d < it->n_dims; d++) {
        bool merges = true;
        for (int32_t k = 0; k < it->n_operands; k++) {
            merges = merges && it->strides[k][d] == it->strides[k][last] * it->sizes[last];
        }
        if (merges) {
            it->sizes[last] *= it->sizes[d];
            continue;
        }
        last++;
        it->sizes[last] = it->sizes[d];
        for (int32_t k = 0; k < it->n_operands; k++) {
            it->strides[k][last] = it->strides[k][d];
        }
    }
    it->n_dims = it->n_dims == 0 ? 0 : last + 1;
}

static void classify(mt__strided *it)
{
    for (int32_t k = 0; k < it->n_operands; k++) {
        int64_t expected = it->bytes[k];
        bool is_linear = true;
        bool is_constant = true;
        for (int32_t d = 0; d < it->n_dims; d++) {
            is_linear = is_linear && it->strides[k][d] == expected;
            is_constant = is_constant && it->strides[k][d] == 0;
            expected *= it->sizes[d];
        }
        it->linear[k] = is_linear;
        it->constant[k] = is_constant && !is_linear && k > 0; /* an output is always written */
    }
}

void mt__strided_init(mt__strided *it, const mt_array *arrays, int32_t count, bool keep_order)
{
    MT_ASSERT(count <= MT_STRIDED_OPERANDS && arrays[0].n_dims <= MT_MAX_DIMS);
    it->n_operands = count;
    it->n_dims = 0;
    it->numel = 1;
    for (int32_t k = 0; k < count; k++) {
        it->data[k] = arrays[k].data;
        it->bytes[k] = mt__element_bytes(arrays[k].dtype);
    }
    for (int32_t d = arrays[0].n_dims - 1; d >= 0; d--) {
        int64_t size = arrays[0].sizes[d];
        it->numel *= size;
        if (size == 1) {
            continue;
        }
        it->sizes[it->n_dims] = size;
        for (int32_t k = 0; k < count; k++) {
            it->strides[k][it->n_dims] = arrays[k].strides[d] * it->bytes[k];
        }
        it->n_dims++;
    }
    if (!keep_order) {
        sort_dims(it);
    }
    merge_dims(it);
    if (it->n_dims == 0) {
        it->n_dims = 1;
        it->sizes[0] = 1;
        for (int32_t k = 0; k < count; k++) {
            it->strides[k][0] = it->bytes[k];
        }
    }
    classify(it);
}

/* ---- packing ---- */

static void move_plane(const mt__plane *to, const mt__plane *from, int64_t n, int64_t rows,
                       int64_t bytes)
{
    MT_ISA_PICK(mt__move_plane)(to, from, n, rows, bytes);
}

void mt__move_strided(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                      int64_t bytes)
{
    mt__plane source = {(char *)(uintptr_t)from, from_stride, 0}; /* read only */
    mt__plane target = {to, to_stride, 0};
    move_plane(&target, &source, n, 1, bytes);
}

static void fill_tile(char *tile, const char *element, int64_t n, int64_t bytes)
{
    mt__move_strided(tile, bytes, element, 0, n, bytes);
}

/* Where in the walk, innermost first. */
typedef struct place {
    int64_t index[MT_MAX_DIMS];
} place;

static void place_at(const mt__strided *it, int64_t n, place *at)
{
    for (int32_t d = 0; d < it->n_dims; d++) {
        at->index[d] = n % it->sizes[d];
        n /= it->sizes[d];
    }
}

static void place_advance(const mt__strided *it, place *at, int64_t n)
{
    at->index[0] += n;
    for (int32_t d = 0; d + 1 < it->n_dims && at->index[d] >= it->sizes[d]; d++) {
        at->index[d + 1] += at->index[d] / it->sizes[d];
        at->index[d] %= it->sizes[d];
    }
}

static char *address(const mt__strided *it, int32_t k, const place *at)
{
    char *data = it->data[k];
    for (int32_t d = 0; d < it->n_dims; d++) {
        data += at->index[d] * it->strides[k][d];
    }
    return data;
}

/* Moves n elements of operand k from the place on between it and a tile: what is left of a row,
 * then as many whole rows as follow each other. */
static void move_rows(const mt__strided *it, int32_t k, place at, int64_t n, char *tile,
                      bool unpack)
{
    int64_t bytes = it->bytes[k];
    int64_t size = it->sizes[0];
    while (n > 0) {
        int64_t row = size - at.index[0];
        int64_t rows = 1;
        if (row > n) {
            row = n;
        } else if (at.index[0] == 0 && it->n_dims > 1) {
            int64_t left = it->sizes[1] - at.index[1];
            rows = n / size < left ? n / size : left;
        }
        mt__plane own = {address(it, k, &at), it->strides[k][0],
                         it->n_dims > 1 ? it->strides[k][1] : 0};
        mt__plane packed = {tile, bytes, row * bytes};
        if (unpack) {
            move_plane(&own, &packed, row, rows, bytes);
        } else if (own.row_stride == bytes && own.stride != bytes && rows >= TURN_SMALLEST) {
            mt__transpose_fn *turn = MT_ISA_PICK(mt__transpose);
            turn(tile, packed.row_stride, own.data, own.stride, rows, row, bytes);
        } else {
            move_plane(&packed, &own, row, rows, bytes);
        }
        tile += row * rows * bytes;
        n -= row * rows;
        place_advance(it, &at, row * rows);
    }
}

void mt__strided_store(const mt__strided *it, int32_t k, int64_t begin, int64_t n, const void *tile)
{
    place at;
    place_at(it, begin, &at);
    move_rows(it, k, at, n, (char *)(uintptr_t)tile, true); /* read only */
}

void mt__strided_load(const mt__strided *it, int32_t k, int64_t begin, int64_t n, void *tile)
{
    place at;
    place_at(it, begin, &at);
    move_rows(it, k, at, n, tile, false);
}

/* ---- running ---- */

typedef char tile_memory[MT_STRIDED_TILE * 8];

/* The state of a running walk. */
typedef struct walk {
    const mt__strided *it;
    int64_t begin, end; /* what is left */
    place at;           /* of `begin` */
    tile_memory *tiles;
    bool has_long_rows; /* a step stays inside a row; else it is a number of whole rows */
    bool has_tiles;
    bool packed[MT_STRIDED_OPERANDS];
    bool periodic[MT_STRIDED_OPERANDS]; /* the same in every row: packed once */
    int64_t ready[MT_STRIDED_OPERANDS]; /* elements of that which lie in the tile */
    int32_t repeated;                   /* input that the loop takes as one element; 0 = none */
} walk;

/* The same elements in every row. */
static bool is_periodic(const mt__strided *it, int32_t k)
{
    for (int32_t d = 1; d < it->n_dims; d++) {
        if (it->strides[k][d] != 0) {
            return false;
        }
    }
    return k > 0;
}

/* Whether an input is one element in all of a step. */
static bool is_one_element(const walk *w, int32_t k)
{
    return w->it->constant[k] || (w->has_long_rows && w->it->strides[k][0] == 0);
}

static void walk_init(walk *w, const mt__strided *it, int64_t begin, int64_t end, bool can_repeat)
{
    w->it = it;
    w->begin = begin;
    w->end = end;
    place_at(it, begin, &w->at);
    bool packs_once = end - begin >= 8 * MT_STRIDED_TILE;
    for (int32_t k = 0; k < it->n_operands; k++) {
        w->ready[k] = 0;
        w->periodic[k] = is_periodic(it, k);
        packs_once = packs_once && (it->linear[k] || it->constant[k] || w->periodic[k]);
    }
    w->has_long_rows = it->sizes[0] >= (packs_once ? MEDIUM_ROW : SHORT_ROW);
    w->has_tiles = false;
    w->repeated = 0;
    for (int32_t k = 0; k < it->n_operands; k++) {
        bool is_row = w->has_long_rows && it->strides[k][0] == it->bytes[k];
        w->packed[k] = !it->linear[k] && !it->constant[k] && !is_row;
        if (can_repeat && k > 0 && w->repeated == 0 && is_one_element(w, k)) {
            w->repeated = k;
            w->packed[k] = false;
            continue;
        }
        w->has_tiles = w->has_tiles || w->packed[k] || it->constant[k];
    }
}

/* How many elements the next step takes. */
static int64_t step_length(const walk *w)
{
    int64_t size = w->it->sizes[0];
    int64_t n = w->end - w->begin;
    int64_t limit = w->has_tiles ? MT_STRIDED_TILE : n;
    if (w->has_long_rows || w->at.index[0] != 0) {
        int64_t row = size - w->at.index[0];
        limit = row < limit ? row : limit;
    } else if (limit > size) {
        limit -= limit % size;
    }
    return n < limit ? n : limit;
}

static void pack_inputs(walk *w, int64_t n)
{
    for (int32_t k = 1; k < w->it->n_operands; k++) {
        if (!w->packed[k] || (w->at.index[0] == 0 && w->ready[k] >= n)) {
            continue;
        }
        move_rows(w->it, k, w->at, n, w->tiles[k], false);
        bool keeps = w->periodic[k] && w->at.index[0] == 0 && !w->has_long_rows;
        w->ready[k] = keeps ? n : 0;
    }
}

static uint32_t run_tiles(const mt__strided *it, int64_t begin, int64_t end, mt__loop_fn *loop,
                          const mt__loop_params *params)
{
    _Alignas(64) tile_memory tiles[MT_STRIDED_OPERANDS];
    walk w;
    walk_init(&w, it, begin, end, params->can_repeat);
    w.tiles = tiles;
    int64_t most = end - begin < MT_STRIDED_TILE ? end - begin : MT_STRIDED_TILE;
    for (int32_t k = 1; k < it->n_operands; k++) {
        if (it->constant[k] && k != w.repeated) {
            fill_tile(tiles[k], it->data[k], most, it->bytes[k]);
        }
    }
    mt__loop_params own = *params;
    own.repeats = w.repeated == 0 ? 0 : 1U << w.repeated;
    uint32_t flags = 0;
    while (w.begin < w.end) {
        int64_t n = step_length(&w);
        pack_inputs(&w, n);
        void *arrays[MT_STRIDED_OPERANDS];
        for (int32_t k = 0; k < it->n_operands; k++) {
            if (it->linear[k]) {
                arrays[k] = it->data[k] + w.begin * it->bytes[k];
            } else if (w.packed[k] || (it->constant[k] && k != w.repeated)) {
                arrays[k] = tiles[k];
            } else {
                arrays[k] = address(it, k, &w.at);
            }
        }
        flags |= loop(arrays, n, &own);
        if (w.packed[0]) {
            move_rows(it, 0, w.at, n, tiles[0], true);
        }
        w.begin += n;
        place_advance(it, &w.at, n);
    }
    return flags;
}

uint32_t mt__strided_run(const mt__strided *it, int64_t begin, int64_t end, mt__loop_fn *loop,
                         const mt__loop_params *params)
{
    void *arrays[MT_STRIDED_OPERANDS];
    for (int32_t k = 0; k < it->n_operands; k++) {
        if (!it->linear[k]) {
            return run_tiles(it, begin, end, loop, params);
        }
        arrays[k] = it->data[k] + begin * it->bytes[k];
    }
    return loop(arrays, end - begin, params);
}

typedef struct job {
    const mt__strided *it;
    mt__loop_fn *loop;
    const mt__loop_params *params;
    int32_t turned; /* dimension of the squares besides the innermost; 0 = none */
    _Atomic uint32_t flags;
} job;

/* ---- transposed operands: in squares, so that each cache line is visited once ---- */

/* The dimension in which an operand is contiguous, if that is not the innermost; 0 = none. */
static int32_t find_turned(const mt__strided *it)
{
    if (it->numel < BLOCK_NUMEL || it->sizes[0] < BLOCK_SIDE) {
        return 0;
    }
    for (int32_t k = 1; k < it->n_operands; k++) {
        for (int32_t d = 1; d < it->n_dims && it->strides[k][0] > it->bytes[k]; d++) {
            if (it->strides[k][d] == it->bytes[k] && it->sizes[d] >= BLOCK_SIDE) {
                return d;
            }
        }
    }
    return 0;
}

static int64_t blocks_of(int64_t size)
{
    return (size + BLOCK_SIDE - 1) / BLOCK_SIDE;
}

static int64_t block_count(const mt__strided *it, int32_t turned)
{
    int64_t planes = it->numel / (it->sizes[0] * it->sizes[turned]);
    return planes * blocks_of(it->sizes[0]) * blocks_of(it->sizes[turned]);
}

/* One square of one plane as a separate walk. */
static void block_init(mt__strided *block, const mt__strided *it, int32_t turned, int64_t number)
{
    int64_t first[MT_MAX_DIMS];
    first[0] = number % blocks_of(it->sizes[0]) * BLOCK_SIDE;
    number /= blocks_of(it->sizes[0]);
    first[turned] = number % blocks_of(it->sizes[turned]) * BLOCK_SIDE;
    number /= blocks_of(it->sizes[turned]);
    for (int32_t d = 1; d < it->n_dims; d++) {
        if (d != turned) {
            first[d] = number % it->sizes[d];
            number /= it->sizes[d];
        }
    }
    block->n_operands = it->n_operands;
    block->n_dims = 2;
    for (int32_t d = 0; d < 2; d++) {
        int32_t from = d == 0 ? 0 : turned;
        int64_t left = it->sizes[from] - first[from];
        block->sizes[d] = left < BLOCK_SIDE ? left : BLOCK_SIDE;
        for (int32_t k = 0; k < it->n_operands; k++) {
            block->strides[k][d] = it->strides[k][from];
        }
    }
    block->numel = block->sizes[0] * block->sizes[1];
    for (int32_t k = 0; k < it->n_operands; k++) {
        block->bytes[k] = it->bytes[k];
        block->data[k] = it->data[k];
        for (int32_t d = 0; d < it->n_dims; d++) {
            block->data[k] += first[d] * it->strides[k][d];
        }
    }
    classify(block);
}

static void run_blocks(void *context, int64_t begin, int64_t end)
{
    job *work = context;
    uint32_t flags = 0;
    for (int64_t number = begin; number < end; number++) {
        mt__strided block;
        block_init(&block, work->it, work->turned, number);
        flags |= mt__strided_run(&block, 0, block.numel, work->loop, work->params);
    }
    atomic_fetch_or_explicit(&work->flags, flags, memory_order_relaxed);
}

/* ---- on several threads ---- */

static void run_piece(void *context, int64_t begin, int64_t end)
{
    job *work = context;
    uint32_t flags = mt__strided_run(work->it, begin, end, work->loop, work->params);
    if (flags != 0) {
        /* read after mt__parallel_for(), which orders it */
        atomic_fetch_or_explicit(&work->flags, flags, memory_order_relaxed);
    }
}

uint32_t mt__strided_for(const mt__strided *it, mt__loop_fn *loop, const mt__loop_params *params,
                         int64_t grain)
{
    if (it->numel <= 0) {
        return 0;
    }
    job work = {.it = it, .loop = loop, .params = params, .turned = find_turned(it)};
    if (work.turned != 0) {
        int64_t blocks = grain / (BLOCK_SIDE * BLOCK_SIDE);
        mt__parallel_for(block_count(it, work.turned), blocks < 1 ? 1 : blocks, run_blocks, &work);
        return atomic_load_explicit(&work.flags, memory_order_relaxed);
    }
    if (it->numel <= grain) {
        return mt__strided_run(it, 0, it->numel, loop, params);
    }
    mt__parallel_for(it->numel, grain, run_piece, &work);
    return atomic_load_explicit(&work.flags, memory_order_relaxed);
}

uint32_t mt__pointwise(const mt_array *arrays, int32_t count, mt__loop_fn *loop,
                       const mt__loop_params *params, int64_t grain)
{
    int64_t numel;
    if (mt__all_contiguous(arrays, count, &numel) && numel <= grain) {
        if (numel <= 0) {
            return 0;
        }
        void *data[MT_STRIDED_OPERANDS];
        for (int32_t k = 0; k < count; k++) {
            data[k] = arrays[k].data;
        }
        return loop(data, numel, params);
    }
    if (numel <= 0) {
        return 0;
    }
    mt__strided it;
    mt__strided_init(&it, arrays, count, false);
    return mt__strided_for(&it, loop, params, grain);
}
