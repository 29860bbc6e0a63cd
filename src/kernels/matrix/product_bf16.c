/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bfloat16 matrices by oneDNN, on processors that multiply pairs of them and add in
 * float32 (an extension of AVX-512); elsewhere converting to float32 first is faster. As in
 * conv_onednn.c primitives are kept by shape, a few for each thread: nothing is locked or shared.
 */
#include "kernels/matrix/onednn.h"
#include "kernels/matrix/product.h"

#if MT_HAVE_ONEDNN && DNNL_VERSION_MAJOR == 2

#    include "base/alloc.h"
#    include "base/shared_object.h"
#    include "kernels/walk/scratch.h"

#    include <pthread.h>
#    include <string.h>

enum {
    KEPT = 16,
    LEAST_SIDE = 16,
    LEAST_WORK = 96 * 96 * 96 /* m n k below which a call of oneDNN costs more than it saves */
};

/* All 64-bit numbers, so that it can be compared as bytes. Strides in elements. */
typedef struct shape {
    int64_t m, n, k;
    int64_t a[2], b[2], c[2];
} shape;

typedef struct plan {
    shape shape;
    uint64_t used;               /* when, for replacing the oldest; 0: free */
    dnnl_memory_desc_t parts[4]; /* a, b, c, scratch */
    dnnl_primitive_t primitive;  /* NULL: oneDNN does not support it */
} plan;

typedef struct plan_list {
    plan plans[KEPT];
    uint64_t clock;
} plan_list;

static _Thread_local plan_list *kept;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

static void empty(plan *p)
{
    const mt__onednn_table *dnn = mt__onednn();
    if (dnn != NULL && p->primitive != NULL) {
        (void)dnn->dnnl_primitive_destroy(p->primitive);
    }
    memset(p, 0, sizeof *p);
}

static void free_plans(void *argument)
{
    plan_list *list = argument;
    for (unsigned i = 0; i < KEPT; i++) {
        empty(&list->plans[i]);
    }
    mtb_free(list);
    kept = NULL;
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, free_plans) == 0;
}

static bool describe(dnnl_memory_desc_t *desc, int64_t rows, int64_t columns,
                     const int64_t strides[2])
{
    return mt__onednn()->dnnl_memory_desc_init_by_strides(
               desc, 2, (dnnl_dims_t){rows, columns}, dnnl_bf16,
               (dnnl_dims_t){strides[0], strides[1]}) == dnnl_success;
}

static void build(plan *p)
{
    const mt__onednn_table *dnn = mt__onednn();
    const shape *s = &p->shape;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t pd = NULL;
    if (!describe(&p->parts[0], s->m, s->k, s->a) || !describe(&p->parts[1], s->k, s->n, s->b) ||
        !describe(&p->parts[2], s->m, s->n, s->c) ||
        dnn->dnnl_matmul_desc_init(&desc, &p->parts[0], &p->parts[1], NULL, &p->parts[2]) !=
            dnnl_success ||
        dnn->dnnl_primitive_attr_create(&attributes) != dnnl_success) {
        return;
    }
    (void)dnn->dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (dnn->dnnl_primitive_desc_create(&pd, &desc, attributes, dnn->engine, NULL) ==
        dnnl_success) {
        p->parts[3] = *dnn->dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
        if (dnn->dnnl_primitive_create(&p->primitive, pd) != dnnl_success) {
            p->primitive = NULL;
        }
        (void)dnn->dnnl_primitive_desc_destroy(pd);
    }
    (void)dnn->dnnl_primitive_attr_destroy(attributes);
}

/* NULL: no memory. */
static plan *find_plan(const shape *wanted)
{
    if (kept == NULL) {
        (void)pthread_once(&key_once, make_key);
        plan_list *made = key_made ? mtb_calloc(1, sizeof *made) : NULL;
        if (made == NULL || pthread_setspecific(key, made) != 0) {
            mtb_free(made);
            return NULL;
        }
        kept = made;
    }
    plan *oldest = &kept->plans[0];
    for (unsigned i = 0; i < KEPT; i++) {
        plan *p = &kept->plans[i];
        if (p->used != 0 && memcmp(&p->shape, wanted, sizeof *wanted) == 0) {
            p->used = ++kept->clock;
            return p;
        }
        oldest = p->used < oldest->used ? p : oldest;
    }
    empty(oldest);
    oldest->shape = *wanted;
    oldest->used = ++kept->clock;
    mtb_hold_forks(); /* it compiles under locks of oneDNN's */
    build(oldest);
    mtb_release_forks();
    return oldest;
}

static bool execute(const plan *p, void *const data[3])
{
    static const int arguments[4] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST,
                                     DNNL_ARG_SCRATCHPAD};
    const mt__onednn_table *dnn = mt__onednn();
    void *scratch = mt__scratch_take(dnn->dnnl_memory_desc_get_size(&p->parts[3]) + 1, 1);
    dnnl_exec_arg_t args[4] = {{0}};
    bool good = scratch != NULL;
    for (int i = 0; good && i < 4; i++) {
        args[i].arg = arguments[i];
        good = dnn->dnnl_memory_create(&args[i].memory, &p->parts[i], dnn->engine,
                                       i < 3 ? data[i] : scratch) == dnnl_success;
    }
    good = good && dnn->dnnl_primitive_execute(p->primitive, dnn->stream, 4, args) == dnnl_success;
    for (int i = 0; i < 4; i++) {
        if (args[i].memory != NULL) {
            (void)dnn->dnnl_memory_destroy(args[i].memory);
        }
    }
    mt__scratch_give(scratch);
    return good;
}

bool mt__bf16_suits(const mt__product *p)
{
    return p->alpha == 1 && p->beta == 0 && p->m >= LEAST_SIDE && p->n >= LEAST_SIDE &&
           p->k >= LEAST_SIDE && p->m * p->n >= LEAST_WORK / p->k && mt__onednn_bf16();
}

bool mt__bf16_multiply(const mt__product *p)
{
    const shape wanted = {.m = p->m,
                          .n = p->n,
                          .k = p->k,
                          .a = {p->a_row, p->a_col},
                          .b = {p->b_row, p->b_col},
                          .c = {p->c_row, p->c_col}};
    int threads = mt__onednn_enter();
    const plan *found = find_plan(&wanted);
    bool done = found != NULL && found->primitive != NULL &&
                execute(found, (void *const[3]){(void *)(uintptr_t)p->a, /* a and b are only read */
                                                (void *)(uintptr_t)p->b, p->c});
    mt__onednn_leave(threads);
    return done;
}

#else

bool mt__bf16_suits(const mt__product *p)
{
    (void)p;
    return false;
}

bool mt__bf16_multiply(const mt__product *p)
{
    (void)p;
    return false;
}

#endif
