/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the control stream, see control_read.h.
 */
#include "mtprof/read/control_read.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/format/layout.h"
#include "mtprof/format/texts.h"
#include "mtprof/read/record_check.h"

#include <stdlib.h>
#include <string.h>

/* ---- epochs ---------------------------------------------------------------------------------- */

static int add_open(mtprof__control_read *control, const mtprof_record *record,
                    mtprof__problems *problems)
{
    uint32_t before = control->n_epochs > 0 ? control->epochs[control->n_epochs - 1].epoch : 0;
    if (record->arg <= before) {
        return mtprof__problem_add(
            problems, record->offset,
            "record at %llu: epoch %u is opened after epoch %u, expected a larger number",
            (unsigned long long)record->offset, record->arg, before);
    }
    return mtb_append(control->epochs, control->n_epochs, control->epoch_capacity,
                      &(mtprof_epoch_info){
                          .epoch = record->arg,
                          .window = (uint32_t)record->words[2],
                          .step = (uint32_t)(record->words[2] >> 32),
                          .close_kind = MTPROF_CLOSE_NONE,
                          .gate = record->words[1],
                          .open_ticks = record->ticks,
                      })
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "open trace: no memory for the record at %llu",
                          (unsigned long long)record->offset);
}

static bool is_earlier(const void *info, uint64_t epoch)
{
    return ((const mtprof_epoch_info *)info)->epoch < epoch;
}

mtprof_epoch_info *mtprof__control_find_epoch(const mtprof__control_read *control, uint32_t epoch)
{
    size_t at =
        mtb_search(control->epochs, control->n_epochs, sizeof *control->epochs, is_earlier, epoch);
    bool found = at < control->n_epochs && control->epochs[at].epoch == epoch;
    return found ? &control->epochs[at] : NULL;
}

static int add_close(mtprof__control_read *control, const mtprof_record *record,
                     mtprof__problems *problems)
{
    mtprof_epoch_info *info = mtprof__control_find_epoch(control, record->arg);
    if (info != NULL && info->close_kind == MTPROF_CLOSE_PAUSED &&
        record->aux != MTPROF_CLOSE_PAUSED) {
        info->close_kind = record->aux; /* the window ended while paused; the time is the pause's */
        return MTPROF_OK;
    }
    if (info == NULL || info->close_kind != MTPROF_CLOSE_NONE) {
        return mtprof__problem_add(problems, record->offset,
                                   "record at %llu: epoch %u is closed and was not open",
                                   (unsigned long long)record->offset, record->arg);
    }
    info->close_kind = record->aux;
    info->close_ticks = record->ticks;
    if (record->n_words >= 3) {
        info->correlation_first = record->words[1];
        info->correlation_count = record->words[2];
    }
    return MTPROF_OK;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static int add_metadata(mtprof__control_read *control, const mtprof_record *record)
{
    size_t key_length = (uint32_t)record->words[0];
    size_t value_length = record->words[0] >> 32;
    const uint64_t *key_words = record->words + 1;
    const uint64_t *value_words = key_words + mtprof__text_words(key_length);
    const char *key = mtb_arena_copy_text(&control->arena, (const char *)(key_words), key_length);
    const char *value =
        mtb_arena_copy_text(&control->arena, (const char *)(value_words), value_length);
    if (key == NULL || value == NULL ||
        !mtb_grow((void **)&control->metadata, &control->metadata_capacity, control->n_metadata + 1,
                  sizeof *control->metadata)) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for the record at %llu",
                        (unsigned long long)record->offset);
    }
    control->metadata[control->n_metadata] = (mtprof__meta_item){
        .key = {key, key_length},
        .value = {value, value_length},
        .order = control->n_metadata,
        .is_json = record->aux == 1,
    };
    control->n_metadata++;
    return MTPROF_OK;
}

static int compare_order(const void *a, const void *b)
{
    const mtprof__meta_item *left = a;
    const mtprof__meta_item *right = b;
    return left->order < right->order ? -1 : left->order > right->order;
}

static int compare_keys(const void *a, const void *b)
{
    const mtprof__meta_item *left = a;
    const mtprof__meta_item *right = b;
    int order = mtprof__text_order(left->key, right->key);
    return order != 0 ? order : compare_order(a, b);
}

/* The last value of a key, at the place of its first one. */
static void unify_metadata(mtprof__control_read *control)
{
    size_t kept = 0;
    if (control->n_metadata < 2) {
        return;
    }
    qsort(control->metadata, control->n_metadata, sizeof *control->metadata, compare_keys);
    for (size_t i = 0; i < control->n_metadata; i++) {
        mtprof__meta_item item = control->metadata[i];
        if (kept > 0 && mtprof__text_same(control->metadata[kept - 1].key, item.key)) {
            item.order = control->metadata[--kept].order;
        }
        control->metadata[kept++] = item;
    }
    control->n_metadata = kept;
    qsort(control->metadata, control->n_metadata, sizeof *control->metadata, compare_order);
}

