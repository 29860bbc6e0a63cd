/* SPDX-License-Identifier: Apache-2.0
 *
 * The one place of the runtime that knows libmtprof. While nothing records, each of these is one
 * load and one branch.
 */
#ifndef MINDTORCH_TRACE_OP_TRACE_H
#define MINDTORCH_TRACE_OP_TRACE_H

#include <mindtorch/value.h>
#include <mtprof/op.h>
#include <mtprof/trace.h>

#define MT_TRACE_ANY                                                                            \
    ((uint32_t)MTPROF_WANT_OPS | (uint32_t)MTPROF_WANT_SCOPES | (uint32_t)MTPROF_WANT_RUNTIME | \
     (uint32_t)MTPROF_WANT_DEVICE)

/* A tensor as the profiler sees it. */
typedef struct mt__tensor_facts {
    const int64_t *sizes;
    const int64_t *strides;
    uint32_t n_dims;
    uint32_t dtype;
    mtprof_tensor_ref ref;
} mt__tensor_facts;

/* Defined by core, above this folder: all of it in one call. */
void mt__tensor_facts_of(const mt_tensor *tensor, mt__tensor_facts *facts);

/* An op about to run. */
typedef struct mt__trace_op {
    mtprof_site *site;
    const mt_value *args;
    uint32_t n_args;
    uint32_t flops; /* mt__flops */
    bool has_sequence;
    uint64_t sequence;
    uint64_t memory_before;
    uint32_t memory_device;
} mt__trace_op;

/* 0 while nothing records. */
mtprof_token mt__trace_op_begin(const mt__trace_op *op);
void mt__trace_op_end(mtprof_token token, const mt_value *results, uint32_t n_results,
                      uint32_t memory_device, uint64_t memory_after);

/* A node of the graph while backward runs it. torch gives "MulBackward0" record scope 1, and the
 * scope "autograd::engine::evaluate_function: MulBackward0" around it 0; both carry the number of
 * the forward op and its thread (mt__trace_thread() when the node was made). UINT64_MAX: no number,
 * as AccumulateGrad has none. `site` comes from mt__trace_site(). Ended with mt__trace_end(). */
mtprof_token mt__trace_node_begin(mtprof_site *site, uint32_t record_scope, uint64_t sequence,
                                  uint32_t forward_thread);

/* A site for a name made at run time (users' ops, nodes), found again for an equal one. Lives as
 * long as the process. NULL: no memory. */
mtprof_site *mt__trace_site(const char *name);

/* The logical thread that records here, for links from backward to forward. */
uint32_t mt__trace_thread(void);

static inline bool mt__trace_on(void)
{
    return mtprof_wants(MT_TRACE_ANY);
}

static inline void mt__trace_end(mtprof_token token)
{
    mtprof_end(token);
}

/* A scope of the runtime's own ("Optimizer.step#SGD.step"), 0 while nothing records. */
mtprof_token mt__trace_scope_begin(const char *name);

/* The profiler's number of a device: 0 is the host, accelerators count from 1. */
static inline uint32_t mt__trace_device(mt_device device)
{
    return device == MT_CPU ? 0 : ((uint32_t)device & 255U) + 1;
}

/* bytes > 0: handed out; < 0: given back. */
static inline void mt__trace_memory(mt_device device, const void *address, int64_t bytes,
                                    uint64_t allocated, uint64_t reserved_bytes)
{
    mtprof_alloc(mt__trace_device(device), (uint64_t)(uintptr_t)address, bytes, allocated,
                 reserved_bytes);
}

#endif /* MINDTORCH_TRACE_OP_TRACE_H */
