/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's table in one call, and the output that is a file descriptor.
 */
#include "base/fail.h"

#include <mtprof/averages.h>
#include <mtprof/model.h>
#include <mtprof/output.h>

#include <errno.h>
#include <unistd.h>

int mtprof_write_fd(void *context, const void *bytes, size_t length)
{
    const int *fd = context;
    const char *next = bytes;
    while (length > 0) {
        ssize_t n = write(*fd, next, length);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        next += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int write_table(mtprof_averages *averages, int fd, const mtprof_table_options *options)
{
    const mtprof_table_options fit = {.struct_size = sizeof fit, .format = MTPROF_TABLE_FIT};
    const mtprof_output output = {
        .struct_size = sizeof output, .context = &fd, .write = mtprof_write_fd};
    MT_TRY(mtprof_averages_sort(averages, "self_cpu_time_total"));
    return mtprof_averages_table(averages, options != NULL ? options : &fit, &output);
}

mtprof_status mtprof_session_report(mtprof_session *session, int fd,
                                    const mtprof_table_options *options)
{
    mtprof_model *model = NULL;
    mtprof_averages *averages = NULL;
    MT_TRY(mtprof_model_from_session(session, NULL, &model));
    int status = mtprof_averages_new(model, NULL, &averages);
    if (status == MTPROF_OK) {
        status = write_table(averages, fd, options);
    }
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    return status;
}
