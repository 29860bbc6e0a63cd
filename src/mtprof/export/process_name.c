/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process is called: as the trace or one of its threads says, else by its main thread.
 */
#include "mtprof/export/export_impl.h"
#include "mtprof/model/model_impl.h"

#include <string.h>

/* Tracks of threads appear while events are read, but the trace defines all of them. */
static mtprof_text main_thread_name(const mtprof_reader *reader, int64_t pid)
{
    uint32_t n = mtprof_reader_thread_count(reader);
    for (uint32_t i = 0; i <= n; i++) {
        mtprof_thread_info info = {.name = {"", 0}};
        if (mtprof_reader_thread(reader, i, &info) && (int64_t)info.os_id == pid &&
            info.name.length > 0) {
            return info.name;
        }
    }
    return (mtprof_text){"", 0};
}

int64_t mtprof__export_pid(const mtprof__export_job *job, int64_t pid)
{
    mtprof__export_merge *merge = job->merge;
    if (merge == NULL) {
        return pid;
    }
    uint32_t i = 0;
    while (i < merge->n_pids && merge->pids[i] != pid) {
        i++;
    }
    if (i == merge->n_pids && i < MTPROF__MERGE_PROCESSES - 1) { /* all beyond share the last */
        merge->pids[merge->n_pids++] = pid;
    }
    return ((int64_t)merge->number + 1) * MTPROF__MERGE_PIDS + i;
}

mtprof_text mtprof__export_process_name(const mtprof__export_job *job, int64_t pid)
{
    mtprof_text name = {"", 0};
    mtprof_track track;
    if (job->merge != NULL) {
        bool own = pid == (int64_t)job->info.pid;
        return own ? (mtprof_text){job->merge->name, strlen(job->merge->name)} : name;
    }
    if (job->model->reader != NULL && pid == (int64_t)job->info.pid) {
        name = job->model->process_name;
        return name.length > 0 ? name : main_thread_name(job->model->reader, pid);
    }
    for (uint32_t i = 0; mtprof_model_track(job->model, i, &track); i++) {
        if (track.device != 0 || track.pid != pid) {
            continue;
        }
        if (track.process_name.length > 0) {
            return track.process_name;
        }
        if (track.tid == pid && track.name.length > 0) {
            name = track.name;
        }
    }
    return name;
}
