/* SPDX-License-Identifier: Apache-2.0
 *
 * The observers: torch calls them where an op, a node of autograd or a scope of the user begins and
 * ends. There is one for each kind, so that the kind is known without looking into a record.
 *
 *   HO1  What start returns belongs to torch until the record is gone; it calls the destructor that
 *        the object's table names, as C++ does. The object holds the token, so an op may end on
 *        another thread than it began on.
 *   HO2  Objects are kept by the thread that lets go of them, for its next ops; when a thread ends
 *        they are freed, and those that come later are freed at once.
 *   HO3  Only what a recording wants is asked of torch: it copies inputs for an observer that needs
 *        them.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "hosts/torch/torch_impl.h"

#include <pthread.h>
#include <string.h>

enum {
    MOST_THREADS = 65536 /* whose numbers are kept, for forward threads */
};

/* HO1 */
typedef struct th__context {
    void *const *table;
    mtprof_token token;
    struct th__context *next;
} th__context;

uint64_t th__unreadable;

static uint32_t options_now;
static bool only_numbers; /* the layout is known, and no overloads are wanted */
static bool takes_place;  /* the object of torch_memory.c is wanted on every thread */

/* ---- threads ---- */

static __thread th__thread *mine __attribute__((tls_model("initial-exec")));
static __thread bool ended __attribute__((tls_model("initial-exec")));

static pthread_key_t ending;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_ends(void *context)
{
    th__thread *thread = context;
    mine = NULL;
    ended = true;
    while (thread->unused != NULL) {
        th__context *next = thread->unused->next;
        mtb_free(thread->unused);
        thread->unused = next;
    }
    mtb_free(thread->values);
    mtb_free(thread->tensors);
    mtb_free(thread->known);
    mtb_free(thread);
}

static void make_key(void)
{
    (void)pthread_key_create(&ending, thread_ends);
}

static MT_COLD th__thread *make_thread(void)
{
    (void)pthread_once(&once, make_key);
    th__thread *thread = ended ? NULL : mtb_calloc(1, sizeof *thread);
    if (thread == NULL) {
        return NULL;
    }
    if (pthread_setspecific(ending, thread) != 0) {
        mtb_free(thread);
        return NULL;
    }
    mine = thread;
    return thread;
}

MT_INLINE th__thread *this_thread(void)
{
    th__thread *thread = mine;
    return MT_LIKELY(thread != NULL) ? thread : make_thread();
}

/* ---- contexts ---- */

static void destroy_in_place(void *context)
{
    (void)context;
}

static void destroy(void *context)
{
    th__context *gone = context;
    th__thread *thread = mine;
    if (MT_LIKELY(thread != NULL)) {
        gone->next = thread->unused;
        thread->unused = gone;
    } else {
        mtb_free(gone); /* HO2 */
    }
}

/* The table of a C++ class with a virtual destructor and nothing else; it begins at [2]. */
static void *context_table[4];

static void fill_table(void)
{
    void (*functions[2])(void *) = {destroy_in_place, destroy};
    memcpy(&context_table[2], functions, sizeof functions);
}

MT_INLINE th__context *take_context(th__thread *thread, mtprof_token token)
{
    th__context *context = thread->unused;
    if (MT_LIKELY(context != NULL)) {
        thread->unused = context->next;
    } else {
        context = mtb_resize(NULL, 1, sizeof *context);
        if (context == NULL) {
            mtprof_end(token); /* it cannot be found again when the op ends */
            return NULL;
        }
        context->table = &context_table[2];
    }
    context->token = token;
    return context;
}

/* ---- threads' numbers ---- */

/* Of torch's ids: the recorder's number of the thread, and in which epoch it was that. */
static uint64_t numbers[MOST_THREADS]; /* atomic: epoch << 32 | number */

static void note_thread(th__thread *thread, uint64_t id, uint32_t epoch)
{
    uint32_t number = mtprof_thread_number();
    if (number != 0 && id < MOST_THREADS) {
        __atomic_store_n(&numbers[id], (uint64_t)epoch << 32 | number, __ATOMIC_RELAXED);
        thread->named_epoch = epoch;
    }
}

static uint32_t number_of(uint64_t id, uint32_t epoch)
{
    uint64_t entry = id < MOST_THREADS ? __atomic_load_n(&numbers[id], __ATOMIC_RELAXED) : 0;
    return entry >> 32 == epoch ? (uint32_t)entry : 0;
}

/* ---- beginning ---- */

MT_INLINE uint32_t epoch_now(void)
{
    return __atomic_load_n(&mtprof_i_epoch, __ATOMIC_RELAXED);
}

MT_INLINE uint64_t field(const void *record, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, (const unsigned char *)record + offset, sizeof word);
    return word;
}

