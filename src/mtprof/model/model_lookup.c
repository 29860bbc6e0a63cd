/* SPDX-License-Identifier: Apache-2.0
 *
 * What the numbers in a model's columns mean: the public side of the dictionary. Nothing here
 * makes the columns or takes a lock.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/model/model_impl.h"

mtprof_text mtprof_model_name(const mtprof_model *model, uint32_t name)
{
    return mtprof__dictionary_entry(&model->dictionary, name)->text;
}

uint32_t mtprof_model_name_key(const mtprof_model *model, uint32_t name)
{
    return mtprof__dictionary_entry(&model->dictionary, name)->key;
}

mtprof_text mtprof_model_string(const mtprof_model *model, uint32_t string)
{
    mtprof_text text = {"", 0};
    if (model->dictionary.reader != NULL) {
        mtprof_reader_string(model->dictionary.reader, string, &text);
    } else if (string != 0) {
        text = mtprof_model_name(model, string - 1);
    }
    return text;
}

/* Counts and arrays of tracks and devices: partners of the releases in dictionary.c. */
bool mtprof_model_track(const mtprof_model *model, uint32_t track, mtprof_track *out)
{
    const mtprof__dictionary *dictionary = &model->dictionary;
    if (track >= __atomic_load_n(&dictionary->n_tracks, __ATOMIC_ACQUIRE)) {
        return false;
    }
    *out = __atomic_load_n(&dictionary->tracks, __ATOMIC_ACQUIRE)[track];
    return true;
}

uint32_t mtprof__model_thread_number(const mtprof_model *model, uint32_t track)
{
    mtprof_track out;
    return mtprof_model_track(model, track, &out) ? out.number : 0;
}

bool mtprof_model_device(const mtprof_model *model, uint32_t device, mtprof_device *out)
{
    const mtprof__dictionary *dictionary = &model->dictionary;
    if (device >= __atomic_load_n(&dictionary->n_devices, __ATOMIC_ACQUIRE)) {
        return false;
    }
    *out = __atomic_load_n(&dictionary->devices, __ATOMIC_ACQUIRE)[device];
    return true;
}

bool mtprof_model_inputs(const mtprof_model *model, uint32_t inputs, const uint64_t **words,
                         uint32_t *n_words)
{
    return mtprof__dictionary_inputs_find(&model->dictionary, inputs, words, n_words);
}

bool mtprof_model_scalars(const mtprof_model *model, uint32_t scalars, const uint64_t **words,
                          uint32_t *n_words)
{
    const mtprof__dictionary *dictionary = &model->dictionary;
    if (scalars == 0 || scalars > dictionary->n_scalars) {
        return false;
    }
    *words = dictionary->scalars[scalars - 1].words;
    *n_words = dictionary->scalars[scalars - 1].n;
    return true;
}

bool mtprof_model_stack(const mtprof_model *model, uint32_t node, uint32_t *parent,
                        mtprof_frame *frame)
{
    const mtprof__dictionary *dictionary = &model->dictionary;
    if (dictionary->reader != NULL) {
        uint32_t above;
        uint32_t id;
        if (!mtprof_reader_stack(dictionary->reader, node, &above, &id) ||
            !mtprof_reader_frame(dictionary->reader, id, frame)) {
            return false;
        }
        *parent = above;
        return true;
    }
    if (node == 0 || node > dictionary->n_nodes) {
        return false;
    }
    *parent = dictionary->nodes[node - 1].parent;
    *frame = dictionary->frames[dictionary->nodes[node - 1].frame];
    return true;
}

bool mtprof_model_event_metadata(const mtprof_model *model, uint32_t metadata, uint32_t index,
                                 mtprof_metadatum *out)
{
    const mtprof__dictionary *dictionary = &model->dictionary;
    if (metadata == 0 || metadata > dictionary->n_metadata) {
        return false;
    }
    const mtprof_metadatum *list = &dictionary->metadata[metadata - 1];
    if (list->key.bytes != NULL || index >= list->value) { /* only heads have no key */
        return false;
    }
    *out = list[1 + index];
    return true;
}

static bool is_earlier_name(const void *item, uint64_t name)
{
    return ((const mtprof__unrecorded *)item)->name < name;
}

uint64_t mtprof_model_unrecorded(const mtprof_model *model, uint32_t name)
{
    uint64_t sum = 0;
    size_t at = mtb_search(model->unrecorded, model->n_unrecorded, sizeof *model->unrecorded,
                           is_earlier_name, name);
    for (; at < model->n_unrecorded && model->unrecorded[at].name == name; at++) {
        sum = mtb_add_counts(sum, model->unrecorded[at].count);
    }
    return sum;
}

bool mtprof_model_metadata(const mtprof_model *model, uint32_t index, mtprof_metadatum *out)
{
    if (index >= model->dictionary.n_trace_metadata) {
        return false;
    }
    *out = model->dictionary.trace_metadata[index];
    return true;
}

