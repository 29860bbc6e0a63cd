/* SPDX-License-Identifier: Apache-2.0
 *
 * The scopes that are open in an event stream, by track, and the self times that follow from them:
 * what the model's SELF_NS says, in memory that follows the depth and not the length of a trace.
 *
 *   O1  0 <= self <= end - start.
 *   O2  Functions of the host's language have self times of their own and take none from ops and
 *       scopes around them (model.h, T2).
 *   O3  A scope that outlived the one around it has no self time and takes none.
 */
#ifndef MTPROF_MODEL_FACTS_OPEN_SCOPES_H
#define MTPROF_MODEL_FACTS_OPEN_SCOPES_H

#include "mtprof/model/events/event.h"

#include <stddef.h>
#include <stdint.h>

typedef struct mtprof__open_scope {
    int64_t inside_ns; /* of everything that ended inside */
    int64_t ops_ns;    /* the same without functions */
    uint32_t note;     /* the caller's */
} mtprof__open_scope;

typedef struct mtprof__open_track {
    mtprof__open_scope *scopes;
    size_t n, capacity;
} mtprof__open_track;

typedef struct mtprof__open_scopes {
    mtprof__open_track *tracks;
    size_t n, capacity;
} mtprof__open_scopes;

/* The innermost open scope of a track, or NULL. */
mtprof__open_scope *mtprof__open_scopes_top(const mtprof__open_scopes *open, uint32_t track);

/* At a BEGIN. Fails with ENOMEM. */
int mtprof__open_scopes_begin(mtprof__open_scopes *open, const mtprof__event *event, uint32_t note);

/* At an END: the self time, and the note given at the BEGIN. False where none is open: the stream
 * rules that out (S1). */
bool mtprof__open_scopes_end(mtprof__open_scopes *open, const mtprof__event *event,
                             int64_t *self_ns, uint32_t *note);

void mtprof__open_scopes_fini(mtprof__open_scopes *open);

#endif /* MTPROF_MODEL_FACTS_OPEN_SCOPES_H */
