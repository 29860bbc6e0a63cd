/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes arguments as words, see call_words.h. The REPORTED lines of the op table say what is
 * reported of an op; without such a line the arguments are reported in order.
 *
 *   CW1  A value that does not fit is reported as none, and `cut` is set; words already written for
 *        it are removed.
 */
#include "mindtorch/dispatch/call_words.h"

#include "base/compiler.h"
#include "mindtorch/core/tensor/tensor_impl.h"
#include "mindtorch/core/thread/thread_state.h"
#include "mindtorch/dispatch/autograd_hook.h"

#include <string.h>

/* By MT_SHOW_* less MT_SHOW_CONSTANT. */
static const mt_value constants[] = {
    {.kind = MT_KIND_NONE},
    {.kind = MT_KIND_BOOL, .of.integer = 0},
    {.kind = MT_KIND_BOOL, .of.integer = 1},
    {.kind = MT_KIND_INT, .of.integer = 0},
    {.kind = MT_KIND_INT, .of.integer = 1},
    {.kind = MT_KIND_INT, .of.integer = 4},
    {.kind = MT_KIND_REAL, .of.real = 0},
};

/* ---- values ---- */

/* torch's numbers of element types, as concrete inputs show them. */
static const uint8_t torch_types[MT_DTYPE_COUNT] = {
    [MT_DTYPE_BOOL] = 11, [MT_DTYPE_U8] = 0,    [MT_DTYPE_I32] = 3,   [MT_DTYPE_I64] = 4,
    [MT_DTYPE_F16] = 5,   [MT_DTYPE_BF16] = 15, [MT_DTYPE_F32] = 6,   [MT_DTYPE_F64] = 7,
    [MT_DTYPE_I8] = 1,    [MT_DTYPE_I16] = 2,   [MT_DTYPE_U16] = 27,  [MT_DTYPE_U32] = 28,
    [MT_DTYPE_U64] = 29,  [MT_DTYPE_C64] = 9,   [MT_DTYPE_C128] = 10,
};

/*
 * Every put function has two forms, selected by the constant `large`: for ordinary calls, where the
 * compiler knows room and bounds, and for long ones.
 */
#define WORDS(w)     (large ? (w)->large_words : (w)->words)
#define SCALARS(w)   (large ? (w)->large_scalars : (w)->scalars)
#define WORDS_MOST   ((uint32_t)(large ? MT_TRACE_MOST : MT_TRACE_WORDS))
#define SCALARS_MOST ((uint32_t)(large ? MT_TRACE_MOST : MT_TRACE_SCALARS))

/* CW1. */
static MT_COLD bool does_not_fit(mt__trace_words *w)
{
    w->cut = true;
    return false;
}

MT_INLINE bool put_none(mt__trace_words *w, const bool large)
{
    if (MT_UNLIKELY(w->n_words == WORDS_MOST)) {
        return does_not_fit(w);
    }
    WORDS(w)[w->n_words++] = MT_SHOWN_NONE;
    return true;
}

MT_INLINE bool put_number(mt__trace_words *w, uint64_t kind, uint64_t bits, const bool large)
{
    if (MT_UNLIKELY(w->n_words == WORDS_MOST || w->n_scalars == SCALARS_MOST)) {
        return does_not_fit(w);
    }
    WORDS(w)[w->n_words++] = kind;
    SCALARS(w)[w->n_scalars++] = bits;
    return true;
}

/* Four at a time, whatever the CPU has for it: both sides have room for a multiple of four. */
typedef int64_t four_words __attribute__((vector_size(32), aligned(8), may_alias));

MT_INLINE uint64_t *copy_sizes(uint64_t *at, const int64_t *sizes, uint32_t n)
{
    *(four_words *)(void *)at = *(const four_words *)(const void *)sizes;
    for (uint32_t i = 4; MT_UNLIKELY(i < n); i += 4) {
        *(four_words *)(void *)(at + i) = *(const four_words *)(const void *)(sizes + i);
    }
    return at + n;
}

static_assert(MT_MAX_DIMS % 4 == 0, "copy_sizes() reads sizes in fours");

