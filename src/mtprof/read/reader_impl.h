/* SPDX-License-Identifier: Apache-2.0
 *
 * What a reader is made of. Once it is open nothing of it changes but counters of chunks that are
 * gone (chunk_index.h, CI4), so threads may share it.
 */
#ifndef MTPROF_READ_READER_IMPL_H
#define MTPROF_READ_READER_IMPL_H

#include "mtprof/read/chunk_index.h"
#include "mtprof/read/clock_map.h"
#include "mtprof/read/control_read.h"
#include "mtprof/read/cursor_impl.h"
#include "mtprof/read/definitions.h"

struct mtprof_reader {
    mtprof__bytes bytes;
    mtprof_trace_info info;
    bool end_told; /* by the header: info.end_ticks is not what was seen */
    mtprof__chunk_index index;
    mtprof__definitions definitions;
    mtprof__control_read control;
    mtprof__clock_map clock;
    mtprof__source_clock *source_clocks; /* by source, one per source stream */
    size_t n_source_clocks;
    mtprof__problems problems;
};

/*
 * The end of the trace: as its recorder wrote it when closing, else the last time in it, for which
 * the last readable chunk of each slot is read. Every caller gets the same answer: readers of a
 * trace that was not closed, and recovering, which closes it. Fails with ENOMEM.
 */
int mtprof__reader_last_ticks(const mtprof_reader *reader, uint64_t *ticks);

#endif /* MTPROF_READ_READER_IMPL_H */