/* ---- the limit of the overhead --------------------------------------------------------------- */

static int add_limit(mtprof__control_read *control, const mtprof_record *record)
{
    const mtprof_limit_info info = {
        .ticks = record->ticks,
        .level = record->aux & 0xFF,
        .before = record->aux >> 8,
        .share_ppm = (uint32_t)record->words[1],
        .limit_ppm = (uint32_t)(record->words[1] >> 32),
        .cost_ns = record->words[2],
        .base_ns = record->words[3],
    };
    return mtb_append(control->limits, control->n_limits, control->limit_capacity, &info)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "open trace: no memory for the record at %llu",
                          (unsigned long long)record->offset);
}

static int add_unrecorded(mtprof__control_read *control, const mtprof_record *record)
{
    const mtprof_unrecorded_info info = {
        .name = record->arg,
        .what = record->aux,
        .count = record->words[1],
        .kept = record->words[2],
    };
    return mtb_append(control->unrecorded, control->n_unrecorded, control->unrecorded_capacity,
                      &info)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "open trace: no memory for the record at %llu",
                          (unsigned long long)record->offset);
}

static int compare_unrecorded(const void *a, const void *b)
{
    const mtprof_unrecorded_info *left = a;
    const mtprof_unrecorded_info *right = b;
    int order = mtb_order(left->what, right->what);
    return order != 0 ? order : mtb_order(left->name, right->name);
}

/* One sum a name and kind. */
static void unify_unrecorded(mtprof__control_read *control)
{
    mtprof_unrecorded_info *items = control->unrecorded;
    size_t kept = 0;
    if (control->n_unrecorded < 2) {
        return;
    }
    qsort(items, control->n_unrecorded, sizeof *items, compare_unrecorded);
    for (size_t i = 0; i < control->n_unrecorded; i++) {
        if (kept > 0 && compare_unrecorded(&items[kept - 1], &items[i]) == 0) {
            items[kept - 1].count = mtb_add_counts(items[kept - 1].count, items[i].count);
            items[kept - 1].kept = mtb_add_counts(items[kept - 1].kept, items[i].kept);
        } else {
            items[kept++] = items[i];
        }
    }
    control->n_unrecorded = kept;
}

/* ---- the stream ------------------------------------------------------------------------------ */

int mtprof__control_read_add(mtprof__control_read *control, mtprof__clock_map *clock,
                             const mtprof_record *record, mtprof__problems *problems)
{
    bool timed = (mtprof__kind_traits(record->kind) & MTPROF__TICKS) != 0;
    if (timed && record->ticks > control->last_ticks) {
        control->last_ticks = record->ticks;
    }
    switch (record->kind) {
    case MTPROF_REC_ANCHOR:
        return mtprof__clock_map_add(clock, (mtprof__clock_point){.ticks = record->ticks,
                                                                  .mono_ns = record->words[1],
                                                                  .real_ns = record->words[2]})
                   ? MTPROF_OK
                   : mtb_fail(MTPROF_ENOMEM, "open trace: no memory for the record at %llu",
                              (unsigned long long)record->offset);
    case MTPROF_REC_WINDOW_OPEN: return add_open(control, record, problems);
    case MTPROF_REC_WINDOW_CLOSE: return add_close(control, record, problems);
    case MTPROF_REC_TRACE_META: return add_metadata(control, record);
    case MTPROF_REC_LIMIT: return add_limit(control, record);
    case MTPROF_REC_UNRECORDED: return add_unrecorded(control, record);
    default: return MTPROF_OK;
    }
}

void mtprof__control_read_finish(mtprof__control_read *control, uint64_t end_ticks)
{
    for (size_t i = 0; i < control->n_epochs; i++) {
        mtprof_epoch_info *info = &control->epochs[i];
        if (info->close_kind == MTPROF_CLOSE_NONE) {
            info->close_ticks = end_ticks > info->open_ticks ? end_ticks : info->open_ticks;
        }
    }
    unify_metadata(control);
    unify_unrecorded(control);
}

void mtprof__control_read_fini(mtprof__control_read *control)
{
    mtb_free(control->epochs);
    mtb_free(control->metadata);
    mtb_free(control->limits);
    mtb_free(control->unrecorded);
    mtb_arena_reset(&control->arena);
    memset(control, 0, sizeof *control);
}
