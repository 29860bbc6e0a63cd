/* SPDX-License-Identifier: Apache-2.0
 *
 * Autocast, see autocast_impl.h.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "mindtorch/core/device/backends.h"
#include "mindtorch/core/tensor/tensor_impl.h"
#include "mindtorch/core/thread/thread_state.h"
#include "mindtorch/dispatch/autocast_impl.h"
#include "mindtorch/dispatch/dispatch.h"

#include <mindtorch/autocast.h>
#include <mindtorch/autograd.h>
#include <mindtorch/ops.h>

#include <pthread.h>
#include <string.h>

/* ---- rules ----------------------------------------------------------------------------------- */

typedef enum rule {
    NOTHING,
    LOWER,
    FLOAT,
    WIDEST
} rule;

enum {
    TYPES = MT_DEVICE_TYPE_NPU + 1 /* of devices that compute */
};

static const struct {
    const char *name;
    uint8_t rules[TYPES];
} named_rules[] = {
#define X(name, cpu, npu) {#name, {cpu, npu}},
#include "mindtorch/dispatch/autocast_ops.def"
#undef X
};

static uint8_t *rules_of_rows; /* by op number, two bits for each type of device */
static pthread_once_t rules_once = PTHREAD_ONCE_INIT;

/* Row by row, so that a name covers all overloads. Kept until the process ends. */
static void find_rules(void)
{
    uint8_t *rules = mtb_calloc(mt__n_op_rows, 1);
    for (uint32_t op = 0; rules != NULL && op < mt__n_op_rows; op++) {
        for (uint32_t i = 0; i < MT_COUNT(named_rules); i++) {
            if (strcmp(mt__op_rows[op].name, named_rules[i].name) == 0) {
                rules[op] =
                    (uint8_t)(named_rules[i].rules[0] | (uint32_t)named_rules[i].rules[1] << 2);
            }
        }
    }
    rules_of_rows = rules;
}

static rule rule_of(const mt__op_row *row, uint32_t type)
{
    (void)pthread_once(&rules_once, find_rules);
    if (rules_of_rows == NULL || row->op >= mt__n_op_rows || (row->flags & MT_OP_USER) != 0) {
        return NOTHING;
    }
    return (rule)(rules_of_rows[row->op] >> (2 * type) & 3U);
}

/* ---- the state of a thread ------------------------------------------------------------------- */

typedef struct cached {
    mt_tensor *from, *to; /* both held */
} cached;

struct mt__autocast {
    uint8_t dtypes[TYPES];
    bool cache_disabled;
    uint32_t depth;
    mtb_idmap places; /* by address: place in `casts` plus one */
    cached *casts;
    size_t n_casts, capacity;
};

static const uint8_t first_dtypes[TYPES] = {MT_DTYPE_BF16, MT_DTYPE_F16};

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

static void clear_casts(struct mt__autocast *state)
{
    for (size_t i = 0; i < state->n_casts; i++) {
        mt_tensor_release(state->casts[i].from);
        mt_tensor_release(state->casts[i].to);
    }
    mtb_free(state->casts);
    state->casts = NULL;
    state->n_casts = 0;
    state->capacity = 0;
    mtb_idmap_reset(&state->places);
}

static void free_state(void *argument)
{
    clear_casts(argument);
    mtb_free(argument);
    mt__thread.autocast_state = NULL;
    mt__thread.autocast = 0;
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, free_state) == 0;
}

/* NULL: no memory. */
static struct mt__autocast *state_of_thread(void)
{
    if (mt__thread.autocast_state == NULL) {
        (void)pthread_once(&key_once, make_key);
        struct mt__autocast *made = key_made ? mtb_calloc(1, sizeof *made) : NULL;
        if (made != NULL && pthread_setspecific(key, made) != 0) {
            mtb_free(made);
            made = NULL;
        }
        if (made != NULL) {
            memcpy(made->dtypes, first_dtypes, sizeof(first_dtypes));
        }
        mt__thread.autocast_state = made;
    }
    return mt__thread.autocast_state;
}

bool mt_autocast_enabled(mt_device_type type)
{
    return (uint32_t)type < TYPES && (mt__thread.autocast >> type & 1) != 0;
}

bool mt_autocast_set_enabled(mt_device_type type, bool enabled)
{
    bool before = mt_autocast_enabled(type);
    if ((uint32_t)type < TYPES) {
        uint32_t bit = 1U << type;
        mt__thread.autocast =
            (uint8_t)(enabled ? mt__thread.autocast | bit : mt__thread.autocast & ~bit);
    }
    return before;
}

