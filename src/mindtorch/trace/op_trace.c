/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops as libmtprof wants them: arguments become values and shapes, tensors become numbers. Only
 * what the recording asks for is computed.
 */
#include "mindtorch/trace/op_trace.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/lock.h"
#include "mindtorch/trace/flops.h"

#include <mindtorch/op.h>

#include <stdatomic.h>
#include <string.h>

enum {
    MAX_ITEMS = 64,   /* of all lists of a call; longer lists are shown as none */
    MAX_TENSORS = 32, /* whose identity is told */
    SITE_BUCKETS = 256
};

/* The profiler's ids of type names. Interned when first asked for; an id of 0 is asked again. */
static uint32_t type_id(const char *name, _Atomic uint32_t *id)
{
    uint32_t known = atomic_load_explicit(id, memory_order_relaxed);
    if (known == 0) {
        known = mtprof_intern(name, strlen(name));
        atomic_store_explicit(id, known, memory_order_relaxed);
    }
    return known;
}

static uint32_t dtype_id(mt_dtype dtype)
{
    static const char *const names[MT_DTYPE_COUNT] = {
#define X(name, value, text, bytes, category, profiler) profiler,
#include <mindtorch/dtype.def>
#undef X
    };
    static _Atomic uint32_t ids[MT_DTYPE_COUNT];
    return type_id(names[dtype], &ids[dtype]);
}

static uint32_t scalar_id(void)
{
    static _Atomic uint32_t id;
    return type_id("Scalar", &id);
}

/* What a call becomes: filled by box_*(). */
typedef struct boxed {
    bool identity; /* of tensors is wanted */
    uint32_t n_items;
    uint32_t n_tensors;
    mtprof_value inputs[MT_MAX_PARAMS];
    mtprof_value items[MAX_ITEMS];
    mtprof_tensor_ref tensors[MAX_TENSORS];
} boxed;

static mtprof_tensor_ref ref_of(const mt_tensor *tensor)
{
    mt__tensor_facts facts;
    mt__tensor_facts_of(tensor, &facts);
    return facts.ref;
}

static mtprof_value box_tensor(boxed *b, const mt_tensor *tensor)
{
    if (tensor == NULL) {
        return (mtprof_value){.kind = MTPROF_INPUT_NONE};
    }
    mt__tensor_facts facts;
    mt__tensor_facts_of(tensor, &facts);
    if (b->identity && b->n_tensors < MAX_TENSORS) {
        b->tensors[b->n_tensors++] = facts.ref;
    }
    return (mtprof_value){
        .kind = MTPROF_INPUT_TENSOR,
        .n_dims = (uint8_t)facts.n_dims,
        .type = dtype_id((mt_dtype)facts.dtype),
        .of.sizes = facts.sizes,
        .strides = facts.strides,
    };
}

static mtprof_value box_list(boxed *b, const mt_value *value)
{
    if (value->count > MAX_ITEMS - b->n_items) {
        return (mtprof_value){.kind = MTPROF_INPUT_NONE};
    }
    mtprof_value list = {
        .kind = MTPROF_INPUT_LIST, .type = value->count, .of.items = &b->items[b->n_items]};
    for (uint32_t i = 0; i < value->count; i++) {
        b->items[b->n_items++] = value->kind == MT_KIND_TENSORS
                                     ? box_tensor(b, value->of.tensors[i])
                                     : (mtprof_value){.kind = MTPROF_INPUT_INT,
                                                      .type = scalar_id(),
                                                      .of.integer = value->of.ints[i]};
    }
    return list;
}

static mtprof_value box_value(boxed *b, const mt_value *value)
{
    switch ((mt_kind)value->kind) {
    case MT_KIND_TENSOR: return box_tensor(b, value->of.tensor);
    case MT_KIND_TENSORS:
    case MT_KIND_INTS: return box_list(b, value);
    case MT_KIND_BOOL:
        return (mtprof_value){
            .kind = MTPROF_INPUT_BOOL, .type = scalar_id(), .of.integer = value->of.integer};
    case MT_KIND_INT:
    case MT_KIND_DTYPE:
        return (mtprof_value){
            .kind = MTPROF_INPUT_INT, .type = scalar_id(), .of.integer = value->of.integer};
    case MT_KIND_REAL:
        return (mtprof_value){
            .kind = MTPROF_INPUT_DOUBLE, .type = scalar_id(), .of.real = value->of.real};
    default: return (mtprof_value){.kind = MTPROF_INPUT_NONE};
    }
}

