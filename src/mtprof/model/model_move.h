/* SPDX-License-Identifier: Apache-2.0
 *
 * Models whose times are on another clock.
 */
#ifndef MTPROF_MODEL_MODEL_MOVE_H
#define MTPROF_MODEL_MODEL_MOVE_H

#include "mtprof/read/clock_map.h"

#include <mtprof/model.h>

/* A model of a .mtt file, as mtprof_model_open(). Fails with EFORMAT for other files. */
int mtprof__model_open_moved(const char *path, const mtprof__clock_move *move, mtprof_model **out);

/* Moves another tool's trace, which nobody reads yet. Its times keep their order; self times are
 * those of the file. */
void mtprof__model_move_foreign(mtprof_model *model, const mtprof__clock_move *move);

#endif /* MTPROF_MODEL_MODEL_MOVE_H */