mt_dtype mt_autocast_dtype(mt_device_type type)
{
    const struct mt__autocast *state = mt__thread.autocast_state;
    if ((uint32_t)type >= TYPES) {
        return MT_DTYPE_NONE;
    }
    return (mt_dtype)(state == NULL ? first_dtypes[type] : state->dtypes[type]);
}

mt_status mt_autocast_set_dtype(mt_device_type type, mt_dtype dtype)
{
    bool fits = dtype == MT_DTYPE_F16 || dtype == MT_DTYPE_BF16 || dtype == MT_DTYPE_F32;
    if (!fits || (uint32_t)type >= TYPES) {
        return mtb_fail(MT_ETYPE, "autocast: %s is not a type to cast to", mt_dtype_name(dtype));
    }
    struct mt__autocast *state = state_of_thread();
    if (state == NULL) {
        return mtb_fail(MT_ENOMEM, "autocast: memory was refused");
    }
    state->dtypes[type] = (uint8_t)dtype;
    return MT_OK;
}

bool mt_autocast_cache_enabled(void)
{
    const struct mt__autocast *state = mt__thread.autocast_state;
    return state == NULL || !state->cache_disabled;
}

bool mt_autocast_set_cache_enabled(bool enabled)
{
    bool before = mt_autocast_cache_enabled();
    struct mt__autocast *state = before == enabled ? NULL : state_of_thread();
    if (state != NULL) {
        state->cache_disabled = !enabled;
    }
    return before;
}

void mt_autocast_clear_cache(void)
{
    if (mt__thread.autocast_state != NULL) {
        clear_casts(mt__thread.autocast_state);
    }
}

uint32_t mt_autocast_enter(void)
{
    struct mt__autocast *state = state_of_thread();
    return state == NULL ? 0 : ++state->depth; /* without a state nothing is cached */
}

uint32_t mt_autocast_leave(void)
{
    struct mt__autocast *state = mt__thread.autocast_state;
    if (state == NULL || state->depth == 0) {
        return 0;
    }
    if (--state->depth == 0) {
        clear_casts(state);
    }
    return state->depth;
}

/* ---- casts ----------------------------------------------------------------------------------- */

static bool is_cast(const mt_tensor *tensor, uint32_t type)
{
    return tensor != NULL && mt__tensor_category(tensor) == MT_CATEGORY_REAL &&
           tensor->dtype != MT_DTYPE_F64 && (tensor->device == MT_CPU) == (type == 0);
}

static bool is_same(const void *context, uint32_t id, const void *wanted)
{
    const struct mt__autocast *state = context;
    return state->casts[id - 1].from == wanted;
}

/* A leaf that needs a gradient is cast once in a region: each use adds to one gradient. */
static bool is_kept(const mt_tensor *tensor, mt_dtype to, const struct mt__autocast *state)
{
    return state != NULL && state->depth > 0 && !state->cache_disabled && to != MT_DTYPE_F32 &&
           tensor->dtype == MT_DTYPE_F32 && mt_tensor_requires_grad(tensor) &&
           mt_tensor_is_leaf(tensor) && !mt_tensor_is_view(tensor);
}

