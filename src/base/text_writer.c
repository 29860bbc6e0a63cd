/* SPDX-License-Identifier: Apache-2.0
 */
#include "base/text_writer.h"

#include "base/alloc.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PAIRS(t) t "0" t "1" t "2" t "3" t "4" t "5" t "6" t "7" t "8" t "9"

const char mtb_digit_pairs[201] = PAIRS("0") PAIRS("1") PAIRS("2") PAIRS("3") PAIRS("4") PAIRS("5")
    PAIRS("6") PAIRS("7") PAIRS("8") PAIRS("9");

bool mtb_writer_init(mtb_writer *writer, int (*sink)(void *context, const void *bytes, size_t n),
                     void *context)
{
    *writer = (mtb_writer){.sink = sink, .context = context};
    writer->buffer = mtb_resize(NULL, MTB_WRITER_BYTES, 1);
    if (writer->buffer == NULL) {
        writer->error = ENOMEM;
        return false;
    }
    return true;
}

void mtb_writer_flush(mtb_writer *writer)
{
    if (writer->error == 0 && writer->used > 0) {
        writer->error = writer->sink(writer->context, writer->buffer, writer->used);
    }
    writer->flushed += writer->used;
    writer->used = 0;
}

int mtb_writer_finish(mtb_writer *writer)
{
    if (writer->buffer != NULL) {
        mtb_writer_flush(writer);
        mtb_free(writer->buffer);
        writer->buffer = NULL;
    }
    return writer->error;
}

void mtb_write_long(mtb_writer *writer, const void *bytes, size_t length)
{
    const char *from = bytes;
    while (length > 0) {
        if (writer->used == MTB_WRITER_BYTES) {
            mtb_writer_flush(writer);
        }
        size_t room = MTB_WRITER_BYTES - writer->used;
        size_t n = length < room ? length : room;
        memcpy(writer->buffer + writer->used, from, n);
        writer->used += n;
        from += n;
        length -= n;
    }
}

void mtb_write_text(mtb_writer *writer, const char *text)
{
    mtb_write(writer, text, strlen(text));
}

void mtb_write_format(mtb_writer *writer, const char *format, ...)
{
    va_list list;
    char *at = mtb_writer_room(writer, MTB_WRITER_ROOM);
    va_start(list, format);
    int n = vsnprintf(at, MTB_WRITER_ROOM, format, list);
    va_end(list);
    MT_ASSERT(n >= 0 && n < MTB_WRITER_ROOM);
    mtb_writer_took(writer, at + n);
}

/* ---- numbers --------------------------------------------------------------------------------- */

enum {
    NUMBER_BYTES = 40
};

void mtb_write_u64(mtb_writer *writer, uint64_t value)
{
    mtb_writer_took(writer, mtb_put_u64(mtb_writer_room(writer, NUMBER_BYTES), value));
}

void mtb_write_i64(mtb_writer *writer, int64_t value)
{
    mtb_writer_took(writer, mtb_put_i64(mtb_writer_room(writer, NUMBER_BYTES), value));
}

void mtb_write_thousandths(mtb_writer *writer, int64_t value)
{
    mtb_writer_took(writer, mtb_put_thousandths(mtb_writer_room(writer, NUMBER_BYTES), value));
}

/* printf and strtod follow the program's locale, which may have a decimal comma. Both directions
 * are undone here, so the text is the same in every locale. */
void mtb_write_double(mtb_writer *writer, double value)
{
    char text[NUMBER_BYTES];
    if (!isfinite(value)) {
        mtb_write_literal(writer, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    bool has_point = false;
    size_t n = 0;
    for (; text[n] != '\0'; n++) {
        bool digit = text[n] >= '0' && text[n] <= '9';
        if (!digit && text[n] != '-' && text[n] != '+' && text[n] != 'e') {
            text[n] = '.';
        }
        has_point = has_point || text[n] == '.' || text[n] == 'e';
    }
    mtb_write(writer, text, n);
    if (!has_point) {
        mtb_write_literal(writer, ".0");
    }
}

/* ---- JSON strings ---------------------------------------------------------------------------- */

/* Number of continuation bytes, and the range of the second byte, which excludes over-long forms,
 * surrogates and code points past U+10FFFF. */
unsigned mtb_utf8_length(const char *bytes, size_t length, unsigned *bad)
{
    const unsigned char *p = (const unsigned char *)bytes;
    unsigned char first = p[0];
    unsigned n = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    *bad = 1;
    if (n == 0 || first > 0xF4) {
        return 0;
    }
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    for (unsigned i = 1; i < n; i++) {
        if (i >= length || p[i] < low || p[i] > high) {
            *bad = i;
            return 0;
        }
        low = 0x80;
        high = 0xBF;
    }
    return n;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

static void write_escaped(mtb_writer *writer, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char short_forms[] = "\b\f\n\r\t\"\\";
    static const char letters[] = "bfnrt\"\\";
    const char *at = c == '\0' ? NULL : strchr(short_forms, c);
    if (at != NULL) {
        const char text[2] = {'\\', letters[at - short_forms]};
        mtb_write(writer, text, 2);
    } else {
        const char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        mtb_write(writer, text, 6);
    }
}

void mtb_write_json_inner(mtb_writer *writer, const char *bytes, size_t length)
{
    size_t from = 0; /* start of the bytes that are copied unchanged */
    size_t at = 0;
    while (at < length) {
        unsigned char c = (unsigned char)bytes[at];
        if (is_plain(c)) {
            at++;
            continue;
        }
        unsigned bad = 0;
        unsigned n = mtb_utf8_length(bytes + at, length - at, &bad);
        if (n > 1) {
            at += n;
            continue;
        }
        mtb_write(writer, bytes + from, at - from);
        if (n == 1) {
            write_escaped(writer, c);
            at++;
        } else {
            mtb_write_literal(writer, "\xEF\xBF\xBD");
            writer->replaced += bad;
            at += bad;
        }
        from = at;
    }
    if (from < length) {
        mtb_write(writer, bytes + from, length - from); /* bytes may be NULL for an empty text */
    }
}

void mtb_write_json(mtb_writer *writer, const char *bytes, size_t length)
{
    mtb_write_literal(writer, "\"");
    mtb_write_json_inner(writer, bytes, length);
    mtb_write_literal(writer, "\"");
}

/* ---- HTML ------------------------------------------------------------------------------------ */

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

void mtb_write_html(mtb_writer *writer, const char *bytes, size_t length)
{
    unsigned bad = 0;
    for (size_t at = 0; at < length;) {
        unsigned n = mtb_utf8_length(bytes + at, length - at, &bad);
        const char *named = entity(bytes[at]);
        if (n == 0 || bytes[at] == '\0') {
            n = n == 0 ? bad : 1;
            writer->replaced += n;
            mtb_write_literal(writer, "\xEF\xBF\xBD");
        } else if (named != NULL) {
            mtb_write_text(writer, named);
        } else {
            mtb_write(writer, bytes + at, n);
        }
        at += n;
    }
}
