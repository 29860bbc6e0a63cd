/* SPDX-License-Identifier: Apache-2.0
 *
 * The classifier's blocks: which allocation a tensor lies in, what its beginning and its end say
 * about it. Rules MC0 … are those of memory_categories.h.
 */
#include "base/fail.h"
#include "mtprof/analyze/memory/memory_categories_impl.h"

#include <string.h>

/* ---- forward ops by sequence number (MC3b) -------------------------------------------------- */

enum {
    KEY_THREAD_BITS = 16
};

uint64_t mtprof__forward_key(int64_t sequence, uint32_t thread)
{
    return ((uint64_t)sequence << KEY_THREAD_BITS | (thread & 0xFFFF)) + 1;
}

static uint32_t key_thread(uint64_t key)
{
    return (key - 1) & 0xFFFF;
}

static int64_t key_sequence(uint64_t key)
{
    return (int64_t)((key - 1) >> KEY_THREAD_BITS);
}

int mtprof__forward_reads(mtprof__classifier *c, uint64_t key, uint32_t storage)
{
    bool added;
    mtprof__forward_inputs *inputs =
        mtprof__forward_add(&c->forwards, key_thread(key), key_sequence(key), &added);
    if (inputs == NULL) {
        return mtprof__no_memory("forward ops", 1);
    }
    uint32_t n = inputs->forward.note;
    for (uint32_t i = 0; i < n; i++) {
        if (inputs->storages[i] == storage) {
            return 0;
        }
    }
    if (n < MTPROF__FORWARD_INPUTS) {
        inputs->storages[n] = storage;
        inputs->forward.note++;
    } else {
        c->left_out += !c->tells_parameters;
    }
    return 0;
}

void mtprof__set_role(mtprof__classifier *c, uint32_t storage, uint32_t tensor, uint8_t role)
{
    mtprof__storage *s = &c->flow.storages[storage];
    if (s->role == MTPROF__MEMORY_UNKNOWN) {
        s->role = role;
    }
    if (tensor != MTPROF__NO_INDEX && c->flow.tensors[tensor].role == MTPROF__MEMORY_UNKNOWN) {
        c->flow.tensors[tensor].role = role;
    }
}

/* What could prove MC3b wrong. */
static void note_guess(mtprof__classifier *c, uint32_t storage,
                       const mtprof__forward_inputs *inputs)
{
    mtprof__flow *flow = &c->flow;
    if (mtprof__memory_reserve((void **)&flow->guesses, &flow->guesses_capacity,
                               flow->n_guesses + 1, sizeof *flow->guesses, "parameters") != 0) {
        c->left_out++;
        return;
    }
    mtprof__guess *guess = &flow->guesses[flow->n_guesses++];
    *guess = (mtprof__guess){.storage = storage, .n_others = inputs->forward.note};
    memcpy(guess->others, inputs->storages, sizeof guess->others);
}

/* MC3b: the parameter of this gradient. */
static void find_parameter(mtprof__classifier *c, const mtprof__storage *gradient)
{
    if (gradient->forward == 0 || gradient->bytes == 0 || c->tells_parameters) {
        return;
    }
    const mtprof__forward_inputs *inputs = mtprof__forward_find(
        &c->forwards, key_thread(gradient->forward), key_sequence(gradient->forward));
    if (inputs == NULL) {
        return;
    }
    uint32_t best = MTPROF__NO_INDEX;
    int best_rank = -1;
    for (uint32_t i = 0; i < inputs->forward.note; i++) {
        const mtprof__storage *s = &c->flow.storages[inputs->storages[i]];
        if (s->bytes != gradient->bytes || s == gradient ||
            (s->role != MTPROF__MEMORY_UNKNOWN && s->role != MTPROF__MEMORY_PARAMETER)) {
            continue;
        }
        int rank = s->role == MTPROF__MEMORY_PARAMETER         ? 2
                   : (s->facts & MTPROF__STORAGE_DERIVED) == 0 ? 1
                                                               : 0;
        if (rank >= best_rank) {
            best = inputs->storages[i];
            best_rank = rank;
        }
    }
    if (best != MTPROF__NO_INDEX && best_rank < 2) {
        note_guess(c, best, inputs);
        mtprof__set_role(c, best, c->flow.storages[best].tensor, MTPROF__MEMORY_PARAMETER);
    }
}