MT_INLINE bool put_tensor(mt__trace_words *w, const mt_tensor *tensor, bool strides,
                          const bool large)
{
    if (MT_UNLIKELY(tensor == NULL)) {
        return put_none(w, large);
    }
    uint32_t n = tensor->n_dims;
    uint64_t *at = WORDS(w) + w->n_words;
    if (MT_UNLIKELY(w->n_words + 1 + 2 * n > WORDS_MOST)) {
        return does_not_fit(w);
    }
    *at++ = MT_SHOWN_TENSOR | n << 8 | (uint32_t)strides << 16 | (uint32_t)tensor->dtype << 24;
    at = copy_sizes(at, tensor->sizes, n);
    if (strides) {
        at = copy_sizes(at, tensor->strides, n);
    }
    w->n_words = (uint32_t)(at - WORDS(w));
    return true;
}

MT_INLINE bool put_list(mt__trace_words *w, const mt_value *value, bool strides, const bool large)
{
    if (w->n_words == WORDS_MOST || value->count > WORDS_MOST) {
        return does_not_fit(w);
    }
    WORDS(w)[w->n_words++] = MT_SHOWN_LIST | (uint64_t)value->count << 32;
    for (uint32_t i = 0; i < value->count; i++) {
        bool fits = value->kind == MT_KIND_TENSORS
                        ? put_tensor(w, value->of.tensors[i], strides, large)
                        : put_number(w, MT_SHOWN_INT, (uint64_t)value->of.ints[i], large);
        if (!fits) {
            return false;
        }
    }
    return true;
}

/* A number as a tensor without dimensions: torch's type for Python's numbers. */
MT_INLINE bool put_wrapped(mt__trace_words *w, const mt_value *value, const bool large)
{
    uint32_t dtype = value->kind == MT_KIND_REAL  ? MT_DTYPE_F64
                     : value->kind == MT_KIND_INT ? MT_DTYPE_I64
                                                  : MT_DTYPE_BOOL;
    if (w->n_words == WORDS_MOST) {
        return does_not_fit(w);
    }
    WORDS(w)[w->n_words++] = MT_SHOWN_TENSOR | dtype << 24;
    return true;
}

MT_INLINE bool put_other_in(mt__trace_words *w, const mt_value *value, bool strides,
                            const bool large)
{
    switch ((mt_kind)value->kind) {
    case MT_KIND_TENSORS:
    case MT_KIND_INTS: return put_list(w, value, strides, large);
    case MT_KIND_DTYPE: return put_number(w, MT_SHOWN_INT, torch_types[value->of.integer], large);
    default: return put_none(w, large);
    }
}

static MT_NOINLINE bool put_other(mt__trace_words *w, const mt_value *value, bool strides)
{
    return put_other_in(w, value, strides, false);
}

static MT_COLD bool put_other_large(mt__trace_words *w, const mt_value *value, bool strides)
{
    return put_other_in(w, value, strides, true);
}

/* The most common kinds have the same numbers in both enums. */
static_assert(MT_SHOWN_NONE == (int)MT_KIND_NONE && MT_SHOWN_BOOL == (int)MT_KIND_BOOL &&
                  MT_SHOWN_INT == (int)MT_KIND_INT && MT_SHOWN_REAL == (int)MT_KIND_REAL,
              "put_value() passes them on");

MT_INLINE void put_value(mt__trace_words *w, const mt_value *value, bool strides, const bool large)
{
    /* Loaded one by one: a single load of both would have to wait for the two stores that wrote
     * them. */
    uint32_t n_words = __atomic_load_n(&w->n_words, __ATOMIC_RELAXED);
    uint32_t n_scalars = __atomic_load_n(&w->n_scalars, __ATOMIC_RELAXED);
    bool fits;
    if (value->kind == MT_KIND_TENSOR) {
        fits = put_tensor(w, value->of.tensor, strides, large);
    } else if (value->kind <= MT_KIND_REAL) {
        fits = n_words < WORDS_MOST && n_scalars < SCALARS_MOST;
        if (MT_LIKELY(fits)) {
            WORDS(w)[w->n_words++] = value->kind;
            memcpy(&SCALARS(w)[n_scalars], &value->of, sizeof w->scalars[0]);
            w->n_scalars += value->kind != MT_KIND_NONE;
        }
    } else {
        fits = large ? put_other_large(w, value, strides) : put_other(w, value, strides);
    }
    if (MT_UNLIKELY(!fits)) { /* CW1 */
        w->cut = true;
        w->n_words = n_words;
        w->n_scalars = n_scalars;
        (void)put_none(w, large);
    }
}

