/* SPDX-License-Identifier: Apache-2.0
 *
 * What a native model knows before it reads events.
 */
#ifndef MTPROF_MODEL_PREPARE_H
#define MTPROF_MODEL_PREPARE_H

#include "mtprof/model/model_impl.h"

/* Epochs, steps, info, metadata of the trace. Fails with ENOMEM. */
int mtprof__model_prepare(mtprof_model *model);

/* The first correlation id that no closed window of the trace has reserved. */
uint64_t mtprof__model_free_id(const mtprof_model *model);

/* The device that the recorder calls `number` in memory records (0 = host). Fails with ENOMEM. */
int mtprof__model_device(mtprof_model *model, uint32_t number, uint32_t *device);

/* The track of a logical thread. Fails with ENOMEM. */
int mtprof__model_thread_track(mtprof_model *model, uint32_t thread, uint32_t *track);

#endif /* MTPROF_MODEL_PREPARE_H */
