/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts in scripts of pages: nothing that a trace holds is ever taken for markup or script
 * (mtb_write_html() is for texts between tags).
 */
#ifndef MTPROF_EXPORT_HTML_TEXT_H
#define MTPROF_EXPORT_HTML_TEXT_H

#include "base/text_writer.h"

#include <stddef.h>

/* A string of JavaScript: JSON, in which no "<" can end the script. */
void mtprof__write_script_string(mtb_writer *writer, const char *text, size_t length);
/* The same without the quotes. */
void mtprof__write_script_inner(mtb_writer *writer, const char *text, size_t length);
/* Fixed lines, NULL after the last. */
void mtprof__write_lines(mtb_writer *writer, const char *const *lines);

#endif /* MTPROF_EXPORT_HTML_TEXT_H */
