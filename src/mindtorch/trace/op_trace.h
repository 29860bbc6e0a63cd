/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops, scopes and memory in the profile. Only this folder of the runtime uses libmtprof: the rest
 * uses the types and functions below, and tools/check_layout.py rejects names of libmtprof
 * elsewhere. The functions are inline because every op calls them: while nothing is recorded, each
 * is one load and one branch.
 */
#ifndef MINDTORCH_TRACE_OP_TRACE_H
#define MINDTORCH_TRACE_OP_TRACE_H

#include <mindtorch/value.h>
#include <mtprof/op.h>
#include <mtprof/trace.h>

/* What a recording gives for something begun; 0: nothing records. */
typedef mtprof_token mt__trace_token;
/* A place in the program with a name. */
typedef mtprof_site mt__trace_site;
/* Identity of a tensor: its storage, its number, its version, its role. */
typedef mtprof_tensor_ref mt__trace_ref;
/* Details of an op, besides its name and times. */
typedef mtprof_op mt__trace_op;

/* The role of a tensor, as far as the runtime knows. */
enum {
    MT_TRACE_ROLE_ANY = MTPROF_TENSOR_ANY,
    MT_TRACE_ROLE_PARAMETER = MTPROF_TENSOR_PARAMETER,
    MT_TRACE_ROLE_GRADIENT = MTPROF_TENSOR_GRADIENT,
    MT_TRACE_ROLE_OPTIMIZER_STATE = MTPROF_TENSOR_OPTIMIZER_STATE,
    MT_TRACE_NOT_READ = MTPROF_TENSOR_NOT_READ /* with a role: the op does not read it */
};

/* What a recording may want: mt__trace_wants(). */
enum {
    MT_TRACE_INPUTS = MTPROF_WANT_INPUTS,
    MT_TRACE_STRIDES = MTPROF_WANT_STRIDES,
    MT_TRACE_TENSORS = MTPROF_WANT_TENSORS,
    MT_TRACE_MEMORY = MTPROF_WANT_MEMORY,
    MT_TRACE_FLOPS = MTPROF_WANT_FLOPS,
    MT_TRACE_OVERLOADS = MTPROF_WANT_OVERLOADS
};

enum {
    MT_TRACE_SCOPE_FORWARD = 0,
    MT_TRACE_SCOPE_BACKWARD = MTPROF_RECORD_SCOPE_BACKWARD
};

#define MT_TRACE_ANY                                                                            \
    ((uint32_t)MTPROF_WANT_OPS | (uint32_t)MTPROF_WANT_SCOPES | (uint32_t)MTPROF_WANT_RUNTIME | \
     (uint32_t)MTPROF_WANT_DEVICE)

/*
 * The inputs of a call, encoded as words. A value is a head word and its parts: for a tensor n_dims
 * sizes, and as many strides if bit 16 is set; for a list the words of its items. Numbers are
 * stored separately, in order. Calls with equal words have the same inputs except for their
 * numbers.
 *
 *     bits 0-7 MT_SHOWN_*   8-15 n_dims   16 strides   24-31 dtype   32-63 items of a list
 */
enum {
    MT_SHOWN_NONE,
    MT_SHOWN_BOOL,
    MT_SHOWN_INT,
    MT_SHOWN_REAL,
    MT_SHOWN_TENSOR,
    MT_SHOWN_LIST,
    /* What an ordinary call takes, on the stack; a call with long lists gets more from the heap. */
    MT_TRACE_WORDS = 224,
    MT_TRACE_SCALARS = 64,
    MT_TRACE_REFS = 32,
    /* The most: what libmtprof keeps of a list (op.h). Longer ones are left out, and counted. */
    MT_TRACE_MOST = 65536
};

typedef struct mt__trace_words {
    uint32_t n_words, n_scalars;
    bool cut;                           /* a value did not fit and is reported as none */
    uint64_t words[MT_TRACE_WORDS + 4]; /* written in fours */
    uint64_t scalars[MT_TRACE_SCALARS + 1];
    uint64_t *large_words, *large_scalars; /* only for a long list, which is stored there */
} mt__trace_words;

/* Room for a long list, of which nothing is there yet; false: no memory. To be ended with fini. */
bool mt__trace_words_init_large(mt__trace_words *w);
void mt__trace_words_fini_large(mt__trace_words *w);

/* Which details of an op are wanted besides its name and times: 0, or some of MT_TRACE_*. */
static inline uint32_t mt__trace_wants(void)
{
    return __atomic_load_n(&mtprof_i_gate, __ATOMIC_RELAXED);
}

/* Wants that an op without a payload does not serve. */
#define MT_TRACE_PAYLOADS                                                                         \
    ((uint32_t)MTPROF_WANT_INPUTS | (uint32_t)MTPROF_WANT_TENSORS |                               \
     (uint32_t)MTPROF_WANT_STRIDES | (uint32_t)MTPROF_WANT_MEMORY | (uint32_t)MTPROF_WANT_FLOPS | \
     (uint32_t)MTPROF_WANT_DETAILS | (uint32_t)MTPROF_WANT_NATIVE_STACKS |                        \
     (uint32_t)MTPROF_WANT_OVERLOADS)

/* Sites of the op table's rows, by number. Ops of the accelerator have their own: a profile of the
 * device alone has these and no others. Hidden, so that their addresses need no load. */