/* ---- calls ---- */

static bool is_number(const mt_value *value)
{
    return value->kind >= MT_KIND_BOOL && value->kind <= MT_KIND_REAL;
}

static bool is_integer(const mt_value *value, int64_t number)
{
    return is_number(value) && (value->kind == MT_KIND_REAL ? value->of.real == (double)number
                                                            : value->of.integer == number);
}

static MT_NOINLINE bool is_for(const mt__shown *line, const mt_value *args)
{
    const mt_value *arg = &args[line->argument];
    switch ((mt__shown_when)line->when) {
    case MT_SHOWN_ALWAYS: return true;
    case MT_SHOWN_GIVEN: return arg->kind != MT_KIND_NONE;
    case MT_SHOWN_NOT_GIVEN: return arg->kind == MT_KIND_NONE;
    case MT_SHOWN_IS_ZERO: return is_integer(arg, 0);
    case MT_SHOWN_IS_ONE: return is_integer(arg, 1);
    case MT_SHOWN_IS_NOT_ONE: return !is_integer(arg, 1);
    default: return false;
    }
}

/* Integers of one kind: BOOL or INT. ints: NULL for zeros. */
MT_INLINE void put_integers(mt__trace_words *w, uint64_t kind, const int64_t *ints, uint32_t count,
                            const bool large)
{
    if (w->n_words + 1 + (uint64_t)count > WORDS_MOST ||
        w->n_scalars + (uint64_t)count > SCALARS_MOST) {
        w->cut = true;
        (void)put_none(w, large);
        return;
    }
    WORDS(w)[w->n_words++] = MT_SHOWN_LIST | (uint64_t)count << 32;
    for (uint32_t i = 0; i < count; i++) {
        (void)put_number(w, kind, ints == NULL ? 0 : (uint64_t)ints[i], large);
    }
}

/* Whether a number is reported as a tensor. */
static bool is_wrapped(uint32_t way, const mt_value *arg)
{
    return is_number(arg) &&
           (way == MT_SHOW_SAVED || (way == MT_SHOW_WRAPPED && !mt__thread.in_formula));
}

/* One entry of a line that is not simply an argument. */
MT_INLINE void put_way_in(mt__trace_words *w, uint32_t way, const mt_value *arg,
                          const mt_value *args, bool strides, const bool large)
{
    bool is_list = arg->kind == MT_KIND_INTS;
    if (is_wrapped(way, arg)) {
        (void)put_wrapped(w, arg, large);
    } else if (way == MT_SHOW_TYPE_OF && arg->kind == MT_KIND_TENSOR) {
        (void)put_number(w, MT_SHOWN_INT, torch_types[arg->of.tensor->dtype], large);
    } else if (way == MT_SHOW_BOOLS && is_list) {
        put_integers(w, MT_SHOWN_BOOL, arg->of.ints, arg->count, large);
    } else if (way == MT_SHOW_ZEROS && is_list) {
        put_integers(w, MT_SHOWN_INT, NULL, arg->count, large);
    } else if (way == MT_SHOW_BIAS_OF && is_list && arg->count == 3) {
        int64_t outputs = arg->of.ints[2] != 0 ? args[2].of.tensor->sizes[0] : 0;
        put_integers(w, MT_SHOWN_INT, &outputs, 1, large);
    } else {
        put_value(w, arg, strides, large);
    }
}

