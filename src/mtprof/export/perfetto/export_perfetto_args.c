/* SPDX-License-Identifier: Apache-2.0
 *
 * What was recorded with an event, as debug annotations of its slice. Stacks and input lists that
 * have an id in the trace are written once a lane and then referred to.
 */
#include "base/fail.h"
#include "mtprof/export/perfetto/export_perfetto_impl.h"
#include "mtprof/model/text/inputs_text.h"
#include "mtprof/model/text/stack_text.h"

/* Ids of a lane's interned strings. */
enum string_kind {
    STRING_STACK,
    STRING_DIMS,
    STRING_TYPES,
    STRING_COUNT
};

static uint64_t string_id(enum string_kind kind, uint32_t number)
{
    return (uint64_t)number * STRING_COUNT + (uint64_t)kind;
}

void mtprof__annotate_u64(mtprof__pb *pb, uint32_t annotation, uint64_t value)
{
    size_t start = mtprof__pb_begin(pb, PF_EVENT_ANNOTATION);
    mtprof__pb_u64(pb, PF_ANNOTATION_NAME_IID, annotation);
    mtprof__pb_u64(pb, PF_ANNOTATION_UINT, value);
    mtprof__pb_end(pb, start);
}

void mtprof__annotate_i64(mtprof__pb *pb, uint32_t annotation, int64_t value)
{
    size_t start = mtprof__pb_begin(pb, PF_EVENT_ANNOTATION);
    mtprof__pb_u64(pb, PF_ANNOTATION_NAME_IID, annotation);
    mtprof__pb_u64(pb, PF_ANNOTATION_INT, (uint64_t)value);
    mtprof__pb_end(pb, start);
}

static void add_text(mtprof__perfetto *x, uint32_t annotation, const char *text, size_t length)
{
    size_t start = mtprof__pb_begin(&x->pb, PF_EVENT_ANNOTATION);
    mtprof__pb_u64(&x->pb, PF_ANNOTATION_NAME_IID, annotation);
    mtprof__pb_text(&x->pb, PF_ANNOTATION_STRING, text, length, &x->job->writer->replaced);
    mtprof__pb_end(&x->pb, start);
}

MT_INLINE void add_value(mtprof__perfetto *x, const mtprof_metadatum *item)
{
    switch (item->type) {
    case MTPROF_META_INT: mtprof__pb_u64(&x->pb, PF_ANNOTATION_INT, item->value); break;
    case MTPROF_META_UINT: mtprof__pb_u64(&x->pb, PF_ANNOTATION_UINT, item->value); break;
    case MTPROF_META_REAL: mtprof__pb_fixed64(&x->pb, PF_ANNOTATION_DOUBLE, item->value); break;
    case MTPROF_META_BOOL: mtprof__pb_u64(&x->pb, PF_ANNOTATION_BOOL, item->value != 0); break;
    default:
        mtprof__pb_text(&x->pb, PF_ANNOTATION_STRING, item->text.bytes, item->text.length,
                        &x->job->writer->replaced);
        break;
    }
}

void mtprof__annotate_metadata(mtprof__perfetto *x, const mtprof_metadatum *item)
{
    size_t start = mtprof__pb_begin(&x->pb, PF_EVENT_ANNOTATION);
    mtprof__pb_text(&x->pb, PF_ANNOTATION_NAME, item->key.bytes, item->key.length,
                    &x->job->writer->replaced);
    add_value(x, item);
    mtprof__pb_end(&x->pb, start);
}

/* A field of the payload that is a number or a text, where it has it. */
MT_INLINE void add_field(mtprof__perfetto *x, const mtprof__payload *payload, uint32_t field,
                         uint32_t annotation)
{
    if ((payload->fields & field) != 0) {
        const mtprof_metadatum item = mtprof__payload_value(payload, field);
        size_t start = mtprof__pb_begin(&x->pb, PF_EVENT_ANNOTATION);
        mtprof__pb_u64(&x->pb, PF_ANNOTATION_NAME_IID, annotation);
        add_value(x, &item);
        mtprof__pb_end(&x->pb, start);
    }
}

/* ---- texts that are made --------------------------------------------------------------------- */

/* Puts a text into x->text. Fails with ENOMEM. */
static int make_text(mtprof__perfetto *x, enum string_kind kind, const mtprof__payload *payload)
{
    mtprof__inputs_view view = mtprof__inputs_of(x->job->model, payload);
    mtprof__pb_clear(&x->text);
    switch (kind) {
    case STRING_STACK:
        x->job->report.left_out +=
            !mtprof__stack_write(&x->text_writer, x->job->model, payload->stack);
        break;
    case STRING_DIMS: mtprof__write_input_dims(&x->text_writer, &view); break;
    case STRING_TYPES: mtprof__write_input_types(&x->text_writer, &view); break;
    default: mtprof__write_concrete_inputs(&x->text_writer, &view); break;
    }
    mtb_writer_flush(&x->text_writer);
    if (x->text_writer.error != 0 || x->text.failed) {
        return mtb_fail(MTPROF_ENOMEM, "export perfetto: no memory for a text");
    }
    return 0;
}

