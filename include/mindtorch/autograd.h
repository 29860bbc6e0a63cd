/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients. Ops on tensors that require one record a graph; mt_backward() walks it from the
 * results to the leaves.
 *
 *     mt_tensor_set_requires_grad(w, true);
 *     mt_mul(w, x, &y); mt_sum(y, ..., &loss);
 *     mt_backward(loss, NULL, 0);
 *     mt_tensor_grad(w)                            // d loss / d w
 *
 * Threads: several threads may run mt_backward() at once, over shared leaves too. Grad mode belongs
 * to the thread.
 */
#ifndef MINDTORCH_AUTOGRAD_H
#define MINDTORCH_AUTOGRAD_H

#include <mindtorch/status.h>
#include <mindtorch/value.h>

MT_BEGIN_DECLS

/** A node of the graph. Borrowed from the tensor whose grad_fn it is. */
typedef struct mt_node mt_node;

/** Whether ops on the tensor are recorded for backward. */
MT_API bool mt_tensor_requires_grad(const mt_tensor *tensor);

/** MT_ERUNTIME for tensors that are not floating-point, and for false on results of ops. */
MT_API mt_status mt_tensor_set_requires_grad(mt_tensor *tensor, bool requires_grad);

/** True for tensors that no recorded op made. */
MT_API bool mt_tensor_is_leaf(const mt_tensor *tensor);

/** Whether it is recorded as a view of another tensor. */
MT_API bool mt_tensor_is_view(const mt_tensor *tensor);

/** The tensor that it is a view of, borrowed; NULL unless mt_tensor_is_view(). */
MT_API mt_tensor *mt_tensor_base(const mt_tensor *tensor);

/** The accumulated gradient, borrowed, or NULL. */
MT_API mt_tensor *mt_tensor_grad(const mt_tensor *tensor);

/** Shape, type and device must be the tensor's. NULL takes the gradient away. */
MT_API mt_status mt_tensor_set_grad(mt_tensor *tensor, mt_tensor *grad);

/** Keeps the gradient of a tensor that is not a leaf. */
MT_API mt_status mt_tensor_retain_grad(mt_tensor *tensor);

/** Whether mt_tensor_retain_grad() was called for it while it was not a leaf. */
MT_API bool mt_tensor_retains_grad(const mt_tensor *tensor);

/** Cuts the tensor itself from its graph. MT_ERUNTIME for views. */
MT_API mt_status mt_tensor_detach_inplace(mt_tensor *tensor);

/**
 * `tensor.data = source`: takes over elements, shape, type and device of source, and shares the
 * elements with it from then on; gradient, hooks and place in the graph stay. The tensor is no
 * longer a view. MT_ERUNTIME if it requires a gradient and source is not floating-point.
 */
MT_API mt_status mt_tensor_set_data(mt_tensor *tensor, const mt_tensor *source);

/** Grad mode of this thread, true at first. The setter returns what it was. */
MT_API bool mt_grad_enabled(void);
MT_API bool mt_set_grad_enabled(bool enabled);

/**
 * Inference mode of this thread, off at first: nothing is recorded, and tensors made in it never
 * will be (mt_tensor_is_inference). The setter returns what it was and sets grad mode to `!on`.
 */
MT_API bool mt_inference_mode(void);
MT_API bool mt_set_inference_mode(bool on);

/**
 * Calls run(argument) on a new thread that has the modes, the current device and the current
 * streams of this one, and waits for it. Returns what it returned; the detail of a failure is this
 * thread's afterwards. For a backward inside a backward, many levels deep, which needs more stack
 * than one thread has. MT_ENOMEM: there is no thread.
 */
MT_API mt_status mt_call_on_thread(int (*run)(void *argument), void *argument);

enum mt_backward_flag {
    MT_RETAIN_GRAPH = 1 << 0, /**< saved tensors stay: backward may run again */
    MT_CREATE_GRAPH = 1 << 1, /**< gradients have graphs of their own; implies RETAIN_GRAPH */
    MT_ALLOW_UNUSED = 1 << 2  /**< mt_grad(): an input that was not used gives NULL, no error */
};

/**
 * Adds d tensor / d leaf to the gradient of every leaf. `gradient` NULL means 1 and needs a tensor
 * of one element.
 */
MT_API mt_status mt_backward(mt_tensor *tensor, mt_tensor *gradient, uint32_t flags);

/** The same from several tensors; `gradients`, or any of its entries, may be NULL. */
MT_API mt_status mt_backward_many(mt_tensor *const *tensors, mt_tensor *const *gradients,
                                  size_t count, uint32_t flags);

