/* SPDX-License-Identifier: Apache-2.0
 *
 * Averages of rows that somebody else made: a binding whose users changed, sorted or added rows.
 * Texts are copied, so nothing of the caller's is looked at again.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/analyze/averages/averages_impl.h"

#include <mtprof/status.h>

#include <string.h>

static bool copy_text(mtb_arena *texts, mtprof_text *text)
{
    const char *copy = "";
    if (text->bytes != NULL && text->length != 0) {
        copy = mtb_arena_copy_text(texts, text->bytes, text->length);
    } else {
        text->length = 0;
    }
    text->bytes = copy;
    return copy != NULL;
}

static int check_rows(const mtprof_given_rows *given)
{
    for (uint32_t i = 0; i < given->count; i++) {
        const mtprof_row *row = &given->rows[i];
        if (row->stack_n != 0 && row->stack != 0 &&
            (row->stack > given->n_frames || row->stack_n > given->n_frames - row->stack + 1)) {
            return mtb_fail(
                MTPROF_EINVAL, "averages_of_rows: row %u has frames %u to %llu, there are %u",
                (unsigned)i, (unsigned)row->stack,
                (unsigned long long)row->stack + row->stack_n - 1, (unsigned)given->n_frames);
        }
    }
    return 0;
}

/* `mine` is zero at first: what an older caller's struct does not have stays so. */
static int check_given(const mtprof_given_rows *given, mtprof_given_rows *mine)
{
    if (given == NULL || given->struct_size < 2 * sizeof(uint32_t)) {
        return mtb_fail(MTPROF_EINVAL, "averages_of_rows: %s",
                        given == NULL ? "no rows" : "struct_size is too small");
    }
    mtb_read_struct(mine, given);
    if ((mine->rows == NULL && mine->count != 0) || (mine->frames == NULL && mine->n_frames != 0)) {
        return mtb_fail(MTPROF_EINVAL, "averages_of_rows: no %s",
                        mine->rows == NULL && mine->count != 0 ? "rows" : "frames");
    }
    return check_rows(mine);
}

static int copy_row(mtb_arena *texts, const mtprof__given *given, mtprof_row *row)
{
    mtprof_text type = {"CPU", 3};
    if (row->device != 0 && given->device_type != NULL) {
        type = (mtprof_text){given->device_type, strlen(given->device_type)};
    }
    if (row->device_type.length == 0) {
        row->device_type = type;
    }
    row->struct_size = sizeof *row;
    row->name = UINT32_MAX;
    row->track = UINT32_MAX;
    row->reserved = 0;
    if (!copy_text(texts, &row->key) || !copy_text(texts, &row->overload) ||
        !copy_text(texts, &row->input_shapes) || !copy_text(texts, &row->module) ||
        !copy_text(texts, &row->device_type)) {
        return mtb_fail(MTPROF_ENOMEM, "averages_of_rows: no memory for a text");
    }
    return 0;
}

static int copy_facts(const mtprof_given_rows *from, mtb_arena *texts, mtprof__given *given)
{
    given->memory = from->memory != 0;
    given->flops = from->flops != 0;
    if (from->device_type != NULL) {
        given->device_type =
            mtb_arena_copy_text(texts, from->device_type, strlen(from->device_type));
        if (given->device_type == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "averages_of_rows: no memory for a text");
        }
    }
    if (from->health != NULL) {
        given->has_health = true;
        mtb_read_struct(&given->health, from->health);
    }
    return 0;
}

static int copy_given(const mtprof_given_rows *from, mtb_arena *texts, mtprof__given *given)
{
    given->rows = mtb_calloc((size_t)from->count + 1, sizeof given->rows[0]);
    given->frames = mtb_calloc((size_t)from->n_frames + 1, sizeof given->frames[0]);
    if (given->rows == NULL || given->frames == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages_of_rows: no memory for %u rows", from->count);
    }
    MT_TRY(copy_facts(from, texts, given));
    given->n_frames = from->n_frames;
    for (uint32_t i = 0; i < from->n_frames; i++) {
        given->frames[i] = from->frames[i];
        if (!copy_text(texts, &given->frames[i])) {
            return mtb_fail(MTPROF_ENOMEM, "averages_of_rows: no memory for a text");
        }
    }
    for (uint32_t i = 0; i < from->count; i++) {
        given->rows[i] = from->rows[i];
        MT_TRY(copy_row(texts, given, &given->rows[i]));
    }
    return 0;
}

static int fill(mtprof_averages *averages, const mtprof_given_rows *given)
{
    averages->given = mtb_calloc(1, sizeof *averages->given);
    averages->order = mtb_calloc((size_t)given->count + 1, sizeof averages->order[0]);
    if (averages->given == NULL || averages->order == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages_of_rows: no memory for %u rows", given->count);
    }
    averages->n_rows = given->count;
    for (uint32_t i = 0; i < given->count; i++) {
        averages->order[i] = i;
    }
    return copy_given(given, &averages->grouper.texts, averages->given);
}

mtprof_status mtprof_averages_from_rows(const mtprof_given_rows *given, mtprof_averages **out)
{
    mtprof_given_rows mine = {0};
    if (out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "averages_of_rows: no place for the result");
    }
    *out = NULL;
    MT_TRY(check_given(given, &mine));
    mtprof_averages *averages = mtb_calloc(1, sizeof *averages);
    if (averages == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages_of_rows: no memory for %u rows", mine.count);
    }
    mtb_lock_init(&averages->lock, MTB_RANK_AVERAGES);
    averages->is_events = mine.events != 0;
    averages->sorted_row = UINT32_MAX;
    int status = fill(averages, &mine);
    if (status != 0) {
        mtprof_averages_free(averages);
        return status;
    }
    *out = averages;
    return 0;
}

void mtprof__given_free(mtprof__given *given)
{
    if (given != NULL) {
        mtb_free(given->rows);
        mtb_free(given->frames);
        mtb_free(given);
    }
}
