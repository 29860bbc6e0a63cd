/* SPDX-License-Identifier: Apache-2.0
 *
 * What the profiler shows of calls, by op number, from shown_inputs.def.
 */
#include "mindtorch/dispatch/call_words.h"
#include "mindtorch/ops/op_support.h"

#define A(n)       (MT_SHOW_ARG | (n))
#define N(n)       (MT_SHOW_WRAPPED | (n))
#define SAVED(n)   (MT_SHOW_SAVED | (n))
#define TYPE_OF(n) (MT_SHOW_TYPE_OF | (n))
#define BOOLS(n)   (MT_SHOW_BOOLS | (n))
#define ZEROS(n)   (MT_SHOW_ZEROS | (n))
#define BIAS_OF(n) (MT_SHOW_BIAS_OF | (n))
#define NONE       MT_SHOW_NONE
#define NO         MT_SHOW_FALSE
#define YES        MT_SHOW_TRUE
#define ZERO       MT_SHOW_ZERO
#define ONE        MT_SHOW_ONE
#define LONG       MT_SHOW_LONG
#define NOTHING    MT_SHOW_NOTHING
#define U(id)
#define Q(id)
#define S(id, line, when_, argument_, ...) \
    [MT__OP_##id][line] = {                \
        .when = MT_SHOWN_##when_, .argument = (argument_), .codes = {__VA_ARGS__, MT_SHOW_END}},

const mt__shown mt__shown_inputs[MT__OP_COUNT][MT_SHOWN_LINES] = {
#include "mindtorch/ops/shown_inputs.def"
};

#undef S
#undef U
#define S(id, line, when_, argument_, ...)
#define U(id) [MT__OP_##id] = true,

const bool mt__shown_unnumbered[MT__OP_COUNT] = {
#include "mindtorch/ops/shown_inputs.def"
};

#undef U
#undef Q
#define U(id)
#define Q(id) [MT__OP_##id] = true,

const bool mt__shown_quiet[MT__OP_COUNT] = {
#include "mindtorch/ops/shown_inputs.def"
};
