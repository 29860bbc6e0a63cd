/* SPDX-License-Identifier: Apache-2.0
 *
 * Storages, versions and flows, and the two sweeps that classify versions, see memory_flow.h. The
 * numbers of rules (MC1 …) are those of memory_categories.h.
 */
#include "mtprof/analyze/memory/memory_flow.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"

#include <mtprof/status.h>

enum {
    CHAIN_MAX = 64 /* versions to look back through: bounds the work of a hostile trace */
};

void mtprof__flow_fini(mtprof__flow *flow)
{
    mtb_free(flow->storages);
    mtb_free(flow->versions);
    mtb_free(flow->tensors);
    mtb_free(flow->guesses);
    mtb_free(flow->words);
    mtb_idmap_reset(&flow->tensor_map);
    *flow = (mtprof__flow){0};
}

int mtprof__no_memory(const char *what, size_t n)
{
    return mtb_fail(MTPROF_ENOMEM, "memory export: no memory for %zu %s", n, what);
}

int mtprof__memory_reserve(void **items, size_t *capacity, size_t n, size_t size, const char *what)
{
    if (n <= *capacity) {
        return 0;
    }
    if (n > MTPROF__BLOCK_LIMIT) {
        return mtb_fail(MTPROF_ENOTSUP, "memory export: more than %zu %s", n - 1, what);
    }
    return mtb_grow(items, capacity, n, size) ? 0 : mtprof__no_memory(what, n);
}

static bool same_tensor(const void *context, uint32_t id, const void *key)
{
    const mtprof__flow *flow = context;
    return flow->tensors[id - 1].id == *(const uint64_t *)key;
}

int mtprof__flow_tensor(mtprof__flow *flow, uint64_t id, uint32_t *tensor)
{
    uint64_t hash = mtb_mix(id, 1);
    uint32_t known = mtb_idmap_find(&flow->tensor_map, hash, same_tensor, flow, &id);
    if (known != 0) {
        *tensor = known - 1;
        return 0;
    }
    MT_TRY(mtprof__memory_reserve((void **)&flow->tensors, &flow->tensors_capacity,
                                  flow->n_tensors + 1, sizeof *flow->tensors, "tensors"));
    if (!mtb_idmap_add(&flow->tensor_map, hash, (uint32_t)flow->n_tensors + 1)) {
        return mtprof__no_memory("tensors", flow->n_tensors + 1);
    }
    flow->tensors[flow->n_tensors] = (mtprof__known_tensor){id, MTPROF__MEMORY_UNKNOWN};
    *tensor = (uint32_t)flow->n_tensors++;
    return 0;
}

static int add_version(mtprof__flow *flow, const mtprof__version *version, uint32_t *index)
{
    MT_TRY(mtprof__memory_reserve((void **)&flow->versions, &flow->versions_capacity,
                                  flow->n_versions + 1, sizeof *flow->versions, "versions"));
    flow->versions[flow->n_versions] = *version;
    *index = (uint32_t)flow->n_versions++;
    return 0;
}

int mtprof__flow_storage(mtprof__flow *flow, const mtprof__storage *storage, uint32_t version,
                         uint32_t *index)
{
    MT_TRY(mtprof__memory_reserve((void **)&flow->storages, &flow->storages_capacity,
                                  flow->n_storages + 1, sizeof *flow->storages, "storages"));
    uint32_t first;
    MT_TRY(add_version(flow,
                       &(mtprof__version){.storage = (uint32_t)flow->n_storages,
                                          .number = version,
                                          .previous = MTPROF__NO_INDEX,
                                          .category = MTPROF__MEMORY_UNKNOWN},
                       &first));
    mtprof__storage *added = &flow->storages[flow->n_storages];
    *added = *storage;
    added->first = added->latest = first;
    *index = (uint32_t)flow->n_storages++;
    return 0;
}

uint32_t mtprof__flow_find_version(const mtprof__flow *flow, uint32_t storage, uint32_t number)
{
    uint32_t at = flow->storages[storage].latest;
    for (int i = 0; i < CHAIN_MAX && flow->versions[at].number > number; i++) {
        if (flow->versions[at].previous == MTPROF__NO_INDEX) {
            break;
        }
        at = flow->versions[at].previous;
    }
    return at;
}

int mtprof__flow_version(mtprof__flow *flow, uint32_t storage, uint32_t number, uint32_t *version)
{
    MT_TRY(add_version(flow,
                       &(mtprof__version){.storage = storage,
                                          .number = number,
                                          .previous = flow->storages[storage].latest,
                                          .category = MTPROF__MEMORY_UNKNOWN},
                       version));
    flow->storages[storage].latest = *version;
    return 0;
}

/* ---- flows: [head] ins outs [head], readable from both ends ---------------------------------- */

/*     head: number of ins; number of outs << 2 | facts
 */

