/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of the classifier; memory_categories.c describes them.
 */
#ifndef MTPROF_ANALYZE_MEMORY_MEMORY_CATEGORIES_IMPL_H
#define MTPROF_ANALYZE_MEMORY_MEMORY_CATEGORIES_IMPL_H

#include "mtprof/analyze/memory/memory_categories.h"
#include "mtprof/model/facts/forward.h"

enum {
    MTPROF__FORWARD_PLACES = 1 << 16 /* forward.h, FW3 */
};

enum mtprof__frame_fact {
    MTPROF__FRAME_BACKWARD = 1 << 0,
    MTPROF__FRAME_WRAPPER = 1 << 1,       /* evaluate_function: is not the "one op" */
    MTPROF__FRAME_UNIT_BACKWARD = 1 << 2, /* its unit is a backward function */
    MTPROF__FRAME_ACCUMULATE = 1 << 3,    /* AccumulateGrad, or inside one */
    MTPROF__FRAME_ACCUMULATE_OP = 1 << 4, /* AccumulateGrad itself */
    MTPROF__FRAME_CHANGED = 1 << 5,       /* something was changed in place inside it */
    MTPROF__FRAME_STEP = 1 << 6           /* the step of an optimizer itself */
};

typedef struct mtprof__tensor_use {
    uint32_t version, tensor;
} mtprof__tensor_use;

typedef struct mtprof__frame {
    uint64_t id;
    uint64_t unit;    /* the "one op" it is in, 0: none */
    uint64_t ordinal; /* of its BEGIN edge */
    uint64_t forward; /* key of the forward op, in the backward pass; 0: not known */
    uint32_t optimizer;
    uint32_t first_use, n_uses;
    uint32_t n_taken;           /* tensors of its payload that were handled */
    uint32_t n_first, n_second; /* of them, what the first and the second input have */
    uint8_t facts;
    uint8_t told; /* MC0 */
} mtprof__frame;

typedef struct mtprof__track {
    mtprof__frame *frames;
    size_t n_frames, frames_capacity;
    mtprof__tensor_use *uses;
    size_t n_uses, uses_capacity;
    uint32_t thread; /* logical number */
} mtprof__track;

/* What the forward ops of a number read, for MC3b. */
typedef struct mtprof__forward_inputs {
    mtprof__forward forward; /* note: how many */
    uint32_t storages[MTPROF__FORWARD_INPUTS];
} mtprof__forward_inputs;

struct mtprof__classifier {
    const mtprof_model *model;
    uint64_t ordinal; /* of the current edge, from 1 */
    mtprof__addresses live;
    mtprof__flow flow;
    mtprof__memory_plan plan;
    mtprof__track *tracks;
    size_t n_tracks, tracks_capacity;
    mtprof__forwards forwards; /* of mtprof__forward_inputs */
    uint32_t *open_steps;      /* of optimizers */
    size_t n_open_steps, open_steps_capacity;
    uint32_t n_steps;
    bool tells_parameters; /* the host says which tensors are parameters */
    uint32_t *outs;        /* scratch: versions that the current op made */
    size_t outs_capacity;
    uint32_t *ins;
    size_t ins_capacity;
    /* Inputs beyond FORWARD_INPUTS, and reads of a version too old
     * (mtprof__flow_find_version). */
    uint64_t left_out;
};

/* Sequence number and thread of a forward op in one word, never 0. */
uint64_t mtprof__forward_key(int64_t sequence, uint32_t thread);
/* A forward op reads a storage. Fails with ENOMEM. */
int mtprof__forward_reads(mtprof__classifier *c, uint64_t key, uint32_t storage);

/* What a storage and a tensor (MTPROF__NO_INDEX: none) are, unless they are something already. */
void mtprof__set_role(mtprof__classifier *c, uint32_t storage, uint32_t tensor, uint8_t role);
/* The same for gradients, and for the parameter whose gradient it is (MC3b). */
void mtprof__set_gradient(mtprof__classifier *c, uint32_t storage, uint32_t tensor);

/* The innermost open frame, or NULL. */
const mtprof__frame *mtprof__frame_top(const mtprof__track *t);

/* ALLOC points. Fail with ENOMEM, ENOTSUP. */
int mtprof__take_alloc(mtprof__classifier *c, const mtprof__event *event, const mtprof__track *t);
int mtprof__take_release(mtprof__classifier *c, const mtprof__event *event, const mtprof__track *t);
/* What the end of a block says about it; `inside` is the op that is open then, 0: none. */
void mtprof__block_ends(mtprof__classifier *c, mtprof__live_block *entry, uint64_t inside);

/* The version that a tensor is in, MTPROF__NO_INDEX where it has no memory. `made`: it is an output
 * of the op whose BEGIN was edge `since`. Fails with ENOMEM, ENOTSUP. */
int mtprof__resolve(mtprof__classifier *c, const mtprof__tensor *t, bool made, uint64_t since,
                    mtprof__tensor_use *use);

#endif /* MTPROF_ANALYZE_MEMORY_MEMORY_CATEGORIES_IMPL_H */
