/* SPDX-License-Identifier: Apache-2.0
 *
 * Averages as an input of tables, and what needs that: sorting and writing.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/analyze/averages/averages_impl.h"
#include "mtprof/model/text/stack_text.h"

#include <mtprof/format.h>
#include <mtprof/status.h>

#include <errno.h>
#include <string.h>

/* ---- rows by number -------------------------------------------------------------------------- */

static int view_row(void *context, uint32_t index, mtprof_row *row)
{
    const mtprof__averages_view *view = context;
    mtprof__averages_fill(view->averages, view->averages->order[index], row);
    return 0;
}

static int view_quantile(void *context, uint32_t index, double q, int64_t *ns)
{
    const mtprof__averages_view *view = context;
    return mtprof_averages_get_quantile(view->averages, index, q, ns);
}

/* All frames one after the other in one buffer; the texts are set once it no longer moves. */
static int render_frames(mtprof__averages_view *view, uint32_t n)
{
    size_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t length = mtprof__frame_text(&view->frames[i], NULL, 0);
        void *block = view->bytes;
        if (!mtb_grow(&block, &view->bytes_capacity, used + length + 1, 1)) {
            return mtb_fail(MTPROF_ENOMEM, "averages: no memory for a frame of %zu bytes", length);
        }
        view->bytes = block;
        mtprof__frame_text(&view->frames[i], view->bytes + used, length);
        view->bytes[used + length] = '\0';
        view->texts[i].length = length;
        used += length + 1;
    }
    used = 0;
    for (uint32_t i = 0; i < n; i++) {
        view->texts[i].bytes = view->bytes + used;
        used += view->texts[i].length + 1;
    }
    return 0;
}

/* The frames of a given row are there already; a stack that reaches past them is cut. */
static int view_given_stack(void *context, const mtprof_row *row, const mtprof_text **frames,
                            uint32_t *n)
{
    const mtprof__averages_view *view = context;
    const mtprof_given_rows *given = &view->averages->given;
    bool has = row->stack != 0 && row->stack <= given->n_frames;
    uint32_t rest = has ? given->n_frames - row->stack + 1 : 0;
    *frames = has ? given->frames + row->stack - 1 : NULL;
    *n = row->stack_n < rest ? row->stack_n : rest;
    return 0;
}

static int view_stack(void *context, const mtprof_row *row, const mtprof_text **frames, uint32_t *n)
{
    mtprof__averages_view *view = context;
    *n = 0;
    *frames = NULL;
    if (row->stack == 0) {
        return 0;
    }
    if (view->frames == NULL) {
        view->frames = mtb_calloc(MTPROF__STACK_FRAMES, sizeof view->frames[0]);
        view->texts = mtb_calloc(MTPROF__STACK_FRAMES, sizeof view->texts[0]);
    }
    if (view->frames == NULL || view->texts == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for %d frames", MTPROF__STACK_FRAMES);
    }
    *n = mtprof__stack_frames(view->averages->grouper.model, row->stack, view->frames,
                              row->stack_n < MTPROF__STACK_FRAMES ? row->stack_n
                                                                  : MTPROF__STACK_FRAMES);
    *frames = view->texts;
    return render_frames(view, *n);
}

static void view_given(mtprof__averages_view *view, const mtprof_given_rows *given,
                       mtprof__table_input *input)
{
    input->stack = view_given_stack;
    input->device = given->device_type;
    input->memory = given->memory != 0;
    input->flops = given->flops != 0;
    if (given->health != NULL) {
        mtb_read_struct(&view->health, given->health);
    } else {
        input->health = NULL;
    }
}

int mtprof__averages_view_init(mtprof__averages_view *view, const mtprof_averages *averages,
                               mtprof__table_input *input)
{
    const mtprof__grouper *grouper = &averages->grouper;
    const mtprof__source_columns *c = &grouper->columns;
    mtprof_model_info info = {.struct_size = sizeof info};
    *view = (mtprof__averages_view){.averages = (mtprof_averages *)(uintptr_t)averages};
    *input = (mtprof__table_input){
        .n_rows = averages->n_rows,
        .context = view,
        .row = view_row,
        .events = averages->is_events,
        .health = &view->health,
    };
    if (averages->is_given) {
        view_given(view, &averages->given, input);
        return 0;
    }
    view->health.struct_size = sizeof view->health;
    MT_TRY(mtprof_model_get_info(grouper->model, &info));
    MT_TRY(mtprof_model_get_health(grouper->model, &view->health));
    input->stack = view_stack;
    input->quantile = view_quantile;
    input->model = grouper->model;
    input->device = info.device_type;
    input->memory = (info.wants & (MTPROF_WANT_MEMORY | MTPROF_WANT_ALLOCS)) != 0 ||
                    c->self_cpu_memory != NULL || c->self_device_memory != NULL;
    input->flops = (info.wants & MTPROF_WANT_FLOPS) != 0 || c->flops != NULL;
    return 0;
}

void mtprof__averages_view_fini(mtprof__averages_view *view)
{
    mtb_free(view->frames);
    mtb_free(view->texts);
    mtb_free(view->bytes);
    *view = (mtprof__averages_view){0};
}

/* ---- sorting --------------------------------------------------------------------------------- */

static int sort_by(mtprof_averages *averages, const mtprof__table_input *input, const char *key)
{
    size_t n = averages->n_rows;
    uint32_t *order = mtb_calloc(n + 1, sizeof order[0]);
    if (order == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages_sort: no memory for %zu rows", n);
    }
    int status = mtprof__table_order(input, key, order);
    if (status == 0) {
        for (size_t i = 0; i < n; i++) {
            order[i] = averages->order[order[i]]; /* from places in the list to rows */
        }
        memcpy(averages->order, order, n * sizeof order[0]);
    }
    mtb_free(order);
    return status;
}

mtprof_status mtprof_averages_sort(mtprof_averages *averages, const char *key)
{
    mtprof__averages_view view;
    mtprof__table_input input;
    if (averages == NULL) {
        return mtb_fail(MTPROF_EINVAL, "averages_sort: no list");
    }
    if (key == NULL) {
        for (uint32_t i = 0; i < averages->n_rows; i++) {
            averages->order[i] = i;
        }
        return 0;
    }
    int status = mtprof__averages_view_init(&view, averages, &input);
    if (status == 0) {
        status = sort_by(averages, &input, key);
    }
    mtprof__averages_view_fini(&view);
    return status;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int finish(mtb_writer *writer, int status)
{
    int error = mtb_writer_finish(writer);
    if (status != 0 || error == 0) {
        return status;
    }
    if (error == ENOMEM) {
        return mtb_fail(MTPROF_ENOMEM, "averages_table: no memory");
    }
    return mtb_fail_errno(error == ENOSPC ? MTPROF_ENOSPC : MTPROF_EIO, error,
                          "averages_table: the output did not take the text");
}

mtprof_status mtprof_averages_table(mtprof_averages *averages, const mtprof_table_options *options,
                                    const mtprof_output *output)
{
    mtprof__averages_view view;
    mtprof__table_input input;
    mtb_writer writer;
    if (averages == NULL || output == NULL || output->struct_size < sizeof *output ||
        output->write == NULL) {
        return mtb_fail(MTPROF_EINVAL, "averages_table: no %s",
                        averages == NULL ? "list" : "output to write to");
    }
    int status = mtprof__averages_view_init(&view, averages, &input);
    if (status == 0) {
        if (mtb_writer_init(&writer, output->write, output->context)) {
            status = mtprof__table_write(&input, options, &writer);
        }
        status = finish(&writer, status);
    }
    mtprof__averages_view_fini(&view);
    return status;
}