static void read_details(const void *record, uint32_t scope, uint32_t epoch, mtprof_op *op)
{
    if (th__fields.checked) {
        uint64_t sequence = field(record, th__fields.sequence);
        if (sequence != UINT64_MAX) {
            uint64_t forward = field(record, th__fields.forward_thread);
            uint32_t number = forward != 0 ? number_of(forward, epoch) : 0;
            op->sequence = sequence;
            op->forward_thread = number;
            op->fields |= MTPROF_OP_SEQUENCE | (number != 0 ? MTPROF_OP_FORWARD_THREAD : 0);
        }
    }
    if (scope != TH_SCOPE_FUNCTION && scope != TH_SCOPE_USER) {
        op->record_scope = scope;
        op->fields |= MTPROF_OP_RECORD_SCOPE;
    }
    if ((options_now & MTPROF_TORCH_OVERLOADS) != 0 && scope == TH_SCOPE_FUNCTION) {
        const char *overload = th__torch.overload(record);
        if (overload[0] != '\0') {
            op->overload = mtprof_intern(overload, strlen(overload));
            op->fields |= MTPROF_OP_OVERLOAD;
        }
    }
}

/* What inputs are read for, and what an op has besides its name and times. */
#define INPUTS \
    ((uint32_t)MTPROF_WANT_INPUTS | (uint32_t)MTPROF_WANT_TENSORS | (uint32_t)MTPROF_WANT_FLOPS)
#define DETAILS ((uint32_t)MTPROF_WANT_DETAILS | INPUTS | (uint32_t)MTPROF_WANT_MEMORY)

static MT_NOINLINE mtprof_token begin_details(th__thread *thread, const void *record,
                                              uint32_t scope, th__site *site, const char *name,
                                              uint32_t gate)
{
    uint32_t epoch = epoch_now();
    mtprof_op op = {.struct_size = sizeof op};
    read_details(record, scope, epoch, &op);
    bool plain = site != NULL && (gate & INPUTS) == MTPROF_WANT_INPUTS;
    if ((gate & INPUTS) != 0 && !(plain && th__find_known(thread, site, record, &op))) {
        th__read_inputs(thread, record, gate, &op);
        if (plain && op.n_inputs != 0) {
            th__keep_known(thread, site, record, &op);
        }
        if ((gate & MTPROF_WANT_FLOPS) != 0 && site != NULL && site->flops != 0) {
            op.flops = th__count_flops(site->flops, &op);
            op.fields |= op.flops > 0 ? (uint32_t)MTPROF_OP_FLOPS : 0;
        }
    }
    if ((gate & MTPROF_WANT_MEMORY) != 0 && scope != TH_SCOPE_USER) {
        op.memory_before = th__memory_allocated();
        op.fields |= MTPROF_OP_MEMORY;
    }
    mtprof_token token;
    if (site != NULL) {
        if (scope == TH_SCOPE_BACKWARD && thread->wrapper != 0) {
            mtprof_op_details(
                thread->wrapper,
                &(mtprof_op){.struct_size = sizeof op,
                             .fields = op.fields & (MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD),
                             .sequence = op.sequence,
                             .forward_thread = op.forward_thread});
        }
        token = mtprof_op_begin(&site->site, &op);
        thread->wrapper = site->wrapper ? token : 0;
    } else {
        uint32_t kind = scope == TH_SCOPE_USER ? MTPROF_KIND_SCOPE : MTPROF_KIND_OP;
        token = mtprof_op_begin_named(name, strlen(name), kind | MTPROF_BEGIN_MAY_WAIT, &op);
    }
    if (MT_UNLIKELY(thread->named_epoch != epoch && token != 0 && th__fields.checked)) {
        note_thread(thread, field(record, th__fields.thread), epoch);
    }
    return token;
}

/* An op of which the number alone is wanted, or its memory as well: most recordings. */
MT_INLINE mtprof_token begin_numbered(th__thread *thread, const void *record, th__site *site,
                                      uint32_t gate)
{
    uint64_t sequence = field(record, th__fields.sequence);
    bool memory = (gate & MTPROF_WANT_MEMORY) != 0;
    mtprof_op *op = &thread->numbered;
    thread->wrapper = 0;
    if (sequence == UINT64_MAX && !memory) {
        return mtprof_begin(&site->site);
    }
    op->struct_size = sizeof *op;
    op->fields =
        (sequence != UINT64_MAX ? MTPROF_OP_SEQUENCE : 0u) | (memory ? MTPROF_OP_MEMORY : 0u);
    op->sequence = sequence;
    op->memory_before = memory ? th__memory_allocated() : 0;
    return mtprof_op_begin(&site->site, op);
}

static MT_COLD void take_place(th__thread *thread, uint32_t epoch)
{
    thread->memory_epoch = epoch;
    if (!th__memory_ask()) {
        __atomic_add_fetch(&th__memory_refused, 1, __ATOMIC_RELAXED); /* HM1 of torch_memory.c */
    }
}

