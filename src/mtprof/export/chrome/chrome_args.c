/* SPDX-License-Identifier: Apache-2.0
 *
 * The args of an event other than its ids: inputs, and what only few events have.
 */
#include "mtprof/export/chrome/export_chrome_impl.h"
#include "mtprof/export/json_text.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/text/stack_text.h"

enum {
    KEYS_COMPARED = 256 /* of an event's own keys, in the search for duplicates */
};

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Strides are left out where tensors came without any: they were not recorded. */
static void write_inputs(mtb_writer *writer, const mtprof__inputs_view *view, uint32_t facts,
                         bool lean)
{
    mtb_write_literal(writer, ",\"Concrete Inputs\":");
    mtprof__write_concrete_inputs(writer, view);
    mtb_write_literal(writer, ",\"Input type\":");
    mtprof__write_input_types(writer, view);
    if ((facts & MTPROF__INPUTS_STRIDES) != 0 || (facts & MTPROF__INPUTS_TENSORS) == 0) {
        mtb_write_literal(writer, ",\"Input Strides\":");
        mtprof__write_input_strides(writer, view);
    }
    mtb_write_literal(writer, ",\"Input Dims\":");
    mtprof__write_input_dims(writer, view);
    if (!lean) {
        mtb_write_literal(writer, ",\"input_shapes\":");
        mtprof__write_input_shapes(writer, view);
    }
}

MT_NOINLINE const mtprof__inputs_slot *mtprof__chrome_inputs_keep(mtprof__chrome *chrome,
                                                                  const mtprof__payload *payload)
{
    const mtprof__inputs_view view = mtprof__inputs_of(chrome->model, payload);
    if (payload->inputs == 0 || view.n_scalars > MTPROF__SCALARS_KEPT) {
        return NULL;
    }
    mtprof__inputs_slot *slot = mtprof__chrome_inputs_slot(chrome, payload->inputs);
    slot->key = 0;
    slot->facts = mtprof__inputs_facts(view.words, view.n_words);
    write_inputs(mtprof__chrome_scratch(chrome), &view, slot->facts, chrome->lean);
    if (!mtprof__chrome_keep(chrome, &slot->text, MTPROF__PIECE_MOST)) {
        return NULL;
    }
    memcpy(slot->scalars, view.scalars, view.n_scalars * sizeof *view.scalars);
    slot->n_scalars = view.n_scalars;
    slot->key = payload->inputs;
    return slot;
}