enum {
    HEAD = 2
};

typedef struct step {
    const uint32_t *ins, *outs;
    uint32_t n_ins, n_outs, facts;
    size_t n_words; /* of the whole flow */
} step;

/* ins and outs follow the first of the two heads: the caller sets the pointers. */
static step step_read(const uint32_t *head)
{
    step s = {.n_ins = head[0], .n_outs = head[1] >> 2, .facts = head[1] & 3};
    s.n_words = 2 * HEAD + (size_t)s.n_ins + s.n_outs;
    return s;
}

static void step_point(step *s, const uint32_t *first)
{
    s->ins = first + HEAD;
    s->outs = s->ins + s->n_ins;
}

static void mark(mtprof__flow *flow, const uint32_t *versions, uint32_t n, bool on)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *facts = &flow->versions[versions[i]].facts;
        *facts = (uint8_t)(on ? *facts | MTPROF__VERSION_MARKED : *facts & ~MTPROF__VERSION_MARKED);
    }
}

int mtprof__flow_add(mtprof__flow *flow, uint32_t facts, const uint32_t *ins, uint32_t n_ins,
                     const uint32_t *outs, uint32_t n_outs)
{
    size_t most = flow->n_words + 2 * HEAD + (size_t)n_ins + n_outs;
    if (!mtb_grow((void **)&flow->words, &flow->words_capacity, most, sizeof *flow->words)) {
        return mtprof__no_memory("words of data flow", most);
    }
    uint32_t *head = flow->words + flow->n_words;
    uint32_t *at = head + HEAD;
    mark(flow, ins, n_ins, true);
    for (uint32_t i = 0; i < n_ins; i++) {
        *at++ = ins[i];
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n_outs; i++) {
        if ((flow->versions[outs[i]].facts & MTPROF__VERSION_MARKED) == 0) {
            *at++ = outs[i];
            kept++;
        }
    }
    mark(flow, ins, n_ins, false);
    if (kept == 0) {
        return 0;
    }
    head[0] = at[0] = n_ins;
    head[1] = at[1] = kept << 2 | facts;
    flow->n_words += 2 * HEAD + (size_t)n_ins + kept;
    return 0;
}

/* ---- solving --------------------------------------------------------------------------------- */

/* MC2, MC3, MC4 for what could not be decided while reading: needs the whole trace. */
static void settle_storages(mtprof__flow *flow)
{
    for (size_t i = 0; i < flow->n_storages; i++) {
        mtprof__storage *s = &flow->storages[i];
        if (s->role != MTPROF__MEMORY_UNKNOWN) {
            continue;
        }
        bool made = (s->facts & MTPROF__STORAGE_MADE_OPTIMIZER) != 0;
        bool written = (s->facts & MTPROF__STORAGE_WRITE_OPTIMIZER) != 0;
        bool forward = (s->facts & MTPROF__STORAGE_READ_FORWARD) != 0;
        if (!made && !forward && (s->facts & MTPROF__STORAGE_READ_OPTIMIZER) &&
            (s->facts & MTPROF__STORAGE_WRITE_BACKWARD)) {
            s->role = MTPROF__MEMORY_GRADIENT; /* MC2c */
        } else if (!made && written && forward) {
            s->role = MTPROF__MEMORY_PARAMETER; /* MC3a */
        } else if (made || written) {
            s->role = MTPROF__MEMORY_OPTIMIZER_STATE; /* MC4a, MC4b */
        } else {
            continue;
        }
        if (flow->tensors[s->tensor].role == MTPROF__MEMORY_UNKNOWN) {
            flow->tensors[s->tensor].role = s->role;
        }
    }
}

/* MC3b gives way to MC3a: an optimizer changed another input of that size, and not this one. */
static void take_back_guesses(mtprof__flow *flow)
{
    for (size_t i = 0; i < flow->n_guesses; i++) {
        const mtprof__guess *guess = &flow->guesses[i];
        mtprof__storage *s = &flow->storages[guess->storage];
        bool wrong = false;
        for (uint32_t k = 0; k < guess->n_others; k++) {
            const mtprof__storage *other = &flow->storages[guess->others[k]];
            wrong |= other->bytes == s->bytes && other->role == MTPROF__MEMORY_PARAMETER &&
                     (other->facts & MTPROF__STORAGE_WRITE_OPTIMIZER) != 0;
        }
        if (wrong && (s->facts & MTPROF__STORAGE_WRITE_OPTIMIZER) == 0 &&
            s->role == MTPROF__MEMORY_PARAMETER) {
            s->role = MTPROF__MEMORY_UNKNOWN;
            flow->tensors[s->tensor].role = MTPROF__MEMORY_UNKNOWN;
        }
    }
}