static int intern_text(mtprof__perfetto *x, mtprof__lane *lane, enum string_kind kind,
                       uint32_t number, const mtprof__payload *payload)
{
    uint64_t id = string_id(kind, number);
    bool fits = false;
    if (number == 0 || mtprof__seen_has(&lane->strings, id) ||
        mtprof__seen_add(x, &lane->strings, id, &fits) || !fits) {
        return 0;
    }
    MT_TRY(make_text(x, kind, payload));
    return mtprof__lane_intern(x, lane, PF_INTERNED_STRING, id + 1, x->text.bytes, x->text.used);
}

int mtprof__payload_intern(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__payload *payload)
{
    if ((payload->fields & MTPROF__HAS_STACK) != 0) {
        MT_TRY(intern_text(x, lane, STRING_STACK, payload->stack, payload));
    }
    if ((payload->fields & MTPROF__HAS_INPUTS) != 0) {
        MT_TRY(intern_text(x, lane, STRING_DIMS, payload->inputs, payload));
        MT_TRY(intern_text(x, lane, STRING_TYPES, payload->inputs, payload));
    }
    return 0;
}

/* By id where the lane knows it, else in full. */
static void annotate_made(mtprof__perfetto *x, const mtprof__lane *lane, enum string_kind kind,
                          uint32_t number, const mtprof__payload *payload)
{
    static const uint32_t names[] = {
        [STRING_STACK] = MTPROF__ANNOTATION_STACK,
        [STRING_DIMS] = MTPROF__ANNOTATION_INPUT_DIMS,
        [STRING_TYPES] = MTPROF__ANNOTATION_INPUT_TYPES,
        [STRING_COUNT] = MTPROF__ANNOTATION_CONCRETE_INPUTS,
    };
    uint64_t id = string_id(kind, number);
    if (number != 0 && mtprof__seen_has(&lane->strings, id)) {
        size_t start = mtprof__pb_begin(&x->pb, PF_EVENT_ANNOTATION);
        mtprof__pb_u64(&x->pb, PF_ANNOTATION_NAME_IID, names[kind]);
        mtprof__pb_u64(&x->pb, PF_ANNOTATION_STRING_IID, id + 1);
        mtprof__pb_end(&x->pb, start);
    } else if (make_text(x, kind, payload) == 0) {
        add_text(x, names[kind], x->text.bytes, x->text.used);
    } else {
        x->pb.failed = true;
    }
}

void mtprof__annotate_payload(mtprof__perfetto *x, const mtprof__lane *lane,
                              const mtprof__payload *p)
{
    uint32_t has = p->fields;
    if ((has & MTPROF__HAS_INPUTS) != 0) {
        annotate_made(x, lane, STRING_DIMS, p->inputs, p);
        annotate_made(x, lane, STRING_TYPES, p->inputs, p);
    }
    if ((has & MTPROF__HAS_SCALARS) != 0 && (has & MTPROF__HAS_INPUTS) != 0) {
        annotate_made(x, lane, STRING_COUNT, 0, p);
    }
    if ((has & MTPROF__HAS_STACK) != 0) {
        annotate_made(x, lane, STRING_STACK, p->stack, p);
    }
    add_field(x, p, MTPROF__HAS_SEQUENCE, MTPROF__ANNOTATION_SEQUENCE);
    add_field(x, p, MTPROF__HAS_FORWARD_THREAD, MTPROF__ANNOTATION_FORWARD_THREAD);
    add_field(x, p, MTPROF__HAS_OVERLOAD, MTPROF__ANNOTATION_OVERLOAD);
    add_field(x, p, MTPROF__HAS_RECORD_SCOPE, MTPROF__ANNOTATION_RECORD_SCOPE);
    add_field(x, p, MTPROF__HAS_FLOPS, MTPROF__ANNOTATION_FLOPS);
    add_field(x, p, MTPROF__HAS_MODULE, MTPROF__ANNOTATION_MODULE);
    add_field(x, p, MTPROF__HAS_FOREIGN_ID, MTPROF__ANNOTATION_FOREIGN_ID);
    add_field(x, p, MTPROF__HAS_MEMORY_BEFORE, MTPROF__ANNOTATION_MEMORY_BEFORE);
}

void mtprof__annotate_end(mtprof__perfetto *x, const mtprof__payload *p)
{
    add_field(x, p, MTPROF__HAS_MEMORY_AFTER, MTPROF__ANNOTATION_MEMORY_AFTER);
    for (uint32_t i = 0; (p->fields & MTPROF__HAS_METADATA) != 0 && i < p->n_metadata; i++) {
        mtprof__annotate_metadata(x, &p->metadata[i]);
    }
}
