/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of an op, as torch hands them to an observer: values of a word and a tag.
 *
 *   HI1  Sizes and strides are torch's own arrays, which stay while the op begins. Nothing is kept.
 *   HI2  A value that is not what its tag says is shown as none and counted: a list whose length is
 *        impossible, a text that is not where a short text must be.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "hosts/flops.h"
#include "hosts/torch/torch_impl.h"

#include <string.h>

enum {
    MOST_VALUES = 65536, /* what libmtprof keeps of an op's inputs (op.h) */
    MOST_DEPTH = 16,
    MOST_TEXT = 65536,
    SHORT_TEXT = 15, /* that std::string keeps in itself */
    DTYPES = 64
};

typedef struct reader {
    th__thread *thread;
    uint32_t wants;
    bool full;      /* there is no room for more values */
    bool no_memory; /* for tensors */
} reader;

static void count_unreadable(void)
{
    __atomic_add_fetch(&th__unreadable, 1, __ATOMIC_RELAXED);
    mtprof_count_cut(1);
}

/* ---- types ---- */

/* By torch's number of a dtype. */
static const char *const type_names[DTYPES] = {
    "unsigned char",
    "signed char",
    "short int",
    "int",
    "long int",
    "c10::Half",
    "float",
    "double",
    "c10::complex<c10::Half>",
    "c10::complex<float>",
    "c10::complex<double>",
    "bool",
    "c10::qint8",
    "c10::quint8",
    "c10::qint32",
    "c10::BFloat16",
    "c10::quint4x2",
    "c10::quint2x4",
    "c10::bits1x8",
    "c10::bits2x4",
    "c10::bits4x2",
    "c10::bits8",
    "c10::bits16",
    "c10::Float8_e5m2",
    "c10::Float8_e4m3fn",
    "c10::Float8_e5m2fnuz",
    "c10::Float8_e4m3fnuz",
    "short unsigned int",
    "unsigned int",
    "long unsigned int",
};

static uint32_t type_id(int32_t dtype)
{
    static uint32_t ids[DTYPES]; /* atomic; 0: not interned yet */
    if (dtype < 0 || dtype >= DTYPES || type_names[dtype] == NULL) {
        return 0;
    }
    uint32_t id = __atomic_load_n(&ids[dtype], __ATOMIC_RELAXED);
    if (id == 0) {
        id = mtprof_intern(type_names[dtype], strlen(type_names[dtype]));
        __atomic_store_n(&ids[dtype], id, __ATOMIC_RELAXED);
    }
    return id;
}

/* ---- values ---- */

MT_INLINE uint64_t payload_of(const unsigned char *input)
{
    uint64_t word;
    memcpy(&word, input, sizeof word);
    return word;
}

MT_INLINE uint32_t tag_of(const unsigned char *input)
{
    uint32_t tag;
    memcpy(&tag, input + sizeof(uint64_t), sizeof tag);
    return tag;
}

/* The items of a list: how many there are. */
static uint64_t items_of(const unsigned char *input, const unsigned char **items)
{
    const unsigned char *object = (const unsigned char *)(uintptr_t)payload_of(input);
    uint64_t first = payload_of(object + th__fields.object_head);
    uint64_t end = payload_of(object + th__fields.object_head + sizeof first);
    *items = (const unsigned char *)(uintptr_t)first;
    if (end < first || (end - first) % TH_INPUT_BYTES != 0) {
        count_unreadable();
        return 0;
    }
    return (end - first) / TH_INPUT_BYTES;
}

/* How many values an input is made of. */
static uint64_t count_values(const unsigned char *input, uint32_t depth)
{
    uint64_t count = 1;
    if (tag_of(input) == th__fields.tag_list && depth < MOST_DEPTH) {
        const unsigned char *items = NULL;
        uint64_t n = items_of(input, &items);
        for (uint64_t i = 0; i < n && count <= MOST_VALUES; i++) {
            count += count_values(items + i * TH_INPUT_BYTES, depth + 1);
        }
    }
    return count;
}

static bool is_strided(const void *tensor)
{
    int32_t layout = -1;
    return th__torch.layout != NULL && th__torch.layout(tensor, &layout) == 0 &&
           layout == th__torch.strided;
}

