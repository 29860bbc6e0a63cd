/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads of ops: what a tensor runtime knows about a call beyond its name. Each is recorded only
 * when its flag is wanted (enum mtprof_want) and is absent otherwise, so a host may fill in what it
 * has at hand and leave the choice to the recorder; mtprof_wants() says what is worth computing.
 *
 * Nothing is kept by reference: shapes become ids, texts are copied, tensors are numbers.
 *
 * Compilers: GCC or Clang, for __atomic_load_n() and what trace.h needs.
 */
#ifndef MTPROF_OP_H
#define MTPROF_OP_H

#include <mtprof/trace.h>

MTPROF_BEGIN_DECLS

/**
 * One input of an op. Lists nest to a depth of 16, deeper ones are shown as none; a list of inputs
 * of more than 65,536 words (a word a value, a size and a stride) is left out, as are the values of
 * more than 253 scalars; both are counted as cut.
 */
typedef struct mtprof_value {
    uint8_t kind;   /**< enum mtprof_input_kind */
    uint8_t n_dims; /**< TENSOR */
    uint16_t reserved;
    uint32_t
        type; /**< TENSOR, scalars: string id of the type, 0 = none; LIST: number of items, keywords
                 included; KEYWORD: string id of the name of the value that follows */
    union {
        const int64_t *sizes;             /**< TENSOR: n_dims sizes */
        const struct mtprof_value *items; /**< LIST */
        int64_t integer;                  /**< INT, BOOL */
        double real;                      /**< REAL */
        uint64_t text; /**< STRING: string id from mtprof_intern() or mtprof_intern_here() */
    } of;
    const int64_t *strides; /**< TENSOR: n_dims strides, or NULL */
} mtprof_value;

/** Identity of a tensor, in numbers of the host. The memory timeline (export.h) needs them. An op
 * first lists the tensors of its `inputs`, in the same order (one without identity: zeros), then
 * further tensors that it reads. */
typedef struct mtprof_tensor_ref {
    uint64_t tensor;  /**< not reused for another tensor while a recording lasts */
    uint64_t storage; /**< address of its memory, as passed to mtprof_alloc() */
    int64_t offset;   /**< in the storage, in elements */
    uint32_t version; /**< grows with each change in place */
    uint16_t device;  /**< 0 = host, as in mtprof_alloc() */
    uint16_t role;    /**< enum mtprof_tensor_role. A host that does not know it here may use
                         scopes named mtprof::memory::parameter, ::gradient, ::optimizer_state or
                         ::input around an op on the tensors it means */
} mtprof_tensor_ref;

/** A list of inputs, without the values of its scalars, that the running recording already
 * knows. */
typedef struct mtprof_inputs {
    uint32_t id;    /**< 0: none */
    uint32_t epoch; /**< when it was made known */
} mtprof_inputs;

/** Which of mtprof_op's optional fields are set. */
enum mtprof_op_field {
    MTPROF_OP_SEQUENCE = 1 << 0,
    MTPROF_OP_FORWARD_THREAD = 1 << 1,
    MTPROF_OP_OVERLOAD = 1 << 2,
    MTPROF_OP_RECORD_SCOPE = 1 << 3,
    MTPROF_OP_FLOPS = 1 << 4,
    MTPROF_OP_MODULE = 1 << 5,
    MTPROF_OP_CORRELATION = 1 << 6,
    MTPROF_OP_MEMORY = 1 << 7,
    MTPROF_OP_PARENT = 1 << 8
};

/** Set struct_size and `fields`; leave the rest zero. */
typedef struct mtprof_op {
    uint32_t struct_size;
    uint32_t fields;                  /**< enum mtprof_op_field */
    const mtprof_value *inputs;       /**< NULL with n_inputs set: counted as cut */
    const mtprof_tensor_ref *tensors; /**< identity of the inputs; NULL likewise */
    uint32_t n_inputs;
    uint32_t n_tensors;
    uint64_t sequence;       /**< links a backward op to its forward op */
    uint32_t forward_thread; /**< logical thread of the forward op */
    uint32_t overload;       /**< string id */
    uint32_t record_scope;   /**< the host's own classification */
    uint32_t module;         /**< string id of the module path */
    uint64_t flops;
    uint64_t correlation;   /**< id under which a foreign tracer knows this call */
    uint64_t memory_before; /**< bytes allocated on memory_device */
    uint32_t memory_device;
    uint32_t stack;      /**< from mtprof_stack(); 0: none, or native where that is wanted */
    mtprof_token parent; /**< as in mtprof_begin_under() */
    /** In place of `inputs` where its id is not 0; left out, and counted as cut, when it is of
     * another epoch. The scalars are those of the list in order, those of nested lists included. */
    mtprof_inputs known;
    const uint64_t *scalars; /**< their bits: integers, doubles */
    uint32_t n_scalars;
    uint32_t reserved;
} mtprof_op;

