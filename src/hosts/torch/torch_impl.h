/* SPDX-License-Identifier: Apache-2.0
 *
 * libmtprof_torch: from the records of torch's observers to ops of libmtprof.
 *
 *     torch runs an op ─► torch_observer.c   start: name ─► site (torch_sites.c)
 *                                              details: torch_inputs.c, by the layout that
 *                                              torch_layout.c has checked
 *                                            end
 *                                              tensors among them: torch_tensors.c
 *                                            end: outputs
 *     torch allocates  ─► torch_memory.c
 *     a recording begins, ends ─► torch_host.c: a source of libmtprof that adds and removes the
 *                                 observers, so that torch runs as without us in between
 *
 *   HT1  No function of torch is called and no field of its records is read that was not found, or
 *        checked, when we attached: torch_library.c, torch_layout.c.
 *   HT2  Code of this library is never unloaded (nodelete): torch may call an observer that was
 *        removed, from a thread that had begun an op before.
 *   HT3  What torch calls here does not throw, blocks for the first op with a name alone, and calls
 *        no functions of torch but those of th__library.
 */
#ifndef HOSTS_TORCH_TORCH_IMPL_H
#define HOSTS_TORCH_TORCH_IMPL_H

#include <mtprof/op.h>
#include <mtprof/torch.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* torch's at::RecordScope. */
enum th__scope {
    TH_SCOPE_FUNCTION = 0,
    TH_SCOPE_BACKWARD = 1,
    TH_SCOPE_USER = 7,
    TH_SCOPE_STATIC_OP = 8,
    TH_SCOPE_STATIC_MODEL = 9,
    TH_SCOPES = 10
};

/* ---- torch_library.c ---- */

/* torch's at::RecordFunctionCallback: passed by value. */
typedef struct th__callback {
    void **(*start)(void **context, const void *record); /* *context: a th__context, or NULL */
    void (*end)(const void *record, void *context);
    double probability;
    bool scopes[TH_SCOPES];
    bool needs_inputs, needs_outputs, needs_ids;
} th__callback;

/* The functions of the loaded libtorch, by their symbols. A handle of a tensor is the address of a
 * word that points to it. The int32_t functions return 0 when they work. */
typedef struct th__library {
    uint64_t (*add_callback)(th__callback callback);
    void (*remove_callback)(uint64_t handle);
    const char *(*name)(const void *record);
    const char *(*overload)(const void *record); /* NULL before 2.7 */
    size_t (*n_inputs)(const void *record);
    uint64_t (*thread_id)(void);
    uint64_t (*sequence)(void); /* the number that the next op of autograd gets */

    const void *undefined;  /* what a handle without a tensor points to */
    const void *text_class; /* the table of the class of texts; NULL: none was found */
    int32_t (*n_dims)(const void *tensor, int64_t *n_dims);
    int32_t (*sizes)(const void *tensor, int64_t **sizes);
    int32_t (*strides)(const void *tensor, int64_t **strides);
    int32_t (*dtype)(const void *tensor, int32_t *dtype);
    int32_t (*layout)(const void *tensor, int32_t *layout); /* NULL before 2.9 */
    int32_t (*device_type)(const void *tensor, int32_t *type);
    int32_t (*device_index)(const void *tensor, int32_t *index);
    int32_t (*data)(const void *tensor, void **data);
    int32_t (*storage_offset)(const void *tensor, int64_t *offset);

    /* For the known ops of torch_layout.c. */
    int32_t (*empty_strided)(int64_t n_dims, const int64_t *sizes, const int64_t *strides,
                             int32_t dtype, int32_t device_type, int32_t device_index,
                             void **tensor);
    int32_t (*clone)(const void *tensor, void **copy);
    int32_t (*scalar)(double value, void **tensor);
    int32_t (*make_undefined)(void **tensor);
    /* For their identity; `view` is NULL where one is missing. */
    int32_t (*view)(const void *tensor, int64_t n_dims, const int64_t *sizes,
                    const int64_t *strides, int64_t offset, void **view);
    int32_t (*clear)(const void *tensor); /* in place */
    int32_t (*destroy)(void *tensor);
    bool (*grad_mode)(void);
    void (*set_grad_mode)(bool enabled);
    int32_t float32, cpu, strided; /* their numbers; strided only with `layout` */
    const char *lacks;             /* a symbol that only the full tier needs; NULL: none */

    /* For torch_memory.c; all NULL where one is missing. A kind is passed as a word. */
    void *(*debug_get)(uint64_t kind);
    void (*debug_push)(uint64_t kind, void *shared);
    void (*debug_pop)(void *shared, uint64_t kind);
    uint64_t debug_kind, debug_others[8];
    uint32_t n_debug_others;
} th__library;

extern th__library th__torch;

/* ENOTSUP: the message names what is missing. What only the full tier needs is in `lacks`. */
int th__library_open(void);

/* ---- torch_layout.c ---- */

/* Where a record and its inputs have their fields, in bytes. Nothing of it is used unless
 * `checked`. */
typedef struct th__layout {
    bool checked;
    bool identified;    /* outputs, tensor_storage and tensor_version are known as well */
    bool plain_tensors; /* tensor_sizes, and with it strides and dtypes, are known as well */
    uint32_t thread, scope, sequence, inputs, n_inputs, forward_thread; /* of a record */
    uint32_t outputs; /* of a record: the address of the first and the end of the last */
    uint32_t record_bytes;
    uint32_t object_head; /* of an object that inputs share: what comes before its own fields */
    uint32_t tag_tensor, tag_double, tag_int, tag_bool, tag_string, tag_list;
    uint32_t tensor_kept; /* of a tensor: a byte with enum th__kept in bits 2 and 3 */
    uint32_t
        tensor_sizes; /* of a tensor that keeps up to 5 in itself; their number is before them */
    uint32_t tensor_storage; /* of a tensor: the shared object with the address of its memory */
    uint32_t tensor_version; /* of a tensor: the one that counts changes in place, or NULL */
} th__layout;