extern mt__trace_site mt__trace_row_sites[] __attribute__((visibility("hidden")));
extern mt__trace_site mt__trace_far_row_sites[] __attribute__((visibility("hidden")));

static inline mt__trace_site *mt__trace_row_site(uint32_t op, bool far)
{
    return far ? &mt__trace_far_row_sites[op] : &mt__trace_row_sites[op];
}

/* ---- reporting an op ------------------------------------------------------------------- */

/* Initializes an mt__trace_op. Unnumbered: the op has no part in a graph, so that no backward op
 * will ask for its number. */
#define MT_TRACE_OP_INIT(unnumbered, number)                                             \
    {                                                                                    \
        .struct_size = sizeof(mt__trace_op),                                             \
        .fields = (unnumbered) ? 0 : (uint32_t)MTPROF_OP_SEQUENCE, .sequence = (number), \
    }

static inline void mt__trace_set_memory(mt__trace_op *op, uint16_t device, uint64_t allocated)
{
    op->fields |= MTPROF_OP_MEMORY;
    op->memory_before = allocated;
    op->memory_device = device;
}

static inline void mt__trace_set_flops(mt__trace_op *op, uint64_t flops)
{
    op->flops = flops;
    op->fields |= flops > 0 ? (uint32_t)MTPROF_OP_FLOPS : 0;
}

/* "": no overload to report. */
static inline void mt__trace_set_overload(mt__trace_op *op, const char *name)
{
    size_t length = __builtin_strlen(name);
    if (length != 0) {
        op->overload = mtprof_intern(name, length);
        op->fields |= (uint32_t)MTPROF_OP_OVERLOAD;
    }
}

/* Begins an op that has a site alone. */
static inline mt__trace_token mt__trace_begin(mt__trace_site *site)
{
    return mtprof_begin(site);
}

static inline mt__trace_token mt__trace_op_begin(mt__trace_site *site, const mt__trace_op *op)
{
    return mtprof_op_begin(site, op);
}

/* What the op has made; refs NULL: counted as cut. */
static inline void mt__trace_op_outputs(mt__trace_token token, const mt__trace_ref *refs,
                                        uint32_t count)
{
    mtprof_op_outputs(token, refs, count);
}

static inline void mt__trace_op_end(mt__trace_token token, uint16_t device, uint64_t allocated)
{
    mtprof_op_end(token, device, allocated);
}

/* Begins an op that shows `words` as its inputs. 0 while nothing records. */
mt__trace_token mt__trace_shown_begin(mt__trace_site *site, const mt__trace_words *words,
                                      mt__trace_op *payload);
/* The same for a long list; one that was cut, or found no memory, is left out and counted. */
mt__trace_token mt__trace_long_begin(mt__trace_site *site, const mt__trace_words *words,
                                     mt__trace_op *payload);

/* A node of the graph while backward runs it. torch gives "MulBackward0" record scope 1, and the
 * scope "autograd::engine::evaluate_function: MulBackward0" around it 0; both carry the number of
 * the forward op and its thread (mt__trace_thread() when the node was made). UINT64_MAX: no number,
 * as AccumulateGrad has none. `site` comes from mt__trace_op_site(). Ended with mt__trace_end(). */
typedef struct mt__trace_node {
    uint32_t record_scope;
    uint32_t forward_thread;
    uint64_t sequence;
    const mt__trace_words *words; /* of the incoming gradients; NULL: not reported */
    bool is_long;                 /* the words are a long list */
} mt__trace_node;

mt__trace_token mt__trace_node_begin(mt__trace_site *site, const mt__trace_node *node);

/* A site for a name made at run time (users' ops, nodes), found again for an equal one. Lives as
 * long as the process. NULL: no memory. */
mt__trace_site *mt__trace_op_site(const char *name, bool on_device);

/* The logical thread that records here, for links from backward to forward. */
uint32_t mt__trace_thread(void);

static inline bool mt__trace_on(void)
{
    return mtprof_wants(MT_TRACE_ANY);
}

static inline void mt__trace_end(mt__trace_token token)
{
    mtprof_end(token);
}

/* A scope of the runtime's own ("Optimizer.step#SGD.step"), 0 while nothing records. */
mt__trace_token mt__trace_scope_begin(const char *name);

/* The profiler's number of a device: 0 is the host, accelerators count from 1. */
static inline uint16_t mt__trace_device(mt_device device)
{
    return device == MT_CPU || device == MT_META ? 0 : (uint16_t)(((uint32_t)device & 255U) + 1);
}

/* bytes > 0: handed out; < 0: given back. */
static inline void mt__trace_memory(mt_device device, const void *address, int64_t bytes,
                                    uint64_t allocated, uint64_t reserved_bytes)
{
    mtprof_alloc(mt__trace_device(device), (uint64_t)(uintptr_t)address, bytes, allocated,
                 reserved_bytes);
}

/* An allocation that was refused. */
static inline void mt__trace_out_of_memory(mt_device device, uint64_t bytes, uint64_t allocated,
                                           uint64_t reserved_bytes)
{
    mtprof_out_of_memory(mt__trace_device(device), bytes, allocated, reserved_bytes);
}

#endif /* MINDTORCH_TRACE_OP_TRACE_H */
