/* SPDX-License-Identifier: Apache-2.0
 *
 * A model of a file, whatever wrote it: the first bytes decide.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/import/import_impl.h"

#include <mtprof/format.h>

#include <string.h>

static void import_fini(mtprof__import *import)
{
    for (size_t t = 0; t < import->n_tracks; t++) {
        mtprof__run_fini(&import->tracks[t].run);
        mtb_free(import->tracks[t].open);
    }
    mtb_free(import->tracks);
    mtb_idmap_reset(&import->track_map);
    mtprof__cache_fini(&import->names);
    mtprof__cache_fini(&import->inputs);
    mtprof__cache_fini(&import->stacks);
    mtprof__cache_fini(&import->metadata);
    mtb_free(import->scratch);
    mtb_free(import->points);
    mtb_free(import->asyncs);
    mtb_free(import->async_heads);
    mtb_free(import->head_checks);
    mtb_idmap_reset(&import->async_map);
    mtb_free(import->steps);
    mtb_free(import->processes);
    mtb_free(import);
}

int mtprof__import_source(mtprof__source *source, const mtprof_model_options *options,
                          mtprof_model **out)
{
    mtprof_model *model = NULL;
    *out = NULL;
    MT_TRY(mtprof__model_new_foreign(options, &model));
    mtprof__import *import = mtb_calloc(1, sizeof *import);
    if (import == NULL) {
        mtprof_model_free(model);
        return mtb_fail(MTPROF_ENOMEM, "open trace: %s: %zu bytes", source->path, sizeof *import);
    }
    import->model = model;
    import->source = source;
    import->first_ns = INT64_MAX;
    import->last_ns = INT64_MIN;
    int status = mtprof__import_document(import);
    if (status == MTPROF_OK) {
        status = mtprof__import_finish(import);
    }
    import_fini(import);
    if (status != MTPROF_OK) {
        mtprof_model_free(model);
        return status;
    }
    *out = model;
    return MTPROF_OK;
}

static int open_native(const char *path, const mtprof_model_options *options, mtprof_model **out)
{
    mtprof_reader *reader = NULL;
    MT_TRY(mtprof_reader_open(path, &reader));
    int status = mtprof_model_take_reader(reader, options, out);
    if (status != MTPROF_OK) {
        mtprof_reader_close(reader);
    }
    return status;
}

/* Our files begin with the magic, or with a hole where a dying process never wrote its header: the
 * reader has the words for that. */
static bool is_native(const mtprof__source *source)
{
    unsigned char head[sizeof(uint64_t)] = {0};
    uint64_t magic = MTPROF_FILE_MAGIC;
    size_t n = mtprof__source_head(source, head, sizeof head);
    return n == sizeof head && (memcmp(head, &magic, sizeof magic) == 0 || head[0] == 0);
}

mtprof_status mtprof_model_open(const char *path, const mtprof_model_options *options,
                                mtprof_model **out)
{
    if (path == NULL || out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "open trace: %s is NULL", path == NULL ? "path" : "out");
    }
    *out = NULL;
    mtprof__source source;
    int status = mtprof__source_open(&source, path);
    if (status == MTPROF_OK && is_native(&source)) {
        mtprof__source_close(&source);
        return open_native(path, options, out);
    }
    if (status == MTPROF_OK) {
        status = mtprof__import_source(&source, options, out);
    }
    mtprof__source_close(&source);
    return status;
}
