/* SPDX-License-Identifier: Apache-2.0
 *
 * What kinds of events are to each other, for columns (assemble_ties.c, assemble_annotations.c) and
 * for streams (events_host.c, events_device.c):
 *
 *   EK1  Kernels, copies and sets answer a launch (WORK).
 *   EK2  Device work and runtime calls belong to the nearest op or scope around the launch (OWNER).
 *   EK3  Scopes and steps around the launch get an annotation on the queue of the work (SCOPE).
 */
#ifndef MTPROF_MODEL_FACTS_EVENT_KINDS_H
#define MTPROF_MODEL_FACTS_EVENT_KINDS_H

#include "base/compiler.h"

#include <mtprof/model.h>

/* Kinds as bits of a mask. */
#define MTPROF__KIND_BIT(kind) (1u << (kind))
enum {
    MTPROF__KINDS_WORK = MTPROF__KIND_BIT(MTPROF_EVENT_KIND_KERNEL) |
                         MTPROF__KIND_BIT(MTPROF_EVENT_KIND_COPY) |
                         MTPROF__KIND_BIT(MTPROF_EVENT_KIND_SET),
    /* What a device does; a CALL is a host's doing. */
    MTPROF__KINDS_DEVICE = MTPROF__KINDS_WORK | MTPROF__KIND_BIT(MTPROF_EVENT_KIND_SYNC) |
                           MTPROF__KIND_BIT(MTPROF_EVENT_KIND_ANNOTATION) |
                           MTPROF__KIND_BIT(MTPROF_EVENT_KIND_OTHER),
    MTPROF__KINDS_SCOPE =
        MTPROF__KIND_BIT(MTPROF_EVENT_KIND_SCOPE) | MTPROF__KIND_BIT(MTPROF_EVENT_KIND_STEP),
    MTPROF__KINDS_OWNER = MTPROF__KINDS_SCOPE | MTPROF__KIND_BIT(MTPROF_EVENT_KIND_OP),
    MTPROF__KINDS_CALL =
        MTPROF__KIND_BIT(MTPROF_EVENT_KIND_RUNTIME) | MTPROF__KIND_BIT(MTPROF_EVENT_KIND_LAUNCH),
    MTPROF__KINDS_TREE = MTPROF__KINDS_OWNER | MTPROF__KINDS_CALL,
    MTPROF__KINDS_MARK = MTPROF__KIND_BIT(MTPROF_EVENT_KIND_INSTANT) |
                         MTPROF__KIND_BIT(MTPROF_EVENT_KIND_COUNTER) |
                         MTPROF__KIND_BIT(MTPROF_EVENT_KIND_FLOW)
};

MT_INLINE bool mtprof__kind_in(uint8_t kind, uint32_t mask)
{
    return kind < 32 && (mask >> kind & 1) != 0;
}

#endif /* MTPROF_MODEL_FACTS_EVENT_KINDS_H */
