/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions by oneDNN, float32 and bfloat16. It needs blocked layouts, so tensors are reordered
 * around each call; measured on ResNet's 3 x 3 layers that is 2 to 5 % of the time (23 % with 512
 * channels on 7 x 7, where the weight is larger than the images) and a third faster than its
 * kernels for plain layouts. Winograd's algorithm would be twice as fast and is left out: its
 * rounding errors are ten times larger than torch's.
 *
 *     user's arrays ──reorder──► scratch ──primitive──► scratch ──reorder──► user's arrays
 *
 * Primitives are kept by shape, a few for each thread: nothing is locked or shared, and code
 * compiled by another thread comes from oneDNN's own cache.
 */
#include "kernels/image/conv.h"
#include "kernels/matrix/onednn.h"

#if MT_HAVE_ONEDNN && DNNL_VERSION_MAJOR == 2

#    include "base/alloc.h"
#    include "base/compiler.h"
#    include "base/shared_object.h"
#    include "kernels/walk/scratch.h"

#    include <pthread.h>
#    include <string.h>

enum {
    MAX_SLOTS = 4,
    KEPT = 48 /* primitives of a thread: a large network's layers, forward and backward */
};

/* One tensor of a primitive. */
typedef struct slot {
    int argument; /* DNNL_ARG_... */
    bool written;
    dnnl_memory_desc_t user, own;
    dnnl_primitive_t reorder; /* NULL: the user's layout is used */
} slot;

typedef struct plan {
    mt__conv_kind kind;
    mt_dtype dtype;
    bool has_weight, has_bias;
    mt__conv_shape shape;
    uint64_t used; /* when, for replacing the oldest */
    bool failed;   /* oneDNN does not support it */
    uint32_t n_slots;
    slot slots[MAX_SLOTS];
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t scratch;
} plan;

typedef struct plan_list {
    plan *plans[KEPT];
    uint64_t clock;
} plan_list;

/* Only a pointer, because thread-local memory of a library is scarce. Freed by the key's
 * destructor. */
static _Thread_local plan_list *kept;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

/* ---- keeping plans --------------------------------------------------------------------------- */

static void free_plan(plan *p)
{
    const mt__onednn_table *dnn = mt__onednn();
    if (p == NULL) {
        return;
    }
    for (uint32_t i = 0; dnn != NULL && i < p->n_slots; i++) {
        if (p->slots[i].reorder != NULL) {
            (void)dnn->dnnl_primitive_destroy(p->slots[i].reorder);
        }
    }
    if (dnn != NULL && p->primitive != NULL) {
        (void)dnn->dnnl_primitive_destroy(p->primitive);
    }
    mtb_free(p);
}

static void free_plans(void *argument)
{
    plan_list *list = argument;
    for (unsigned i = 0; i < KEPT; i++) {
        free_plan(list->plans[i]);
    }
    mtb_free(list);
    kept = NULL;
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, free_plans) == 0;
}

static bool is_same(const plan *p, const mt__conv *conv)
{
    return p != NULL && p->kind == conv->kind && p->dtype == conv->dtype &&
           p->has_bias == (conv->bias != NULL) && p->has_weight == (conv->weight != NULL) &&
           memcmp(&p->shape, &conv->shape, sizeof p->shape) == 0;
}

/* The place of a plan: its own, a free one, or the oldest's. */
static plan **find_place(const mt__conv *conv)
{
    plan **oldest = &kept->plans[0];
    for (unsigned i = 0; i < KEPT; i++) {
        plan **place = &kept->plans[i];
        if (is_same(*place, conv)) {
            return place;
        }
        if (*oldest != NULL && (*place == NULL || (*place)->used < (*oldest)->used)) {
            oldest = place;
        }
    }
    return oldest;
}

/* ---- making one ------------------------------------------------------------------------------ */

/* strides NULL: the layout is oneDNN's choice. */
static bool describe(dnnl_memory_desc_t *desc, mt_dtype dtype, int n, const int64_t *sizes,
                     const int64_t *strides)
{
    const dnnl_data_type_t type = dtype == MT_DTYPE_BF16 ? dnnl_bf16 : dnnl_f32;
    const mt__onednn_table *dnn = mt__onednn();
    dnnl_dims_t dims = {0};
    dnnl_dims_t steps = {0};
    memcpy(dims, sizes, (size_t)n * sizeof *sizes);
    if (strides == NULL) {
        return dnn->dnnl_memory_desc_init_by_tag(desc, n, dims, type, dnnl_format_tag_any) ==
               dnnl_success;
    }
    memcpy(steps, strides, (size_t)n * sizeof *strides);
    return dnn->dnnl_memory_desc_init_by_strides(desc, n, dims, type, steps) == dnnl_success;
}

