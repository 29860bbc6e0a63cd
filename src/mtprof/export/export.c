/* SPDX-License-Identifier: Apache-2.0
 *
 * What all exports share: the list of formats, options, files and their parts, progress, errors.
 *
 *     exporter ─► writer ─► [deflate] ─► out_file (temporary) ─► … next part …   all parts renamed
 *                       └─► mtprof_output                                        at the very end
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/gzip.h"
#include "base/new_file.h"
#include "base/struct_size.h"
#include "mtprof/export/export_impl.h"
#include "mtprof/export/out_file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const mtprof__exporter exporters[] = {
#define X(ENUM, name, suffix, function) [MTPROF_EXPORT_##ENUM] = {name, suffix, function},
#include "mtprof/export/formats.def"
#undef X
};
static_assert(MT_COUNT(exporters) == MTPROF_EXPORT_COUNT, "formats.def has every format");

enum {
    GZIP_LEVEL_MOST = 3
};

/* ---- formats --------------------------------------------------------------------------------- */

const char *mtprof_export_name(enum mtprof_export_format format)
{
    return (unsigned)format < MTPROF_EXPORT_COUNT ? exporters[format].name : NULL;
}

const char *mtprof_export_suffix(enum mtprof_export_format format)
{
    return (unsigned)format < MTPROF_EXPORT_COUNT ? exporters[format].suffix : NULL;
}

static bool ends_in(const char *text, size_t length, const char *suffix)
{
    size_t n = strlen(suffix);
    return length > n && memcmp(text + length - n, suffix, n) == 0;
}

static size_t length_without_gz(const char *path)
{
    size_t length = strlen(path);
    return ends_in(path, length, ".gz") ? length - 3 : length;
}

mtprof_status mtprof_export_parse(const char *name, enum mtprof_export_format *format)
{
    if (name == NULL || format == NULL) {
        return mtb_fail(MTPROF_EINVAL, "export_parse: %s is NULL",
                        name == NULL ? "name" : "format");
    }
    size_t length = length_without_gz(name);
    size_t longest = 0;
    for (unsigned i = 0; i < MTPROF_EXPORT_COUNT; i++) {
        if (strcmp(name, exporters[i].name) == 0) {
            *format = (enum mtprof_export_format)i;
            return MTPROF_OK;
        }
        if (ends_in(name, length, exporters[i].suffix) && strlen(exporters[i].suffix) > longest) {
            *format = (enum mtprof_export_format)i;
            longest = strlen(exporters[i].suffix);
        }
    }
    if (longest > 0) {
        return MTPROF_OK;
    }
    char known[MTB_MESSAGE_BYTES / 2] = "";
    size_t used = 0;
    for (unsigned i = 0; i < MTPROF_EXPORT_COUNT && used < sizeof known; i++) {
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s (%s)", i > 0 ? ", " : "",
                                 exporters[i].name, exporters[i].suffix);
    }
    return mtb_fail(MTPROF_EINVAL, "export_parse: no format for '%.100s'; there are %s", name,
                    known);
}

/* ---- errors and progress --------------------------------------------------------------------- */

static const char *target_of(const mtprof__export_job *job)
{
    return job->path != NULL ? job->path : "the output";
}

static int fail_writing(const mtprof__export_job *job, int error)
{
    return mtb_fail_errno(mtprof__write_status(error), error, "export: cannot write %s",
                          target_of(job));
}

int mtprof__export_report_progress(mtprof__export_job *job, const mtprof__events *events)
{
    if (job->writer != NULL && job->writer->error != 0) {
        return fail_writing(job, job->writer->error);
    }
    if (job->options.progress == NULL) {
        return MTPROF_OK;
    }
    uint64_t done = 0;
    uint64_t total = 0;
    if (events != NULL) {
        mtprof__events_progress(events, &done, &total);
    }
    int answer = job->options.progress(job->options.user, "export", done, total);
    return answer == 0
               ? MTPROF_OK
               : mtb_fail(MTPROF_ECALLBACK, "export: the progress function returned %d", answer);
}

int mtprof__export_events(mtprof__export_job *job,
                          int (*take)(void *context, const mtprof__event *event), void *context,
                          uint64_t *clamped)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    MT_TRY(mtprof__events_open(job->model, &events));
    int status = MTPROF_OK;
    while (status == MTPROF_OK && (status = mtprof__events_next(events, &event)) == MTPROF_OK) {
        status = take(context, event);
        if (status == MTPROF_OK) {
            status = mtprof__export_tick(job, events);
        }
    }
    if (clamped != NULL) {
        *clamped = mtprof__events_totals_get(events)->clamped;
    }
    job->report.left_out += mtprof__events_totals_get(events)->left_out;
    mtprof__events_close(events);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