MT_INLINE void **begin(void **context, const void *record, uint32_t scope)
{
    uint32_t gate = __atomic_load_n(&mtprof_i_gate, __ATOMIC_RELAXED);
    uint32_t wants = scope == TH_SCOPE_USER ? MTPROF_WANT_SCOPES : MTPROF_WANT_OPS;
    *context = NULL;
    th__thread *thread = this_thread();
    if (MT_UNLIKELY((gate & wants) == 0 || thread == NULL)) {
        return context;
    }
    if (takes_place && MT_UNLIKELY(thread->memory_epoch != epoch_now())) {
        take_place(thread, epoch_now());
    }
    const char *name = th__torch.name(record);
    mtprof_token token = 0;
    th__site *site = scope != TH_SCOPE_USER ? th__site_of(&thread->cache, name) : NULL;
    bool numbered = scope == TH_SCOPE_FUNCTION &&
                    (gate & DETAILS & ~(uint32_t)MTPROF_WANT_MEMORY) == MTPROF_WANT_DETAILS &&
                    only_numbers && thread->named_epoch == epoch_now();
    if (MT_LIKELY(numbered && site != NULL && !site->wrapper)) {
        token = begin_numbered(thread, record, site, gate);
    } else if ((gate & DETAILS) != 0) {
        token = begin_details(thread, record, scope, site, name, gate);
    } else if (site != NULL) {
        token = mtprof_begin(&site->site);
    } else {
        uint32_t kind = scope == TH_SCOPE_USER ? MTPROF_KIND_SCOPE : MTPROF_KIND_OP;
        token = mtprof_begin_named(name, strlen(name), kind | MTPROF_BEGIN_MAY_WAIT);
    }
    if (token != 0) {
        *context = take_context(thread, token);
    }
    return context;
}

static void **start_function(void **context, const void *record)
{
    return begin(context, record, TH_SCOPE_FUNCTION);
}

static void **start_backward(void **context, const void *record)
{
    return begin(context, record, TH_SCOPE_BACKWARD);
}

static void **start_user(void **context, const void *record)
{
    return begin(context, record, TH_SCOPE_USER);
}

static void **start_static(void **context, const void *record)
{
    return begin(context, record, TH_SCOPE_STATIC_OP);
}

static void end(const void *record, void *context)
{
    const th__context *open = context;
    if (open == NULL) {
        return;
    }
    if (MT_UNLIKELY(th__fields.identified && mtprof_wants(MTPROF_WANT_TENSORS))) {
        th__thread *thread = this_thread(); /* it may be another one than that of the begin */
        if (thread != NULL) {
            th__read_outputs(thread, record, open->token);
        }
    }
    if (MT_UNLIKELY(mtprof_wants(MTPROF_WANT_MEMORY))) {
        mtprof_op_end(open->token, 0, th__memory_allocated());
    } else {
        mtprof_end(open->token);
    }
}

/* ---- adding and removing ---- */

/* Who is called for a scope, and what makes a recording want it. */
static const struct {
    void **(*start)(void **context, const void *record);
    uint32_t wants;
    uint8_t first, last; /* enum th__scope */
} kinds[] = {
    {start_function, MTPROF_WANT_OPS, TH_SCOPE_FUNCTION, TH_SCOPE_FUNCTION},
    {start_backward, MTPROF_WANT_OPS, TH_SCOPE_BACKWARD, TH_SCOPE_BACKWARD},
    {start_static, MTPROF_WANT_OPS, TH_SCOPE_STATIC_OP, TH_SCOPE_STATIC_MODEL},
    {start_user, MTPROF_WANT_SCOPES, TH_SCOPE_USER, TH_SCOPE_USER},
};

static struct {
    uint64_t handles[sizeof kinds / sizeof kinds[0]];
    uint32_t count;
} observers;

void th__observers_add(uint64_t wants, uint32_t options)
{
    fill_table();
    options &= th__torch.overload != NULL ? UINT32_MAX : ~(uint32_t)MTPROF_TORCH_OVERLOADS;
    options_now = options;
    only_numbers = th__fields.checked && (options & MTPROF_TORCH_OVERLOADS) == 0;
    takes_place = (wants & MTPROF_WANT_ALLOCS) != 0 || (options & MTPROF_TORCH_ANNOTATIONS) != 0;
    bool tensors = th__fields.identified && (wants & MTPROF_WANT_TENSORS) != 0;
    if (tensors) {
        th__tensors_begin();
    }
    if (takes_place) {
        (void)th__memory_ask(); /* asked, and counted, again with the first op */
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        th__callback callback = {.start = kinds[i].start,
                                 .end = end,
                                 .probability = 1,
                                 .needs_inputs = th__fields.checked && (wants & INPUTS) != 0,
                                 .needs_outputs = tensors};
        if ((wants & kinds[i].wants) == 0) {
            continue;
        }
        for (uint32_t scope = kinds[i].first; scope <= kinds[i].last; scope++) {
            callback.scopes[scope] = true;
        }
        observers.handles[observers.count++] = th__torch.add_callback(callback);
    }
}

void th__observers_remove(void)
{
    while (observers.count > 0) {
        th__torch.remove_callback(observers.handles[--observers.count]);
    }
}