void mtprof__set_gradient(mtprof__classifier *c, uint32_t storage, uint32_t tensor)
{
    mtprof__set_role(c, storage, tensor, MTPROF__MEMORY_GRADIENT);
    find_parameter(c, &c->flow.storages[storage]);
}

/* ---- allocations ----------------------------------------------------------------------------- */

static bool step_is_open(const mtprof__classifier *c, uint32_t step)
{
    for (size_t i = 0; i < c->n_open_steps; i++) {
        if (c->open_steps[i] == step) {
            return true;
        }
    }
    return false;
}

/* What the end of a block says about it; `inside` is the op that is open then, 0: none. */
void mtprof__block_ends(mtprof__classifier *c, mtprof__live_block *entry, uint64_t inside)
{
    bool temporary = inside != 0 && inside == entry->unit;
    bool survived = entry->optimizer != 0 && !step_is_open(c, entry->optimizer);
    entry->state = MTPROF__LIVE_DEAD;
    if (entry->storage != 0) {
        mtprof__storage *s = &c->flow.storages[entry->storage - 1];
        s->facts |= (uint16_t)((temporary ? MTPROF__STORAGE_TEMPORARY : 0) |
                               (survived ? MTPROF__STORAGE_MADE_OPTIMIZER : 0));
        return;
    }
    uint8_t category = MTPROF__MEMORY_UNKNOWN;
    if (survived) {
        category = MTPROF__MEMORY_OPTIMIZER_STATE; /* MC4a */
    } else if (temporary) {
        category = MTPROF__MEMORY_TEMPORARY; /* MC8 */
    } else if (entry->backward) {
        category = MTPROF__MEMORY_AUTOGRAD_DETAIL; /* MC7 */
    }
    if (entry->block & MTPROF__BLOCK_FOUND) {
        c->plan.found[entry->block & ~MTPROF__BLOCK_FOUND].category = category;
    } else {
        c->plan.categories[entry->block] = category;
    }
}

const mtprof__frame *mtprof__frame_top(const mtprof__track *t)
{
    return t->n_frames == 0 ? NULL : &t->frames[t->n_frames - 1];
}

static int add_found(mtprof__classifier *c, mtprof__live_block *entry, bool older)
{
    mtprof__memory_plan *plan = &c->plan;
    MT_TRY(mtprof__memory_reserve((void **)&plan->found, &plan->found_capacity, plan->n_found + 1,
                                  sizeof *plan->found, "blocks"));
    *entry = (mtprof__live_block){.address = entry->address,
                                  .device = entry->device,
                                  .state = MTPROF__LIVE_YES,
                                  .ordinal = older ? 0 : c->ordinal,
                                  .block = (uint32_t)plan->n_found | MTPROF__BLOCK_FOUND};
    plan->found[plan->n_found++] = (mtprof__found_block){.address = entry->address,
                                                         .device = entry->device,
                                                         .ordinal = entry->ordinal,
                                                         .category = MTPROF__MEMORY_UNKNOWN};
    return 0;
}

/* The entry of an address, made where there is none. */
static int take_entry(mtprof__classifier *c, uint8_t device, uint64_t address,
                      mtprof__live_block **entry)
{
    *entry = mtprof__addresses_add(&c->live, device, address);
    return *entry != NULL ? 0 : mtprof__no_memory("addresses", c->live.count + 1);
}

int mtprof__take_alloc(mtprof__classifier *c, const mtprof__event *event, const mtprof__track *t)
{
    mtprof__memory_plan *plan = &c->plan;
    mtprof__live_block *entry;
    MT_TRY(take_entry(c, event->device, event->value, &entry));
    if (entry->state == MTPROF__LIVE_YES) {
        mtprof__block_ends(c, entry, 0); /* its release was not seen */
    }
    MT_TRY(mtprof__memory_reserve((void **)&plan->categories, &plan->blocks_capacity,
                                  plan->n_blocks + 1, 1, "blocks"));
    const mtprof__frame *top = mtprof__frame_top(t);
    *entry = (mtprof__live_block){.address = event->value,
                                  .device = event->device,
                                  .state = MTPROF__LIVE_YES,
                                  .bytes = event->bytes,
                                  .ordinal = c->ordinal,
                                  .block = (uint32_t)plan->n_blocks};
    if (top != NULL) {
        entry->unit = top->unit;
        entry->forward = top->forward;
        entry->optimizer = top->optimizer;
        entry->backward = (top->facts & MTPROF__FRAME_BACKWARD) != 0;
    }
    plan->categories[plan->n_blocks++] = MTPROF__MEMORY_UNKNOWN;
    return 0;
}

