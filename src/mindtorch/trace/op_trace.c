/* SPDX-License-Identifier: Apache-2.0
 *
 * Reporting ops to libmtprof. Only what the recording asks for is computed. A call with the same
 * words as an earlier one is reported with the number under which the recording stored those
 * inputs.
 */
#include "mindtorch/trace/op_trace.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/pages.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    SITE_BUCKETS = 256,
    KNOWN_SETS = 256,
    KNOWN_WAYS = 2,
    KNOWN_WORDS = 28 /* of a call that is remembered: three tensors of four dimensions */
};

#define OP_SITE(name) MTPROF_SITE_INIT(name, MTPROF_KIND_OP)
mt__trace_site mt__trace_row_sites[] = {
#include "op_sites.inc"
};
#undef OP_SITE

#define OP_SITE(name) MTPROF_SITE_INIT(name, MTPROF_KIND_OP | MTPROF_FLAG_DEVICE)
mt__trace_site mt__trace_far_row_sites[] = {
#include "op_sites.inc"
};
#undef OP_SITE

/* The profiler's ids of type names. Interned on first use; if the id is 0, interning is tried
 * again. */
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

/* ---- inputs ---------------------------------------------------------------------------------- */

enum {
    LARGE_WORDS = MT_TRACE_MOST + 4,
    LARGE_BYTES = (LARGE_WORDS + MT_TRACE_MOST + 1) * sizeof(uint64_t)
};

/* A call that this thread has reported before, and its number in the recording. */
typedef struct known_call {
    const mtprof_site *site;
    mtprof_inputs inputs;
    uint32_t n_words;
    uint32_t reserved;
    uint64_t words[KNOWN_WORDS];
} known_call;

typedef struct known_calls {
    known_call at[KNOWN_SETS][KNOWN_WAYS];
    uint8_t next[KNOWN_SETS]; /* which way is replaced next */
    uint64_t *large;          /* pages of LARGE_BYTES that are in no use; NULL: none */
} known_calls;

static __thread known_calls *known_here __attribute__((tls_model("initial-exec")));
static pthread_once_t known_once = PTHREAD_ONCE_INIT;
static pthread_key_t known_key;
static bool has_known_key;

static void forget_known(void *table)
{
    known_here = NULL;
    mtb_pages_give(((known_calls *)table)->large, LARGE_BYTES);
    mtb_free(table);
}

static void make_known_key(void)
{
    has_known_key = pthread_key_create(&known_key, forget_known) == 0;
}

/* NULL: no memory; then calls are reported without this cache. */
static MT_COLD known_calls *make_known(void)
{
    pthread_once(&known_once, make_known_key);
    known_calls *made = has_known_key ? mtb_calloc(1, sizeof *made) : NULL;
    if (made == NULL || pthread_setspecific(known_key, made) != 0) {
        mtb_free(made);
        return NULL;
    }
    known_here = made;
    return made;
}

/* ---- long lists ---- */

/* Pages: what is not used of them costs nothing. A thread keeps one piece: those of a step's
 * optimizer would otherwise be mapped, touched and given back in every step. */
static uint64_t *take_large(void)
{
    uint64_t *pages = known_here != NULL ? known_here->large : NULL;
    if (pages != NULL) {
        known_here->large = NULL;
        return pages;
    }
    return mtb_pages_take(LARGE_BYTES);
}

static void give_large(uint64_t *pages)
{
    if (pages != NULL && known_here != NULL && known_here->large == NULL) {
        known_here->large = pages;
        return;
    }
    mtb_pages_give(pages, LARGE_BYTES);
}

bool mt__trace_words_init_large(mt__trace_words *w)
{
    uint64_t *pages = take_large();
    w->n_words = w->n_scalars = 0;
    w->large_words = pages;
    w->large_scalars = pages == NULL ? NULL : pages + LARGE_WORDS;
    w->cut = pages == NULL;
    return pages != NULL;
}

