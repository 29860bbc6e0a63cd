/* SPDX-License-Identifier: Apache-2.0
 *
 * What the profiler reports of a call if that is not simply its arguments in order: the REPORTED
 * lines of the op table. A code is a format and an argument, or MT_SHOW_CONSTANT and a constant.
 */
#ifndef MINDTORCH_DISPATCH_REPORTED_INPUTS_H
#define MINDTORCH_DISPATCH_REPORTED_INPUTS_H

#include <mindtorch/op.h>

#include <assert.h>
#include <stdint.h>

enum {
    MT_SHOW_ARG_MASK = 0x0F,
    MT_SHOW_WAY_MASK = 0x70,
    MT_SHOW_ARG = 0x00,
    MT_SHOW_WRAPPED = 0x10, /* a number is reported as the 0-d tensor in which torch wraps Python's
                               numbers; in formulas of derivatives as a number */
    MT_SHOW_SAVED = 0x20,   /* a number is reported as a 0-d tensor in formulas too */
    MT_SHOW_TYPE_OF = 0x30, /* the element type of a tensor */
    MT_SHOW_BOOLS = 0x40,   /* a list of integers as booleans */
    MT_SHOW_ZEROS = 0x50,   /* as many zeros as the list has items */
    MT_SHOW_BIAS_OF = 0x60, /* the sizes of a convolution's bias, from its weight and mask */
    MT_SHOW_CONSTANT = 0x80,
    MT_SHOW_NONE = MT_SHOW_CONSTANT,
    MT_SHOW_FALSE,
    MT_SHOW_TRUE,
    MT_SHOW_ZERO,
    MT_SHOW_ONE,
    MT_SHOW_LONG,    /* torch's number of int64 */
    MT_SHOW_NOTHING, /* 0.0 */
    MT_SHOW_END = 0xFF,
    MT_SHOWN_MAX = 14
};

static_assert(MT_MAX_PARAMS <= MT_SHOW_ARG_MASK + 1, "a code has room for every argument");

typedef enum mt__shown_when {
    MT_SHOWN_NEVER, /* no further line */
    MT_SHOWN_ALWAYS,
    MT_SHOWN_GIVEN,     /* the argument is given */
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

#endif /* MINDTORCH_DISPATCH_REPORTED_INPUTS_H */
