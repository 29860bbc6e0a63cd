/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether scopes of tasks get tracks of their own: if several tasks take turns on a thread. A
 * notebook's cell is a task too, but the only one: its scopes stay where its ops are. So the events
 * are read once before they are written, up to the second task; and not at all if there is no name
 * "task".
 */
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/export/export_impl.h"

int mtprof__export_has_tasks(mtprof__export_job *job, bool *several)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    uint64_t first = 0;
    *several = false;
    if (!mtprof__model_may_have_tasks(job->model)) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__events_open(job->model, &events));
    int status = MTPROF_OK;
    while (!*several && (status = mtprof__events_next(events, &event)) == MTPROF_OK) {
        const mtprof_text *task =
            event->edge == MTPROF__EDGE_BEGIN ? mtprof__event_task(event) : NULL;
        if (task != NULL) {
            uint64_t hash = mtb_hash_bytes(task->bytes, task->length) | 1;
            *several = first != 0 && hash != first;
            first = hash;
        }
        if ((status = mtprof__export_tick(job, NULL)) != MTPROF_OK) {
            break;
        }
    }
    mtprof__events_close(events);
    return *several || status == MTPROF_EEND ? MTPROF_OK : status;
}