/* ---- files and their parts ------------------------------------------------------------------- */

struct mtprof__export_parts {
    mtprof__out_file *files;
    size_t n, capacity;
    mtb_writer writer;
    mtb_deflate *deflate; /* NULL: not compressed */
};

/* The path of part n: x.json, x.1.json, x.2.json; the number comes before the whole ending, also
 * before ".pt.trace.json", by which TensorBoard finds its files. NULL: no memory. */
static char *part_path(const char *path, uint32_t part)
{
    static const char *const endings[] = {".pt.trace.json", ".json"};
    size_t length = strlen(path);
    size_t bare = length_without_gz(path);
    size_t cut = bare;
    for (size_t i = 0; i < MT_COUNT(endings) && cut == bare; i++) {
        cut -= ends_in(path, bare, endings[i]) ? strlen(endings[i]) : 0;
    }
    if (part == 0) {
        return mtb_copy_text(path, length);
    }
    char *name = mtb_calloc(length + 16, 1);
    if (name != NULL) {
        (void)snprintf(name, length + 16, "%.*s.%u%s", (int)cut, path, part, path + cut);
    }
    return name;
}

static int open_part(mtprof__export_job *job)
{
    struct mtprof__export_parts *parts = job->parts;
    /* The files may move: the one before is closed, so no sink points to it. */
    if (!mtb_grow((void **)&parts->files, &parts->capacity, parts->n + 1, sizeof *parts->files)) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for part %u of %s", job->part, job->path);
    }
    char *path = part_path(job->path, job->part);
    if (path == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for part %u of %s", job->part, job->path);
    }
    mtprof__out_file *file = &parts->files[parts->n];
    int status = mtprof__out_file_open(file, path, job->options.in_place != 0);
    mtb_free(path);
    if (status != MTPROF_OK) {
        return status;
    }
    parts->n++;
    int (*sink)(void *context, const void *bytes, size_t length) = mtprof__out_file_write;
    void *context = file;
    if (length_without_gz(job->path) != strlen(job->path)) {
        int error = mtb_deflate_open(job->options.gzip_level, sink, context, &parts->deflate);
        if (error == ENOTSUP) {
            return mtb_fail(MTPROF_ENOTSUP,
                            "export: %s wants gzip, but neither libisal.so.2 nor libz.so.1 is here",
                            job->path);
        }
        if (error != 0) {
            return fail_writing(job, error);
        }
        sink = mtb_deflate_write;
        context = parts->deflate;
    }
    return mtb_writer_init(&parts->writer, sink, context) ? MTPROF_OK : fail_writing(job, ENOMEM);
}

/* Hands everything of the current part on and closes its file. */
static int close_part(mtprof__export_job *job)
{
    struct mtprof__export_parts *parts = job->parts;
    job->report.bytes += mtb_writer_total(&parts->writer);
    job->report.replaced += parts->writer.replaced;
    int error = mtb_writer_finish(&parts->writer);
    if (error == 0 && parts->deflate != NULL) {
        error = mtb_deflate_finish(parts->deflate);
    }
    mtb_deflate_close(parts->deflate);
    parts->deflate = NULL;
    mtprof__out_file *file = &parts->files[parts->n - 1];
    job->report.bytes_written += file->bytes;
    job->report.files++;
    return error != 0 ? fail_writing(job, error) : mtprof__out_file_close(file);
}

bool mtprof__export_part_full(const mtprof__export_job *job)
{
    return job->parts != NULL && job->options.split_bytes > 0 &&
           job->parts->files[job->parts->n - 1].aside &&
           mtb_writer_total(job->writer) >= job->options.split_bytes;
}

int mtprof__export_next_part(mtprof__export_job *job)
{
    MT_TRY(close_part(job));
    job->part++;
    return open_part(job);
}

/* The first part is renamed last: when it exists, all parts do. */
static int commit_parts(struct mtprof__export_parts *parts)
{
    int status = MTPROF_OK;
    while (parts->n > 0 && status == MTPROF_OK) {
        parts->n--;
        status = mtprof__out_file_commit(&parts->files[parts->n]);
    }
    return status;
}

