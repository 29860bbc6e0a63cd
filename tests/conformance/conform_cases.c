/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of every kernel, for conform_kernels.c: {kernel, first code, last code, types, tensors,
 * ints, scalars}. Each row is tried for each of its codes and types.
 *
 *     type     ? bool, u uint8, i int32, l int64, h float16, g bfloat16, f float32, d float64;
 *              x is the row's type of the moment
 *     tensor   x[3,4] followed by: t first dimension innermost, s every second element,
 *              bMASK stride 0 in these dimensions, + above 0, #LOW:HIGH whole numbers in
 *              [LOW, HIGH), %N one in N is not 0, ~N 0 1 2 ... and again;
 *              - absent, @K the same as tensor K
 *     scalar   r real, i integer, n none
 */
#include "conformance/conform.h"

#define ANY       "?uilhgfd"
#define K(name)   MT_KERNEL_##name
#define ONE(name) MT_KERNEL_##name, 0, 0
#define IMAGE     "x[2,2,5,5]"
#define WEIGHT    "x[4,2,3,3]"

#define DEEP       "x[2,1,2,1,2,1,1,2,1,1,1,2]"
#define EIGHT_ROWS "x[1,3] x[1,3]t x[1,3]s x[1,3] x[1,3]s x[1,3] x[1,3] x[1,3] "

