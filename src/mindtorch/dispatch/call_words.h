/* SPDX-License-Identifier: Apache-2.0
 *
 * A call as the profiler shows it: the arguments of torch's schema for it, as words (op_trace.h).
 */
#ifndef MINDTORCH_DISPATCH_CALL_WORDS_H
#define MINDTORCH_DISPATCH_CALL_WORDS_H

#include "mindtorch/dispatch/op_row.h"
#include "mindtorch/trace/op_trace.h"

/* What of a call is shown, where that is not its arguments in order: ops/shown_inputs.def. */
enum {
    MT_SHOW_ARG_MASK = 0x1F,
    MT_SHOW_WRAPPED = 0x20, /* beside an argument: a number is shown as a 0-d tensor */
    MT_SHOW_CONSTANT = 0x80,
    MT_SHOW_NONE = MT_SHOW_CONSTANT,
    MT_SHOW_FALSE,
    MT_SHOW_ZERO,
    MT_SHOW_ONE,
    MT_SHOW_END = 0xFF,
    MT_SHOWN_MAX = 14,
    MT_SHOWN_LINES = 3
};

typedef enum mt__shown_when {
    MT_SHOWN_NEVER, /* no further line */
    MT_SHOWN_ALWAYS,
    MT_SHOWN_GIVEN,     /* the argument is there */
    MT_SHOWN_NOT_GIVEN, /* it is not */
    MT_SHOWN_NUMBER     /* it is a number */
} mt__shown_when;

typedef struct mt__shown {
    uint8_t when; /* mt__shown_when */
    uint8_t argument;
    uint8_t codes[MT_SHOWN_MAX]; /* up to MT_SHOW_END */
} mt__shown;

/* By op number; the first line that fits counts. */
extern const mt__shown mt__shown_inputs[][MT_SHOWN_LINES];

/* Fills `words` with what the call looks like, strides included where they are wanted. */
void mt__call_words(const mt__op_row *row, const mt_value *args, bool strides,
                    mt__trace_words *words);

/* The same for tensors alone, NULL for those that are not there: what a node of the graph gets. */
void mt__tensor_words(mt_tensor *const *tensors, uint32_t count, bool strides,
                      mt__trace_words *words);

/* Identity of tensors among values, lists included; how many there are, at most `most`. */
uint32_t mt__call_refs(const mt_value *values, uint32_t count, mtprof_tensor_ref *refs,
                       uint32_t most);

#endif /* MINDTORCH_DISPATCH_CALL_WORDS_H */
