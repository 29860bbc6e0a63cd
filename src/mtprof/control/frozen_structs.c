/* SPDX-License-Identifier: Apache-2.0
 *
 * Public structs without struct_size. They come in arrays, inside other structs or once for each
 * record, event or item, so they carry no size: they never change. What they cannot say needs
 * another function.
 */
#include "base/compiler.h"

#include <mtprof/arrow.h>
#include <mtprof/compare.h>
#include <mtprof/live.h>
#include <mtprof/model.h>
#include <mtprof/op.h>
#include <mtprof/reader.h>
#include <mtprof/source.h>
#include <mtprof/trace.h>

#include <assert.h>

static_assert(sizeof(mtprof_text) == 16, "frozen");
static_assert(sizeof(mtprof_error) == 512, "frozen");
static_assert(sizeof(mtprof_site) == 32, "appended to, never changed");

/* reader.h */
static_assert(sizeof(mtprof_record) == 64, "frozen");
static_assert(sizeof(mtprof_frame) == 48, "frozen");
static_assert(sizeof(mtprof_thread_info) == 40, "frozen");
static_assert(sizeof(mtprof_epoch_info) == 56, "frozen");
static_assert(sizeof(mtprof_module_info) == 40, "frozen");
static_assert(sizeof(mtprof_problem) == 16, "frozen");
static_assert(sizeof(mtprof_limit_info) == 40, "frozen");
static_assert(sizeof(mtprof_unrecorded_info) == 24, "frozen");

/* model.h */
static_assert(sizeof(mtprof_column) == 24, "frozen");
static_assert(sizeof(mtprof_track) == 64, "frozen");
static_assert(sizeof(mtprof_device) == 24, "frozen");
static_assert(sizeof(mtprof_metadatum) == 48, "frozen");

/* arrow.h */
static_assert(sizeof(mtprof_arrow_cell) == 40, "frozen");

/* compare.h: inside mtprof_compare_row */
static_assert(sizeof(mtprof_compare_side) == 48, "frozen");
/* live.h */
static_assert(sizeof(mtprof_live_row) == 112, "frozen");

/* op.h, source.h */
static_assert(sizeof(mtprof_value) == 24, "frozen");
static_assert(sizeof(mtprof_tensor_ref) == 32, "frozen");
static_assert(sizeof(mtprof_inputs) == 8, "frozen");
static_assert(sizeof(mtprof_activity_meta) == 16, "frozen");