const cf_case cf_cases[] = {
    /* ---- data ---- */
    {ONE(FILL), ANY, "x[3,5]s", "", "i1"},
    {ONE(FILL), "f", "x[]", "", "r2.5"},
    {ONE(FILL), "f", "x[0,4]", "", "r2.5"},
    {ONE(COPY), ANY, "x[3,4]t f[3,4]+", "", ""},
    {ONE(COPY), ANY, "d[3,4] x[3,4]b1", "", ""},
    {ONE(COPY), ANY, "x[2,3,4]s x[2,3,4]t", "", ""},
    {ONE(COPY), "fl", "x[0,4] d[0,4]", "", ""},
    {ONE(COPY), "f", "x[] d[]", "", ""},
    {ONE(COPY), "fl", DEEP "t " DEEP "s", "", ""},
    {ONE(ARANGE), "ilfd", "x[7]", "", "i2 i3"},
    {ONE(ARANGE), "fd", "x[5]s", "", "r0.5 r0.25"},
    {ONE(EYE), "?ilfd", "x[3,5]t", "", ""},
    {K(TRIANGLE), 0, 1, "ilfd", "x[2,3,4] x[2,3,4]t", "1", ""},
    {K(TRIANGLE), 0, 1, "f", "x[4,4]s x[4,4]", "-1", ""},

    /* ---- pointwise ---- */
    {K(UNARY), MT_UNARY_NEG, MT_UNARY_TRUNC, "fd", "x[3,4] x[3,4]s", "", ""},
    {K(UNARY), MT_UNARY_NEG, MT_UNARY_SQUARE, "il", "x[3,4]t x[3,4]", "", ""},
    {K(UNARY), MT_UNARY_EXP, MT_UNARY_EXP, "fd", "x[2,3,4]t x[2,3,4]b2", "", ""},
    {K(UNARY), MT_UNARY_NEG, MT_UNARY_NEG, "f", "x[0,3] x[0,3]", "", ""},
    {K(UNARY), MT_UNARY_SQRT, MT_UNARY_SQRT, "f", "x[] x[]+", "", ""},
    {K(UNARY), MT_UNARY_CLAMP, MT_UNARY_LEAKY_RELU, "fd", "x[3,4] x[3,4]", "", "r-0.5 r0.5"},
    {K(UNARY), MT_UNARY_CLAMP, MT_UNARY_CLAMP, "fd", "x[3,4] x[3,4]", "", "n r0.5"},
    {K(UNARY), MT_UNARY_BITWISE_NOT, MT_UNARY_BITWISE_NOT, "?uil", "x[3,4] x[3,4]t", "", ""},
    {K(UNARY), MT_UNARY_LOGICAL_NOT, MT_UNARY_LOGICAL_NOT, "?uilfd", "?[3,4] x[3,4]s", "", ""},
    {K(UNARY), MT_UNARY_ISNAN, MT_UNARY_ISFINITE, "fd", "?[3,4] x[3,4]", "", ""},
    {K(UNARY), MT_UNARY_SOFTPLUS, MT_UNARY_SOFTPLUS, "fd", "x[3,4] x[3,4]", "", "r1 r20"},
    {K(UNARY), MT_UNARY_ELU, MT_UNARY_LOG_SIGMOID, "fd", "x[3,4] x[3,4]", "", "r1.5"},
    {K(UNARY), MT_UNARY_HARDTANH, MT_UNARY_HARDTANH, "fd", "x[3,4] x[3,4]", "", "r-1 r1"},
    {K(UNARY), MT_UNARY_ERFC, MT_UNARY_COSH, "fd", "x[3,4] x[3,4]t", "", ""},
    {K(BINARY), MT_BINARY_ADD, MT_BINARY_MINIMUM, "fd", "x[3,4] x[3,4]t x[3,4]b1", "0", "i0 i1"},
    {K(BINARY), MT_BINARY_ADD, MT_BINARY_SUB, "fd", "x[2,3,4]s x[2,3,4]b5 x[2,3,4]", "0",
     "r0 r2.5"},
    {K(BINARY), MT_BINARY_ADD, MT_BINARY_MUL, "uil", "x[3,4] x[3,4] x[3,4]b2", "0", "i0 i1"},
    {K(BINARY), MT_BINARY_FLOOR_DIV, MT_BINARY_FMOD, "il", "x[3,4] x[3,4] x[3,4]#1:5", "0",
     "i0 i1"},
    {K(BINARY), MT_BINARY_POW, MT_BINARY_POW, "il", "x[3,4] x[3,4] x[3,4]#0:4", "0", "i0 i1"},
    {K(BINARY), MT_BINARY_EQ, MT_BINARY_LOGICAL_XOR, "?uilfd", "?[3,4] x[3,4] x[3,4]t", "0",
     "i0 i1"},
    {K(BINARY), MT_BINARY_BITWISE_AND, MT_BINARY_BITWISE_XOR, "?uil", "x[3,4] x[3,4] x[3,4]b3", "0",
     "i0 i1"},
    {K(BINARY), MT_BINARY_SIGMOID_BACKWARD, MT_BINARY_SILU_BACKWARD, "fd", "x[3,4] x[3,4]t x[3,4]",
     "0", "i0 r0"},
    {K(BINARY), MT_BINARY_HYPOT, MT_BINARY_LOGADDEXP, "fd", "x[3,4] x[3,4]t x[3,4]b1", "0",
     "i0 i1"},
    {K(BINARY), MT_BINARY_ADD, MT_BINARY_POW, "fd", "x[3,4] x[3,4]", "1", "r1.5 r1"},
    {K(BINARY), MT_BINARY_SUB, MT_BINARY_DIV, "fd", "x[3,4] x[3,4]t", "2", "r1.5 r2"},
    {K(BINARY), MT_BINARY_ADD, MT_BINARY_ADD, "f", "x[3,0] x[3,0] x[3,0]", "0", "i0 i1"},
    {K(BINARY), MT_BINARY_MUL, MT_BINARY_MUL, "fl", "x[3,4] @0 x[3,4]", "0", "i0 i1"},
    {K(TERNARY), MT_TERNARY_WHERE, MT_TERNARY_WHERE, "ilfd", "x[3,4] ?[3,4] x[3,4]t x[3,4]b1", "0",
     "i1 n n n"},
    {K(TERNARY), MT_TERNARY_WHERE, MT_TERNARY_WHERE, "fd", "x[3,4] ?[3,4] - x[3,4]", "2",
     "i1 n r2.5 n"},
    {K(TERNARY), MT_TERNARY_LERP, MT_TERNARY_CLAMP, "fd", "x[3,4]t x[3,4] x[3,4]b2 x[3,4]", "0",
     "r0.5 n n n"},

    /* ---- reductions ---- */
    {K(REDUCE), MT_REDUCE_SUM, MT_REDUCE_MIN, "fd", "x[3,4]b2 x[3,4]", "", ""},
    {K(REDUCE), MT_REDUCE_SUM, MT_REDUCE_MIN, "fd", "x[2,3,4]b5 x[2,3,4]t", "", ""},
    {K(REDUCE), MT_REDUCE_SUM, MT_REDUCE_SUM, "fd", "x[40,50]b3 x[40,50]s", "", ""},
    {K(REDUCE), MT_REDUCE_SUM, MT_REDUCE_SUM, "?uil", "l[3,4]b1 x[3,4]", "", ""},
    {K(REDUCE), MT_REDUCE_ALL, MT_REDUCE_ANY, "?uilfd", "?[3,4]b2 x[3,4]", "", ""},
    {K(REDUCE), MT_REDUCE_SUM_ABS, MT_REDUCE_LOGSUMEXP, "fd", "x[3,4]b1 x[3,4]t", "", "r3"},
    {K(REDUCE), MT_REDUCE_COUNT_NONZERO, MT_REDUCE_COUNT_NONZERO, "?uilfd", "l[3,4]b2 x[3,4]%3", "",
     ""},
    {K(REDUCE_INDEX), 0, 1, "ilfd", "x[3,1] l[3,1] x[3,4]", "1", ""},
    {K(REDUCE_INDEX), 0, 1, "fd", "- l[1,4] x[3,4]t", "0", ""},
    {K(VAR_MEAN), 0, 1, "fd", "x[3,4]b2 x[3,4]b2 x[3,4]", "", "r1"},
    {K(VAR_MEAN), 0, 1, "fd", "x[3,4]b1 - x[3,4]t", "", "r0"},
    {ONE(CUMSUM), "fd", "x[3,4] x[3,4]t", "1", ""},
    {ONE(CUMSUM), "l", "x[3,4] i[3,4]", "0", ""},
    {ONE(CUMSUM), "fl", "x[3,4] @0", "1", ""},
    {ONE(CUMPROD), "fd", "x[3,4]s x[3,4]", "0", ""},

    /* ---- rows ---- */
    {K(SOFTMAX), 0, 1, "fd", "x[3,4] x[3,4]s", "1", ""},
    {K(SOFTMAX), 0, 1, "f", "x[3,4]t x[3,4]", "0", ""},
    {K(SOFTMAX_BACKWARD), 0, 1, "fd", "x[3,4] x[3,4]t x[3,4]", "1", ""},
    {ONE(LAYER_NORM), "fd", "x[3,8] x[3] x[3] x[3,8] x[8] x[8]", "", "r0.00001"},
    {ONE(LAYER_NORM), "fd", "x[3,8] x[3] x[3] x[3,8] - -", "", "r0.00001"},
    {ONE(LAYER_NORM_BACKWARD), "fd", "x[3,8] x[8] x[8] x[3,8] x[3,8] x[3] x[3]+ x[8]", "", ""},
    {ONE(LAYER_NORM_BACKWARD), "fd", "x[3,8] - - x[3,8] x[3,8] x[3] x[3]+ -", "", ""},
    {ONE(BATCH_NORM), "fd", "x[2,3,4] x[3] x[3] x[2,3,4] x[3] x[3] x[3] x[3]+", "1",
     "r0.1 r0.00001"},
    {ONE(BATCH_NORM), "fd", "x[2,3,4] x[3] x[3] x[2,3,4] - - x[3] x[3]+", "0", "r0.1 r0.00001"},
    {ONE(BATCH_NORM), "fd", "x[2,3,4] x[3] x[3] x[2,3,4] x[3] x[3] - -", "1", "r0.1 r0.00001"},
    {ONE(BATCH_NORM_BACKWARD), "fd",
     "x[2,3,4] x[3] x[3] x[2,3,4] x[2,3,4] x[3] x[3] x[3]+ x[3] x[3]+", "1", "r0.00001"},
    {ONE(BATCH_NORM_BACKWARD), "fd", "x[2,3,4] - - x[2,3,4] x[2,3,4] - x[3] x[3]+ - -", "0",
     "r0.00001"},
    {ONE(NLL_LOSS), "fd", "x[] x[] x[4,3] l[4]#0:3 x[3]+", "1 -100", ""},
    {ONE(NLL_LOSS), "fd", "x[4] x[] x[4,3]t l[4]#0:3 -", "0 -100", ""},
    {ONE(NLL_LOSS), "fd", "x[] x[] x[4,3] l[4]#0:3 -", "2 1", ""},
    {ONE(NLL_LOSS_BACKWARD), "fd", "x[4,3] x[] x[4,3] l[4]#0:3 x[3]+ x[]+", "1 -100", ""},
    {ONE(NLL_LOSS_BACKWARD), "fd", "x[4,3] x[4] x[4,3] l[4]#0:3 - x[]+", "0 1", ""},

    /* ---- matrices and images ---- */
    {ONE(GEMM), "fd", "x[2,3,5] x[2,3,4] x[2,4,5]t", "", "r1 r0"},
    {ONE(GEMM), "fd", "x[2,3,5]t x[2,3,4]b1 x[2,4,5]", "", "r0.5 r2"},
    {ONE(GEMM), "fd", "x[1,33,65] x[1,33,40] x[1,40,65]", "", "r1 r0"},
    {ONE(GEMM), "il", "x[2,3,5] x[2,3,4] x[2,4,5]", "", "i2 i1"},
    {ONE(CONV), "fdl", "x[2,4,5,5] " IMAGE " " WEIGHT " x[4]", "1 1 1 1 1 1 1", ""},
    {ONE(CONV), "fd", "x[1,4,3,3] x[1,4,5,5] " WEIGHT " -", "1 1 0 0 1 1 2", ""},
    {ONE(CONV), "fd", "x[2,4,3,3] " IMAGE " " WEIGHT " -", "2 2 1 1 1 1 1", ""},
    {ONE(CONV_BACKWARD_INPUT), "fd", IMAGE " x[2,4,5,5] " WEIGHT, "1 1 1 1 1 1 1", ""},
    {ONE(CONV_BACKWARD_WEIGHT), "fd", WEIGHT " x[4] x[2,4,5,5] " IMAGE, "1 1 1 1 1 1 1", ""},
    {ONE(CONV_BACKWARD_WEIGHT), "fd", WEIGHT " - x[2,4,5,5] " IMAGE, "1 1 1 1 1 1 1", ""},
    {ONE(CONV_BACKWARD_WEIGHT), "fd", "- x[4] x[2,4,5,5] " IMAGE, "1 1 1 1 1 1 1", ""},
    {ONE(MAX_POOL), "fdl", "x[2,3,2,2] l[2,3,2,2] x[2,3,4,4]", "2 2 2 2 0 0 1 1", ""},
    {ONE(MAX_POOL), "f", "x[2,3,3,3] l[2,3,3,3] x[2,3,5,5]", "3 3 2 2 1 1 1 1", ""},
    {ONE(MAX_POOL_BACKWARD), "fd", "x[2,3,4,4] x[2,3,2,2] l[2,3,2,2]#0:16", "", ""},
    {ONE(AVG_POOL), "fdl", "x[2,3,2,2] x[2,3,4,4]", "2 2 2 2 0 0 1 0", ""},
    {ONE(AVG_POOL), "fd", "x[2,3,3,3] x[2,3,5,5]", "3 3 2 2 1 1 0 0", ""},
    {ONE(AVG_POOL_BACKWARD), "fd", "x[2,3,4,4] x[2,3,2,2]", "2 2 2 2 0 0 1 0", ""},
    {ONE(ADAPTIVE_AVG_POOL), "fd", "x[2,3,2,3] x[2,3,5,4]", "", ""},
    {ONE(ADAPTIVE_AVG_POOL_BACKWARD), "fd", "x[2,3,5,4] x[2,3,2,3]", "", ""},
    {ONE(ADAPTIVE_MAX_POOL), "fd", "x[2,3,2,3] l[2,3,2,3] x[2,3,5,4]", "", ""},
    {K(RNN_CELL), 0, 1, "fd", "x[3,4] x[3,4] - x[3,4] - x[3,4] -", "", ""},
    {K(RNN_CELL), 2, 2, "fd", "x[3,4] x[3,4] x[3,4] x[3,16] - x[3,4] x[3,8]", "", ""},
    {K(RNN_CELL), 3, 3, "fd", "x[3,4] x[3,4] - x[3,12] x[3,12] x[3,4] x[3,4]", "", ""},
    {K(RNN_CELL_BACKWARD), 0, 1, "fd", "x[3,4] - x[3,4] - x[3,4] x[3,4] x[3,4] x[3,4] -", "", ""},
    {K(RNN_CELL_BACKWARD), 2, 2, "fd", "x[3,16] - x[3,4] x[3,4] - x[3,4] x[3,16] x[3,4] x[3,8]", "",
     ""},
    {K(RNN_CELL_BACKWARD), 3, 3, "fd",
     "x[3,12] x[3,12] x[3,4] - x[3,4] x[3,4] x[3,12] x[3,4] x[3,4]", "", ""},
    {ONE(ATTENTION), "fd", "x[2,2,3,4] x[2,2,3] x[2,2,3,4] x[2,2,5,4] x[2,2,5,4] -", "0", "r0.5"},
    {ONE(ATTENTION), "fd", "x[2,2,5,4] x[2,2,5] x[2,2,5,4] x[2,2,5,4] x[2,2,5,4] x[2,2,5,5]b3", "1",
     "r0.5"},
    {ONE(ATTENTION_BACKWARD), "fd",
     "x[2,2,3,4] x[2,2,5,4] x[2,2,5,4] x[2,2,3,4] x[2,2,3,4] x[2,2,5,4] x[2,2,5,4] x[2,2,3,4] "
     "x[2,2,3] -",
     "0", "r0.5"},

    /* ---- indexing ---- */
    {ONE(INDEX_SELECT), ANY, "x[3,4] x[3,6] l[4]#0:6", "1", ""},
    {ONE(INDEX_SELECT), "fl", "x[2,4]t x[5,4]s l[2]#0:5", "0", ""},
    {ONE(INDEX_ADD), "ilfd", "x[3,6] l[4]#0:6 x[3,4]", "1", "i2"},
    {ONE(GATHER), ANY, "x[3,4] x[3,6]t l[3,4]#0:6", "1", ""},
    {K(SCATTER), 0, 0, ANY, "x[2,6] l[2,3]~3 x[2,3]", "1", ""},
    {K(SCATTER), 1, 1, "ilfd", "x[2,6] l[2,3]#0:6 x[2,3]", "1", ""},
    {ONE(INDEX), ANY, "x[4,3] x[5,3] l[4]#-5:5", "0 0", ""},
    {ONE(INDEX), "fl", "x[4,3] x[5,6,3]t l[4]#-5:5 l[4]#0:6", "0 0 1", ""},
    {K(INDEX_PUT), 0, 0, ANY, "x[5,3] x[4,3] l[4]~4", "0 0", ""},
    {K(INDEX_PUT), 1, 1, "ilfd", "x[5,3]t x[4,3] l[4]#-5:5", "0 0", ""},
    {ONE(NONZERO), "?uilfd", "l[4,2] x[3,4]%3", "", ""},
    {ONE(NONZERO), "f", "l[0,2] x[0,4]", "", ""},
    {ONE(MASKED_SELECT), ANY, "x[4] x[3,4]t ?[3,4]%3", "", ""},
    {ONE(MASKED_SCATTER), ANY, "x[3,4]t ?[3,4]%3 x[4]", "", ""},
    {ONE(SORT), "ilfd", "x[3,7] l[3,7] x[3,7]t", "1 0", ""},
    {ONE(SORT), "fd", "x[6,3] l[6,3] x[6,3]", "0 1", ""},
    {ONE(TOPK), "ilfd", "x[3,2] l[3,2] x[3,7]", "1 2 1 1", ""},
    {ONE(CAT), ANY, "x[3,6] x[3,2] x[3,4]t", "1", ""},
    {ONE(CAT), "fu", "x[40,3] " EIGHT_ROWS EIGHT_ROWS EIGHT_ROWS EIGHT_ROWS EIGHT_ROWS, "0", ""},
    {ONE(CAT), "f", "x[3,4] x[0,4] x[1,4] x[2,4]s", "0", ""},
    {ONE(EMBEDDING_BACKWARD), "fd", "x[5,3] x[4,3] l[4]#0:5", "-1", ""},
    {ONE(EMBEDDING_BACKWARD), "fd", "x[5,3] x[4,3] l[4]#0:5", "2", ""},

    /* ---- random ---- */
    {K(RANDOM), MT_RANDOM_UNIFORM, MT_RANDOM_NORMAL, "fd", "x[3,5]", "7 3", "r0 r1"},
    {K(RANDOM), MT_RANDOM_INTEGER, MT_RANDOM_INTEGER, "ilfd", "x[3,5]t", "7 0", "i0 i10"},
    {K(RANDOM), MT_RANDOM_BERNOULLI, MT_RANDOM_BERNOULLI, "fd", "x[3,5]s", "7 2", "r0.3"},
    {K(RANDOM), MT_RANDOM_EXPONENTIAL, MT_RANDOM_EXPONENTIAL, "fd", "x[3,5]", "7 0", "r1.5"},
    {ONE(RANDPERM), "l", "x[9]", "5 0", ""},
    {ONE(DROPOUT), "fd", "x[3,4] ?[3,4] x[3,4]t", "7 0", "r0.5"},

    /* ---- optimizers ---- */
    {ONE(SGD), "fd", "x[7] x[7] x[7]", "1 0 0", "r0.1 r0.9 r0 r0.01"},
    {ONE(SGD), "fd", "x[7] x[7] -", "0 1 0", "r0.1 r0 r0 r0"},
    {K(ADAM), 0, 1, "fd", "x[7] x[7] x[7] x[7]+ -", "2 0", "r0.001 r0.9 r0.999 r0.00000001 r0.01"},
    {K(ADAM), 0, 1, "fd", "x[7] x[7] x[7] x[7]+ x[7]+", "1 0",
     "r0.001 r0.9 r0.999 r0.00000001 r0.01"},
    {ONE(RMSPROP), "fd", "x[7] x[7] x[7]+ - -", "0", "r0.01 r0.99 r0.00000001 r0 r0"},
    {ONE(RMSPROP), "fd", "x[7] x[7] x[7]#9:12 x[7] x[7]", "0", "r0.01 r0.99 r0.00000001 r0.1 r0.9"},
    {ONE(ADAGRAD), "fd", "x[7] x[7] x[7]+", "2 0", "r0.01 r0.1 r0 r0.0000000001"},
    {ONE(ADADELTA), "fd", "x[7] x[7] x[7]+ x[7]+", "0", "r1 r0.9 r0.000001 r0.1"},
    {ONE(ADAMAX), "fd", "x[7] x[7] x[7] x[7]+", "2 1", "r0.01 r0.9 r0.99 r0.00000001 r0.1"},
    {ONE(NADAM), "fd", "x[7] x[7] x[7] x[7]+", "2 0",
     "r0.01 r0.9 r0.99 r0.00000001 r0.1 r0.02 r0.01"},
    {ONE(RADAM), "fd", "x[7] x[7] x[7] x[7]+", "2 0", "r0.01 r0.9 r0.99 r0.00000001 r0.1"},
    {ONE(RADAM), "fd", "x[7] x[7] x[7] x[7]+", "9 0", "r0.01 r0.9 r0.99 r0.00000001 r0.1"},
    {ONE(ASGD), "fd", "x[7] x[7] x[7]", "0", "r0.0001 r0.1 r0.5 r0.1"},
    {ONE(RPROP), "fd", "x[7] x[7] x[7] x[7]+", "0", "r0.5 r1.2 r0.000001 r50"},
};

const size_t cf_case_count = sizeof cf_cases / sizeof cf_cases[0];
