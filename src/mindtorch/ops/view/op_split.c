/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of views: unbind, split, chunk. The pieces share the storage of the first argument.
 */
#include "base/alloc.h"
#include "mindtorch/ops/op_support.h"
#include "mindtorch/ops/view/view_geometry.h"

#include <inttypes.h>
#include <unistd.h>

enum {
    SMALL_LIST = 16 /* pieces that need no heap */
};

/* Pieces under construction. */
typedef struct pieces {
    mt_tensor **tensors;
    uint32_t count;
    uint32_t made;
    mt_tensor *small[SMALL_LIST];
} pieces;

/* Refuses more pieces than memory can hold, before the first is made: making them would take hours
 * and then fail, and Python handles no signals meanwhile. */
static int check_pieces(const char *op, int64_t count)
{
    int64_t room = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    if (count > (int64_t)UINT32_MAX) {
        return mtb_fail(MT_ERUNTIME, "%s: %" PRId64 " pieces are too many", op, count);
    }
    if (room > 0 && count > room / (int64_t)sizeof(mt_tensor)) {
        return mtb_fail(MT_ENOMEM, "%s: no memory for %" PRId64 " pieces", op, count);
    }
    return MT_OK;
}

static int pieces_init(const mt__call *call, int64_t count, pieces *p)
{
    p->made = 0;
    p->count = 0;
    p->tensors = p->small;
    if (count > SMALL_LIST) {
        MT_TRY(check_pieces(mt__op_name(call), count));
        p->tensors = mtb_calloc((size_t)count, sizeof(mt_tensor *));
        if (p->tensors == NULL) {
            return mtb_fail(MT_ENOMEM, "%s: no memory for %" PRId64 " pieces", mt__op_name(call),
                            count);
        }
    }
    p->count = (uint32_t)count;
    return 0;
}

static int pieces_add(pieces *p, mt_tensor *base, const mt__view_geometry *g)
{
    MT_ASSERT(p->made < p->count);
    MT_TRY(mt__geometry_view(base, g, true, &p->tensors[p->made]));
    p->made++;
    return 0;
}

/* Hands the pieces to the call, or releases them after a failure. */
static int pieces_end(mt__call *call, pieces *p, int status)
{
    if (status == 0) {
        status = mt__give_list(call, 0, p->tensors, p->made); /* takes them in any case */
    } else {
        for (uint32_t i = 0; i < p->made; i++) {
            mt_tensor_release(p->tensors[i]);
        }
    }
    if (p->tensors != p->small) {
        mtb_free(p->tensors);
    }
    return status;
}

int mt__run_unbind(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    uint32_t dim = 0;
    mt__view_geometry g;
    pieces p;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    if (self->n_dims == 0) {
        return mtb_fail(MT_EINDEX, "Dimension specified as %u but tensor has no dimensions", dim);
    }
    MT_TRY(pieces_init(call, self->sizes[dim], &p));
    mt__geometry_of(self, &g);
    mt__geometry_remove(&g, dim);
    int status = 0;
    for (uint32_t i = 0; i < p.count && status == 0; i++) {
        status = pieces_add(&p, self, &g);
        g.offset += self->strides[dim];
    }
    return pieces_end(call, &p, status);
}

/* Consecutive pieces of length sizes[i], or of `even` if there are no sizes. */
static int give_pieces(mt__call *call, mt_tensor *self, uint32_t dim, const int64_t *sizes,
                       int64_t even, int64_t count)
{
    int64_t left = self->sizes[dim];
    int status = 0;
    mt__view_geometry g;
    pieces p;
    MT_TRY(pieces_init(call, count, &p));
    mt__geometry_of(self, &g);
    for (uint32_t i = 0; i < p.count && status == 0; i++) {
        g.sizes[dim] = sizes != NULL ? sizes[i] : even < left ? even : left;
        status = pieces_add(&p, self, &g);
        g.offset += g.sizes[dim] * g.strides[dim];
        left -= g.sizes[dim];
    }
    return pieces_end(call, &p, status);
}