/* What the user has, and what may be chosen. */
typedef struct layouts {
    dnnl_memory_desc_t in, weight, out, bias;
    dnnl_memory_desc_t any_in, any_weight, any_out;
    dnnl_dims_t strides, dilates, pads;
} layouts;

static bool make_layouts(const mt__conv_shape *s, mt_dtype dtype, layouts *l)
{
    int64_t in[4] = {s->n, s->c, s->h, s->w};
    int64_t in_strides[4] = {s->c * s->h * s->w, s->h * s->w, s->w, 1};
    int64_t out[4] = {s->n, s->o, s->oh, s->ow};
    int64_t out_strides[4] = {s->out_step, s->oh * s->ow, s->ow, 1};
    int64_t k = s->kh * s->kw;
    int64_t c = s->c / s->groups;
    int64_t o = s->o / s->groups;
    int64_t weight[5] = {s->groups, o, c, s->kh, s->kw};
    int64_t weight_strides[5] = {o * c * k, c * k, k, s->kw, 1};
    int skip = s->groups == 1 ? 1 : 0;
    l->strides[0] = s->stride_h;
    l->strides[1] = s->stride_w;
    l->dilates[0] = s->dil_h - 1; /* oneDNN counts from 0 */
    l->dilates[1] = s->dil_w - 1;
    l->pads[0] = s->pad_h;
    l->pads[1] = s->pad_w;
    return describe(&l->in, dtype, 4, in, in_strides) &&
           describe(&l->out, dtype, 4, out, out_strides) &&
           describe(&l->weight, dtype, 5 - skip, weight + skip, weight_strides + skip) &&
           describe(&l->bias, dtype, 1, &s->o, (int64_t[]){1}) &&
           describe(&l->any_in, dtype, 4, in, NULL) && describe(&l->any_out, dtype, 4, out, NULL) &&
           describe(&l->any_weight, dtype, 5 - skip, weight + skip, NULL);
}

static bool make_descriptor(const plan *p, const layouts *l, mt__conv_kind kind,
                            dnnl_convolution_desc_t *desc)
{
    const mt__onednn_table *dnn = mt__onednn();
    const dnnl_memory_desc_t *bias = p->has_bias ? &l->bias : NULL;
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_status_t status;
    switch (kind) {
    case MT_CONV_FORWARD:
        status = dnn->dnnl_dilated_convolution_forward_desc_init(
            desc, dnnl_forward_training, direct, &l->any_in, &l->any_weight,
            p->kind == MT_CONV_FORWARD ? bias : NULL, &l->any_out, l->strides, l->dilates, l->pads,
            l->pads);
        break;
    case MT_CONV_BACKWARD_INPUT:
        status = dnn->dnnl_dilated_convolution_backward_data_desc_init(
            desc, direct, &l->any_in, &l->any_weight, &l->any_out, l->strides, l->dilates, l->pads,
            l->pads);
        break;
    default:
        status = dnn->dnnl_dilated_convolution_backward_weights_desc_init(
            desc, direct, &l->any_in, &l->any_weight, bias, &l->any_out, l->strides, l->dilates,
            l->pads, l->pads);
        break;
    }
    return status == dnnl_success;
}

static bool add_slot(plan *p, const_dnnl_primitive_desc_t pd, dnnl_query_t query, int index,
                     slot part)
{
    const mt__onednn_table *dnn = mt__onednn();
    const dnnl_memory_desc_t *own = dnn->dnnl_primitive_desc_query_md(pd, query, index);
    if (own == NULL) {
        return false;
    }
    part.own = *own;
    slot *place = &p->slots[p->n_slots++];
    *place = part;
    if (dnn->dnnl_memory_desc_equal(own, &part.user)) {
        return true;
    }
    const dnnl_memory_desc_t *from = part.written ? own : &part.user;
    const dnnl_memory_desc_t *to = part.written ? &part.user : own;
    dnnl_primitive_desc_t reorder;
    if (dnn->dnnl_reorder_primitive_desc_create(&reorder, from, dnn->engine, to, dnn->engine,
                                                NULL) != dnnl_success) {
        return false;
    }
    bool made = dnn->dnnl_primitive_create(&place->reorder, reorder) == dnnl_success;
    (void)dnn->dnnl_primitive_desc_destroy(reorder);
    return made;
}