void mt__trace_words_fini_large(mt__trace_words *w)
{
    give_large(w->large_words);
    w->large_words = w->large_scalars = NULL;
}

/* Words back to values; `at` and the scalars move on. */
typedef struct unpacking {
    const uint64_t *at;
    const uint64_t *scalars;
    uint32_t n_items;
    mtprof_value *items; /* room for as many as there are words */
} unpacking;

static mtprof_value unpack_simple(unpacking *u)
{
    uint64_t head = *u->at++;
    mtprof_value value = {.kind = MTPROF_INPUT_NONE};
    uint32_t n_dims = head >> 8 & 0xFF;
    switch (head & 0xFF) {
    case MT_SHOWN_TENSOR:
        value.kind = MTPROF_INPUT_TENSOR;
        value.n_dims = (uint8_t)n_dims;
        value.type = dtype_id((mt_dtype)(head >> 24 & 0xFF));
        value.of.sizes = (const int64_t *)u->at;
        u->at += n_dims;
        if ((head >> 16 & 1) != 0) {
            value.strides = (const int64_t *)u->at;
            u->at += n_dims;
        }
        return value;
    case MT_SHOWN_BOOL: value.kind = MTPROF_INPUT_BOOL; break;
    case MT_SHOWN_INT: value.kind = MTPROF_INPUT_INT; break;
    case MT_SHOWN_REAL: value.kind = MTPROF_INPUT_REAL; break;
    default: return value;
    }
    value.type = scalar_id();
    memcpy(&value.of, u->scalars++, sizeof value.of);
    return value;
}

/* Returns the number of values. */
static uint32_t unpack(unpacking *u, uint32_t n_words, mtprof_value *values)
{
    uint32_t count = 0;
    const uint64_t *end = u->at + n_words;
    while (u->at < end) {
        if ((*u->at & 0xFF) != MT_SHOWN_LIST) {
            values[count++] = unpack_simple(u);
            continue;
        }
        uint32_t items = (uint32_t)(*u->at++ >> 32);
        values[count++] = (mtprof_value){
            .kind = MTPROF_INPUT_LIST, .type = items, .of.items = &u->items[u->n_items]};
        for (uint32_t i = 0; i < items; i++) {
            u->items[u->n_items++] = unpack_simple(u);
        }
    }
    return count;
}

/* Remembers the call, where the recording takes it. */
static mtprof_inputs learn(const mtprof_site *site, const mt__trace_words *words, uint32_t set,
                           const mtprof_value *values, uint32_t count)
{
    mtprof_inputs inputs = mtprof_know_inputs(values, count);
    known_calls *table = known_here != NULL ? known_here : make_known();
    if (inputs.id != 0 && table != NULL && words->n_words <= KNOWN_WORDS) {
        known_call *entry = &table->at[set][table->next[set]++ % KNOWN_WAYS];
        entry->site = site;
        entry->inputs = inputs;
        entry->n_words = words->n_words;
        memcpy(entry->words, words->words, words->n_words * sizeof words->words[0]);
    }
    return inputs;
}

static MT_NOINLINE mtprof_token begin_unknown(mtprof_site *site, const mt__trace_words *words,
                                              uint32_t set, const mtprof_op *begun)
{
    mtprof_value values[MT_TRACE_WORDS], items[MT_TRACE_WORDS];
    unpacking u = {.at = words->words, .scalars = words->scalars, .items = items};
    mtprof_op payload = *begun; /* it gets addresses of what is only here */
    uint32_t count = unpack(&u, words->n_words, values);
    payload.known = learn(site, words, set, values, count);
    payload.inputs = values;
    payload.n_inputs = count;
    return mtprof_op_begin(site, &payload);
}

