/* SPDX-License-Identifier: Apache-2.0
 *
 * Averages as their users see them: rows by number, in an order that can be changed.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "base/struct_size.h"
#include "mtprof/analyze/averages/averages_impl.h"
#include "mtprof/model/text/stack_text.h"

#include <mtprof/status.h>

#include <string.h>

/* ---- making and freeing ---------------------------------------------------------------------- */

static int make_order(mtprof_averages *averages)
{
    averages->order = mtb_calloc((size_t)averages->n_rows + 1, sizeof averages->order[0]);
    if (averages->order == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for %u rows", averages->n_rows);
    }
    for (uint32_t i = 0; i < averages->n_rows; i++) {
        averages->order[i] = i;
    }
    return 0;
}

static int fill_groups(mtprof_averages *averages)
{
    MT_TRY(mtprof__grouper_run(&averages->grouper));
    averages->n_rows = (uint32_t)(averages->grouper.n_groups - 1);
    return make_order(averages);
}

/* One event as a row, with the text of its shapes: reading a row changes nothing then. */
static int add_event(mtprof_averages *averages, size_t event)
{
    const uint32_t *inputs = averages->grouper.columns.inputs;
    uint32_t number;
    averages->events[averages->n_rows++] = (uint32_t)event;
    return inputs != NULL ? mtprof__key_shapes(&averages->grouper, inputs[event], &number) : 0;
}

static int add_events(mtprof_averages *averages, size_t first, size_t n)
{
    uint32_t rows[MTPROF__GROUP_BLOCK];
    MT_TRY(mtprof__grouper_rows(&averages->grouper, first, n, true, rows));
    for (size_t i = 0; i < n; i++) {
        if (rows[i] != 0) {
            MT_TRY(add_event(averages, first + i));
        }
    }
    return 0;
}

static int fill_events(mtprof_averages *averages)
{
    size_t n_events = averages->grouper.columns.n;
    averages->events = mtb_calloc(n_events + 1, sizeof averages->events[0]);
    if (averages->events == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for %zu events", n_events);
    }
    for (size_t first = 0; first < n_events; first += MTPROF__GROUP_BLOCK) {
        size_t rest = n_events - first;
        MT_TRY(mtprof__grouper_ask(&averages->grouper, first));
        MT_TRY(
            add_events(averages, first, rest < MTPROF__GROUP_BLOCK ? rest : MTPROF__GROUP_BLOCK));
    }
    return make_order(averages);
}

static int fill_given(mtprof_averages *averages, const mtprof_given_rows *given)
{
    averages->is_given = true;
    averages->given = *given;
    averages->n_rows = given->count;
    return make_order(averages);
}

int mtprof__averages_make(mtprof_model *model, const mtprof_averages_options *options,
                          const mtprof_given_rows *given, bool is_events, mtprof_averages **out)
{
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "averages: no place for the result");
    }
    *out = NULL;
    mtprof_averages *averages = mtb_calloc(1, sizeof *averages);
    if (averages == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for a list");
    }
    mtb_lock_init(&averages->lock, MTB_RANK_AVERAGES);
    averages->is_events = is_events;
    averages->sorted_row = UINT32_MAX;
    int status = given != NULL ? fill_given(averages, given)
                               : mtprof__grouper_init(&averages->grouper, model, options);
    if (status == 0 && given == NULL) {
        status = is_events ? fill_events(averages) : fill_groups(averages);
    }
    if (status != 0) {
        mtprof_averages_free(averages);
        return status;
    }
    *out = averages;
    return 0;
}

mtprof_status mtprof_averages_new(mtprof_model *model, const mtprof_averages_options *options,
                                  mtprof_averages **out)
{
    return mtprof__averages_make(model, options, NULL, false, out);
}

mtprof_status mtprof_averages_from_events(mtprof_model *model,
                                          const mtprof_averages_options *options,
                                          mtprof_averages **out)
{
    return mtprof__averages_make(model, options, NULL, true, out);
}

void mtprof_averages_free(mtprof_averages *averages)
{
    if (averages == NULL) {
        return;
    }
    mtprof__grouper_fini(&averages->grouper);
    mtb_free(averages->events);
    mtb_free(averages->order);
    mtb_free(averages->row_starts);
    mtb_free(averages->row_events);
    mtb_free(averages->sorted);
    mtb_lock_fini(&averages->lock);
    mtb_free(averages);
}

