/* SPDX-License-Identifier: Apache-2.0
 *
 * What each allocation of a trace is for: parameter, gradient, activation …
 *
 * The first of the two passes that the memory exports make over the event stream: it reads every
 * edge and leaves a plan, from which memory_timeline.c writes while it reads the same edges again.
 *
 * What the host must have recorded (op.h): allocations with their addresses; with each op the
 * tensors it read and made, where `storage` is the address of the tensor's memory and `tensor` is a
 * number that is not used again; a version that grows with each change in place. What was not
 * recorded is not seen: without outputs no activations, without versions no INCREMENT_VERSION.
 *
 * Words. Backward: inside an op with record scope 1, or one whose name begins with
 * "autograd::engine::evaluate_function: " or ends in "AccumulateGrad". Optimizer: inside a scope
 * whose name begins with "Optimizer.step#". Forward: neither. One op: the outermost op around an
 * allocation, or the outermost backward function in it; wrappers ("evaluate_function") do not
 * count.
 *
 * Rules. The category of a version of a storage is looked up by tensor (MC1), then by storage (MC0,
 * MC2, MC3, MC4, then MC8), then by version (MC7, MC5, MC6); the first rule that applies wins.
 *
 *   MC0  Declared by the host: with the tensor (enum mtprof_tensor_role), or by the name of the
 *        scope or op that takes it, "mtprof::memory::parameter", "…::gradient",
 *        "…::optimizer_state" or "…::input". Exact.
 *   MC1  Another storage of a tensor that MC0 to MC4 know is what that tensor is. Exact.
 *   MC2  Gradient:
 *        a) The outputs of AccumulateGrad; without recorded outputs, what was changed in place
 *           inside it; where nothing was, its inputs. Exact.
 *        b) What is changed in place inside AccumulateGrad. Exact.
 *        c) Written by the backward pass, read by an optimizer, never read by a forward op.
 *           Heuristic, for hosts without AccumulateGrad.
 *   MC3  Parameter:
 *        a) Older than a step of an optimizer that changes it, and read by a forward op. Exact,
 *           except for a state that the model reads as well. (Changed is an output that is an input
 *           too, or a new version; without recorded outputs, the first input of an op whose name
 *           ends in "_", or all tensors of it where that is a list; of one whose name begins with
 *           "aten::_fused_" all inputs but the second, which are the gradients.)
 *        b) An input of the forward op (same sequence number and thread) whose backward op made a
 *           gradient of just as many bytes; of several the one that is a parameter already, else
 *           the last that nothing computed, else the last. Heuristic: wrong where an op's input
 *           and its weight have the same size and the input comes last. Not used where the host
 *           declares parameters (MC0), and not for what no optimizer changes where one changes
 *           another input of the op that is as large: buffers of a normalization.
 *   MC4  Optimizer state:
 *        a) Allocated in a step of an optimizer and alive after it. Exact.
 *        b) Older than a step that changes it, never read by a forward op. Heuristic, for steps
 *           before the trace.
 *   MC5  Activation: made by a forward op from at least one parameter or activation, and from
 *        nothing that is a gradient, comes from one, or is optimizer state or autograd detail.
 *        Exact, given MC3.
 *   MC6  Input: used by a forward op; read together with a parameter or an activation, or
 *        turned by some ops into what is, or into a gradient; computed from no gradient. Exact,
 *        given MC3. So the copy of a batch on a device is an input there too.
 *   MC7  Autograd detail: allocated or made by the backward pass. Exact.
 *   MC8  Temporary: allocated and freed inside one op, on one thread. Exact.
 *
 * All else is unknown.
 *
 * A block that is there without having been allocated is PREEXISTING when its first sight is being
 * read or freed; when its first sight is being made, or its address was used before, it is created
 * then. Its size is what its release says, or the largest extent that a tensor in it had.
 *
 * Memory: 56 bytes for each address that was used, 56 for each storage that was seen as a tensor,
 * 16 for each of its versions, 4 for each time an op read or made one, 1 for any other allocation.
 */
#ifndef MTPROF_ANALYZE_MEMORY_MEMORY_CATEGORIES_H
#define MTPROF_ANALYZE_MEMORY_MEMORY_CATEGORIES_H

#include "mtprof/analyze/memory/memory_flow.h"
#include "mtprof/analyze/memory/memory_live.h"
#include "mtprof/model/events/event.h"

/* A block that was not seen being allocated. */
typedef struct mtprof__found_block {
    uint64_t address;
    int64_t bytes;
    uint64_t ordinal; /* edge at which it comes up; 0: PREEXISTING */
    uint8_t device, category;
} mtprof__found_block;

/* A block changes in place. */
typedef struct mtprof__block_change {
    uint64_t ordinal; /* edge before which it is reported */
    uint64_t address;
    uint32_t block;
    uint32_t version; /* of the flow; orders changes at the same edge */
    uint8_t device, category;
} mtprof__block_change;

/* What the first pass found out. Edges are counted from 1 in the order of the stream, ALLOC points
 * that allocate from 0. */
typedef struct mtprof__memory_plan {
    uint8_t *categories; /* of the allocations when they are made */
    size_t n_blocks, blocks_capacity;
    mtprof__found_block *found; /* by ordinal */
    size_t n_found, found_capacity;
    mtprof__block_change *changes; /* by ordinal */
    size_t n_changes, changes_capacity;
} mtprof__memory_plan;

typedef struct mtprof__classifier mtprof__classifier;

/* model (may be NULL) names threads and types of tensors. Fails with ENOMEM. */
int mtprof__classifier_new(const mtprof_model *model, mtprof__classifier **out);
void mtprof__classifier_free(mtprof__classifier *classifier);

/* Takes the next edge. Fails with ENOMEM, ENOTSUP (too many blocks). */
int mtprof__classifier_feed(mtprof__classifier *classifier, const mtprof__event *event);

/* Decides, and gives the plan away; to be freed with mtprof__memory_plan_fini(). Once. */
void mtprof__classifier_finish(mtprof__classifier *classifier, mtprof__memory_plan *plan);

/* What did not fit its tables, so that something may be in a wrong category. */
uint64_t mtprof__classifier_left_out(const mtprof__classifier *classifier);
void mtprof__memory_plan_fini(mtprof__memory_plan *plan);

#endif /* MTPROF_ANALYZE_MEMORY_MEMORY_CATEGORIES_H */