uint32_t mtprof__chrome_inputs_write(mtprof__chrome *chrome, const mtprof__payload *payload)
{
    const mtprof__inputs_view view = mtprof__inputs_of(chrome->model, payload);
    uint32_t facts = mtprof__inputs_facts(view.words, view.n_words);
    write_inputs(chrome->writer, &view, facts, chrome->lean);
    return facts;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* torch's text, innermost first with ";" after each, and, if not lean, the same as our list. */
static void write_stack_text(mtb_writer *writer, const mtprof__chrome *chrome, uint32_t node)
{
    mtprof_frame frame;
    uint32_t parent = 0;
    mtb_write_literal(writer, ",\"Call stack\":\"");
    for (uint32_t i = 0, at = node; i < MTPROF__STACK_FRAMES; i++, at = parent) {
        if (at == 0 || !mtprof_model_stack(chrome->model, at, &parent, &frame)) {
            break;
        }
        mtprof__frame_write_json(writer, &frame);
        mtb_write_literal(writer, ";");
    }
    if (chrome->lean) {
        mtb_write_literal(writer, "\"");
        return;
    }
    mtb_write_literal(writer, "\",\"stack\":[");
    for (uint32_t i = 0, at = node; i < MTPROF__STACK_FRAMES; i++, at = parent) {
        if (at == 0 || !mtprof_model_stack(chrome->model, at, &parent, &frame)) {
            break;
        }
        mtb_write_text(writer, i > 0 ? ",\"" : "\"");
        mtprof__frame_write_json(writer, &frame);
        mtb_write_literal(writer, "\"");
    }
    mtb_write_literal(writer, "]");
}

static void write_stack(mtprof__chrome *chrome, uint32_t node)
{
    mtprof__stack_slot *slot =
        &chrome->stacks[(node * 0x9E3779B1u) >> 23 & (MTPROF__STACK_SLOTS - 1)];
    if (slot->key != node) {
        slot->key = 0;
        write_stack_text(mtprof__chrome_scratch(chrome), chrome, node);
        if (!mtprof__chrome_keep(chrome, &slot->text, MTPROF__STACK_MOST)) {
            write_stack_text(chrome->writer, chrome, node);
            return;
        }
        slot->key = node;
    }
    mtb_write(chrome->writer, slot->text.text, slot->text.length);
    chrome->writer->replaced += slot->text.replaced;
}

/* ---- keys of others -------------------------------------------------------------------------- */

static const mtprof_text key_texts[MTPROF__KEY_COUNT] = {
#define X(NAME, text) {text, sizeof(text) - 1},
    MTPROF__CHROME_KEYS(X)
#undef X
};

/* Memory keys are made from a device's name, so they are recognized by their ending. */
static bool is_memory_key(mtprof_text key)
{
    static const char *const endings[] = {"_memory_allocated_before", "_memory_allocated_after",
                                          "_memory_allocated_delta"};
    for (size_t i = 0; i < MT_COUNT(endings); i++) {
        if (key.length > strlen(endings[i]) && mtprof__text_ends(key, endings[i])) {
            return true;
        }
    }
    return false;
}

static bool is_taken(const void *context, mtprof_text key)
{
    const uint64_t *keys = context;
    for (unsigned i = 0; i < MTPROF__KEY_COUNT; i++) {
        if ((*keys >> i & 1) != 0 && mtprof__text_same(key_texts[i], key)) {
            return true;
        }
    }
    return is_memory_key(key);
}

/* torch's lists of numbers, which a device source can only give as text. */
static bool is_list(const mtprof_metadatum *item)
{
    return item->type == MTPROF_META_TEXT && item->text.length > 0 && item->text.bytes[0] == '[' &&
           (mtprof__text_is(item->key, "grid") || mtprof__text_is(item->key, "block") ||
            mtprof__text_is(item->key, "graph dependencies"));
}

void mtprof__chrome_metadata(mtprof__chrome *chrome, const mtprof__payload *payload, uint64_t keys)
{
    mtb_writer *writer = chrome->writer;
    for (uint32_t i = 0; i < payload->n_metadata; i++) {
        const mtprof_metadatum *item = &payload->metadata[i];
        bool skip = is_taken(&keys, item->key);
        for (uint32_t j = i > KEYS_COMPARED ? i - KEYS_COMPARED : 0; j < i && !skip; j++) {
            skip = mtprof__text_same(payload->metadata[j].key, item->key);
        }
        if (!skip) {
            mtb_write_literal(writer, ",");
            mtb_write_json(writer, item->key.bytes, item->key.length);
            mtb_write_literal(writer, ":");
            mtprof_metadatum copy = *item;
            copy.is_json = item->is_json != 0 || is_list(item);
            mtprof__json_write_metadatum(writer, &copy);
        }
    }
}

/* ---- extras ---------------------------------------------------------------------------------- */

static void write_memory(mtprof__chrome *chrome, const mtprof__payload *payload)
{
    mtb_writer *writer = chrome->writer;
    bool before = (payload->fields & MTPROF__HAS_MEMORY_BEFORE) != 0;
    bool after = (payload->fields & MTPROF__HAS_MEMORY_AFTER) != 0;
    int64_t delta = 0;
    bool overflow = __builtin_sub_overflow(payload->memory_after, payload->memory_before, &delta);
    const struct {
        bool there;
        const char *name;
        int64_t value;
    } items[] = {
        {before, "_memory_allocated_before\":", payload->memory_before},
        {after, "_memory_allocated_after\":", payload->memory_after},
        {before && after && !overflow && !chrome->lean, "_memory_allocated_delta\":", delta}};
    mtprof_device device = {{"cpu", 3}, -1};
    (void)mtprof_model_device(chrome->model, payload->memory_device, &device);
    char type[16] = "device";
    for (size_t i = 0; device.type.length < sizeof type && i <= device.type.length; i++) {
        char c = i < device.type.length ? device.type.bytes[i] : '\0';
        type[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    for (size_t i = 0; i < MT_COUNT(items); i++) {
        if (items[i].there) {
            mtb_write_literal(writer, ",\"");
            mtb_write_json_inner(writer, type, strlen(type));
            mtb_write_text(writer, items[i].name);
            mtb_write_i64(writer, items[i].value);
        }
    }
}

static void write_payload(mtprof__chrome *chrome, const mtprof__payload *payload, uint64_t *keys)
{
    mtb_writer *writer = chrome->writer;
    if ((payload->fields & MTPROF__HAS_FLOPS) != 0) {
        *keys |= MTPROF__KEY_BIT(FLOPS);
        mtb_write_member_u64(writer, "flops", payload->flops);
    }
    if ((payload->fields & MTPROF__HAS_OVERLOAD) != 0) {
        *keys |= MTPROF__KEY_BIT(OVERLOAD);
        mtb_write_member_json(writer, "overload_name", payload->overload.bytes,
                              payload->overload.length);
    }
    if ((payload->fields & MTPROF__HAS_RECORD_SCOPE) != 0 && payload->record_scope != 0) {
        *keys |= MTPROF__KEY_BIT(RECORD_SCOPE);
        mtb_write_member_u64(writer, "record_scope", payload->record_scope);
    }
    if ((payload->fields & MTPROF__HAS_MODULE) != 0) {
        *keys |= MTPROF__KEY_BIT(MODULE);
        mtb_write_member_json(writer, "Module Hierarchy", payload->module.bytes,
                              payload->module.length);
    }
    if ((payload->fields & (MTPROF__HAS_MEMORY_BEFORE | MTPROF__HAS_MEMORY_AFTER)) != 0) {
        write_memory(chrome, payload);
    }
    if ((payload->fields & MTPROF__HAS_STACK) != 0 && payload->stack != 0) {
        *keys |= MTPROF__KEY_BIT(CALL_STACK) | MTPROF__KEY_BIT(STACK);
        write_stack(chrome, payload->stack);
    }
}

void mtprof__chrome_recorded(mtprof__chrome *chrome, const mtprof__event *event)
{
    int64_t start = mtprof__chrome_since_base(chrome, event->start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, event->end_ns);
    mtb_write_literal(chrome->writer, ",\"recorded_ts\":");
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_member_thousandths(chrome->writer, "recorded_dur", end > start ? end - start : 0);
}

void mtprof__chrome_extras(mtprof__chrome *chrome, const mtprof__event *event, uint32_t facts,
                           uint64_t keys)
{
    mtb_writer *writer = chrome->writer;
    const mtprof__payload *payload = event->payload;
    if (payload != NULL) {
        write_payload(chrome, payload, &keys);
    }
    if (mtprof__chrome_needs_parent(event)) {
        keys |= MTPROF__KEY_BIT(PARENT_ID);
        mtb_write_member_u64(writer, "parent_id", event->parent);
    }
    if ((event->flags & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP)) != 0) {
        keys |= MTPROF__KEY_BIT(ASYNC);
        mtb_write_literal(writer, ",\"async\":1");
    }
    if (mtprof__chrome_is_moved(event)) {
        keys |= MTPROF__KEY_BIT(RECORDED_TS) | MTPROF__KEY_BIT(RECORDED_DUR);
        mtprof__chrome_recorded(chrome, event);
    }
    if ((event->flags & MTPROF_EVENT_FLAG_TRUNCATED) != 0) {
        keys |= MTPROF__KEY_BIT(TRUNCATED);
        mtb_write_literal(writer, ",\"truncated\":1");
    }
    if (payload == NULL) {
        return;
    }
    if ((facts & MTPROF__INPUTS_KEYWORDS) != 0) {
        mtprof__inputs_view view = mtprof__inputs_of(chrome->model, payload);
        mtprof__write_keyword_inputs(writer, &view, is_taken, &keys);
    }
    if ((payload->fields & MTPROF__HAS_METADATA) != 0) {
        mtprof__chrome_metadata(chrome, payload, keys);
    }
}