static bool add_slots(plan *p, const_dnnl_primitive_desc_t pd, const layouts *l)
{
    switch (p->kind) {
    case MT_CONV_FORWARD:
        return add_slot(p, pd, dnnl_query_src_md, 0, (slot){DNNL_ARG_SRC, .user = l->in}) &&
               add_slot(p, pd, dnnl_query_weights_md, 0,
                        (slot){DNNL_ARG_WEIGHTS, .user = l->weight}) &&
               (!p->has_bias || add_slot(p, pd, dnnl_query_weights_md, 1,
                                         (slot){DNNL_ARG_BIAS, .user = l->bias})) &&
               add_slot(p, pd, dnnl_query_dst_md, 0, (slot){DNNL_ARG_DST, true, .user = l->out});
    case MT_CONV_BACKWARD_INPUT:
        return add_slot(p, pd, dnnl_query_diff_dst_md, 0,
                        (slot){DNNL_ARG_DIFF_DST, .user = l->out}) &&
               add_slot(p, pd, dnnl_query_weights_md, 0,
                        (slot){DNNL_ARG_WEIGHTS, .user = l->weight}) &&
               add_slot(p, pd, dnnl_query_diff_src_md, 0,
                        (slot){DNNL_ARG_DIFF_SRC, true, .user = l->in});
    default:
        return add_slot(p, pd, dnnl_query_src_md, 0, (slot){DNNL_ARG_SRC, .user = l->in}) &&
               add_slot(p, pd, dnnl_query_diff_dst_md, 0,
                        (slot){DNNL_ARG_DIFF_DST, .user = l->out}) &&
               add_slot(p, pd, dnnl_query_diff_weights_md, 0,
                        (slot){DNNL_ARG_DIFF_WEIGHTS, true, .user = l->weight}) &&
               (!p->has_bias || add_slot(p, pd, dnnl_query_diff_weights_md, 1,
                                         (slot){DNNL_ARG_DIFF_BIAS, true, .user = l->bias}));
    }
}

/* The descriptor, with a forward one as the hint that backward ones need. */
static dnnl_primitive_desc_t choose(const plan *p, const layouts *l)
{
    const mt__onednn_table *dnn = mt__onednn();
    dnnl_primitive_attr_t attributes = NULL;
    if (dnn->dnnl_primitive_attr_create(&attributes) != dnnl_success) {
        return NULL;
    }
    (void)dnn->dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t hint = NULL;
    dnnl_primitive_desc_t chosen = NULL;
    bool good = make_descriptor(p, l, MT_CONV_FORWARD, &desc) &&
                dnn->dnnl_primitive_desc_create(&hint, &desc, attributes, dnn->engine, NULL) ==
                    dnnl_success;
    if (good && p->kind == MT_CONV_FORWARD) {
        chosen = hint;
        hint = NULL;
    } else if (good && make_descriptor(p, l, p->kind, &desc) &&
               dnn->dnnl_primitive_desc_create(&chosen, &desc, attributes, dnn->engine, hint) !=
                   dnnl_success) {
        chosen = NULL;
    }
    if (hint != NULL) {
        (void)dnn->dnnl_primitive_desc_destroy(hint);
    }
    (void)dnn->dnnl_primitive_attr_destroy(attributes);
    return chosen;
}

static bool build(plan *p)
{
    const mt__onednn_table *dnn = mt__onednn();
    layouts l;
    memset(&l, 0, sizeof l);
    if (!make_layouts(&p->shape, p->dtype, &l)) {
        return false;
    }
    dnnl_primitive_desc_t pd = choose(p, &l);
    if (pd == NULL) {
        return false;
    }
    const dnnl_memory_desc_t *scratch =
        dnn->dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    bool made = scratch != NULL && add_slots(p, pd, &l) &&
                dnn->dnnl_primitive_create(&p->primitive, pd) == dnnl_success;
    if (made) {
        p->scratch = *scratch;
    }
    (void)dnn->dnnl_primitive_desc_destroy(pd);
    return made;
}

static bool make_list(void)
{
    (void)pthread_once(&key_once, make_key);
    plan_list *made = key_made ? mtb_calloc(1, sizeof *made) : NULL;
    if (made != NULL && pthread_setspecific(key, made) != 0) {
        mtb_free(made);
        made = NULL;
    }
    kept = made;
    return made != NULL;
}

static plan *find_plan(const mt__conv *conv)
{
    if (kept == NULL && !make_list()) {
        return NULL;
    }
    plan **place = find_place(conv);
    if (!is_same(*place, conv)) {
        plan *made = mtb_calloc(1, sizeof *made);
        if (made == NULL) {
            return NULL;
        }
        made->kind = conv->kind;
        made->dtype = conv->dtype;
        made->has_bias = conv->bias != NULL;
        made->has_weight = conv->weight != NULL;
        made->shape = conv->shape;
        mtb_hold_forks(); /* it compiles under locks of oneDNN's */
        made->failed = !build(made);
        mtb_release_forks();
        free_plan(*place);
        *place = made;
    }
    (*place)->used = ++kept->clock;
    return (*place)->failed ? NULL : *place;
}

/* ---- running --------------------------------------------------------------------------------- */

