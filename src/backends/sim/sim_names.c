/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of kernels in records: family, code, type: "binary_add_f32", "gemm_f64", "copy_i64_f32".
 */
#include "backends/sim/sim_impl.h"

#include <string.h>

static const char *const families[] = {
#define X(name) #name,
#include <mindtorch/kernels.def>
#undef X
};
static_assert(MT_COUNT(families) == MT_KERNEL_COUNT, "a name for each kernel");

static const char *const unary_codes[] = {
#define MT_I_UNARY(name, cost) #name,
#include <mindtorch/kernel_codes.def>
};
static const char *const binary_codes[] = {
#define MT_I_BINARY(name, cost) #name,
#include <mindtorch/kernel_codes.def>
};
static const char *const ternary_codes[] = {
#define MT_I_TERNARY(name) #name,
#include <mindtorch/kernel_codes.def>
};
static const char *const reduce_codes[] = {
#define MT_I_REDUCE(name) #name,
#include <mindtorch/kernel_codes.def>
};
static const char *const complex_codes[] = {
#define MT_I_COMPLEX(name) #name,
#include <mindtorch/kernel_codes.def>
};
static const char *const random_codes[] = {
#define MT_I_RANDOM(name) #name,
#include <mindtorch/kernel_codes.def>
};

/* Families whose codes kernels.def names in its comments. */
static const char *const triangle_codes[] = {"tril", "triu"};
static const char *const extreme_codes[] = {"max", "min"};
static const char *const spread_codes[] = {"var", "std"};
static const char *const softmax_codes[] = {"", "log"};
static const char *const scatter_codes[] = {"set", "add"};
static const char *const put_codes[] = {"set", "accumulate"};
static const char *const fft_codes[] = {"c2c", "r2c", "c2r"};
static const char *const adam_codes[] = {"", "w"};

typedef struct code_names {
    const char *const *at;
    uint32_t count;
    uint32_t typed_by; /* index of the tensor whose type is in the name */
} code_names;

#define CODES(list) .at = (list), .count = MT_COUNT(list)

static const code_names codes_of[MT_KERNEL_COUNT] = {
    [MT_KERNEL_UNARY] = {CODES(unary_codes), .typed_by = 1},
    [MT_KERNEL_BINARY] = {CODES(binary_codes), .typed_by = 1},
    [MT_KERNEL_TERNARY] = {CODES(ternary_codes)},
    [MT_KERNEL_REDUCE] = {CODES(reduce_codes), .typed_by = 1},
    [MT_KERNEL_RANDOM] = {CODES(random_codes)},
    [MT_KERNEL_TRIANGLE] = {CODES(triangle_codes)},
    [MT_KERNEL_REDUCE_INDEX] = {CODES(extreme_codes), .typed_by = 2},
    [MT_KERNEL_VAR_MEAN] = {CODES(spread_codes)},
    [MT_KERNEL_SOFTMAX] = {CODES(softmax_codes)},
    [MT_KERNEL_SOFTMAX_BACKWARD] = {CODES(softmax_codes)},
    [MT_KERNEL_SCATTER] = {CODES(scatter_codes)},
    [MT_KERNEL_INDEX_PUT] = {CODES(put_codes)},
    [MT_KERNEL_ADAM] = {CODES(adam_codes)},
    [MT_KERNEL_COMPLEX] = {CODES(complex_codes), .typed_by = 1},
    [MT_KERNEL_FFT] = {CODES(fft_codes), .typed_by = 1},
    [MT_KERNEL_COPY] = {.typed_by = 1},
    [MT_KERNEL_NONZERO] = {.typed_by = 1},
};

static const char *const dtype_names[] = {
#define X(name, value, text, bytes, category, profiler) [value] = #name,
#include <mindtorch/dtype.def>
#undef X
};
static const uint8_t dtype_bytes[] = {
#define X(name, value, text, bytes, category, profiler) [value] = (bytes),
#include <mindtorch/dtype.def>
#undef X
};

size_t sim_dtype_bytes(uint32_t dtype)
{
    return dtype < MT_COUNT(dtype_bytes) ? dtype_bytes[dtype] : 0;
}

/* Appends in lower case; the longest name fits in SIM_NAME_BYTES. */
static char *append(char *at, const char *end, const char *text)
{
    for (; *text != '\0' && at < end; text++) {
        *at++ = (char)(*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text);
    }
    return at;
}

static char *append_type(char *at, const char *end, const mt_array *array)
{
    if (sim_dtype_bytes(array->dtype) == 0) {
        return at;
    }
    return append(append(at, end, "_"), end, dtype_names[array->dtype]);
}

void sim_kernel_name(const mt_kernel_call *call, char name[SIM_NAME_BYTES])
{
    const char *end = name + SIM_NAME_BYTES - 1;
    const code_names *codes = &codes_of[call->kernel];
    char *at = append(name, end, families[call->kernel]);
    if (call->code < codes->count && codes->at[call->code][0] != '\0') {
        at = append(append(at, end, "_"), end, codes->at[call->code]);
    }
    uint32_t typed_by = codes->typed_by;
    while (typed_by < call->n_tensors && call->tensors[typed_by].n_dims < 0) {
        typed_by++; /* an absent one has no type */
    }
    if (typed_by >= call->n_tensors) {
        typed_by = 0;
    }
    if (typed_by < call->n_tensors) {
        at = append_type(at, end, &call->tensors[typed_by]);
    }
    if (call->kernel == MT_KERNEL_COPY && call->n_tensors > 1) {
        at = append_type(at, end, &call->tensors[0]); /* from one type to the other */
    }
    *at = '\0';
}
