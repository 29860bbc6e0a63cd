/* SPDX-License-Identifier: Apache-2.0
 *
 * A model whose times are on another clock. A trace of ours gets it where ticks become nanoseconds,
 * so that event streams and columns both have it; of another tool's file the times are changed when
 * it has been read.
 */
#include "mtprof/model/model_move.h"

#include "base/fail.h"
#include "mtprof/model/events/event.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/read/reader_impl.h"

int mtprof__model_open_moved(const char *path, const mtprof__clock_move *move, mtprof_model **out)
{
    mtprof_reader *reader = NULL;
    *out = NULL;
    MT_TRY(mtprof_reader_open(path, &reader));
    mtprof__clock_map_move(&reader->clock, move);
    int status = mtprof_model_take_reader(reader, NULL, out);
    if (status != MTPROF_OK) {
        mtprof_reader_close(reader);
    }
    return status;
}

static void move_column(int64_t *times, size_t n, const mtprof__clock_move *move)
{
    for (size_t i = 0; i < n; i++) {
        times[i] = mtprof__clock_move_ns(move, times[i]);
    }
}

void mtprof__model_move_foreign(mtprof_model *model, const mtprof__clock_move *move)
{
    mtprof_model_info *info = &model->info;
    move_column(model->columns.start_ns, model->columns.n, move);
    move_column(model->columns.end_ns, model->columns.n, move);
    move_column(&info->start_ns, 1, move);
    move_column(&info->end_ns, 1, move);
    for (size_t i = 0; i < model->n_points; i++) {
        mtprof__event *point = &model->points[i];
        int64_t *times[] = {&point->start_ns, &point->end_ns, &point->shown_start_ns,
                            &point->shown_end_ns};
        for (size_t k = 0; k < MT_COUNT(times); k++) {
            move_column(times[k], 1, move);
        }
    }
    for (size_t i = 0; i < model->n_steps; i++) {
        move_column(&model->steps[i].start_ns, 1, move);
    }
    info->real_offset_ns = move->real_offset_ns;
}