/** Gradients of `outputs` with respect to `inputs`, given to the caller; leaves are not touched. */
MT_API mt_status mt_grad(mt_tensor *const *outputs, mt_tensor *const *gradients, size_t n_outputs,
                         mt_tensor *const *inputs, size_t n_inputs, uint32_t flags,
                         mt_tensor **grads);

/**
 * Called with a tensor's gradient before it is used. It may give another one of the same shape in
 * *replacement (one reference), which is NULL at entry. A status other than 0 ends the backward.
 */
typedef int mt_hook_fn(void *context, mt_tensor *grad, mt_tensor **replacement);

typedef uint64_t mt_hook_handle;

/** free_context may be NULL; it is called when the hook is removed or the tensor is gone. */
MT_API mt_status mt_tensor_add_hook(mt_tensor *tensor, mt_hook_fn *hook, void *context,
                                    void (*free_context)(void *), mt_hook_handle *handle);

/** Called after a leaf's gradient was accumulated, with the leaf. */
typedef int mt_leaf_hook_fn(void *context, mt_tensor *leaf);
MT_API mt_status mt_tensor_add_accumulate_hook(mt_tensor *tensor, mt_leaf_hook_fn *hook,
                                               void *context, void (*free_context)(void *),
                                               mt_hook_handle *handle);

/** Called for each hook that is on the gradients of a node's results. */
typedef void mt_hook_visit_fn(void *argument, void *context, void (*free_context)(void *));

/** Shows the hooks of a node that no tensor holds; see mt_tensor_owns_hooks(). */
MT_API void mt_node_visit_hooks(const mt_node *node, mt_hook_visit_fn *visit, void *argument);

/** In hooks of nodes: gradients of the results (`grads`, n of them) before the node uses them, NULL
 * where there is none. Entries may be replaced: release the old one. */
typedef int mt_node_prehook_fn(void *context, mt_tensor **grads, size_t n);

/** The same after the node has run: gradients of its inputs, which may be replaced, and those that
 * it used. A node that accumulates has no inputs. */
typedef int mt_node_hook_fn(void *context, mt_tensor **grads_in, size_t n_in,
                            mt_tensor *const *grads, size_t n);

/** Hooks of a node run in the order in which they were added, at every backward through it. */
MT_API mt_status mt_node_add_prehook(mt_node *node, mt_node_prehook_fn *hook, void *context,
                                     void (*free_context)(void *), mt_hook_handle *handle);
MT_API mt_status mt_node_add_hook(mt_node *node, mt_node_hook_fn *hook, void *context,
                                  void (*free_context)(void *), mt_hook_handle *handle);
MT_API void mt_node_remove_hook(mt_node *node, mt_hook_handle handle);

/** A pointer of the host language's that lives as long as the node; NULL: there is none. It is set
 * once. */
MT_API void *mt_node_note(const mt_node *node);
MT_API mt_status mt_node_set_note(mt_node *node, void *note, void (*free_note)(void *));

/** Removes a hook of either sort; an unknown handle is ignored. */
MT_API void mt_tensor_remove_hook(mt_tensor *tensor, mt_hook_handle handle);

/** Whether the hooks are freed with the tensor: it is a leaf, or no other tensor has its node and
 * it never had another one. For a host language's garbage collector: nothing is allocated or
 * changed. */
MT_API bool mt_tensor_owns_hooks(const mt_tensor *tensor);

/** The node that computed the tensor; NULL for leaves. Owned by the graph. */
MT_API mt_node *mt_tensor_grad_fn(const mt_tensor *tensor);
/** Where the gradient of the tensor goes: a new reference to the node, and which of its results; a
 * leaf has the node that accumulates. MT_ERUNTIME if it requires none. */
MT_API mt_status mt_tensor_get_gradient_edge(mt_tensor *tensor, mt_node **node, uint32_t *output);
MT_API const char *mt_node_name(const mt_node *node); /**< "MulBackward0" */
MT_API uint64_t mt_node_sequence(const mt_node *node);
/** The number that the next node made on this thread gets. */
MT_API uint64_t mt_next_sequence(void);
MT_API uint32_t mt_node_n_next(const mt_node *node);
MT_API mt_node *mt_node_next(const mt_node *node, uint32_t index); /**< NULL: nothing there */
/** Which result of the next node the edge leads to. */
MT_API uint32_t mt_node_next_output(const mt_node *node, uint32_t index);
/** The leaf whose gradient the node accumulates, borrowed; NULL for others. */
MT_API mt_tensor *mt_node_variable(const mt_node *node);
MT_API mt_node *mt_node_retain(mt_node *node);
MT_API void mt_node_release(mt_node *node); /**< accepts NULL */
/** References to the node: of tensors, of other nodes' edges and of callers. */
MT_API uint32_t mt_node_use_count(const mt_node *node);