static void drop_parts(struct mtprof__export_parts *parts)
{
    (void)mtb_writer_finish(&parts->writer);
    mtb_deflate_close(parts->deflate);
    while (parts->n > 0) {
        mtprof__out_file_abandon(&parts->files[--parts->n]);
    }
    mtb_free(parts->files);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static int check_options(const mtprof_export_options *options)
{
    if (options->flavor > MTPROF_FLAVOR_LEAN) {
        return mtb_fail(MTPROF_EINVAL, "export: no flavor %u; 0 is torch, 1 mindtorch, 2 lean",
                        options->flavor);
    }
    if (options->gzip_level > GZIP_LEVEL_MOST) {
        return mtb_fail(MTPROF_EINVAL, "export: gzip_level %u is not between 0 and %d",
                        options->gzip_level, GZIP_LEVEL_MOST);
    }
    return MTPROF_OK;
}

static int job_init(mtprof__export_job *job, mtprof_model *model,
                    const mtprof_export_options *options)
{
    *job = (mtprof__export_job){.model = model};
    if (options != NULL) {
        if (options->struct_size == 0) {
            return mtb_fail(MTPROF_EINVAL, "export: options.struct_size is 0");
        }
        mtb_read_struct(&job->options, options);
    }
    const mtprof_export_report *report = job->options.report;
    if (report != NULL && report->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "export: report.struct_size is 0");
    }
    return check_options(&job->options);
}

/* What the trace has lost is lost to the file as well. */
int mtprof__export_damage(mtprof__export_job *job)
{
    mtprof_damage damage = {.struct_size = sizeof damage};
    if (job->model == NULL) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof_model_get_damage(job->model, &damage));
    job->report.problems = damage.problems;
    job->report.problem_bytes = damage.bytes;
    job->report.problem_offset = damage.offset;
    return MTPROF_OK;
}

void mtprof__export_write_damage(const mtprof__export_job *job)
{
    const mtprof_export_report *report = &job->report;
    if (report->problems != 0) {
        mtb_write_format(
            job->writer,
            ",\n  \"mtprof_damage\": {\"problems\": %llu, \"bytes\": %llu, \"offset\": %llu}",
            (unsigned long long)report->problems, (unsigned long long)report->problem_bytes,
            (unsigned long long)report->problem_offset);
    }
}

static void job_tell(mtprof__export_job *job)
{
    mtprof_export_report *report = job->options.report;
    if (report != NULL) {
        mtb_write_struct(report, &job->report);
    }
}

static int write_parts(mtprof__export_job *job, mtprof__export_function *write)
{
    MT_TRY(open_part(job));
    MT_TRY(write(job));
    MT_TRY(mtprof__export_damage(job));
    MT_TRY(close_part(job));
    return commit_parts(job->parts);
}

/* Writes through one function into a file, its parts included. */
static int job_to_path(mtprof__export_job *job, mtprof__export_function *write, const char *path)
{
    struct mtprof__export_parts parts = {0};
    job->path = path;
    job->parts = &parts;
    job->writer = &parts.writer;
    int status = write_parts(job, write);
    drop_parts(&parts);
    job->parts = NULL;
    job->writer = NULL;
    if (status == MTPROF_OK) {
        job_tell(job);
    }
    return status;
}

static int check_path(const char *path)
{
    if (path == NULL || *path == '\0') {
        return mtb_fail(MTPROF_EINVAL, "export: the path is %s", path == NULL ? "NULL" : "empty");
    }
    return MTPROF_OK;
}

int mtprof__export_job_init(mtprof__export_job *job, mtprof_model *model,
                            const mtprof_export_options *options)
{
    if (model == NULL) {
        return mtb_fail(MTPROF_EINVAL, "export: model is NULL");
    }
    MT_TRY(job_init(job, model, options));
    job->info.struct_size = sizeof job->info;
    return mtprof_model_get_info(model, &job->info);
}

static int job_for_model(mtprof__export_job *job, mtprof_model *model,
                         enum mtprof_export_format format, const mtprof_export_options *options)
{
    if (model != NULL && (unsigned)format >= MTPROF_EXPORT_COUNT) {
        return mtb_fail(MTPROF_EINVAL, "export: no format %d", (int)format);
    }
    return mtprof__export_job_init(job, model, options);
}

