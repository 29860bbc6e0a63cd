/* SPDX-License-Identifier: Apache-2.0
 *
 * What is damaged in a trace, found without making the columns.
 */
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/read/reader_impl.h"

#include <string.h>

void mtprof__model_note_damage(mtprof_model *model, const mtprof__damage *damage)
{
    mtb_lock_acquire(&model->lock);
    model->damage = *damage;
    model->damage_known = true;
    mtb_lock_release(&model->lock);
}

/* One chunk: its checksum is compared as it is loaded. Where it has none, every record of it is
 * checked. EEND: there is no other. */
static int look_at_chunk(mtprof_cursor *cursor)
{
    mtprof_record record;
    MT_TRY(mtprof__cursor_load(cursor));
    while (!cursor->checked && cursor->at < cursor->n_words) {
        MT_TRY(mtprof__cursor_next(cursor, &record));
    }
    return MTPROF_OK;
}

static int look_at_stream(const mtprof_reader *reader, mtprof__read_stream *stream,
                          mtprof__damage *damage)
{
    const mtprof__cursor_source source = {&reader->bytes, &reader->index, &reader->info};
    mtprof_cursor cursor;
    int status = MTPROF_OK;
    mtprof__cursor_init(&cursor, &source, stream);
    while (status != MTPROF_EEND && status != MTPROF_ENOMEM) {
        status = look_at_chunk(&cursor);
        bool failed = status == MTPROF_EFORMAT || status == MTPROF_EIO;
        if (failed && !cursor.told) {
            int64_t offset = mtb_last_failure()->offset;
            mtprof__damage_add(damage, offset < 0 ? 0 : (uint64_t)offset, cursor.lost_bytes);
        }
    }
    mtprof__cursor_fini(&cursor);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

/* The streams of threads; opening has been through all others. */
static int look_at_all(const mtprof_reader *reader, mtprof__damage *damage)
{
    const mtb_failure before = *mtb_last_failure();
    *damage = mtprof__problems_damage(&reader->problems);
    for (uint32_t i = 0; i < reader->index.n_streams; i++) {
        mtprof__read_stream *stream = &reader->index.streams[i];
        if (stream->kind == MTPROF_STREAM_THREAD) {
            MT_TRY(look_at_stream(reader, stream, damage));
        }
    }
    *mtb_last_failure() = before; /* it reports the damage, and this call succeeds */
    return MTPROF_OK;
}

static int find_damage(mtprof_model *model, mtprof__damage *damage)
{
    const mtprof_model_findings *findings = &model->findings;
    if (model->reader == NULL || __atomic_load_n(&model->built, __ATOMIC_ACQUIRE) != 0) {
        *damage =
            (mtprof__damage){findings->problems, findings->problem_bytes, findings->problem_offset};
        return MTPROF_OK;
    }
    mtb_lock_acquire(&model->lock);
    bool known = model->damage_known;
    *damage = model->damage;
    mtb_lock_release(&model->lock);
    if (known) {
        return MTPROF_OK;
    }
    MT_TRY(look_at_all(model->reader, damage));
    mtprof__model_note_damage(model, damage);
    return MTPROF_OK;
}

mtprof_status mtprof_model_get_damage(mtprof_model *model, mtprof_damage *damage)
{
    mtprof__damage found = {0};
    if (damage->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "model damage: struct_size is 0");
    }
    MT_TRY(find_damage(model, &found));
    mtprof_damage full = {.problems = found.problems, .bytes = found.bytes, .offset = found.first};
    mtb_write_struct(damage, &full);
    return MTPROF_OK;
}