/* MC1: by tensor, by storage; the sweeps add what is left. */
static uint8_t role_of(const mtprof__flow *flow, const mtprof__storage *s)
{
    uint8_t by_tensor = flow->tensors[s->tensor].role;
    if (by_tensor != MTPROF__MEMORY_UNKNOWN) {
        return by_tensor;
    }
    if (s->role != MTPROF__MEMORY_UNKNOWN) {
        return s->role;
    }
    return s->facts & MTPROF__STORAGE_TEMPORARY ? MTPROF__MEMORY_TEMPORARY : MTPROF__MEMORY_UNKNOWN;
}

static void settle_versions(mtprof__flow *flow)
{
    for (size_t i = 0; i < flow->n_versions; i++) {
        mtprof__version *v = &flow->versions[i];
        const mtprof__storage *s = &flow->storages[v->storage];
        v->category = role_of(flow, s);
        bool first = v->previous == MTPROF__NO_INDEX;
        if (v->category == MTPROF__MEMORY_UNKNOWN &&
            ((v->facts & MTPROF__VERSION_BACKWARD) ||
             (first && (s->facts & MTPROF__STORAGE_MADE_BACKWARD)))) {
            v->category = MTPROF__MEMORY_AUTOGRAD_DETAIL; /* MC7 */
        }
    }
}

/* MC5: what a forward op made from parameters or activations, and from no gradient. */
static void sweep_forward(mtprof__flow *flow, const step *s)
{
    bool learns = false;
    bool depends = false;
    bool foreign = false;
    for (uint32_t i = 0; i < s->n_ins; i++) {
        const mtprof__version *v = &flow->versions[s->ins[i]];
        switch (v->category) {
        case MTPROF__MEMORY_PARAMETER:
        case MTPROF__MEMORY_ACTIVATION: learns = true; break;
        case MTPROF__MEMORY_GRADIENT: depends = true; break;
        case MTPROF__MEMORY_OPTIMIZER_STATE:
        case MTPROF__MEMORY_AUTOGRAD_DETAIL: foreign = true; break;
        default: depends |= (v->facts & MTPROF__VERSION_DEPENDS) != 0; break;
        }
    }
    bool plain = (s->facts & (MTPROF__FLOW_BACKWARD | MTPROF__FLOW_OPTIMIZER)) == 0;
    for (uint32_t i = 0; i < s->n_outs; i++) {
        mtprof__version *v = &flow->versions[s->outs[i]];
        if (depends) {
            v->facts |= MTPROF__VERSION_DEPENDS;
        }
        if (plain && learns && !depends && !foreign && v->category == MTPROF__MEMORY_UNKNOWN) {
            v->category = MTPROF__MEMORY_ACTIVATION;
        }
    }
}

/* MC6: what is read together with a parameter or an activation, or goes into what learns. */
static void sweep_back(mtprof__flow *flow, const step *s)
{
    bool feeds = false;
    for (uint32_t i = 0; i < s->n_outs; i++) {
        const mtprof__version *v = &flow->versions[s->outs[i]];
        feeds |= v->category == MTPROF__MEMORY_GRADIENT ||
                 v->category == MTPROF__MEMORY_ACTIVATION || (v->facts & MTPROF__VERSION_FEEDS);
    }
    for (uint32_t i = 0; i < s->n_ins && !feeds; i++) {
        uint8_t category = flow->versions[s->ins[i]].category;
        feeds = category == MTPROF__MEMORY_PARAMETER || category == MTPROF__MEMORY_ACTIVATION;
    }
    if (!feeds || (s->facts & MTPROF__FLOW_OPTIMIZER)) {
        return;
    }
    for (uint32_t i = 0; i < s->n_ins; i++) {
        mtprof__version *v = &flow->versions[s->ins[i]];
        v->facts |= MTPROF__VERSION_FEEDS;
        bool forward = (flow->storages[v->storage].facts &
                        (MTPROF__STORAGE_READ_FORWARD | MTPROF__STORAGE_WRITE_FORWARD)) != 0;
        if (v->category == MTPROF__MEMORY_UNKNOWN && forward &&
            (v->facts & (MTPROF__VERSION_DEPENDS | MTPROF__VERSION_OPTIMIZER)) == 0) {
            v->category = MTPROF__MEMORY_INPUT;
        }
    }
}

void mtprof__flow_solve(mtprof__flow *flow)
{
    settle_storages(flow);
    take_back_guesses(flow);
    settle_versions(flow);
    for (size_t at = 0; at < flow->n_words;) {
        step s = step_read(flow->words + at);
        step_point(&s, flow->words + at);
        sweep_forward(flow, &s);
        at += s.n_words;
    }
    for (size_t end = flow->n_words; end > 0;) {
        step s = step_read(flow->words + end - HEAD);
        end -= s.n_words;
        step_point(&s, flow->words + end);
        sweep_back(flow, &s);
    }
}