int mtprof__take_release(mtprof__classifier *c, const mtprof__event *event, const mtprof__track *t)
{
    mtprof__live_block *entry;
    MT_TRY(take_entry(c, event->device, event->value, &entry));
    if (entry->state == MTPROF__LIVE_NEW) {
        MT_TRY(add_found(c, entry, true));
    }
    if (entry->state != MTPROF__LIVE_YES) {
        return 0; /* freed twice */
    }
    if (entry->block & MTPROF__BLOCK_FOUND) {
        int64_t bytes = event->bytes == INT64_MIN ? INT64_MAX : -event->bytes;
        c->plan.found[entry->block & ~MTPROF__BLOCK_FOUND].bytes = bytes;
        if (entry->storage != 0) {
            c->flow.storages[entry->storage - 1].bytes = bytes;
        }
    }
    const mtprof__frame *top = mtprof__frame_top(t);
    mtprof__block_ends(c, entry, top == NULL ? 0 : top->unit);
    return 0;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int add_storage(mtprof__classifier *c, mtprof__live_block *entry, uint32_t number,
                       uint32_t tensor)
{
    mtprof__storage storage = {
        .address = entry->address,
        .bytes = entry->bytes,
        .ordinal = entry->ordinal,
        .forward = entry->forward,
        .block = entry->block,
        .tensor = tensor,
        .optimizer = entry->optimizer,
        .device = entry->device,
        .role = MTPROF__MEMORY_UNKNOWN,
        .facts = entry->backward ? MTPROF__STORAGE_MADE_BACKWARD : 0,
    };
    uint32_t index;
    MT_TRY(mtprof__flow_storage(&c->flow, &storage, number, &index));
    entry->storage = index + 1;
    return 0;
}

/* Notes that a storage changed in place, as of the edge `ordinal`, or now where that is before it
 * was there. */
static int add_change(mtprof__classifier *c, uint32_t version, uint64_t ordinal)
{
    mtprof__memory_plan *plan = &c->plan;
    const mtprof__storage *s = &c->flow.storages[c->flow.versions[version].storage];
    MT_TRY(mtprof__memory_reserve((void **)&plan->changes, &plan->changes_capacity,
                                  plan->n_changes + 1, sizeof *plan->changes, "changes"));
    plan->changes[plan->n_changes++] =
        (mtprof__block_change){.ordinal = ordinal > s->ordinal ? ordinal : c->ordinal,
                               .address = s->address,
                               .block = s->block,
                               .version = version,
                               .device = s->device};
    return 0;
}

/* The version that a tensor is in, MTPROF__NO_INDEX where it has no memory. `made`: it is an output
 * of the op whose BEGIN was edge `since`. */
int mtprof__resolve(mtprof__classifier *c, const mtprof__tensor *t, bool made, uint64_t since,
                    mtprof__tensor_use *use)
{
    use->version = MTPROF__NO_INDEX;
    if (t->storage == 0 || t->device > UINT8_MAX) {
        return 0;
    }
    MT_TRY(mtprof__flow_tensor(&c->flow, t->tensor, &use->tensor));
    mtprof__live_block *entry;
    MT_TRY(take_entry(c, (uint8_t)t->device, t->storage, &entry));
    if (entry->state != MTPROF__LIVE_YES) {
        MT_TRY(add_found(c, entry, entry->state == MTPROF__LIVE_NEW && !made));
    }
    if (entry->storage == 0) {
        MT_TRY(add_storage(c, entry, t->version, use->tensor));
    }
    uint32_t storage = entry->storage - 1;
    uint32_t latest = c->flow.storages[storage].latest;
    if (t->version <= c->flow.versions[latest].number) {
        use->version = mtprof__flow_find_version(&c->flow, storage, t->version);
        const mtprof__version *found = &c->flow.versions[use->version];
        c->left_out += found->number > t->version && found->previous != MTPROF__NO_INDEX;
        return 0;
    }
    MT_TRY(mtprof__flow_version(&c->flow, storage, t->version, &use->version));
    MT_TRY(add_change(c, use->version, since));
    /* No op reported the change: it is only known that the version follows from the last one. */
    return made ? 0 : mtprof__flow_add(&c->flow, 0, &latest, 1, &use->version, 1);
}