/* What a tensor keeps in itself. To ask for the rest runs code of its class, which may print an
 * error, or call Python and make a dynamic size of torch.compile a fixed one. */
enum th__kept {
    TH_KEPT_ALL = 0,   /* sizes and strides */
    TH_KEPT_SIZES = 1, /* sparse, mkldnn, batches of vmap */
    TH_KEPT_NONE = 2   /* nested, symbolic sizes */
};

enum {
    TH_SIZES_TO_STRIDES = 40, /* in a tensor that keeps both in itself */
    TH_SIZES_TO_DTYPE = 96,
    TH_INPUT_BYTES = 16, /* of a value: a word and a tag */
    TH_TAG_UNKNOWN = 0xFFFF,
    TH_NO_PLACE = 0xFFFF /* of a field that is not known */
};

extern th__layout th__fields;

/* Checks the layout with known ops, and asks the shim (NULL: none) for it before. Why it is not as
 * expected, or "". */
const char *th__layout_check(const char *shim);

/* Nothing is read from records. */
void th__layout_forget(void);

/* Whether the object of an input with tag_string is a text. The first one is read through the
 * kernel: until then the tag is a guess. */
bool th__is_text(const void *object);

/* enum th__kept of the tensor. */
static inline uint32_t th__kept_by(const void *object)
{
    return ((const unsigned char *)object)[th__fields.tensor_kept] >> 2 & 3;
}

/* ---- torch_sites.c ---- */

typedef struct th__site {
    mtprof_site site;
    size_t length;
    bool wrapper;   /* evaluate_function: its number is that of the node inside it */
    uint32_t flops; /* enum host_flops */
    struct th__site *next;
} th__site;

enum {
    TH_CACHE = 512 /* sites that a thread remembers, by address and by text */
};

typedef struct th__cache {
    struct {
        const void *address;
        th__site *site;
    } by_address[TH_CACHE];
    th__site *by_text[TH_CACHE];
} th__cache;

/* The site of an op's name. NULL: no memory, or more names than sites (record it by its text). */
th__site *th__site_of(th__cache *cache, const char *name);

/* In the child: another thread of the parent may have held the lock. */
void th__sites_after_fork(void);

/* ---- torch_observer.c ---- */

/* A thread that runs torch's ops. */
typedef struct th__thread {
    struct th__context *unused; /* contexts for the next ops */
    th__cache cache;
    mtprof_token wrapper;  /* evaluate_function, until its node begins */
    uint32_t named_epoch;  /* in which torch's id of this thread was noted */
    uint32_t memory_epoch; /* in which its allocations were asked for */
    mtprof_op
        numbered; /* zero but for a number: kept, because making it takes longer than using it */
    mtprof_value *values; /* inputs of the op that begins */
    uint32_t n_values, values_room;
    mtprof_tensor_ref *tensors; /* those among its inputs, or the outputs of the op that ends */
    uint32_t n_tensors, tensors_room;
    struct th__known *known; /* inputs of former ops; NULL: none yet */
} th__thread;

/* Adds the observers for what a recording wants. */
void th__observers_add(uint64_t wants, uint32_t options);
void th__observers_remove(void);

extern uint64_t th__unreadable; /* atomic */

/* ---- torch_inputs.c ---- */

/* Fills op->inputs, and op->tensors where they are wanted, from the record. */
void th__read_inputs(th__thread *thread, const void *record, uint32_t wants, mtprof_op *op);

/* Hands the outputs of the record to the open op. */
void th__read_outputs(th__thread *thread, const void *record, mtprof_token token);

/* FLOPs of an op from inputs that were read. */
uint64_t th__count_flops(uint32_t rule, const mtprof_op *op);

/* ---- torch_known.c ---- */

/* Sets op->known, if the op of this site has the inputs that it had the last time, but for the
 * values of numbers. */
bool th__find_known(th__thread *thread, const th__site *site, const void *record, mtprof_op *op);

/* Remembers the inputs that were read for the op. */
void th__keep_known(th__thread *thread, const th__site *site, const void *record,
                    const mtprof_op *op);

/* ---- torch_tensors.c ---- */

/* Adds the identity of a tensor (a handle) to thread->tensors. False: there is no memory for it. */
bool th__identify(th__thread *thread, const unsigned char *tensor);

/* Memory was freed: what lies at its address from now on is something else. */
void th__memory_freed(uint64_t address);

/* Before a recording that wants identities. */
void th__tensors_begin(void);

/* ---- torch_memory.c ---- */

/* Whether allocations arrive: tried once, with a tensor of known size. */
bool th__memory_check(void);

/* Takes the place of the profiler's state on this thread. False: another profiler has it. */
bool th__memory_ask(void);

/* No longer, on this thread. */
void th__memory_leave(void);

/* libmtprof's number of a device: 0 is the host. */
uint32_t th__device_number(int32_t type, int32_t index);

/* Bytes that torch has allocated on the host, as it last reported. */
uint64_t th__memory_allocated(void);

extern uint64_t th__memory_refused; /* atomic: threads of torch_info.refused */

#endif /* HOSTS_TORCH_TORCH_IMPL_H */
