/* SPDX-License-Identifier: Apache-2.0
 *
 * A fuzzer's input as a trace. Checksums stop a fuzzer at the door, so the first byte of an input
 * chooses how the rest of it becomes one:
 *   0  as it is
 *   1  with the checksums of the header, of chunk headers and of chunk data set right
 *   2  as the records of chunks made for them: pieces of {stream, flags, length (2 bytes), bytes};
 *      flags: bit 0 with checksum, bits 1-2 slot, bit 3 the trace is closed
 */
#ifndef FUZZ_TRACE_INPUT_H
#define FUZZ_TRACE_INPUT_H

#include <mtprof/reader.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct trace_input {
    unsigned char *bytes;
    size_t size;
} trace_input;

/* False: the input is empty. */
bool trace_input_make(trace_input *trace, const uint8_t *data, size_t size_bytes);
void trace_input_free(trace_input *trace);

/* For a reader; the trace must outlive it. */
mtprof_bytes trace_input_bytes(trace_input *trace);

#endif /* FUZZ_TRACE_INPUT_H */
