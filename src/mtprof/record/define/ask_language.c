/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking the host's language for the stack and the module path of what begins.
 *
 *      begin ─► writer's begin_state is DETACHED ─► slow path ─► mtprof__ask() ─► language
 *                                                                       │
 *               the op with its answer, on the fast path (w->state) ◄─────┘
 *
 * Invariants
 *   AL1  The language changes only while there is no recording: what it can answer is constant for
 *        an epoch. Whether it is wanted may change in it; writers learn of both when they see
 *        another state (mtprof__reserve).
 *   AL2  It is asked with the writer's `asking` set and `busy` clear, so that it may use the
 *        recorder itself. A begin that finds either set on its own thread does not ask: it comes
 *        from a signal handler, or from a scope that the language must not begin.
 *   AL3  `asking` is set before the language is read; a change writes the language and then reads
 *        `asking`, with membarrier() between. So an asker either sees the new language, or the
 *        change waits for it.
 *   AL4  The two places hold the language alternately. A change writes the place that is not in
 *        use: the previous change did not return before all askers had left it.
 */
#include "mtprof/record/define/ask_language.h"

#include "base/fail.h"
#include "base/lock.h"
#include "base/struct_size.h"

#include <string.h>

uint32_t mtprof__language_wants = MTPROF__SAMPLING;
mtb_lock mtprof__language_lock = MTB_LOCK_INIT(MTB_RANK_LANGUAGE);

static mtprof_language places[2];     /* AL4; written under the language's lock */
static uint32_t place;                /* of the latest change */
static const mtprof_language *spoken; /* atomic: one of them, or none */

uint32_t mtprof__ask(mtprof__writer *w, uint64_t state, uint32_t flags, mtprof_op *op)
{
    uint32_t wants = mtprof__language_asks(state) & ~(uint32_t)MTPROF__SAMPLING;
    uint32_t kind = flags & MTPROF_KIND_MASK;
    bool waits = (flags & MTPROF_BEGIN_MAY_WAIT) != 0;
    if (kind == MTPROF_KIND_FUNCTION) {
        return 0; /* a call of the language itself */
    }
    if (op->stack != 0) {
        wants &= ~(uint32_t)MTPROF_WANT_STACKS;
    }
    if (kind != MTPROF_KIND_OP || (op->fields & MTPROF_OP_MODULE) != 0) {
        wants &= ~(uint32_t)MTPROF_WANT_MODULES;
    }
    if (wants == 0) {
        return 0;
    }
    if (w->asking == 0 && MTPROF__GET(w->busy) == 0 && !mtb_locks_held()) { /* AL2 */
        if (MT_UNLIKELY(MT_TSAN || (MTPROF__GET(mtprof__odd) & MTPROF__ODD_BARRIER) != 0)) {
            __atomic_store_n(&w->asking, 1, __ATOMIC_SEQ_CST);
        } else {
            __atomic_store_n(&w->asking, 1, __ATOMIC_RELAXED);
            MT_COMPILER_BARRIER(); /* AL3 */
        }
        uint64_t before = (state & MTPROF__LIMITED) != 0 ? mtprof__ticks() : 0;
        const mtprof_language *l =
            __atomic_load_n(&spoken, MT_TSAN ? __ATOMIC_SEQ_CST : __ATOMIC_ACQUIRE);
        if (l != NULL && (wants & MTPROF_WANT_STACKS) != 0 && l->stack != NULL) {
            op->stack = (waits ? l->stack_waiting : l->stack)(l->context);
            if (op->stack == MTPROF_STACK_NONE) {
                op->stack = 0;
                wants &= ~(uint32_t)MTPROF_WANT_STACKS;
            }
        }
        if (l != NULL && (wants & MTPROF_WANT_MODULES) != 0 && l->module_path != NULL) {
            op->module = (waits ? l->module_path_waiting : l->module_path)(l->context);
            op->fields |= op->module != 0 ? MTPROF_OP_MODULE : 0;
        }
        __atomic_store_n(&w->asking, 0, __ATOMIC_RELEASE);
        if (before != 0) {
            MTPROF__SET(w->asked_ticks, w->asked_ticks + (mtprof__ticks() - before));
        }
    }
    if ((wants & MTPROF_WANT_STACKS) != 0 && op->stack == 0) {
        mtprof__count(MTPROF_HEALTH_STACKS_MISSED, 1);
    }
    return op->stack != 0 && (wants & MTPROF_WANT_STACKS) != 0 ? (uint32_t)(state >> 32) : 0;
}

/* Waits until no thread is inside a language that was set before (AL3). */
static void wait_for_askers(void)
{
    mtprof__recorder_barrier();
    for (uint32_t i = 1; i <= mtprof__slot_count(); i++) {
        mtprof__writer *w = mtprof__slot_at(i);
        for (int spins = 0; w != mtprof__mine && __atomic_load_n(&w->asking, __ATOMIC_ACQUIRE) != 0;
             spins++) {
            mtprof__rest(spins);
        }
    }
}

mtprof_status mtprof_set_language(const mtprof_language *language)
{
    if (language != NULL && language->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "set_language: struct_size is 0");
    }
    mtb_lock_acquire(&mtprof__language_lock);
    mtprof_language *next = &places[place ^ 1];
    if (language != NULL) {
        mtb_read_struct(next, language);
        if (next->stack_waiting == NULL) {
            next->stack_waiting = next->stack;
        }
        if (next->module_path_waiting == NULL) {
            next->module_path_waiting = next->module_path;
        }
    }
    mtb_lock_acquire(&mtprof__names_lock); /* a recording comes into being under it */
    bool is_free = mtprof__current == NULL;
    if (is_free) {
        place ^= 1;
        __atomic_store_n(&spoken, language != NULL ? next : NULL, __ATOMIC_SEQ_CST);
        MTPROF__SET(mtprof__language_wants,
                    MTPROF__SAMPLING | (next->stack != NULL ? MTPROF_WANT_STACKS : 0u) |
                        (next->module_path != NULL ? MTPROF_WANT_MODULES : 0u)); /* AL1 */
    }
    mtb_lock_release(&mtprof__names_lock);
    if (is_free) {
        wait_for_askers();
    }
    mtb_lock_release(&mtprof__language_lock);
    return is_free ? MTPROF_OK : mtb_fail(MTPROF_EBUSY, "set_language: a recording is under way");
}