mtprof_status mtprof_export(mtprof_model *model, enum mtprof_export_format format, const char *path,
                            const mtprof_export_options *options)
{
    mtprof__export_job job = {.model = NULL};
    MT_TRY(job_for_model(&job, model, format, options));
    MT_TRY(check_path(path));
    return job_to_path(&job, exporters[format].write, path);
}

mtprof_status mtprof_export_to(mtprof_model *model, enum mtprof_export_format format,
                               const mtprof_output *output, const mtprof_export_options *options)
{
    mtprof__export_job job = {.model = NULL};
    if (output == NULL || output->struct_size == 0 || output->write == NULL) {
        return mtb_fail(MTPROF_EINVAL, "export_to: output%s",
                        output == NULL             ? " is NULL"
                        : output->struct_size == 0 ? ".struct_size is 0"
                                                   : ".write is NULL");
    }
    MT_TRY(job_for_model(&job, model, format, options));
    mtb_writer writer;
    job.writer = &writer;
    int status = MTPROF_OK;
    if (mtb_writer_init(&writer, output->write, output->context)) {
        status = exporters[format].write(&job);
    }
    if (status == MTPROF_OK) {
        status = mtprof__export_damage(&job);
    }
    job.report.bytes = mtb_writer_total(&writer);
    job.report.bytes_written = job.report.bytes;
    job.report.replaced = writer.replaced;
    int error = mtb_writer_finish(&writer);
    if (status == MTPROF_OK && error != 0) {
        status = fail_writing(&job, error);
    }
    if (status == MTPROF_OK) {
        job_tell(&job);
    }
    return status;
}

/* ---- several models -------------------------------------------------------------------------- */

typedef struct several {
    mtprof__export_function *write;
    uint32_t count;
    mtprof__export_next *next;
    void *context;
} several;

static int write_several(mtprof__export_job *job, const several *all)
{
    mtprof_export_report sums = {0};
    for (uint32_t i = 0; i < all->count; i++) {
        mtprof__export_merge *merge = job->merge;
        merge->index = i;
        merge->count = all->count;
        merge->n_pids = 0;
        MT_TRY(all->next(all->context, i, &job->model, merge));
        job->info = (mtprof_model_info){.struct_size = sizeof job->info};
        MT_TRY(mtprof_model_get_info(job->model, &job->info));
        job->info.pid = (uint64_t)mtprof__export_pid(job, (int64_t)job->info.pid);
        job->report = (mtprof_export_report){0};
        MT_TRY(all->write(job));
        MT_TRY(mtprof__export_damage(job));
        sums.events += job->report.events;
        sums.clamped += job->report.clamped;
        sums.unordered += job->report.unordered;
        sums.problems += job->report.problems;
        sums.left_out += job->report.left_out;
    }
    job->report = sums;
    return MTPROF_OK;
}

int mtprof__export_several(const char *path, enum mtprof_export_format format, uint32_t count,
                           mtprof__export_next *next, void *context, mtprof__export_merge *merge,
                           mtprof_export_report *report)
{
    struct mtprof__export_parts parts = {0};
    const several all = {exporters[format].write, count, next, context};
    mtprof__export_job job = {.path = path, .parts = &parts, .merge = merge};
    MT_TRY(check_path(path));
    job.writer = &parts.writer;
    int status = open_part(&job);
    if (status == MTPROF_OK) {
        status = write_several(&job, &all);
    }
    if (status == MTPROF_OK) {
        status = close_part(&job);
    }
    if (status == MTPROF_OK) {
        status = commit_parts(&parts);
    }
    drop_parts(&parts);
    if (status == MTPROF_OK) {
        *report = job.report;
    }
    return status;
}

void mtprof_remove_unfinished(void)
{
    mtb_files_remove_all();
}

mtprof_status mtprof_averages_export_chrome(mtprof_averages *averages, const char *path,
                                            const mtprof_export_options *options)
{
    mtprof__export_job job = {.model = NULL};
    if (averages == NULL) {
        return mtb_fail(MTPROF_EINVAL, "averages_export_chrome: averages is NULL");
    }
    MT_TRY(job_init(&job, mtprof_averages_model(averages), options));
    MT_TRY(check_path(path));
    job.info.struct_size = sizeof job.info;
    if (job.model != NULL) { /* rows that were given have none */
        MT_TRY(mtprof_model_get_info(job.model, &job.info));
    }
    job.averages = averages;
    return job_to_path(&job, mtprof__export_averages, path);
}
