/* SPDX-License-Identifier: Apache-2.0
 *
 * The row of an op: all that the dispatcher knows about it. Rows of our ops are made by the build
 * (tools/opgen) from ops/all_ops.def; users' rows are made by mt_op_register().
 */
#ifndef MINDTORCH_DISPATCH_OP_ROW_H
#define MINDTORCH_DISPATCH_OP_ROW_H

#include "hosts/flops.h"
#include "mindtorch/dispatch/reported_inputs.h"
#include "mindtorch/trace/op_flops.h"

#include <mindtorch/autograd.h>
#include <mindtorch/op.h>

typedef struct mt__call mt__call;
typedef struct mt__backward mt__backward;

/* Does the work: checks, allocates results, launches kernels or calls other ops. */
typedef int mt__run_fn(mt__call *call);

/* The derivative: see autograd/formulas/backward.h. */
typedef int mt__backward_fn(mt__backward *backward);

enum {
    MT_SAVE_ARG = 1,          /* MT_SAVE_ARG << n: the nth argument */
    MT_SAVE_RESULT = 1 << 16, /* MT_SAVE_RESULT << n: the nth result */
    MT_MAX_DERIVATIVE_NAME = 64,
    MT_RULED_ARGS = 4 /* arguments that saved_if covers */
};

typedef struct mt__derivative {
    const char *name;                 /* "MulBackward0" */
    mt__backward_fn *run;             /* NULL: the op has no derivative of its own */
    uint32_t saves;                   /* MT_SAVE_*: what the formula reads */
    uint16_t saved_if[MT_RULED_ARGS]; /* argument n is saved only if one of these (1 << m) needs a
                                         gradient; 0: if any does */
} mt__derivative;

/* Parameters as dispatch checks them: `accepts` has a bit for each mt_kind. */
typedef struct mt__row_param {
    const char *name;
    uint32_t accepts;
    bool has_default;
    bool has_gaps; /* "Tensor?[]": tensors of the list may be absent */
    mt_value value;
} mt__row_param;

/* The name of a node that depends on an argument of the call. */
typedef enum mt__node_condition {
    MT_NODE_IF_TENSOR,
    MT_NODE_IF_NUMBER,
    MT_NODE_IF_GIVEN,
    MT_NODE_IF_NOT_GIVEN
} mt__node_condition;

typedef struct mt__node_if {
    const char *name;
    uint16_t op;
    uint8_t argument;
    uint8_t condition; /* mt__node_condition */
} mt__node_if;

/* In flags, besides mt_op_flag. */
enum {
    MT_OP_PUBLIC = 0xFFFF,
    MT_OP_UNNUMBERED = 1 << 16, /* torch gives it no sequence number (tensors from nothing) */
    MT_OP_QUIET = 1 << 17       /* not reported where argument 0 is contiguous already */
};
#define MT_OP_FLOPS(rule) ((uint32_t)HOST_FLOPS_##rule << 24)

typedef struct mt__op_row {
    const char *name;
    const char *overload;
    const char *trace_name;
    const char *schema;
    uint32_t flags; /* enum mt_op_flag, those above, MT_OP_FLOPS */
    uint16_t n_params;
    uint16_t n_required; /* the first ones, without a default */
    uint16_t n_results;
    uint16_t op;     /* its number */
    uint16_t target; /* another name: the number of the op that it calls */
    mt__run_fn *run;
    const mt__row_param *params;
    const mt__derivative *derivative; /* NULL: none */
    const mt__shown *reported;        /* up to MT_SHOWN_NEVER, the first match applies; NULL: the
                                         arguments in order */
    mt_op_run_fn *user_run;
    mt_op_backward_fn *user_backward;
    void *user_context;
} mt__op_row;

/* Made by opgen. The names have MT_NAME_VARIANTS items (op_numbers.h). */
extern const mt__op_row mt__op_rows[];
extern const uint32_t mt__n_op_rows;
extern const mt__node_if mt__node_names[];

#endif /* MINDTORCH_DISPATCH_OP_ROW_H */