static void read_tensor(reader *r, const unsigned char *tensor, mtprof_value *value)
{
    int64_t n_dims = 0;
    int32_t dtype = -1;
    int64_t *sizes = NULL;
    int64_t *strides = NULL;
    const void *object = (const void *)(uintptr_t)payload_of(tensor);
    if (object == th__torch.undefined) {
        return;
    }
    uint32_t kept = th__kept_by(object);
    if (kept >= TH_KEPT_NONE) {
        return; /* torch.profiler shows none, either */
    }
    if (th__torch.n_dims(tensor, &n_dims) != 0 || n_dims < 0 || n_dims > UINT8_MAX ||
        th__torch.dtype(tensor, &dtype) != 0 || th__torch.sizes(tensor, &sizes) != 0) {
        count_unreadable();
        return;
    }
    value->kind = MTPROF_INPUT_TENSOR;
    value->n_dims = (uint8_t)n_dims;
    value->type = type_id(dtype);
    value->of.sizes = sizes;
    if ((r->wants & MTPROF_WANT_STRIDES) != 0 && (kept == TH_KEPT_ALL || is_strided(tensor)) &&
        th__torch.strides(tensor, &strides) == 0) {
        value->strides = strides;
    }
    if (MT_UNLIKELY((r->wants & MTPROF_WANT_TENSORS) != 0) && !th__identify(r->thread, tensor)) {
        r->no_memory = true;
    }
}

static void read_text(const unsigned char *input, mtprof_value *value)
{
    const unsigned char *object = (const unsigned char *)(uintptr_t)payload_of(input);
    if (!th__is_text(object)) {
        count_unreadable();
        return;
    }
    const unsigned char *string = object + th__fields.object_head;
    const char *text = (const char *)(uintptr_t)payload_of(string);
    uint64_t length = payload_of(string + sizeof(uint64_t));
    bool is_short = (const unsigned char *)text == string + 2 * sizeof(uint64_t);
    if (is_short != (length <= SHORT_TEXT) || length > MOST_TEXT) {
        count_unreadable(); /* also a long one that was made shorter: rare, and told */
        return;
    }
    value->kind = MTPROF_INPUT_STRING;
    value->of.text = mtprof_intern_here(text, length);
}

static void read_value(reader *r, const unsigned char *input, mtprof_value *value, uint32_t depth)
{
    uint32_t tag = tag_of(input);
    uint64_t word = payload_of(input);
    memset(value, 0, sizeof *value);
    value->kind = MTPROF_INPUT_NONE;
    if (tag == th__fields.tag_tensor) {
        read_tensor(r, input, value);
    } else if (tag == th__fields.tag_int) {
        value->kind = MTPROF_INPUT_INT;
        value->of.integer = (int64_t)word;
    } else if (tag == th__fields.tag_bool) {
        value->kind = MTPROF_INPUT_BOOL;
        value->of.integer = (word & 0xFF) != 0;
    } else if (tag == th__fields.tag_double) {
        value->kind = MTPROF_INPUT_REAL;
        memcpy(&value->of.real, &word, sizeof word);
    } else if (tag == th__fields.tag_string) {
        read_text(input, value);
    } else if (tag == th__fields.tag_list && depth < MOST_DEPTH) {
        const unsigned char *items = NULL;
        uint64_t n = items_of(input, &items);
        th__thread *thread = r->thread;
        if (n > thread->values_room - thread->n_values) {
            r->full = true; /* it grew since it was counted: another thread has it, too */
            return;
        }
        mtprof_value *values = thread->values + thread->n_values;
        thread->n_values += (uint32_t)n;
        value->kind = MTPROF_INPUT_LIST;
        value->type = (uint32_t)n;
        value->of.items = values;
        for (uint64_t i = 0; i < n; i++) {
            read_value(r, items + i * TH_INPUT_BYTES, &values[i], depth + 1);
        }
    }
}