/**
 * Makes a list of inputs known to the recording, for hosts that recognize calls with the same
 * inputs themselves. Its id is 0 when nothing records inputs, there is no room for it, or it holds
 * texts: give such a list with each op.
 */
MTPROF_API mtprof_inputs mtprof_know_inputs(const mtprof_value *inputs, uint32_t count);

/** Counts details that the host left out of what it recorded because they did not fit a bound of
 * its own (health.texts_cut). Does nothing while nothing records. */
MTPROF_API void mtprof_count_cut(uint32_t count);

/** The latest epoch: it changes with every window. Read it, never write it. */
extern MTPROF_API uint32_t mtprof_i_epoch;

/** Whether the recording still knows the list. */
static inline bool mtprof_inputs_are_known(mtprof_inputs inputs)
{
    return inputs.id != 0 && inputs.epoch == __atomic_load_n(&mtprof_i_epoch, __ATOMIC_RELAXED);
}

/** Out-of-line half of mtprof_op_begin(). */
MTPROF_API mtprof_token mtprof_i_op_begin(mtprof_site *site, const mtprof_op *op);

/** Begins an op with payloads. */
static inline mtprof_token mtprof_op_begin(mtprof_site *site, const mtprof_op *op)
{
    if (mtprof_wants(MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_RUNTIME |
                     MTPROF_WANT_DEVICE)) {
        return mtprof_i_op_begin(site, op);
    }
    return 0;
}

/** The same with a name that is not known before (trace.h: mtprof_begin_named). Past the bounds of
 * names the scope is recorded without payloads, and that is counted. */
MTPROF_API mtprof_token mtprof_op_begin_named(const char *name, size_t length, uint32_t begin_flags,
                                              const mtprof_op *op);

/** Ends an op and notes the memory allocated on a device by then. */
MTPROF_API void mtprof_op_end(mtprof_token token, uint32_t memory_device, uint64_t memory_after);

/** Identity of the outputs of an op that is still open; a further call adds to them. NULL with a
 * count: the host does not know them, counted as cut. */
MTPROF_API void mtprof_op_outputs(mtprof_token token, const mtprof_tensor_ref *outputs,
                                  uint32_t count);

/** Details of an op that is still open and that became known after it began: what `fields` of `op`
 * names, but for MEMORY and PARENT, which are not taken. */
MTPROF_API void mtprof_op_details(mtprof_token token, const mtprof_op *op);

/** Out-of-line half of mtprof_alloc(). */
MTPROF_API void mtprof_i_alloc(uint32_t device, uint64_t address, int64_t bytes, uint64_t allocated,
                               uint64_t reserved_bytes);

/**
 * An allocation (bytes > 0) or a release (bytes < 0) on a device (0 = host, below 256), with what
 * is allocated and reserved there after it. Inside an open scope it takes the time of the thread's
 * last record instead of reading the clock. A recording of the device alone (WANT_DEVICE without
 * OPS and SCOPES) leaves out the host's memory outside scopes.
 */
static inline void mtprof_alloc(uint32_t device, uint64_t address, int64_t bytes,
                                uint64_t allocated, uint64_t reserved_bytes)
{
    if (mtprof_wants(MTPROF_WANT_ALLOCS)) {
        mtprof_i_alloc(device, address, bytes, allocated, reserved_bytes);
    }
}

/** Out-of-line half of mtprof_out_of_memory(). */
MTPROF_API void mtprof_i_out_of_memory(uint32_t device, uint64_t bytes, uint64_t allocated,
                                       uint64_t reserved_bytes);

/** An allocation that was refused, with what is allocated and reserved on the device. Always an
 * event of its own, with its own time. */
static inline void mtprof_out_of_memory(uint32_t device, uint64_t bytes, uint64_t allocated,
                                        uint64_t reserved_bytes)
{
    if (mtprof_wants(MTPROF_WANT_ALLOCS)) {
        mtprof_i_out_of_memory(device, bytes, allocated, reserved_bytes);
    }
}

/**
 * A frame of the host's language: the same id for equal arguments, valid until the process ends.
 * 0 when there is no memory.
 */
MTPROF_API uint32_t mtprof_define_frame(const char *function, size_t function_length,
                                        const char *file, size_t file_length, uint32_t line);

/**
 * The call stack `parent` extended by a frame. Start at the outermost frame with parent 0. The
 * node is valid until the recording ends; ask again with each op, a repeated question is cheap.
 * 0 when nothing records or the tree is full (1 million nodes; counted as texts cut).
 */
MTPROF_API uint32_t mtprof_stack_push(uint32_t parent, uint32_t frame);

/** The same for a whole stack, outermost frame first. */
MTPROF_API uint32_t mtprof_stack(const uint32_t *frames, uint32_t count);

/**
 * The native stack of the caller by its frame pointers, at most 128 frames, without the innermost
 * `skip` ones. Code compiled without frame pointers shortens it. 0 when nothing records.
 */
MTPROF_API uint32_t mtprof_stack_native(uint32_t skip);

MTPROF_END_DECLS

#endif /* MTPROF_OP_H */
