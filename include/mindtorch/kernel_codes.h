/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of kernel families: mt_kernel_call.code. Values are only appended.
 */
#ifndef MINDTORCH_KERNEL_CODES_H
#define MINDTORCH_KERNEL_CODES_H

/** MT_KERNEL_UNARY: out and in have one type, except where "-> bool" stands. s = scalars. */
typedef enum mt_unary {
    MT_UNARY_NEG,
    MT_UNARY_ABS,
    MT_UNARY_SIGN,
    MT_UNARY_SQUARE,
    MT_UNARY_RECIPROCAL,
    MT_UNARY_SQRT,
    MT_UNARY_RSQRT,
    MT_UNARY_EXP,
    MT_UNARY_EXPM1,
    MT_UNARY_LOG,
    MT_UNARY_LOG1P,
    MT_UNARY_LOG2,
    MT_UNARY_LOG10,
    MT_UNARY_SIN,
    MT_UNARY_COS,
    MT_UNARY_TAN,
    MT_UNARY_TANH,
    MT_UNARY_SIGMOID,
    MT_UNARY_ERF,
    MT_UNARY_GELU,
    MT_UNARY_GELU_TANH,
    MT_UNARY_SILU,
    MT_UNARY_RELU,
    MT_UNARY_FLOOR,
    MT_UNARY_CEIL,
    MT_UNARY_ROUND, /**< halves to even */
    MT_UNARY_TRUNC,
    MT_UNARY_CLAMP,       /**< s[0] lower, s[1] upper; kind NONE = no bound; NaN stays NaN */
    MT_UNARY_LEAKY_RELU,  /**< s[0] slope */
    MT_UNARY_BITWISE_NOT, /**< integers; bool: not */
    MT_UNARY_LOGICAL_NOT, /**< -> bool */
    MT_UNARY_ISNAN,       /**< -> bool */
    MT_UNARY_ISINF,       /**< -> bool */
    MT_UNARY_ISFINITE,    /**< -> bool */
    MT_UNARY_SOFTPLUS,    /**< s[0] beta, s[1] threshold */
    MT_UNARY_ELU,         /**< s[0] alpha */
    MT_UNARY_LOG_SIGMOID,
    MT_UNARY_HARDTANH, /**< s[0] lower, s[1] upper */
    MT_UNARY_COUNT
} mt_unary;

/** MT_KERNEL_BINARY: a and b have one type; out too, except where "-> bool" stands. */
typedef enum mt_binary {
    MT_BINARY_ADD, /**< a + alpha b; bool: or */
    MT_BINARY_SUB, /**< a - alpha b */
    MT_BINARY_MUL, /**< bool: and */
    MT_BINARY_DIV, /**< floating point */
    MT_BINARY_FLOOR_DIV,
    MT_BINARY_TRUNC_DIV,
    MT_BINARY_REMAINDER, /**< sign of b */
    MT_BINARY_FMOD,      /**< sign of a */
    MT_BINARY_POW,
    MT_BINARY_ATAN2,
    MT_BINARY_MAXIMUM,     /**< NaN wins */
    MT_BINARY_MINIMUM,     /**< NaN wins */
    MT_BINARY_EQ,          /**< -> bool */
    MT_BINARY_NE,          /**< -> bool */
    MT_BINARY_LT,          /**< -> bool */
    MT_BINARY_LE,          /**< -> bool */
    MT_BINARY_GT,          /**< -> bool */
    MT_BINARY_GE,          /**< -> bool */
    MT_BINARY_LOGICAL_AND, /**< -> bool */
    MT_BINARY_LOGICAL_OR,  /**< -> bool */
    MT_BINARY_LOGICAL_XOR, /**< -> bool */
    MT_BINARY_BITWISE_AND,
    MT_BINARY_BITWISE_OR,
    MT_BINARY_BITWISE_XOR,
    /* Derivatives, a = incoming gradient: */
    MT_BINARY_SIGMOID_BACKWARD,   /**< a b (1 - b), b = sigmoid(x) */
    MT_BINARY_TANH_BACKWARD,      /**< a (1 - b b), b = tanh(x) */
    MT_BINARY_THRESHOLD_BACKWARD, /**< b <= s ? 0 : a, a where b is NaN; s = alpha's place */
    MT_BINARY_GELU_BACKWARD,      /**< b = x */
    MT_BINARY_GELU_TANH_BACKWARD, /**< b = x */
    MT_BINARY_SILU_BACKWARD,      /**< b = x */
    MT_BINARY_COUNT
} mt_binary;

/** MT_KERNEL_TERNARY: all of one type, except where stated. */
typedef enum mt_ternary {
    MT_TERNARY_WHERE,   /**< a (bool) ? b : c */
    MT_TERNARY_LERP,    /**< a + c (b - a), from b's side for c >= 0.5: exact at 0 and 1 */
    MT_TERNARY_ADDCMUL, /**< a + s[0] b c */
    MT_TERNARY_ADDCDIV, /**< a + s[0] b / c */
    MT_TERNARY_CLAMP,   /**< a between b and c; c wins over b, NaN over all */
    MT_TERNARY_COUNT
} mt_ternary;

/** MT_KERNEL_REDUCE */
typedef enum mt_reduce {
    MT_REDUCE_SUM,
    MT_REDUCE_MEAN,
    MT_REDUCE_PROD,
    MT_REDUCE_MAX, /**< NaN wins */
    MT_REDUCE_MIN, /**< NaN wins */
    MT_REDUCE_ALL, /**< out bool, in any type */
    MT_REDUCE_ANY, /**< out bool, in any type */
    MT_REDUCE_SUM_ABS,
    MT_REDUCE_SUM_SQUARES,
    MT_REDUCE_NORM,          /**< s[0] = p; the root is taken */
    MT_REDUCE_LOGSUMEXP,     /**< stable */
    MT_REDUCE_COUNT_NONZERO, /**< out int64, in any type */
    MT_REDUCE_COUNT
} mt_reduce;

/** MT_KERNEL_RANDOM: element n (in row-major order) takes draw n after the offset. */
typedef enum mt_random {
    MT_RANDOM_UNIFORM,     /**< [s[0], s[1]) */
    MT_RANDOM_NORMAL,      /**< mean s[0], deviation s[1] */
    MT_RANDOM_INTEGER,     /**< [s[0], s[1]), both integers */
    MT_RANDOM_BERNOULLI,   /**< 1 with probability s[0] */
    MT_RANDOM_EXPONENTIAL, /**< rate s[0] */
    MT_RANDOM_COUNT
} mt_random;

#endif /* MINDTORCH_KERNEL_CODES_H */