static bool reserve_values(th__thread *thread, uint64_t count)
{
    if (count > thread->values_room) {
        uint64_t room = count < 64 ? 64 : 2 * count;
        mtprof_value *values = mtb_resize(thread->values, room, sizeof *values);
        if (values == NULL) {
            return false;
        }
        thread->values = values;
        thread->values_room = (uint32_t)room;
    }
    return true;
}

void th__read_inputs(th__thread *thread, const void *record, uint32_t wants, mtprof_op *op)
{
    const unsigned char *inputs = NULL;
    uint64_t n = 0;
    if (!th__fields.checked) {
        return;
    }
    memcpy(&inputs, (const unsigned char *)record + th__fields.inputs, sizeof inputs);
    memcpy(&n, (const unsigned char *)record + th__fields.n_inputs, sizeof n);
    if (n == 0 || n != th__torch.n_inputs(record)) {
        return;
    }
    uint64_t count = 0;
    for (uint64_t i = 0; i < n && count <= MOST_VALUES; i++) {
        count += count_values(inputs + i * TH_INPUT_BYTES, 0);
    }
    op->n_inputs = (uint32_t)n;
    if (count > MOST_VALUES || !reserve_values(thread, count)) {
        return; /* inputs is NULL: counted as cut */
    }
    reader r = {.thread = thread, .wants = wants};
    thread->n_values = (uint32_t)n;
    thread->n_tensors = 0;
    for (uint64_t i = 0; i < n; i++) {
        read_value(&r, inputs + i * TH_INPUT_BYTES, &thread->values[i], 0);
    }
    op->inputs = r.full ? NULL : thread->values;
    op->n_tensors = thread->n_tensors + r.no_memory;
    op->tensors = r.full || r.no_memory ? NULL : thread->tensors;
}

/* The tensors of a value; false: there is no memory for them. */
static bool read_output(th__thread *thread, const unsigned char *value, uint32_t depth)
{
    if (tag_of(value) == th__fields.tag_tensor) {
        return thread->n_tensors >= MOST_VALUES || th__identify(thread, value);
    }
    const unsigned char *items = NULL;
    bool list = tag_of(value) == th__fields.tag_list && depth < MOST_DEPTH;
    uint64_t n = list ? items_of(value, &items) : 0;
    bool fits = true;
    for (uint64_t i = 0; i < n && fits; i++) {
        fits = read_output(thread, items + i * TH_INPUT_BYTES, depth + 1);
    }
    return fits;
}

void th__read_outputs(th__thread *thread, const void *record, mtprof_token token)
{
    const unsigned char *at = NULL;
    const unsigned char *end = NULL;
    bool fits = true;
    memcpy(&at, (const unsigned char *)record + th__fields.outputs, sizeof at);
    memcpy(&end, (const unsigned char *)record + th__fields.outputs + sizeof at, sizeof end);
    thread->n_tensors = 0;
    for (; at < end && fits; at += TH_INPUT_BYTES) {
        fits = read_output(thread, at, 0);
    }
    mtprof_op_outputs(token, fits ? thread->tensors : NULL, thread->n_tensors + !fits);
}

uint64_t th__count_flops(uint32_t rule, const mtprof_op *op)
{
    host_flops_input inputs[HOST_FLOPS_INPUTS];
    int64_t integers[HOST_FLOPS_INPUTS][2];
    uint32_t n = op->inputs != NULL ? op->n_inputs : 0;
    uint32_t most = host_flops_inputs((host_flops)rule);
    n = n < most ? n : most;
    for (uint32_t i = 0; i < n; i++) {
        const mtprof_value *value = &op->inputs[i];
        inputs[i] = (host_flops_input){0};
        if (value->kind == MTPROF_INPUT_TENSOR) {
            inputs[i].sizes = value->of.sizes;
            inputs[i].n_sizes = value->n_dims;
        } else if (value->kind == MTPROF_INPUT_LIST) {
            uint32_t items = value->type < 2 ? value->type : 2;
            for (uint32_t k = 0; k < items && value->of.items[k].kind == MTPROF_INPUT_INT; k++) {
                integers[i][k] = value->of.items[k].of.integer;
                inputs[i].n_integers = k + 1;
            }
            inputs[i].integers = integers[i];
        }
    }
    return host_count_flops((host_flops)rule, inputs, n);
}