static MT_NOINLINE void put_way(mt__trace_words *w, uint32_t way, const mt_value *arg,
                                const mt_value *args, bool strides)
{
    put_way_in(w, way, arg, args, strides, false);
}

MT_INLINE void put_shown(mt__trace_words *w, const uint8_t *codes, const mt_value *args,
                         bool strides, const bool large)
{
    for (uint32_t code; (code = *codes) != MT_SHOW_END; codes++) {
        bool constant = MT_UNLIKELY((code & MT_SHOW_CONSTANT) != 0);
        const mt_value *value = constant ? &constants[code & ~(uint32_t)MT_SHOW_CONSTANT]
                                         : &args[code & MT_SHOW_ARG_MASK];
        uint32_t way = constant ? MT_SHOW_ARG : code & MT_SHOW_WAY_MASK;
        if (MT_UNLIKELY(way != MT_SHOW_ARG &&
                        (value->kind != MT_KIND_TENSOR || way == MT_SHOW_TYPE_OF))) {
            if (large) {
                put_way_in(w, way, value, args, strides, true);
            } else {
                put_way(w, way, value, args, strides);
            }
        } else {
            put_value(w, value, strides, large);
        }
    }
}

/* The REPORTED line that applies to the call; NULL: none, its arguments in order. */
MT_INLINE const uint8_t *codes_of(const mt__op_row *row, const mt_value *args)
{
    const mt__shown *line = row->reported;
    for (; line != NULL && line->when != MT_SHOWN_NEVER; line++) {
        if (line->when == MT_SHOWN_ALWAYS || is_for(line, args)) {
            return line->codes;
        }
    }
    return NULL;
}

MT_INLINE void put_call(const mt__op_row *row, const mt_value *args, bool strides,
                        mt__trace_words *words, const bool large)
{
    const uint8_t *codes = codes_of(row, args);
    if (codes != NULL) {
        put_shown(words, codes, args, strides, large);
        return;
    }
    for (uint32_t i = 0; i < row->n_params; i++) {
        put_value(words, &args[i], strides, large);
    }
}

void mt__call_words(const mt__op_row *row, const mt_value *args, bool strides,
                    mt__trace_words *words)
{
    words->n_words = 0;
    words->n_scalars = 0;
    words->cut = false;
    put_call(row, args, strides, words, false);
}

MT_COLD void mt__call_words_large(const mt__op_row *row, const mt_value *args, bool strides,
                                  mt__trace_words *words)
{
    put_call(row, args, strides, words, true);
}

MT_INLINE void put_tensors(mt_tensor *const *tensors, uint32_t count, bool strides,
                           mt__trace_words *words, const bool large)
{
    while (count > 0 && tensors[count - 1] == NULL) {
        count--; /* torch does not report missing arguments at the end */
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!put_tensor(words, tensors[i], strides, large)) {
            (void)put_none(words, large);
        }
    }
}

void mt__tensor_words(mt_tensor *const *tensors, uint32_t count, bool strides,
                      mt__trace_words *words)
{
    words->n_words = 0;
    words->n_scalars = 0;
    words->cut = false;
    put_tensors(tensors, count, strides, words, false);
}

MT_COLD void mt__tensor_words_large(mt_tensor *const *tensors, uint32_t count, bool strides,
                                    mt__trace_words *words)
{
    put_tensors(tensors, count, strides, words, true);
}

/* ---- identity ---- */

MT_INLINE mt__trace_ref ref_of(const mt_tensor *tensor, uint16_t role)
{
    return (mt__trace_ref){
        .tensor = tensor->id,
        .storage = (uint64_t)(uintptr_t)tensor->storage->data,
        .offset = tensor->offset,
        .version = atomic_load_explicit(&tensor->storage->version, memory_order_relaxed),
        .device = mt__trace_device(tensor->device),
        .role = role,
    };
}

mt__trace_ref mt__tensor_ref(const mt_tensor *tensor, uint16_t role)
{
    return ref_of(tensor, role);
}

typedef struct ref_list {
    mt__trace_ref *refs;
    uint32_t n, most; /* n keeps counting when there is no more room */
} ref_list;