const char *mtprof_column_name(uint32_t id)
{
    static const char *const names[MTPROF_COLUMN_COUNT] = {
        [MTPROF_COLUMN_START_NS] = "start_ns",
        [MTPROF_COLUMN_END_NS] = "end_ns",
        [MTPROF_COLUMN_SELF_NS] = "self_ns",
        [MTPROF_COLUMN_PARENT] = "parent",
        [MTPROF_COLUMN_NAME] = "name",
        [MTPROF_COLUMN_TRACK] = "track",
        [MTPROF_COLUMN_STEP] = "step",
        [MTPROF_COLUMN_INDEX] = "index",
        [MTPROF_COLUMN_KIND] = "kind",
        [MTPROF_COLUMN_DEVICE] = "device",
        [MTPROF_COLUMN_FLAGS] = "flags",
        [MTPROF_COLUMN_INPUTS] = "inputs",
        [MTPROF_COLUMN_SCALARS] = "scalars",
        [MTPROF_COLUMN_STACK] = "stack",
        [MTPROF_COLUMN_SEQUENCE] = "sequence",
        [MTPROF_COLUMN_FORWARD_THREAD] = "forward_thread",
        [MTPROF_COLUMN_OVERLOAD] = "overload",
        [MTPROF_COLUMN_RECORD_SCOPE] = "record_scope",
        [MTPROF_COLUMN_FLOPS] = "flops",
        [MTPROF_COLUMN_MODULE] = "module",
        [MTPROF_COLUMN_FOREIGN_ID] = "foreign_id",
        [MTPROF_COLUMN_MEMORY_BEFORE] = "memory_before",
        [MTPROF_COLUMN_MEMORY_AFTER] = "memory_after",
        [MTPROF_COLUMN_MEMORY_DEVICE] = "memory_device",
        [MTPROF_COLUMN_METADATA] = "metadata",
        [MTPROF_COLUMN_BYTES] = "bytes",
        [MTPROF_COLUMN_ALLOCATED_SELF_CPU] = "allocated_self_cpu",
        [MTPROF_COLUMN_ALLOCATED_SELF_DEVICE] = "allocated_self_device",
        [MTPROF_COLUMN_DEPTH] = "depth",
        [MTPROF_COLUMN_CORRELATION] = "correlation",
        [MTPROF_COLUMN_LINK] = "link",
        [MTPROF_COLUMN_DEVICE_NS] = "device_ns",
        [MTPROF_COLUMN_SELF_DEVICE_NS] = "self_device_ns",
        [MTPROF_COLUMN_ALLOCATED_CPU] = "allocated_cpu",
        [MTPROF_COLUMN_ALLOCATED_DEVICE] = "allocated_device",
        [MTPROF_COLUMN_FIRST_CHILD] = "first_child",
        [MTPROF_COLUMN_NEXT_SIBLING] = "next_sibling",
        [MTPROF_COLUMN_FORWARD] = "forward",
    };
    return id < MTPROF_COLUMN_COUNT ? names[id] : NULL;
}

const char *mtprof_event_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [MTPROF_EVENT_KIND_SCOPE] = "scope",
        [MTPROF_EVENT_KIND_OP] = "op",
        [MTPROF_EVENT_KIND_RUNTIME] = "runtime",
        [MTPROF_EVENT_KIND_FUNCTION] = "function",
        [MTPROF_EVENT_KIND_STEP] = "step",
        [MTPROF_EVENT_KIND_LAUNCH] = "launch",
        [MTPROF_EVENT_KIND_KERNEL] = "kernel",
        [MTPROF_EVENT_KIND_COPY] = "copy",
        [MTPROF_EVENT_KIND_SET] = "set",
        [MTPROF_EVENT_KIND_CALL] = "call",
        [MTPROF_EVENT_KIND_SYNC] = "sync",
        [MTPROF_EVENT_KIND_ANNOTATION] = "annotation",
        [MTPROF_EVENT_KIND_OTHER] = "other",
        [MTPROF_EVENT_KIND_OVERHEAD] = "overhead",
        [MTPROF_EVENT_KIND_MEMORY] = "memory",
        [MTPROF_EVENT_KIND_OUT_OF_MEMORY] = "out_of_memory",
        [MTPROF_EVENT_KIND_INSTANT] = "instant",
        [MTPROF_EVENT_KIND_COUNTER] = "counter",
        [MTPROF_EVENT_KIND_FLOW] = "flow",
        [MTPROF_EVENT_KIND_ALLOC] = "alloc",
    };
    const char *name = kind < MT_COUNT(names) ? names[kind] : NULL;
    return name != NULL ? name : "unknown";
}

int mtprof__model_get_columns(mtprof_model *model, const mtprof__wanted_column *wanted,
                              size_t n_wanted, uint64_t *n)
{
    for (size_t i = 0; i < n_wanted; i++) {
        mtprof_column column;
        MT_TRY(mtprof_model_get_column(model, wanted[i].id, &column));
        *wanted[i].place = column.data;
        *n = i == 0 ? column.count : *n;
    }
    return MTPROF_OK;
}
