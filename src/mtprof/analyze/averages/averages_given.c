/* SPDX-License-Identifier: Apache-2.0
 *
 * Averages of rows that the caller made: a binding whose users changed, sorted or added rows.
 * The rows stay the caller's; what they may leave out is filled in whenever one is read.
 */
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/analyze/averages/averages_impl.h"

#include <mtprof/status.h>

#include <string.h>

static int check_rows(const mtprof_given_rows *given)
{
    for (uint32_t i = 0; i < given->count; i++) {
        const mtprof_row *row = &given->rows[i];
        if (row->stack_n != 0 && row->stack != 0 &&
            (row->stack > given->n_frames || row->stack_n > given->n_frames - row->stack + 1)) {
            return mtb_fail(
                MTPROF_EINVAL, "averages_from_rows: row %u has frames %u to %llu, there are %u",
                (unsigned)i, (unsigned)row->stack,
                (unsigned long long)row->stack + row->stack_n - 1, (unsigned)given->n_frames);
        }
    }
    for (uint32_t i = 0; i < given->n_frames; i++) {
        if (given->frames[i].bytes == NULL) {
            return mtb_fail(MTPROF_EINVAL, "averages_from_rows: frame %u has no text", (unsigned)i);
        }
    }
    return 0;
}

static int check_given(const mtprof_given_rows *given, mtprof_given_rows *mine)
{
    if (given == NULL || given->struct_size < 2 * sizeof(uint32_t)) {
        return mtb_fail(MTPROF_EINVAL, "averages_from_rows: %s",
                        given == NULL ? "no rows" : "struct_size is too small");
    }
    mtb_read_struct(mine, given);
    if ((mine->rows == NULL && mine->count != 0) || (mine->frames == NULL && mine->n_frames != 0)) {
        return mtb_fail(MTPROF_EINVAL, "averages_from_rows: no %s",
                        mine->rows == NULL && mine->count != 0 ? "rows" : "frames");
    }
    return check_rows(mine);
}

void mtprof__given_fill(const mtprof_given_rows *given, uint32_t index, mtprof_row *row)
{
    *row = given->rows[index];
    row->struct_size = sizeof *row;
    row->name = UINT32_MAX;
    row->track = UINT32_MAX;
    row->reserved = 0;
    if (row->device_type.length == 0) {
        const char *type =
            row->device != 0 && given->device_type != NULL ? given->device_type : "CPU";
        row->device_type = (mtprof_text){type, strlen(type)};
    }
    mtprof_text *texts[] = {&row->key, &row->overload, &row->input_shapes, &row->module,
                            &row->device_type};
    for (size_t i = 0; i < MT_COUNT(texts); i++) {
        if (texts[i]->bytes == NULL) {
            *texts[i] = (mtprof_text){"", 0};
        }
    }
}

mtprof_status mtprof_averages_from_rows(const mtprof_given_rows *given, mtprof_averages **out)
{
    mtprof_given_rows mine = {0};
    if (out != NULL) {
        *out = NULL;
    }
    MT_TRY(check_given(given, &mine));
    return mtprof__averages_make(NULL, NULL, &mine, mine.events != 0, out);
}
