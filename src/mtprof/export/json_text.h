/* SPDX-License-Identifier: Apache-2.0
 *
 * Foreign JSON that is embedded in our JSON.
 */
#ifndef MTPROF_EXPORT_JSON_TEXT_H
#define MTPROF_EXPORT_JSON_TEXT_H

#include "base/text_writer.h"

#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    MTPROF__EMBED_DEPTH = 128 /* less than Chrome reads (200); what is deeper becomes a string */
};

/* Whether a text can be embedded in our files unchanged: JSON of at most MTPROF__EMBED_DEPTH
 * levels. */
bool mtprof__json_valid(const char *text, size_t length);

/* A text for which mtprof__json_valid() holds, on one line, with a blank after colons and commas
 * and none elsewhere: readers look for `"rank": 0`. */
void mtprof__json_write_spaced(mtb_writer *writer, const char *text, size_t length);

/* The value of a piece of metadata: a number, a bool, JSON as it is, or a string. JSON that is not
 * valid becomes a string. */
void mtprof__json_write_metadatum(mtb_writer *writer, const mtprof_metadatum *item);

#endif /* MTPROF_EXPORT_JSON_TEXT_H */
