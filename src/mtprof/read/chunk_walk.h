/* SPDX-License-Identifier: Apache-2.0
 *
 * Going through a trace from chunk to chunk, and from page to page where there is none.
 */
#ifndef MTPROF_READ_CHUNK_WALK_H
#define MTPROF_READ_CHUNK_WALK_H

#include "mtprof/read/chunk_index.h"

enum mtprof__walk_wants {
    MTPROF__WALK_EVENTS = 1,      /* control, threads, sources */
    MTPROF__WALK_DEFINITIONS = 2, /* a second walk: what the first reported is not repeated */
    MTPROF__WALK_ALL = 3
};

/* Appends the chunks it finds to the index. Fails with EIO, ENOMEM. */
int mtprof__chunk_walk(mtprof__chunk_index *index, const mtprof__index_source *source,
                       enum mtprof__walk_wants wants);

#endif /* MTPROF_READ_CHUNK_WALK_H */