mtprof_model *mtprof_averages_model(const mtprof_averages *averages)
{
    return averages != NULL ? averages->grouper.model : NULL;
}

uint32_t mtprof_averages_count(const mtprof_averages *averages)
{
    return averages != NULL ? averages->n_rows : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static mtprof_text name_plus_1(const mtprof__grouper *grouper, uint32_t number)
{
    return number != 0 ? mtprof_model_name(grouper->model, number - 1) : (mtprof_text){"", 0};
}

static mtprof_text device_type(const mtprof_model *model, uint32_t number)
{
    mtprof_device device = {{"CPU", 3}, -1};
    (void)mtprof_model_device(model, number, &device);
    return device.type;
}

/* What the first event of a row says, whichever other events the row has. */
static void fill_identity(const mtprof__grouper *grouper, size_t event, mtprof_row *row)
{
    const mtprof__source_columns *c = &grouper->columns;
    uint32_t kind = c->kind[event] & (MTPROF__KINDS - 1);
    const mtprof__event_class *known = &grouper->classes[grouper->class_of[kind][c->device[event]]];
    *row = (mtprof_row){.struct_size = sizeof *row, .step = INT32_MIN, .track = UINT32_MAX};
    row->overload = row->input_shapes = row->module = (mtprof_text){"", 0};
    row->kind = (uint8_t)kind;
    row->device = known->device;
    row->device_type = device_type(grouper->model, known->device);
    row->is_async = (c->flags[event] & MTPROF_EVENT_FLAG_ASYNC) != 0;
    row->is_user_annotation = known->is_annotation;
    row->record_scope = c->record_scope != NULL ? c->record_scope[event] : 0;
    if (row->record_scope == 0 &&
        (row->kind == MTPROF_EVENT_KIND_SCOPE || row->kind == MTPROF_EVENT_KIND_STEP)) {
        row->record_scope = MTPROF_RECORD_SCOPE_USER;
    }
    row->first_event = (uint32_t)event;
    row->has_parent = known->device_type == 0 && c->parent[event] != MTPROF_NO_EVENT;
    row->node_id = -1;
}

static void fill_group(const mtprof__grouper *grouper, uint32_t number, mtprof_row *row)
{
    const mtprof__group *group = &grouper->groups[number];
    const mtprof__base *base = &grouper->bases[group->base];
    fill_identity(grouper, group->first_event, row);
    row->name = base->name;
    row->key = base->key;
    row->count = group->count;
    row->unrecorded = row->device == 0 ? mtprof_model_unrecorded(grouper->model, base->name) : 0;
    row->cpu_ns = group->cpu_ns;
    row->self_cpu_ns = group->self_ns;
    row->loose_ns = group->loose_ns;
    row->device_ns = group->device_ns;
    row->self_device_ns = group->self_device_ns;
    row->cpu_memory = group->cpu_memory;
    row->self_cpu_memory = group->self_cpu_memory;
    row->device_memory = group->device_memory;
    row->self_device_memory = group->self_device_memory;
    row->flops = group->flops;
    row->min_ns = group->min_ns;
    row->max_ns = group->max_ns;
    if (!grouper->has_keys) {
        return;
    }
    const mtprof__group_key *key = &grouper->keys[number];
    row->input_shapes = mtprof__key_shapes_text(grouper, key->shapes);
    row->overload = name_plus_1(grouper, key->overload);
    row->module = name_plus_1(grouper, key->module);
    if (key->stack != 0) {
        row->stack = grouper->stacks[key->stack - 1];
        row->stack_n = grouper->options.stack_n;
    }
    if ((grouper->options.group & MTPROF_GROUP_STEP) != 0) {
        row->step = key->step;
    }
    if ((grouper->options.group & MTPROF_GROUP_THREAD) != 0) {
        row->track = key->track;
    }
}

static int64_t number_of(const int64_t *column, size_t event)
{
    return column != NULL ? column[event] : 0;
}

static void fill_event_texts(const mtprof__grouper *grouper, size_t event, mtprof_row *row)
{
    const mtprof__source_columns *c = &grouper->columns;
    row->name = mtprof_model_name_key(grouper->model, c->name[event]);
    row->key = mtprof_model_name(grouper->model, row->name);
    if (row->kind == MTPROF_EVENT_KIND_MEMORY || row->kind == MTPROF_EVENT_KIND_OUT_OF_MEMORY) {
        row->name = UINT32_MAX;
        row->key = row->kind == MTPROF_EVENT_KIND_MEMORY ? (mtprof_text){"[memory]", 8}
                                                         : (mtprof_text){"[OutOfMemory]", 13};
    }
    if (c->inputs != NULL) {
        row->input_shapes = mtprof__key_shapes_text(grouper, grouper->shapes_of[c->inputs[event]]);
    }
    row->overload = name_plus_1(grouper, c->overload != NULL ? c->overload[event] : 0);
    row->module = name_plus_1(grouper, c->module != NULL ? c->module[event] : 0);
    if (c->stack != NULL && c->stack[event] != 0) {
        row->stack = c->stack[event];
        row->stack_n = MTPROF__STACK_FRAMES;
    }
}

static void fill_event(const mtprof__grouper *grouper, size_t event, mtprof_row *row)
{
    const mtprof__source_columns *c = &grouper->columns;
    int64_t duration = mtb_sub_sat(c->end_ns[event], c->start_ns[event]);
    fill_identity(grouper, event, row);
    fill_event_texts(grouper, event, row);
    row->count = 1;
    row->min_ns = row->max_ns = duration;
    if (row->device != 0) {
        row->device_ns = row->self_device_ns = duration;
    } else {
        row->cpu_ns = duration;
        row->self_cpu_ns = c->self_ns[event];
        row->loose_ns = mtprof__is_loose(c->flags[event]) ? duration : 0;
        row->device_ns = number_of(c->device_ns, event);
        row->self_device_ns = number_of(c->self_device_ns, event);
    }
    row->cpu_memory = number_of(c->cpu_memory, event);
    row->self_cpu_memory = number_of(c->self_cpu_memory, event);
    row->device_memory = number_of(c->device_memory, event);
    row->self_device_memory = number_of(c->self_device_memory, event);
    row->flops = c->flops != NULL ? c->flops[event] : 0;
}

void mtprof__averages_fill(const mtprof_averages *averages, uint32_t row, mtprof_row *out)
{
    if (averages->is_given) {
        mtprof__given_fill(&averages->given, row, out);
    } else if (averages->is_events) {
        fill_event(&averages->grouper, averages->events[row], out);
    } else {
        fill_group(&averages->grouper, row + 1, out);
    }
}

/* Writes as much of the row as the caller's struct has room for. */
static int hand_out(const mtprof_row *row, mtprof_row *out)
{
    if (out->struct_size < 2 * sizeof(uint32_t)) {
        return mtb_fail(MTPROF_EINVAL, "averages_row: struct_size is %u", out->struct_size);
    }
    mtb_write_struct(out, row);
    return 0;
}

mtprof_status mtprof_averages_get_row(const mtprof_averages *averages, uint32_t index,
                                      mtprof_row *row)
{
    mtprof_row whole;
    if (averages == NULL || row == NULL || index >= averages->n_rows) {
        return mtb_fail(MTPROF_EINVAL, "averages_row: no row %u of %u", (unsigned)index,
                        (unsigned)mtprof_averages_count(averages));
    }
    mtprof__averages_fill(averages, averages->order[index], &whole);
    return hand_out(&whole, row);
}

mtprof_status mtprof_averages_get_total(const mtprof_averages *averages, mtprof_row *row)
{
    mtprof__averages_view view;
    mtprof__table_input input;
    mtprof_row whole;
    if (averages == NULL || row == NULL) {
        return mtb_fail(MTPROF_EINVAL, "averages_total: no %s", averages == NULL ? "list" : "row");
    }
    int status = mtprof__averages_view_init(&view, averages, &input);
    if (status == 0) {
        status = mtprof__table_total(&input, &whole);
    }
    mtprof__averages_view_fini(&view);
    return status == 0 ? hand_out(&whole, row) : status;
}
