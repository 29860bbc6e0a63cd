/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions from the op table: what a call of torch.add() or x.add() goes through.
 *
 *     op_object (torch.add, Tensor.add) ──► op_set "add" ──► op_overload (a row of the table) ...
 *     arguments ──op_bind()──► mt_value for each parameter ──► tensors_call() ──► results
 *
 *   OB1  Sets and overloads are made when the module starts, or when a user's op is first looked
 *        up, and live as long as the process.
 *   OB2  op_bind() raises no exception if arguments do not fit: the next overload is tried, and
 *        op_refuse() reports what was wrong when none is left.
 *   OB3  Arguments are held by the caller, but items of lists only by the lists, which other
 *        threads may change, and so may the __index__ of a later argument: tensors of lists are
 *        held until the call is over.
 */
#ifndef PYTHON_EXT_TENSORS_OPS_OP_BINDING_H
#define PYTHON_EXT_TENSORS_OPS_OP_BINDING_H

#include "tensors/module/tensors_state.h"

typedef enum op_type {
    OP_TENSOR,
    OP_TENSOR_OR_SCALAR,
    OP_TENSORS,
    OP_OPTIONAL_TENSORS,
    OP_SCALAR,
    OP_INT,
    OP_INTS,
    OP_FLOAT,
    OP_BOOL,
    OP_TEXT,
    OP_DTYPE,
    OP_DEVICE,
    OP_GENERATOR,
    OP_TYPE_COUNT
} op_type;

typedef struct op_param {
    PyObject *name;  /* interned; "input" for "self" */
    PyObject *other; /* another name that is taken: "axis" for "dim"; NULL: none */
    uint8_t type;    /* op_type */
    uint8_t spread;  /* INTS: length of the list that a single int is expanded to; 0: none */
    bool optional;
    bool keyword_only;
    bool has_default;
    bool format;    /* memory_format: a torch.memory_format stands for its number */
    mt_value value; /* the default */
} op_param;

typedef struct op_overload {
    mt_op op;
    uint32_t flags;    /* enum mt_op_flag */
    uint16_t required; /* a bit for each parameter that must be given */
    uint8_t n_params;
    uint8_t n_positional; /* those that may be given without a name */
    uint8_t n_results;
    uint8_t first;         /* the first parameter that callers see: those before it are fixed */
    bool makes;            /* takes requires_grad, layout, pin_memory: a tensor is made */
    int8_t device_at;      /* a factory's device, for which the thread's default stands; -1: none */
    PyTypeObject *results; /* of several named results; NULL: a tuple */
    op_param params[MT_MAX_PARAMS];
} op_overload;

enum {
    OP_MAX_OVERLOADS = 6
};

typedef struct op_set {
    PyObject *name; /* "add" */
    PyObject *doc;
    uint32_t count;
    op_overload *overloads[OP_MAX_OVERLOADS];
    bool is_method; /* the first overload's first parameter is "self" */
} op_set;

/* torch.add, or Tensor.add: two types, one layout. */
typedef struct op_object {
    PyObject_HEAD vectorcallfunc call;
    op_set *set;
    bool method;
} op_object;

/* Memory that the arguments of one call point to. */
typedef struct op_scratch {
    uint32_t used;         /* of `words` */
    void *heap;            /* for lists that do not fit, linked by their first word; or NULL */
    struct op_held *lists; /* of tensors, each of which is held (OB3) */
    int64_t words[40];
} op_scratch;

/* A list of tensors in the scratch. */
typedef struct op_held {
    struct op_held *next;
    size_t count; /* that are held */
    mt_tensor *tensors[];
} op_held;

void op_scratch_init(op_scratch *scratch);
void op_scratch_clear(op_scratch *scratch);
/* Room for so many words of eight bytes; NULL: MemoryError. */
void *op_scratch_take(op_scratch *scratch, size_t words);

/* What a call has in addition to its parameters. */
typedef struct op_extras {
    bool requires_grad;
    bool pin_memory;
    int format;    /* FORMAT_PRESERVE: the op's own */
    PyObject *out; /* borrowed; NULL: none */
} op_extras;

/* Why arguments do not fit. */
typedef enum op_misfit {
    MISFIT_NONE,
    MISFIT_TYPE,    /* param, got, position (0: by name) */
    MISFIT_ITEM,    /* as TYPE: an item of a list of ints; position is the item's */
    MISFIT_MANY,    /* position: how many were given */
    MISFIT_MISSING, /* missing: bits of parameters */
    MISFIT_UNKNOWN, /* got: the keyword */
    MISFIT_TWICE,   /* got: the keyword */
    MISFIT_EXTRA    /* extra, wanted, got: requires_grad and its like */
} op_misfit;

typedef struct op_failure {
    op_misfit misfit;
    const op_param *param;
    PyObject *got; /* borrowed from the call */
    const char *extra;
    const char *wanted;
    Py_ssize_t position;
    uint32_t missing;
} op_failure;

/* The arguments of a vectorcall. */
typedef struct op_call {
    PyObject *const *args;
    Py_ssize_t n_args;
    PyObject *kwnames; /* or NULL */
    bool method;
} op_call;

/* One argument. 1: fits, 0: does not, -1: an exception. op_arguments.c */
int op_argument(const op_param *param, PyObject *object, mt_value *value, op_scratch *scratch);

/* "Tensor", "tuple of ints" and so on. */
const char *op_type_text(const op_param *param);

/* All arguments of a call; values has room for MT_MAX_PARAMS. 1, 0 (failure says why) or -1. */
int op_bind(const op_overload *overload, const op_call *call, mt_value *values, op_scratch *scratch,
            op_extras *extras, op_failure *failure);

/* Raises TypeError for a call that no overload takes; `failure` is that of the one
 * that is meant, if that is known. Returns NULL. op_overloads.c */
PyObject *op_refuse(const op_set *set, const op_call *call, const op_failure *failure);

/* The type of several named results ("values", "indices"), as torch.return_types.max; *type stays
 * NULL where a tuple is given. op_results.c */
int op_result_type(const char *name, mt_op op, uint32_t count, PyTypeObject **type);

/* Results as an object; they are cleared. */
PyObject *op_results(const op_overload *overload, mt_value *results);

/* torch.NAME or Tensor.NAME. op_binding.c */
PyObject *op_object_new(op_set *set, bool method);

/* Makes sets and objects of all rows: `ops` in the module, methods on Tensor. op_table.c */
int op_table_start(PyObject *module);

#endif /* PYTHON_EXT_TENSORS_OPS_OP_BINDING_H */