static int check_split(const mt_tensor *self, int64_t given, uint32_t *dim)
{
    if (self->n_dims == 0) {
        return mtb_fail(MT_ERUNTIME, "split expects at least a 1-dimensional tensor");
    }
    return mt__wrap_dim(given, self->n_dims, dim);
}

int mt__run_split(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    int64_t length = mt__arg_int(call, 1);
    uint32_t dim = 0;
    MT_TRY(check_split(self, mt__arg_int(call, 2), &dim));
    int64_t size = self->sizes[dim];
    if (length < 0) {
        return mtb_fail(MT_ERUNTIME,
                        "split expects split_size be non-negative, but got split_size=%" PRId64,
                        length);
    }
    if (length == 0 && size != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "split_size can only be 0 if dimension size is 0, but got dimension size "
                        "of %" PRId64,
                        size);
    }
    int64_t count = size == 0 ? 1 : size / length + (size % length != 0);
    return give_pieces(call, self, dim, NULL, length, count);
}

int mt__run_split_with_sizes(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const mt_value *sizes = &call->args[1];
    char text[MT_SHAPE_TEXT];
    int64_t left;
    uint32_t dim = 0;
    MT_TRY(check_split(self, mt__arg_int(call, 2), &dim));
    left = self->sizes[dim];
    for (uint32_t i = 0; i < sizes->count; i++) {
        int64_t size = sizes->of.ints[i];
        if (size < 0) {
            return mtb_fail(MT_ERUNTIME,
                            "split_with_sizes expects split_sizes have only non-negative entries, "
                            "but got split_sizes=%s",
                            mt__shape_text(sizes->of.ints, sizes->count, text));
        }
        /* Once it is too much it stays so: no sum can wrap. */
        left = size > left || left < 0 ? -1 : left - size;
    }
    if (left != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "split_with_sizes expects split_sizes to sum exactly to %" PRId64
                        " (input tensor's size at dimension %" PRId64 "), but got split_sizes=%s",
                        self->sizes[dim], mt__arg_int(call, 2),
                        mt__shape_text(sizes->of.ints, sizes->count, text));
    }
    return give_pieces(call, self, dim, sizes->of.ints, 0, sizes->count);
}

/* A dimension of size 0 still gives the requested number of chunks, all of them empty. */
static int chunk_of_nothing(mt_tensor *self, int64_t chunks, uint32_t dim, mt_value *out)
{
    MT_TRY(check_pieces("chunk", chunks));
    int64_t *sizes = mtb_calloc((size_t)chunks, sizeof(int64_t));
    if (sizes == NULL) {
        return mtb_fail(MT_ENOMEM, "chunk: no memory for %" PRId64 " pieces", chunks);
    }
    mt_value args[] = {
        {.kind = MT_KIND_TENSOR, .of.tensor = self},
        {.kind = MT_KIND_INTS, .count = (uint32_t)chunks, .of.ints = sizes},
        mt_int(dim),
    };
    int status = mt_call(MT__OP_SPLIT_WITH_SIZES, args, MT_COUNT(args), out, 1);
    mtb_free(sizes);
    return status;
}

int mt__run_chunk(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    int64_t chunks = mt__arg_int(call, 1);
    uint32_t dim = 0;
    if (self->n_dims == 0) {
        return mtb_fail(MT_ERUNTIME, "chunk expects at least a 1-dimensional tensor");
    }
    if (chunks <= 0) {
        return mtb_fail(MT_ERUNTIME, "chunk expects `chunks` to be greater than 0, got: %" PRId64,
                        chunks);
    }
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 2), self->n_dims, &dim));
    int64_t size = self->sizes[dim];
    if (size == 0) {
        return chunk_of_nothing(self, chunks, dim, &call->results[0]);
    }
    mt_value args[] = {
        {.kind = MT_KIND_TENSOR, .of.tensor = self},
        mt_int(size / chunks + (size % chunks != 0)),
        mt_int(dim),
    };
    return mt_call(MT__OP_SPLIT, args, MT_COUNT(args), &call->results[0], 1);
}
