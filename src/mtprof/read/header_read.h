/* SPDX-License-Identifier: Apache-2.0
 *
 * The file header (docs/format.md 1).
 */
#ifndef MTPROF_READ_HEADER_READ_H
#define MTPROF_READ_HEADER_READ_H

#include "mtprof/read/problems.h"
#include "mtprof/read/trace_bytes.h"

/*
 * Reads and checks the header, and fills the parts of info that are in it: end_ticks is 0 and
 * file_bytes the size found where the file is not closed or says it wrongly. *first_chunk is
 * where chunks start. *end_told: the file is closed, and end_ticks is what it says, which may be 0.
 *
 * Fails with EIO, EFORMAT, EVERSION, ENOMEM. What is wrong in the parts written at closing is a
 * problem, not a failure: the records do not depend on it.
 */
int mtprof__header_read(const mtprof__bytes *bytes, mtprof_trace_info *info, uint64_t *first_chunk,
                        bool *end_told, mtprof__problems *problems);

#endif /* MTPROF_READ_HEADER_READ_H */
