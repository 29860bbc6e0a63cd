/* SPDX-License-Identifier: Apache-2.0
 *
 * torch's export_stacks: a line for each event that has a call stack and at least a microsecond of
 * the metric, in order of start: frames from the outermost inwards, joined by ";", a blank, whole
 * microseconds. Events are not merged, and the event's own name is not a frame.
 *
 * The order, and the device's time, are the model's: this exporter makes the columns.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/export/text/export_text.h"
#include "mtprof/model/text/stack_text.h"

typedef struct stacks_export {
    mtprof__export_job *job;
    mtprof_frame *frames;
    char *text; /* of one frame */
    size_t text_capacity;
} stacks_export;

static int write_frame(stacks_export *x, const mtprof_frame *frame)
{
    size_t length = mtprof__frame_text(frame, x->text, x->text_capacity);
    if (length > x->text_capacity) {
        if (!mtb_grow((void **)&x->text, &x->text_capacity, length, 1)) {
            return mtb_fail(MTPROF_ENOMEM, "export stacks: no memory for a frame of %zu bytes",
                            length);
        }
        (void)mtprof__frame_text(frame, x->text, x->text_capacity);
    }
    mtprof__write_folded(x->job->writer, x->text, length);
    return 0;
}

static int write_line(stacks_export *x, uint32_t stack, int64_t metric_ns)
{
    mtb_writer *writer = x->job->writer;
    uint32_t n = mtprof__stack_frames_counted(x->job->model, stack, x->frames, MTPROF__STACK_FRAMES,
                                              &x->job->report.left_out);
    if (n == 0) {
        return 0;
    }
    for (uint32_t i = n; i-- > 0;) {
        MT_TRY(write_frame(x, &x->frames[i]));
        mtb_write(writer, ";", i > 0);
    }
    mtb_write_literal(writer, " ");
    mtb_write_i64(writer, metric_ns / 1000);
    mtb_write_literal(writer, "\n");
    x->job->report.events++;
    return 0;
}

static int write_lines(stacks_export *x, const mtprof_column *stacks, const mtprof_column *metric)
{
    const uint32_t *stack = stacks->data;
    const int64_t *ns = metric->data;
    for (uint64_t i = 0; i < stacks->count && i < metric->count; i++) {
        if (stack[i] != 0 && ns[i] >= 1000) {
            MT_TRY(write_line(x, stack[i], ns[i]));
        }
        MT_TRY(mtprof__export_tick(x->job, NULL));
    }
    return 0;
}

int mtprof__export_stacks(mtprof__export_job *job)
{
    mtprof_column stacks, metric;
    bool device = false;
    MT_TRY(mtprof__export_metric(job, &device));
    if (job->info.wants == 0) {
        return 0; /* no window was recorded, so no stacks are missing */
    }
    if ((job->info.wants & MTPROF_WANT_STACKS) == 0) {
        return mtb_fail(MTPROF_ENOTSUP, "export_stacks() requires with_stack=True");
    }
    MT_TRY(mtprof_model_get_column(
        job->model, device ? MTPROF_COLUMN_SELF_DEVICE_NS : MTPROF_COLUMN_SELF_NS, &metric));
    MT_TRY(mtprof_model_get_column(job->model, MTPROF_COLUMN_STACK, &stacks));
    if (stacks.data == NULL) {
        return 0; /* requested, but no event has one */
    }
    stacks_export x = {.job = job, .frames = mtb_calloc(MTPROF__STACK_FRAMES, sizeof *x.frames)};
    int status = x.frames == NULL ? mtb_fail(MTPROF_ENOMEM, "export stacks: no memory")
                                  : write_lines(&x, &stacks, &metric);
    mtb_free(x.frames);
    mtb_free(x.text);
    return status;
}
