/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs that an op had the last time: most ops of a program are called with the same shapes again
 * and again. Then the recording knows their list already (mtprof_know_inputs), and it is enough to
 * compare what lies in torch's tensors with a copy, and to pass on the numbers among the inputs.
 *
 *   HQ1  A thread has a table of its own. An entry is for one site, one shape and one epoch.
 *   HQ2  Only plain inputs are compared: tensors that keep up to 5 sizes and strides in themselves,
 *        numbers, truth values, none. A list, a text or another tensor is read anew each time
 *        (torch_inputs.c).
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "hosts/torch/torch_impl.h"

#include <string.h>

enum {
    ENTRIES = 256, /* a power of two */
    MOST_INPUTS = 6,
    MOST_DIMS = 5 /* that a tensor keeps in itself */
};

typedef struct known_tensor {
    int64_t sizes[MOST_DIMS], strides[MOST_DIMS];
    uint64_t n_dims;
    uint32_t dtype;
    bool defined;
} known_tensor;

typedef struct known_entry {
    const th__site *site;
    mtprof_inputs list;
    uint32_t n;
    uint32_t tags[MOST_INPUTS];
    known_tensor tensors[MOST_INPUTS]; /* of tensors */
} known_entry;

struct th__known {
    uint64_t scalars[MOST_INPUTS]; /* of the op that begins */
    known_entry entries[ENTRIES];
};

MT_INLINE uint64_t word_at(const unsigned char *bytes, size_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

MT_INLINE uint32_t tag_of(const unsigned char *input)
{
    uint32_t tag;
    memcpy(&tag, input + sizeof(uint64_t), sizeof tag);
    return tag;
}

MT_INLINE uint32_t dtype_of(const unsigned char *object)
{
    uint16_t dtype;
    memcpy(&dtype, object + th__fields.tensor_sizes + TH_SIZES_TO_DTYPE, sizeof dtype);
    return dtype;
}

/* HQ1: by the site and the shape of its first tensor, since a program uses an op with several. */
MT_INLINE known_entry *entry_of(th__thread *thread, const th__site *site,
                                const unsigned char *inputs)
{
    uint64_t hash = (uintptr_t)site;
    const unsigned char *object = (const unsigned char *)(uintptr_t)word_at(inputs, 0);
    if (tag_of(inputs) == th__fields.tag_tensor && object != th__torch.undefined) {
        const unsigned char *sizes = object + th__fields.tensor_sizes;
        uint64_t n_dims = word_at(sizes - sizeof n_dims, 0);
        hash ^= n_dims << 32;
        hash ^= n_dims > 0 ? word_at(sizes, 0) << 36 : 0;
        hash ^= n_dims > 1 ? word_at(sizes, sizeof n_dims) << 44 : 0;
    }
    return &thread->known->entries[mtb_mix(hash, 0) % ENTRIES];
}

/* The words of an array of a tensor are equal. There are few: a call would take longer. */
MT_INLINE bool are_equal(const unsigned char *a, const int64_t *b, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if ((int64_t)word_at(a, i * sizeof *b) != b[i]) {
            return false;
        }
    }
    return true;
}

MT_INLINE bool is_known_tensor(const unsigned char *object, const known_tensor *known)
{
    if (object == th__torch.undefined || !known->defined) {
        return object == th__torch.undefined && !known->defined;
    }
    const unsigned char *sizes = object + th__fields.tensor_sizes;
    return th__kept_by(object) == TH_KEPT_ALL && dtype_of(object) == known->dtype &&
           word_at(sizes - sizeof(uint64_t), 0) == known->n_dims &&
           are_equal(sizes, known->sizes, known->n_dims) &&
           are_equal(sizes + TH_SIZES_TO_STRIDES, known->strides, known->n_dims);
}

bool th__find_known(th__thread *thread, const th__site *site, const void *record, mtprof_op *op)
{
    if (MT_UNLIKELY(thread->known == NULL || !th__fields.plain_tensors)) {
        return false;
    }
    const unsigned char *input =
        (const unsigned char *)(uintptr_t)word_at(record, th__fields.inputs);
    uint64_t n = word_at(record, th__fields.n_inputs);
    if (MT_UNLIKELY(n == 0 || n > MOST_INPUTS)) {
        return false;
    }
    const known_entry *entry = entry_of(thread, site, input);
    if (entry->site != site || entry->n != n || !mtprof_inputs_are_known(entry->list)) {
        return false;
    }
    uint64_t *scalars = thread->known->scalars;
    uint32_t n_scalars = 0;
    for (uint32_t i = 0; i < entry->n; i++, input += TH_INPUT_BYTES) {
        uint32_t tag = tag_of(input);
        uint64_t word = word_at(input, 0);
        if (tag != entry->tags[i]) {
            return false;
        }
        if (tag == th__fields.tag_tensor) {
            if (!is_known_tensor((const unsigned char *)(uintptr_t)word, &entry->tensors[i])) {
                return false;
            }
        } else if (tag == th__fields.tag_bool) {
            scalars[n_scalars++] = (word & 0xFF) != 0;
        } else if (tag != 0) {
            scalars[n_scalars++] = word; /* HQ2: an integer or a real number */
        }
    }
    op->known = entry->list;
    op->scalars = scalars;
    op->n_scalars = n_scalars;
    return true;
}

/* Keeps a tensor; false: HQ2. */
static bool keep_tensor(known_tensor *known, const unsigned char *object)
{
    *known = (known_tensor){0};
    if (object == th__torch.undefined) {
        return true;
    }
    const unsigned char *sizes = object + th__fields.tensor_sizes;
    known->n_dims = word_at(sizes - sizeof(uint64_t), 0);
    if (th__kept_by(object) != TH_KEPT_ALL || known->n_dims > MOST_DIMS) {
        return false;
    }
    known->defined = true;
    known->dtype = dtype_of(object);
    memcpy(known->sizes, sizes, known->n_dims * sizeof *known->sizes);
    memcpy(known->strides, sizes + TH_SIZES_TO_STRIDES, known->n_dims * sizeof *known->strides);
    return true;
}

void th__keep_known(th__thread *thread, const th__site *site, const void *record,
                    const mtprof_op *op)
{
    if (!th__fields.plain_tensors || op->inputs == NULL || op->n_inputs > MOST_INPUTS) {
        return;
    }
    if (thread->known == NULL) {
        thread->known = mtb_calloc(1, sizeof *thread->known);
        if (thread->known == NULL) {
            return; /* everything is read anew each time */
        }
    }
    known_entry entry = {.site = site, .n = op->n_inputs};
    const unsigned char *inputs =
        (const unsigned char *)(uintptr_t)word_at(record, th__fields.inputs);
    const unsigned char *input = inputs;
    for (uint32_t i = 0; i < entry.n; i++, input += TH_INPUT_BYTES) {
        uint32_t tag = tag_of(input);
        const unsigned char *object = (const unsigned char *)(uintptr_t)word_at(input, 0);
        bool plain = tag == 0 || tag == th__fields.tag_int || tag == th__fields.tag_bool ||
                     tag == th__fields.tag_double;
        if (tag == th__fields.tag_tensor) {
            plain = keep_tensor(&entry.tensors[i], object);
        }
        if (!plain) {
            return;
        }
        entry.tags[i] = tag;
    }
    entry.list = mtprof_know_inputs(op->inputs, op->n_inputs);
    *entry_of(thread, site, inputs) = entry;
}