MT_INLINE void put_ref(ref_list *list, const mt_tensor *tensor, uint16_t role)
{
    if (MT_LIKELY(list->n < list->most)) {
        list->refs[list->n] = ref_of(tensor, role);
    }
    list->n++;
}

MT_INLINE void put_refs(ref_list *list, const mt_value *value, uint16_t told)
{
    uint16_t parameter = told == MT_TRACE_ROLE_ANY ? MT_TRACE_ROLE_PARAMETER : told;
    if (value->kind == MT_KIND_TENSOR) {
        put_ref(list, value->of.tensor, value->of.tensor->is_parameter ? parameter : told);
    } else if (MT_UNLIKELY(value->kind == MT_KIND_TENSORS)) {
        for (uint32_t i = 0; i < value->count; i++) {
            const mt_tensor *tensor = value->of.tensors[i];
            if (tensor != NULL) {
                put_ref(list, tensor, tensor->is_parameter ? parameter : told);
            }
        }
    }
}

/* The roles of a fused optimizer's lists: parameters, gradients, and its state. */
static uint16_t role_of_list(const mt__op_row *row, uint32_t param)
{
    return (row->flags & MT_OP_FUSED) == 0 ? MT_TRACE_ROLE_ANY
           : param == 0                    ? MT_TRACE_ROLE_PARAMETER
           : param == MT_FUSED_GRADS       ? MT_TRACE_ROLE_GRADIENT
                                           : MT_TRACE_ROLE_OPTIMIZER_STATE;
}

MT_INLINE uint16_t role_of(const mt__op_row *row, uint32_t param)
{
    return MT_LIKELY((row->flags & MT_OP_OPTIMIZER) == 0) ? (uint16_t)MT_TRACE_ROLE_ANY
                                                          : role_of_list(row, param);
}

/* A gradient that existed before the recording: without this, a profile could not tell what it is
 * when it is freed. */
MT_INLINE void put_gradient(ref_list *list, const mt_value *value)
{
    mt__trace_ref ref;
    if (value->kind == MT_KIND_TENSOR && value->of.tensor->is_parameter &&
        mt__autograd_gradient(value->of.tensor, &ref)) {
        if (list->n < list->most) {
            list->refs[list->n] = ref;
        }
        list->n++;
    }
}

uint32_t mt__call_refs(const mt__op_row *row, const mt_value *args, mt__trace_ref *refs,
                       uint32_t most)
{
    ref_list list = {.refs = refs, .most = most};
    const uint8_t *codes = codes_of(row, args);
    uint32_t left = (1U << row->n_params) - 1; /* a bit for each argument that is to come */
    for (uint32_t code; codes != NULL && (code = *codes) != MT_SHOW_END; codes++) {
        uint32_t way = code & MT_SHOW_WAY_MASK;
        uint32_t param = code & MT_SHOW_ARG_MASK;
        if ((code & MT_SHOW_CONSTANT) != 0 || way == MT_SHOW_TYPE_OF) {
            continue;
        }
        if (MT_UNLIKELY(way != MT_SHOW_ARG && is_wrapped(way, &args[param]))) {
            if (list.n < most) {
                refs[list.n] = (mt__trace_ref){0}; /* reported, but not a tensor */
            }
            list.n++;
        }
        put_refs(&list, &args[param], role_of(row, param));
        left &= ~(1U << param);
    }
    for (uint32_t i = 0; left != 0 && i < row->n_params; i++) {
        if ((left >> i & 1) != 0) {
            put_refs(&list, &args[i], role_of(row, i));
        }
    }
    for (uint32_t i = 0; i < row->n_params; i++) {
        put_gradient(&list, &args[i]);
    }
    return list.n;
}

uint32_t mt__result_refs(const mt_value *results, uint32_t count, mt__trace_ref *refs,
                         uint32_t most)
{
    ref_list list = {.refs = refs, .most = most};
    for (uint32_t i = 0; i < count; i++) {
        put_refs(&list, &results[i], MT_TRACE_ROLE_ANY);
    }
    return list.n;
}
