/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops by number: the one path that every call of an op takes.
 *
 *     mt_value args[] = {a, b, alpha};           // as the schema says, defaults may be left out
 *     mt_call(op, args, 3, &result, 1);
 *
 * The typed functions of ops.h, the Python package and the tests all end here. Numbers may differ
 * between builds: find an op by its name.
 */
#ifndef MINDTORCH_OP_H
#define MINDTORCH_OP_H

#include <mindtorch/status.h>
#include <mindtorch/value.h>

MT_BEGIN_DECLS

typedef uint32_t mt_op;

enum {
    MT_MAX_PARAMS = 16, /**< of a schema */
    MT_MAX_RESULTS = 8  /**< of a schema */
};

/** Properties of an op; a set of bits. */
enum mt_op_flag {
    MT_OP_COMPOSITE = 1 << 0, /**< made of other ops, which are called through the dispatcher */
    MT_OP_INPLACE = 1 << 1,   /**< writes its first argument and returns it */
    MT_OP_VIEW = 1 << 2,      /**< the results share the first argument's storage */
    MT_OP_RANDOM = 1 << 3,    /**< advances a generator */
    MT_OP_SYNC = 1 << 4,      /**< may wait for the device, because it reads data on the host */
    MT_OP_USER = 1 << 5,      /**< registered by a user */
    MT_OP_FACTORY = 1 << 6,   /**< makes a tensor from nothing: the device is an argument */
    MT_OP_POINTWISE = 1 << 7, /**< broadcasts its tensors */
    MT_OP_REDUCTION = 1 << 8,
    MT_OP_OPTIMIZER = 1 << 9,   /**< writes all tensors of its lists */
    MT_OP_ANY_DEVICE = 1 << 10, /**< its tensors may be on several devices; the first counts */
    MT_OP_PRODUCT = 1 << 11,    /**< its work grows faster than its elements: products, sorts */
    MT_OP_FUSED = 1 << 12,      /**< OPTIMIZER; takes parameters, gradients (only read) and state */
    MT_OP_LIKE = 1 << 13        /**< makes a tensor like its first argument */
};

typedef struct mt_op_info {
    uint32_t struct_size;   /**< set by the caller */
    uint32_t flags;         /**< enum mt_op_flag */
    const char *name;       /**< "add", without overload; lives as long as the process */
    const char *overload;   /**< "", "dim" */
    const char *trace_name; /**< "aten::add" */
    const char *schema;
    uint32_t n_params;
    uint32_t n_results;
    bool differentiable; /**< has a derivative of its own; composites have their parts' */
} mt_op_info;

/** Numbers run from 0 to mt_op_count() - 1; users' ops follow ours. */
MT_API uint32_t mt_op_count(void);
MT_API mt_status mt_op_get_info(mt_op op, mt_op_info *info);

/** A parameter of an op, as a binding needs it. */
typedef struct mt_op_param {
    uint32_t struct_size; /**< set by the caller */
    uint32_t accepts;     /**< a bit (1 << mt_kind) for each kind that is accepted */
    const char *name;     /**< lives as long as the process, as does what `value` points to */
    const char *type;     /**< "Tensor", "Tensor|Scalar", "int[]" and so on, without "?" */
    bool optional;        /**< "?": NONE is accepted */
    bool keyword_only;    /**< comes after the schema's "*" */
    bool has_default;
    mt_value value; /**< the default */
} mt_op_param;
MT_API mt_status mt_op_get_param(mt_op op, uint32_t index, mt_op_param *param);

/** A result of an op. */
typedef struct mt_op_result {
    uint32_t struct_size; /**< set by the caller */
    uint32_t kind;        /**< mt_kind: TENSOR, TENSORS, BOOL, INT; NONE for "Scalar" */
    char name[64];        /**< "values"; "" where the schema has none */
} mt_op_result;
MT_API mt_status mt_op_get_result(mt_op op, uint32_t index, mt_op_result *result);

/** By name: "add", "max.dim" or "mylib::scale". false: there is none, and *op is left alone. */
MT_API bool mt_op_find(const char *name, mt_op *op);

/**
 * Calls an op. Arguments are in the schema's order; trailing ones that have defaults may be left
 * out. `results` takes n_results values (the schema's number, checked), each to be cleared with
 * mt_value_clear(); all are NONE on failure.
 */
MT_API mt_status mt_call(mt_op op, const mt_value *args, uint32_t n_args, mt_value *results,
                         uint32_t n_results);

/** A user-defined op. Arguments have been checked against the schema, and defaults are filled
 * in. */
typedef int mt_op_run_fn(void *context, const mt_value *args, mt_value *results);

/**
 * Its derivative. Given args and results of the forward call and a gradient for each result (NULL
 * where nothing depended on it), writes a gradient for each argument to grads_in, which is all NULL
 * at entry; an entry that stays NULL means "none".
 */
typedef int mt_op_backward_fn(void *context, const mt_value *args, const mt_value *results,
                              mt_tensor *const *grads_out, mt_tensor **grads_in);

/**
 * Registers an op: "mylib::scale(Tensor x, float factor=2) -> Tensor". It is dispatched, profiled
 * under that name and, with `backward`, differentiated like ours. `context` must live as long as
 * the process. MT_EVALUE: the schema does not parse, or the name is taken.
 */
MT_API mt_status mt_op_register(const char *schema, mt_op_run_fn *run, mt_op_backward_fn *backward,
                                void *context, mt_op *op);

MT_END_DECLS

#endif /* MINDTORCH_OP_H */
