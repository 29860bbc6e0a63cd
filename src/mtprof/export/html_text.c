/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/html_text.h"

#include <string.h>

void mtprof__write_script_inner(mtb_writer *writer, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *found = memchr(text + at, '<', length - at);
        size_t plain = found != NULL ? (size_t)(found - text) - at : length - at;
        mtb_write_json_inner(writer, text + at, plain);
        at += plain;
        if (found != NULL) {
            mtb_write_literal(writer, "\\u003c");
            at++;
        }
    }
}

void mtprof__write_script_string(mtb_writer *writer, const char *text, size_t length)
{
    mtb_write_literal(writer, "\"");
    mtprof__write_script_inner(writer, text, length);
    mtb_write_literal(writer, "\"");
}

void mtprof__write_lines(mtb_writer *writer, const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        mtb_write_text(writer, *lines);
        mtb_write_literal(writer, "\n");
    }
}