/* ---- saved tensors --------------------------------------------------------------------------- */

/** What a pack function made of a tensor: the first member of a struct of its own. */
typedef struct mt_packed mt_packed;
struct mt_packed {
    /** One reference in *out. May be called several times, on any thread, at once. */
    int (*unpack)(mt_packed *packed, mt_tensor **out);
    void (*free)(mt_packed *packed); /**< when no graph needs it any more */
};

/** Called with each tensor that a node saves, grad mode off. It must not change the tensor. */
typedef int mt_pack_fn(void *context, mt_tensor *tensor, mt_packed **out);

/** Sets the pack function of this thread; NULL: tensors are saved as they are, as at first. */
MT_API void mt_set_pack(mt_pack_fn *pack, void *context);

enum {
    MT_SAVED_NAME = 64
};

/** The name of the saved value `index` of an op's node ("self", "dim", "result"); false: there are
 * not so many. */
MT_API bool mt_node_saved_name(const mt_node *node, uint32_t index, char name[MT_SAVED_NAME]);

/**
 * A saved value by its name: a tensor, given to the caller (mt_value_clear); NONE where this call
 * did not save it; numbers, and lists that the node owns. MT_EINDEX: no such name. MT_ERUNTIME: it
 * was released, or changed in place.
 */
MT_API mt_status mt_node_get_saved(mt_node *node, const char *name, mt_value *out);

/* ---- anomaly detection ----------------------------------------------------------------------- */

/** Called on the thread that makes a node, or runs it. */
typedef void mt_anomaly_fn(mt_node *node);

/**
 * For all threads: while it is on, each new node is shown to `made`, each node whose derivative
 * fails to `failed`, before the error is returned. With check_nan a derivative that gives NaN fails
 * too; that reads the gradients, so it waits for devices. The functions may be NULL.
 */
MT_API void mt_set_anomaly(bool on, bool check_nan, mt_anomaly_fn *made, mt_anomaly_fn *failed);
MT_API bool mt_anomaly_enabled(void);
MT_API bool mt_anomaly_checks_nan(void);

/** The number of the backward that runs on this thread, 0: none does. In its hooks: whether it runs
 * a node, or has run it. */
MT_API uint64_t mt_current_run(void);
MT_API bool mt_current_run_reaches(const mt_node *node);

/** The node that runs on this thread, borrowed; NULL: none does. */
MT_API mt_node *mt_current_node(void);

/* ---- functions of the user's own ------------------------------------------------------------- */

/** One call of a custom function, from forward to backward. */
typedef struct mt_function_call mt_function_call;

typedef struct mt_function {
    uint32_t struct_size; /**< set by the caller */
    uint32_t reserved;    /**< leave zero */
    const char *name;     /**< of the node: "MyReluBackward"; copied */
    /** Fills outputs with new references. Runs with grad mode off. */
    int (*forward)(void *context, mt_function_call *call, mt_tensor *const *inputs, size_t n_inputs,
                   mt_tensor **outputs, size_t n_outputs);
    /** NULL entries of grads_out mean zero; entries of grads_in may stay NULL. */
    int (*backward)(void *context, mt_function_call *call, mt_tensor *const *grads_out,
                    size_t n_outputs, mt_tensor **grads_in, size_t n_inputs);
    void (*free_context)(void *context); /**< when no graph needs it any more; may be NULL */
} mt_function;

/** Calls forward, and records backward where an input needs a gradient. */
MT_API mt_status mt_function_apply(const mt_function *function, void *context,
                                   mt_tensor *const *inputs, size_t n_inputs, mt_tensor **outputs,
                                   size_t n_outputs);

/** In forward: keeps an input, an output or anything else for backward, numbered from 0. */
MT_API mt_status mt_function_save(mt_function_call *call, mt_tensor *tensor);

/** In forward: an input that it has changed, and gives as an output. The input itself then belongs
 * to the graph. MT_ENOTSUP for views. */
MT_API mt_status mt_function_mark_dirty(mt_function_call *call, mt_tensor *tensor);

/** The context and the call of a node made by mt_function_apply(); NULL for others. */
MT_API void *mt_node_function_context(const mt_node *node, mt_function_call **call);

/** In backward: a new reference to a saved tensor. MT_ERUNTIME if it was changed in place. */
MT_API mt_status mt_function_get_saved(mt_function_call *call, size_t index, mt_tensor **out);

MT_END_DECLS

#endif /* MINDTORCH_AUTOGRAD_H */
