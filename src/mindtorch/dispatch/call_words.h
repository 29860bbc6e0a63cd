/* SPDX-License-Identifier: Apache-2.0
 *
 * A call as the profiler shows it: the arguments of torch's schema for it, as words (op_trace.h).
 */
#ifndef MINDTORCH_DISPATCH_CALL_WORDS_H
#define MINDTORCH_DISPATCH_CALL_WORDS_H

#include "mindtorch/dispatch/op_row.h"
#include "mindtorch/trace/op_trace.h"

#include <assert.h>

/*
 * What of a call is shown, where that is not its arguments in order: ops/shown_inputs.def. A code
 * is a way and the argument it is about, or MT_SHOW_CONSTANT and a constant.
 */
enum {
    MT_SHOW_ARG_MASK = 0x0F,
    MT_SHOW_WAY_MASK = 0x70,
    MT_SHOW_ARG = 0x00,
    MT_SHOW_WRAPPED = 0x10, /* a number is shown as the 0-d tensor that Python's is wrapped in; in
                               formulas of derivatives as a number */
    MT_SHOW_SAVED = 0x20,   /* a number is shown as a 0-d tensor in formulas too */
    MT_SHOW_TYPE_OF = 0x30, /* the element type of a tensor */
    MT_SHOW_BOOLS = 0x40,   /* a list of integers as booleans */
    MT_SHOW_ZEROS = 0x50,   /* as many zeros as the list has items */
    MT_SHOW_BIAS_OF = 0x60, /* the sizes of a convolution's bias, told from its weight and mask */
    MT_SHOW_CONSTANT = 0x80,
    MT_SHOW_NONE = MT_SHOW_CONSTANT,
    MT_SHOW_FALSE,
    MT_SHOW_TRUE,
    MT_SHOW_ZERO,
    MT_SHOW_ONE,
    MT_SHOW_LONG,    /* torch's number of int64 */
    MT_SHOW_NOTHING, /* 0.0 */
    MT_SHOW_END = 0xFF,
    MT_SHOWN_MAX = 14,
    MT_SHOWN_LINES = 3
};

static_assert(MT_MAX_PARAMS <= MT_SHOW_ARG_MASK + 1, "a code has room for every argument");

typedef enum mt__shown_when {
    MT_SHOWN_NEVER, /* no further line */
    MT_SHOWN_ALWAYS,
    MT_SHOWN_GIVEN,     /* the argument is there */
    MT_SHOWN_NOT_GIVEN, /* it is not */
    MT_SHOWN_IS_ZERO,   /* it is this number */
    MT_SHOWN_IS_ONE,
    MT_SHOWN_IS_NOT_ONE
} mt__shown_when;

typedef struct mt__shown {
    uint8_t when; /* mt__shown_when */
    uint8_t argument;
    uint8_t codes[MT_SHOWN_MAX]; /* up to MT_SHOW_END */
} mt__shown;

/* By op number; the first line that fits counts. */
extern const mt__shown mt__shown_inputs[][MT_SHOWN_LINES];

/* By op number: it has no sequence number in torch (tensors from nothing). */
extern const bool mt__shown_unnumbered[];

/* By op number: not shown at all where argument 0 is contiguous already (contiguous). */
extern const bool mt__shown_quiet[];

/* Fills `words` with what the call looks like, strides included where they are wanted. Where it
 * says that something was cut, the large form (after mt__trace_words_init_large) has more room. */
void mt__call_words(const mt__op_row *row, const mt_value *args, bool strides,
                    mt__trace_words *words);

void mt__call_words_large(const mt__op_row *row, const mt_value *args, bool strides,
                          mt__trace_words *words);

/* The same for tensors alone, NULL for those that are not there: what a node of the graph gets. */
void mt__tensor_words(mt_tensor *const *tensors, uint32_t count, bool strides,
                      mt__trace_words *words);
void mt__tensor_words_large(mt_tensor *const *tensors, uint32_t count, bool strides,
                            mt__trace_words *words);

/* Identity of a call's first `most` tensors, lists included; returns how many there are. First
 * those that mt__call_words() shows, in the same order, then other arguments, then the gradients of
 * parameters among them (MTPROF_TENSOR_NOT_READ). */
uint32_t mt__call_refs(const mt__op_row *row, const mt_value *args, mtprof_tensor_ref *refs,
                       uint32_t most);

/* The same for results. */
uint32_t mt__result_refs(const mt_value *results, uint32_t count, mtprof_tensor_ref *refs,
                         uint32_t most);

/* role: enum mtprof_tensor_role. */
mtprof_tensor_ref mt__tensor_ref(const mt_tensor *tensor, uint16_t role);

#endif /* MINDTORCH_DISPATCH_CALL_WORDS_H */