MT_COLD mtprof_token mt__trace_long_begin(mtprof_site *site, const mt__trace_words *words,
                                          mtprof_op *payload)
{
    size_t room = 2 * ((size_t)words->n_words + 1);
    mtprof_value *values = words->cut ? NULL : mtb_resize(NULL, room, sizeof *values);
    payload->n_inputs = 1; /* without a list libmtprof counts it as cut */
    if (values != NULL) {
        unpacking u = {.at = words->large_words,
                       .scalars = words->large_scalars,
                       .items = values + words->n_words};
        payload->n_inputs = unpack(&u, words->n_words, values);
        payload->inputs = values;
    }
    mtprof_token token = mtprof_op_begin(site, payload);
    payload->inputs = NULL;
    payload->n_inputs = 0;
    mtb_free(values);
    return token;
}

/* Two words at a time, whatever the CPU has for it. */
typedef uint64_t word_pair __attribute__((vector_size(16), aligned(8), may_alias));

MT_INLINE bool same_words(const uint64_t *a, const uint64_t *b, uint32_t count)
{
    word_pair bits = {0, 0};
    const uint64_t *end = a + (count & ~1u);
    for (; a < end; a += 2, b += 2) {
        bits |= *(const word_pair *)(const void *)a ^ *(const word_pair *)(const void *)b;
    }
    uint64_t last = (count & 1) != 0 ? *a ^ *b : 0;
    return (bits[0] | bits[1] | last) == 0;
}

/* By the site and four of the words: a model calls one op with a dozen different shapes a step. */
MT_INLINE uint32_t set_of(const mtprof_site *site, const mt__trace_words *words)
{
    const uint64_t *w = words->words;
    uint32_t n = words->n_words;
    uint64_t of_site = (uintptr_t)site / sizeof *site;
    uint64_t of_words =
        n == 0 ? 0 : w[n > 1] + 31 * w[n > 2 ? 2 : 0] + 961 * w[n / 2] + 7 * w[n - 1];
    return (uint32_t)((of_site + of_words * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u >> 40) %
           KNOWN_SETS;
}

/* With known inputs, if this thread has reported such a call before. */
mtprof_token mt__trace_shown_begin(mtprof_site *site, const mt__trace_words *words,
                                   mtprof_op *payload)
{
    uint32_t set = set_of(site, words);
    const known_calls *table = known_here;
    payload->scalars = words->scalars;
    payload->n_scalars = words->n_scalars;
    for (uint32_t way = 0; table != NULL && way < KNOWN_WAYS; way++) {
        const known_call *entry = &table->at[set][way];
        if (entry->site == site && entry->n_words == words->n_words &&
            mtprof_inputs_are_known(entry->inputs) &&
            same_words(entry->words, words->words, words->n_words)) {
            payload->known = entry->inputs;
            return mtprof_op_begin(site, payload);
        }
    }
    return begin_unknown(site, words, set, payload);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

mtprof_token mt__trace_node_begin(mtprof_site *site, const mt__trace_node *node)
{
    mtprof_op payload = {
        .struct_size = sizeof(payload),
        .fields = MTPROF_OP_RECORD_SCOPE,
        .record_scope = node->record_scope,
    };
    if (node->sequence != UINT64_MAX) {
        payload.fields |= MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD;
        payload.sequence = node->sequence;
        payload.forward_thread = node->forward_thread;
    }
    if (site == NULL) {
        return 0;
    }
    if (node->words == NULL || (node->words->n_words == 0 && !node->is_long)) {
        return mtprof_op_begin(site, &payload);
    }
    return node->is_long ? mt__trace_long_begin(site, node->words, &payload)
                         : mt__trace_shown_begin(site, node->words, &payload);
}

/* ---- names made at run time ------------------------------------------------------------------ */

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
            site->site.struct_size = sizeof site->site;
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

mtprof_site *mt__trace_op_site(const char *name, bool on_device)
{
    return site_for(name, MTPROF_KIND_OP | (on_device ? MTPROF_FLAG_DEVICE : 0));
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
