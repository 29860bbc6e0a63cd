/* SPDX-License-Identifier: Apache-2.0
 *
 * A fuzzer's input as a trace. Checksums stop a fuzzer at the door, so the first byte of an input
 * chooses how the rest of it becomes one:
 *   0  as it is
 *   1  with the checksums of the header, of chunk headers and of chunk data set right
 *   2  as the records of chunks made for them: pieces of {stream, flags, length (2 bytes), bytes};
 *      flags: bit 0 with checksum, bits 1-2 slot, bit 3 the trace is closed
 *   3  as a small form of a whole trace, which is what trace_mutate.c works on: a trace_form_head,
 *      then pieces, each a trace_form_piece and its records
 */
#ifndef FUZZ_TRACE_INPUT_H
#define FUZZ_TRACE_INPUT_H

#include <mtprof/reader.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TRACE_FORM = 3,        /* the mode */
    TRACE_FORM_PIECES = 24 /* each is a page at least: more make slow inputs, not better ones */
};

/* What the header of a small form says. */
typedef struct __attribute__((packed)) trace_form_head {
    uint8_t mode;  /* TRACE_FORM */
    uint8_t which; /* for the target: what is asked of the trace */
    uint8_t flags; /* bit 0 closed, bits 1-2 policy, bit 3 of a later minor */
    uint8_t reserved;
    uint64_t tick_period, start_ticks, start_mono_ns, start_real_ns, end_ticks;
} trace_form_head;

/* The header of a chunk; its records follow. */
typedef struct __attribute__((packed)) trace_form_piece {
    uint8_t stream;
    uint8_t flags; /* bit 0 with checksum, bits 1-2 slot, bit 3 a chunk is missing before it */
    uint16_t n_words;
    uint32_t epoch, thread;
    uint64_t base_ticks, first_ordinal;
} trace_form_piece;

typedef struct trace_input {
    unsigned char *bytes;
    size_t size;
    uint8_t which; /* 0: everything */
} trace_input;

/* False: the input is empty. */
bool trace_input_make(trace_input *trace, const uint8_t *data, size_t size_bytes);
void trace_input_free(trace_input *trace);

/* For a reader; the trace must outlive it. */
mtprof_bytes trace_input_bytes(trace_input *trace);

#endif /* FUZZ_TRACE_INPUT_H */
