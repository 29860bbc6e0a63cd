/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations: 32 bytes each, and inside a scope without reading the clock.
 */
#include "mtprof/record/batch.h"

/* RESERVED is told only when it changes; the first two devices are remembered. */
static void tell_reserved(mtprof__writer *w, uint32_t device, uint64_t bytes)
{
    if (device < 2 && w->reserved_seen[device] == bytes) {
        return;
    }
    uint64_t *at = mtprof__reserve(w, 2, 0, false);
    if (at != NULL) {
        mtprof__put(at, mtprof__word0(MTPROF_REC_RESERVED, 2, device, 0));
        mtprof__put(at + 1, bytes);
        mtprof__publish(w, at + 2);
        if (device < 2) {
            w->reserved_seen[device] = bytes;
        }
    }
}

void mtprof_i_alloc(uint32_t device, uint64_t address, int64_t bytes, uint64_t allocated,
                    uint64_t reserved_bytes)
{
    uint64_t state;
    mtprof__writer *w = mtprof__enter_attached(&state, 1);
    if (w == NULL) {
        return;
    }
    device = device < 256 ? device : 255;
    tell_reserved(w, device, reserved_bytes);
    /* Room for a full time in front, should the short one not reach. */
    uint64_t *at = mtprof__reserve(w, 6, 1, false);
    if (at != NULL) {
        bool inside = w->depth > (int64_t)__atomic_load_n(&w->foreign_ends, __ATOMIC_RELAXED);
        uint64_t last = w->end_ticks > w->time_ref ? w->end_ticks : w->time_ref;
        uint64_t elapsed = (inside ? last : mtprof__ticks()) - w->time_ref;
        if (elapsed > UINT32_MAX) {
            w->time_ref += elapsed;
            mtprof__put(at, mtprof__word0(MTPROF_REC_TIME, 2, 0, 0));
            mtprof__put(at + 1, w->time_ref);
            at += 2;
            elapsed = 0;
        }
        mtprof__put(at, mtprof__word0(MTPROF_REC_ALLOC, 4, device | (uint32_t)inside << 8,
                                      (uint32_t)elapsed));
        mtprof__put(at + 1, address);
        mtprof__put(at + 2, (uint64_t)bytes);
        mtprof__put(at + 3, allocated);
        MTPROF__SET(w->others, w->others + 1);
        w->payload_at = NULL;
        mtprof__publish(w, at + 4);
    }
    mtprof__leave(w);
}