/* *out: the tensor itself, or its cast; one more reference. */
static int cast(mt_tensor *tensor, mt_dtype to, uint32_t type, mt_tensor **out)
{
    if (!is_cast(tensor, type) || tensor->dtype == to) {
        *out = mt_tensor_retain(tensor);
        return MT_OK;
    }
    struct mt__autocast *state = mt__thread.autocast_state;
    bool kept = is_kept(tensor, to, state);
    const uint64_t address = (uint64_t)(uintptr_t)tensor;
    uint64_t hash = mtb_hash_words(&address, 1);
    if (kept) {
        uint32_t place = mtb_idmap_find(&state->places, hash, is_same, state, tensor);
        if (place != 0) {
            *out = mt_tensor_retain(state->casts[place - 1].to);
            return MT_OK;
        }
    }
    MT_TRY(mt_to_with(tensor, to, MT_DEVICE_NONE, false, false, out));
    cached item = {tensor, *out};
    if (kept && mtb_idmap_append(&state->places, hash, state->casts, state->n_casts,
                                 state->capacity, &item)) {
        (void)mt_tensor_retain(tensor); /* without memory it is cast again next time */
        (void)mt_tensor_retain(*out);
    }
    return MT_OK;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static mt_tensor *const *tensors_of(const mt_value *value, uint32_t *count)
{
    if (value->kind == MT_KIND_TENSOR) {
        *count = 1;
        return &value->of.tensor;
    }
    *count = value->kind == MT_KIND_TENSORS ? value->count : 0;
    return value->kind == MT_KIND_TENSORS ? value->of.tensors : NULL;
}

/* The type of device of the first tensor; TYPES: there is none, or it casts nothing. */
static uint32_t type_of_args(const mt__op_row *row, const mt_value *args)
{
    for (uint32_t i = 0; i < row->n_params; i++) {
        uint32_t count = 0;
        mt_tensor *const *tensors = tensors_of(&args[i], &count);
        for (uint32_t k = 0; k < count; k++) {
            if (tensors[k] != NULL) {
                mt_device device = tensors[k]->device;
                return device == MT_META ? TYPES : (uint32_t)mt__device_type(device);
            }
        }
    }
    return TYPES;
}

/* The lower type, or float32 if an argument has that. */
static mt_dtype widest_of(const mt__op_row *row, const mt_value *args, uint32_t type)
{
    mt_dtype widest = mt_autocast_dtype((mt_device_type)type);
    for (uint32_t i = 0; i < row->n_params; i++) {
        uint32_t count = 0;
        mt_tensor *const *tensors = tensors_of(&args[i], &count);
        for (uint32_t k = 0; k < count; k++) {
            if (is_cast(tensors[k], type) && tensors[k]->dtype != widest) {
                widest = MT_DTYPE_F32;
            }
        }
    }
    return widest;
}

static int cast_value(const mt_value *from, mt_value *to, mt_dtype dtype, uint32_t type)
{
    *to = *from;
    if (from->kind == MT_KIND_TENSOR) {
        return cast(from->of.tensor, dtype, type, &to->of.tensor);
    }
    mt_tensor **list = mtb_calloc((size_t)from->count + 1, sizeof *list);
    to->of.tensors = list;
    if (list == NULL) {
        return mtb_fail(MT_ENOMEM, "autocast: memory was refused");
    }
    int status = MT_OK;
    for (uint32_t k = 0; k < from->count && status == MT_OK; k++) {
        if (from->of.tensors[k] != NULL) {
            status = cast(from->of.tensors[k], dtype, type, &list[k]);
        }
    }
    return status;
}

static void give_value(mt_value *value)
{
    uint32_t count = 0;
    mt_tensor *const *tensors = tensors_of(value, &count);
    for (uint32_t k = 0; tensors != NULL && k < count; k++) {
        mt_tensor_release(tensors[k]);
    }
    if (value->kind == MT_KIND_TENSORS) {
        mtb_free((void *)(uintptr_t)value->of.tensors);
    }
}

mt_dtype mt__autocast_type(const mt__op_row *row, const mt_value *args)
{
    uint32_t type = type_of_args(row, args);
    if (type == TYPES || !mt_autocast_enabled((mt_device_type)type)) {
        return MT_DTYPE_NONE;
    }
    switch (rule_of(row, type)) {
    case LOWER: return mt_autocast_dtype((mt_device_type)type);
    case FLOAT: return MT_DTYPE_F32;
    case WIDEST: return widest_of(row, args, type);
    default: return MT_DTYPE_NONE;
    }
}

int mt__autocast_run(mt__call *call)
{
    mt_value own[MT_MAX_PARAMS];
    const mt__op_row *row = call->row;
    uint32_t type = type_of_args(row, call->args);
    uint8_t before = mt__thread.autocast;
    mt__thread.autocast = 0; /* AC1 */
    uint32_t n = 0;
    int status = MT_OK;
    for (; n < row->n_params && status == MT_OK; n++) {
        uint32_t count = 0;
        if (tensors_of(&call->args[n], &count) == NULL) {
            own[n] = call->args[n];
        } else {
            status = cast_value(&call->args[n], &own[n], (mt_dtype)call->cast_to, type);
        }
    }
    if (status == MT_OK) {
        status = mt__dispatch(row, own, call->results);
    }
    for (uint32_t i = 0; i < n; i++) {
        give_value(&own[i]);
    }
    mt__thread.autocast = before;
    return status;
}
