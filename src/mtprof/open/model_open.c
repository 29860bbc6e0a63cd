/* SPDX-License-Identifier: Apache-2.0
 *
 * A model of a file, whatever wrote it: the first bytes decide.
 */
#include "base/fail.h"
#include "mtprof/import/import_impl.h"

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

mtprof_status mtprof_model_open(const char *path, const mtprof_model_options *options,
                                mtprof_model **out)
{
    if (path == NULL || out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "open trace: %s is NULL", path == NULL ? "path" : "out");
    }
    *out = NULL;
    mtprof__any_file file;
    mtprof__source source;
    int status = mtprof__any_file_open(&file, "open trace", path);
    if (status != MTPROF_OK || file.kind == MTPROF__FILE_NATIVE) {
        mtprof__any_file_close(&file);
        return status != MTPROF_OK ? status : open_native(path, options, out);
    }
    status = mtprof__source_begin(&source, &file);
    if (status == MTPROF_OK) {
        status = mtprof__import_source(&source, options, out);
    }
    mtprof__source_close(&source);
    return status;
}
