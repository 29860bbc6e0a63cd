/* SPDX-License-Identifier: Apache-2.0
 *
 * What the text exporters share: metrics by name, and texts that fit into a line.
 */
#ifndef MTPROF_EXPORT_TEXT_EXPORT_TEXT_H
#define MTPROF_EXPORT_TEXT_EXPORT_TEXT_H

#include "mtprof/export/export_impl.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether options.metric means the time of devices; NULL means that of the host. Fails with EINVAL
 * (the message lists the metrics). */
int mtprof__export_metric(const mtprof__export_job *job, bool *device);

/* A frame of a folded stack: blanks, semicolons and control characters become "_", and so does a
 * frame without any; bytes that are not UTF-8 become U+FFFD and are counted. */
void mtprof__write_folded(mtb_writer *writer, const char *text, size_t length);

/* A field of CSV (RFC 4180): quoted where it must be. NUL and bytes that are not UTF-8 become
 * U+FFFD and are counted. */
void mtprof__write_csv(mtb_writer *writer, const char *text, size_t length);

#endif /* MTPROF_EXPORT_TEXT_EXPORT_TEXT_H */