mtprof_token mt__trace_op_begin(const mt__trace_op *op)
{
    mtprof_op payload = {
        .struct_size = sizeof(payload),
        .fields = MTPROF_OP_MEMORY | (op->has_sequence ? (uint32_t)MTPROF_OP_SEQUENCE : 0),
        .sequence = op->sequence,
        .memory_before = op->memory_before,
        .memory_device = op->memory_device,
    };
    if (mtprof_wants(MTPROF_WANT_FLOPS)) {
        payload.flops = mt__flops_of(op->flops, op->args, op->n_args);
        payload.fields |= payload.flops > 0 ? (uint32_t)MTPROF_OP_FLOPS : 0;
    }
    if (!mtprof_wants(MTPROF_WANT_INPUTS | MTPROF_WANT_TENSORS | MTPROF_WANT_STRIDES)) {
        return mtprof_op_begin(op->site, &payload);
    }
    boxed b;
    b.identity = mtprof_wants(MTPROF_WANT_TENSORS);
    b.n_items = 0;
    b.n_tensors = 0;
    for (uint32_t i = 0; i < op->n_args; i++) {
        b.inputs[i] = box_value(&b, &op->args[i]);
    }
    payload.inputs = b.inputs;
    payload.n_inputs = op->n_args;
    payload.tensors = b.tensors;
    payload.n_tensors = b.n_tensors;
    return mtprof_op_begin(op->site, &payload);
}

void mt__trace_op_end(mtprof_token token, const mt_value *results, uint32_t n_results,
                      uint32_t memory_device, uint64_t memory_after)
{
    if (token == 0) {
        return;
    }
    if (mtprof_wants(MTPROF_WANT_TENSORS) && n_results > 0) {
        mtprof_tensor_ref refs[MAX_TENSORS];
        uint32_t count = 0;
        for (uint32_t i = 0; i < n_results; i++) {
            bool list = results[i].kind == MT_KIND_TENSORS;
            uint32_t n = list ? results[i].count : results[i].kind == MT_KIND_TENSOR;
            for (uint32_t k = 0; k < n && count < MAX_TENSORS; k++) {
                refs[count++] = ref_of(list ? results[i].of.tensors[k] : results[i].of.tensor);
            }
        }
        mtprof_op_outputs(token, refs, count);
    }
    if (mtprof_wants(MTPROF_WANT_MEMORY)) {
        mtprof_op_end(token, memory_device, memory_after);
    } else {
        mtprof_end(token);
    }
}

mtprof_token mt__trace_node_begin(mtprof_site *site, uint32_t record_scope, uint64_t sequence,
                                  uint32_t forward_thread)
{
    mtprof_op payload = {
        .struct_size = sizeof(payload),
        .fields = MTPROF_OP_RECORD_SCOPE,
        .record_scope = record_scope,
    };
    if (sequence != UINT64_MAX) {
        payload.fields |= MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD;
        payload.sequence = sequence;
        payload.forward_thread = forward_thread;
    }
    return site == NULL ? 0 : mtprof_op_begin(site, &payload);
}

/* ---- names made at run time -------------------------------------------------------------------
 */

typedef struct named_site {
    mtprof_site site;
    struct named_site
        *_Atomic next; /* in its bucket; release when it is put in, partner: find_site */
    char name[];
} named_site;

static struct named_site *_Atomic buckets[SITE_BUCKETS];
static mtb_lock sites_lock = MTB_LOCK_INIT(MTB_RANK_SITES);

static named_site *find_site(uint32_t bucket, const char *name, uint32_t flags)
{
    named_site *found = atomic_load_explicit(&buckets[bucket], memory_order_acquire);
    while (found != NULL && (strcmp(found->name, name) != 0 || found->site.flags != flags)) {
        found = atomic_load_explicit(&found->next, memory_order_acquire);
    }
    return found;
}

static mtprof_site *site_for(const char *name, uint32_t flags)
{
    size_t length = strlen(name);
    uint32_t bucket = (uint32_t)(mtb_hash_bytes(name, length) % SITE_BUCKETS);
    named_site *site = find_site(bucket, name, flags);
    if (site != NULL) {
        return &site->site;
    }
    mtb_lock_acquire(&sites_lock);
    site = find_site(bucket, name, flags);
    if (site == NULL) {
        site = mtb_calloc(1, sizeof(*site) + length + 1);
        if (site != NULL) {
            memcpy(site->name, name, length + 1);
            site->site.name = site->name;
            site->site.file = "";
            site->site.flags = (uint16_t)flags;
            atomic_store_explicit(&site->next,
                                  atomic_load_explicit(&buckets[bucket], memory_order_relaxed),
                                  memory_order_relaxed);
            atomic_store_explicit(&buckets[bucket], site, memory_order_release);
        }
    }
    mtb_lock_release(&sites_lock);
    return site == NULL ? NULL : &site->site;
}

mtprof_site *mt__trace_site(const char *name)
{
    return site_for(name, MTPROF_KIND_OP);
}

mtprof_token mt__trace_scope_begin(const char *name)
{
    if (!mt__trace_on()) {
        return 0;
    }
    mtprof_site *site = site_for(name, MTPROF_KIND_SCOPE);
    return site == NULL ? 0 : mtprof_begin(site);
}

uint32_t mt__trace_thread(void)
{
    return mtprof_thread_number();
}
