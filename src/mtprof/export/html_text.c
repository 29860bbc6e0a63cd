/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/html_text.h"

#include <string.h>

static const char *entity(char c)
{
    switch (c) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void mtprof__write_html(mtb_writer *writer, const char *text, size_t length)
{
    unsigned bad = 0;
    for (size_t at = 0; at < length;) {
        unsigned n = mtb_utf8_length(text + at, length - at, &bad);
        const char *named = entity(text[at]);
        if (n == 0 || text[at] == '\0') {
            n = n == 0 ? bad : 1;
            writer->replaced += n;
            mtb_write_literal(writer, "\xEF\xBF\xBD");
        } else if (named != NULL) {
            mtb_write_text(writer, named);
        } else {
            mtb_write(writer, text + at, n);
        }
        at += n;
    }
}

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
