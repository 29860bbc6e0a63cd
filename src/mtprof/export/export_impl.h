/* SPDX-License-Identifier: Apache-2.0
 *
 * What an exporter is: a function that writes a model into a writer. Files, compression, renaming,
 * options, progress and errors are export.c's.
 *
 *     mtprof_export() ─► job ─► exporter ─► job->writer ─► [gzip] ─► temporary file ─► rename
 *
 *   XP1  An exporter keeps nothing between calls; its memory does not grow with the trace.
 *   XP2  It does not check each write. When writing has failed, mtprof__export_tick() says so, and
 *        otherwise the end does.
 *   XP3  Anything but 0 from it means that nothing was exported; the message is its own.
 *
 * The list of exporters is formats.def. A shape to copy:
 *
 *     static int write_event(void *context, const mtprof__event *event)
 *     {
 *         mtprof__export_job *job = context;
 *         ... mtb_write(job->writer, ...), job->report.events++
 *         return 0;
 *     }
 *
 *     int mtprof__export_x(mtprof__export_job *job)
 *     {
 *         return mtprof__export_events(job, write_event, job, &job->report.clamped);
 *     }
 */
#ifndef MTPROF_EXPORT_EXPORT_IMPL_H
#define MTPROF_EXPORT_EXPORT_IMPL_H

#include "base/text_writer.h"
#include "mtprof/model/events/event.h"

#include <mtprof/export.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    MTPROF__MERGE_PIDS = 1024, /* process numbers a rank: its processes, then its devices */
    MTPROF__MERGE_PROCESSES = 512
};

/* One of several models that are written to one file (mtprof__export_several). */
typedef struct mtprof__export_merge {
    uint32_t index, count;
    uint32_t number;  /* of the rank: its process numbers begin at (number + 1) * 1024 */
    const char *name; /* of its process */
    int64_t first_ns; /* earliest start of all, and what its clock is in real time: */
    int64_t real_offset_ns;
    uint32_t n_sequences; /* PERFETTO: those taken so far */
    uint32_t n_pids;
    int64_t pids[MTPROF__MERGE_PROCESSES]; /* in its trace, by their new place */
} mtprof__export_merge;

typedef struct mtprof__export_job {
    mtprof_model *model;
    mtprof_model_info info;
    mtprof_export_options options; /* a full copy: what the caller's struct_size leaves out is 0 */
    mtb_writer *writer;
    const char *path;            /* NULL: into an output */
    mtprof_export_report report; /* exporters set events and clamped; the rest is export.c's */

    mtprof_averages *averages; /* averages as a trace: instead of the model's events */

    mtprof__export_merge *merge; /* NULL: one model, one file */

    /* export.c's own */
    uint32_t ticks;
    uint32_t part;
    struct mtprof__export_parts *parts; /* NULL: one stream, never split */
} mtprof__export_job;

/* Fails as mtprof_export(). */
typedef int mtprof__export_function(mtprof__export_job *job);

typedef struct mtprof__exporter {
    const char *name, *suffix;
    mtprof__export_function *write;
} mtprof__exporter;

enum {
    MTPROF__TICKS_BETWEEN = 4096 /* events between two calls of the progress function */
};

/* A job over a model, without a writer. Fails with EINVAL. */
int mtprof__export_job_init(mtprof__export_job *job, mtprof_model *model,
                            const mtprof_export_options *options);

/* Reports progress to the caller, and ends the work when writing has failed. events may be NULL.
 * Fails with ECALLBACK, EIO, ENOSPC, ENOMEM. */
int mtprof__export_report_progress(mtprof__export_job *job, const mtprof__events *events);

/* To be called once per event. */
MT_INLINE int mtprof__export_tick(mtprof__export_job *job, const mtprof__events *events)
{
    if (MT_LIKELY(++job->ticks % MTPROF__TICKS_BETWEEN != 0)) {
        return 0;
    }
    return mtprof__export_report_progress(job, events);
}

/* Gives all events to `take`, in the stream's order; what it returns other than 0 ends the reading.
 * *clamped (may be NULL) becomes the number of events whose times had to be changed. Fails as
 * mtprof__events_next(), mtprof__export_tick() and `take`. */
int mtprof__export_events(mtprof__export_job *job,
                          int (*take)(void *context, const mtprof__event *event), void *context,
                          uint64_t *clamped);

/* Whether the current file has reached options.split_bytes. */
bool mtprof__export_part_full(const mtprof__export_job *job);
/* Ends the current file and goes on in the next: x.1.json, x.2.json … job->writer stays valid.
 * Fails with EIO, ENOSPC, ENOMEM. */
int mtprof__export_next_part(mtprof__export_job *job);

/* Sets what the report says of damage in the trace: what it has lost is lost to the file as well.
 * For exporters that write it, once all events have been read; export.c calls it again. Fails with
 * ENOMEM. */
int mtprof__export_damage(mtprof__export_job *job);
/* The same as a member of a JSON object, the comma before it; nothing where there is no damage. */
void mtprof__export_write_damage(const mtprof__export_job *job);
/* Whether several tasks have scopes, so that each is to have a track (task_scan.c). Fails as
 * mtprof__events_next() and mtprof__export_tick(). */
int mtprof__export_has_tasks(mtprof__export_job *job, bool *several);
/* The name of a process; length 0: not known (process_name.c). */
mtprof_text mtprof__export_process_name(const mtprof__export_job *job, int64_t pid);

/* The number of a process in the file: its own, unless several models are in it. */
int64_t mtprof__export_pid(const mtprof__export_job *job, int64_t pid);

/* Model `index` of several, made when it is its turn and owned by the caller of next() until the
 * next call; merge->number and merge->name are set by it. Fails as it likes. */
typedef int mtprof__export_next(void *context, uint32_t index, mtprof_model **model,
                                mtprof__export_merge *merge);
/* Several models in one file; CHROME or PERFETTO. first_ns and real_offset_ns of *merge are given.
 * *report gets the sums. Fails as mtprof_export() and next(). */
int mtprof__export_several(const char *path, enum mtprof_export_format format, uint32_t count,
                           mtprof__export_next *next, void *context, mtprof__export_merge *merge,
                           mtprof_export_report *report);

/* Averages as a Chrome trace (export_averages.c). */
mtprof__export_function mtprof__export_averages;

#define X(ENUM, name, suffix, function) mtprof__export_function function;
#include "mtprof/export/formats.def"
#undef X

#endif /* MTPROF_EXPORT_EXPORT_IMPL_H */