static void *user_data(const mt__conv *conv, int argument)
{
    switch (argument) {
    case DNNL_ARG_SRC:
    case DNNL_ARG_DIFF_SRC: return conv->in;
    case DNNL_ARG_DST:
    case DNNL_ARG_DIFF_DST: return conv->out;
    case DNNL_ARG_WEIGHTS:
    case DNNL_ARG_DIFF_WEIGHTS: return conv->weight;
    default: return conv->bias;
    }
}

/* What a run holds: a block of scratch and the memory objects. */
typedef struct run_state {
    char *block;
    dnnl_memory_t user[MAX_SLOTS];
    dnnl_memory_t own[MAX_SLOTS];
    dnnl_memory_t scratch;
} run_state;

static bool make_memories(const plan *p, const mt__conv *conv, run_state *r)
{
    const mt__onednn_table *dnn = mt__onednn();
    size_t offsets[MAX_SLOTS + 1] = {0};
    for (uint32_t i = 0; i < p->n_slots; i++) {
        size_t bytes =
            p->slots[i].reorder == NULL ? 0 : dnn->dnnl_memory_desc_get_size(&p->slots[i].own);
        offsets[i + 1] = offsets[i] + (size_t)mtb_round_up(bytes, 4096);
    }
    size_t total = offsets[p->n_slots] + dnn->dnnl_memory_desc_get_size(&p->scratch);
    r->block = mt__scratch_take(total, 1);
    if (r->block == NULL) {
        return false;
    }
    bool made = dnn->dnnl_memory_create(&r->scratch, &p->scratch, dnn->engine,
                                        r->block + offsets[p->n_slots]) == dnnl_success;
    for (uint32_t i = 0; made && i < p->n_slots; i++) {
        const slot *s = &p->slots[i];
        void *data = user_data(conv, s->argument);
        made = dnn->dnnl_memory_create(&r->user[i], &s->user, dnn->engine, data) == dnnl_success;
        if (made && s->reorder != NULL) {
            made = dnn->dnnl_memory_create(&r->own[i], &s->own, dnn->engine,
                                           r->block + offsets[i]) == dnnl_success;
        }
    }
    return made;
}

static void free_memories(run_state *r)
{
    const mt__onednn_table *dnn = mt__onednn();
    for (uint32_t i = 0; i < MAX_SLOTS; i++) {
        if (r->user[i] != NULL) {
            (void)dnn->dnnl_memory_destroy(r->user[i]);
        }
        if (r->own[i] != NULL) {
            (void)dnn->dnnl_memory_destroy(r->own[i]);
        }
    }
    if (r->scratch != NULL) {
        (void)dnn->dnnl_memory_destroy(r->scratch);
    }
    mt__scratch_give(r->block);
}

static bool reorder_slots(const plan *p, const run_state *r, bool written)
{
    const mt__onednn_table *dnn = mt__onednn();
    bool good = true;
    for (uint32_t i = 0; good && i < p->n_slots; i++) {
        const slot *s = &p->slots[i];
        if (s->reorder == NULL || s->written != written) {
            continue;
        }
        dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, written ? r->own[i] : r->user[i]},
                                   {DNNL_ARG_TO, written ? r->user[i] : r->own[i]}};
        good = dnn->dnnl_primitive_execute(s->reorder, dnn->stream, 2, args) == dnnl_success;
    }
    return good;
}

static bool execute(const plan *p, const run_state *r)
{
    const mt__onednn_table *dnn = mt__onednn();
    dnnl_exec_arg_t args[MAX_SLOTS + 1];
    for (uint32_t i = 0; i < p->n_slots; i++) {
        const slot *s = &p->slots[i];
        args[i] = (dnnl_exec_arg_t){s->argument, s->reorder != NULL ? r->own[i] : r->user[i]};
    }
    args[p->n_slots] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, r->scratch};
    return reorder_slots(p, r, false) &&
           dnn->dnnl_primitive_execute(p->primitive, dnn->stream, (int)p->n_slots + 1, args) ==
               dnnl_success &&
           reorder_slots(p, r, true);
}

bool mt__conv_onednn(const mt__conv *conv)
{
    bool floating = conv->dtype == MT_DTYPE_F32 || conv->dtype == MT_DTYPE_BF16;
    if (!floating || conv->weight == NULL || mt__onednn() == NULL) {
        return false;
    }
    int threads = mt__onednn_enter();
    plan *p = find_plan(conv);
    run_state r = {0};
    bool done = p != NULL && make_memories(p, conv, &r) && execute(p, &r);
    free_memories(&r);
    mt__onednn_leave(threads);
    return done;
}

#else

bool mt__conv_onednn(const mt__conv *conv)
{
    (void)conv;
    return false;
}

#endif
