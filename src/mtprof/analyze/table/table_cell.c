/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts and numbers as a table shows them (TB1 to TB3 in table_impl.h).
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/analyze/table/table_impl.h"

#include <mtprof/status.h>

#include <stdio.h>
#include <string.h>

/* ---- texts ----------------------------------------------------------------------------------- */

enum {
    ESCAPE_BYTES = 8
};

static uint32_t decode(const char *bytes, unsigned length)
{
    static const unsigned char masks[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t point = (unsigned char)bytes[0] & masks[length];
    for (unsigned i = 1; i < length; i++) {
        point = point << 6 | ((unsigned char)bytes[i] & 0x3F);
    }
    return point;
}

/* Characters that move the cursor, start another line or turn the direction of writing. */
static bool is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x2028 || point == 0x2029 ||
           (point >= 0x200E && point <= 0x200F) || (point >= 0x202A && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

/* As Python's repr() shows them. */
static unsigned put_escape(char *out, uint32_t point)
{
    static const char hex[] = "0123456789abcdef";
    const char *shorts = "\n\r\t";
    const char *at = point != 0 && point < 0x20 ? strchr(shorts, (int)point) : NULL;
    out[0] = '\\';
    if (at != NULL) {
        out[1] = "nrt"[at - shorts];
        return 2;
    }
    unsigned digits = point < 0x100 ? 2 : 4;
    out[1] = point < 0x100 ? 'x' : 'u';
    for (unsigned i = 0; i < digits; i++) {
        out[2 + i] = hex[point >> 4 * (digits - 1 - i) & 15];
    }
    return 2 + digits;
}

/* The next piece of a text: how many bytes it is made from, and what replaces it (at most
 * ESCAPE_BYTES, *n_out bytes, *characters characters). */
static size_t next_piece(const char *bytes, size_t length, char *out, unsigned *n_out,
                         unsigned *characters)
{
    static const char replacement[3] = {'\xEF', '\xBF', '\xBD'};
    unsigned bad = 0;
    unsigned n = mtb_utf8_length(bytes, length, &bad);
    if (n == 0) {
        memcpy(out, replacement, sizeof replacement);
        *n_out = 3;
        *characters = 1;
        return bad;
    }
    uint32_t point = decode(bytes, n);
    if (is_control(point)) {
        *n_out = put_escape(out, point);
        *characters = *n_out;
        return n;
    }
    memcpy(out, bytes, n);
    *n_out = n;
    *characters = 1;
    return n;
}

static bool is_plain(mtprof_text text)
{
    unsigned char odd = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.bytes[i];
        odd |= (unsigned char)(byte < 0x20 || byte > 0x7E);
    }
    return odd == 0;
}

int mtprof__cell_reserve(mtprof__cell_buffer *buffer, size_t bytes)
{
    void *block = buffer->bytes;
    if (!mtb_grow(&block, &buffer->capacity, bytes, 1)) {
        return mtb_fail(MTPROF_ENOMEM, "table: no memory for a cell of %zu bytes", bytes);
    }
    buffer->bytes = block;
    return 0;
}

int mtprof__cell_safe(mtprof__cell_buffer *buffer, mtprof_text text, mtprof__cell *out)
{
    *out = (mtprof__cell){text.bytes, text.length, text.length};
    if (is_plain(text)) {
        return 0;
    }
    size_t length = 0;
    size_t characters = 0;
    for (size_t at = 0; at < text.length;) {
        unsigned n, counted;
        MT_TRY(mtprof__cell_reserve(buffer, length + ESCAPE_BYTES));
        at += next_piece(text.bytes + at, text.length - at, buffer->bytes + length, &n, &counted);
        length += n;
        characters += counted;
    }
    *out = (mtprof__cell){buffer->bytes, length, characters};
    return 0;
}

size_t mtprof__cell_characters(mtprof_text text)
{
    if (is_plain(text)) {
        return text.length;
    }
    size_t characters = 0;
    for (size_t at = 0; at < text.length;) {
        char piece[ESCAPE_BYTES];
        unsigned n, counted;
        at += next_piece(text.bytes + at, text.length - at, piece, &n, &counted);
        characters += counted;
    }
    return characters;
}

size_t mtprof__cell_prefix(const mtprof__cell *cell, size_t n)
{
    if (cell->length == cell->characters) {
        return n < cell->length ? n : cell->length;
    }
    size_t at = 0;
    for (; at < cell->length; at++) {
        bool starts = ((unsigned char)cell->bytes[at] & 0xC0) != 0x80;
        if (starts && n-- == 0) {
            break;
        }
    }
    return at;
}

void mtprof__cell_buffer_fini(mtprof__cell_buffer *buffer)
{
    mtb_free(buffer->bytes);
    *buffer = (mtprof__cell_buffer){0};
}

/* ---- numbers --------------------------------------------------------------------------------- */

size_t mtprof__put_fixed(char *buffer, double value, int decimals)
{
    int printed = snprintf(buffer, MTPROF__NUMBER_BYTES, "%.*f", decimals, value);
    size_t length = printed > 0 ? (size_t)printed : 0;
    size_t digits = (size_t)decimals;
    /* The program's locale may have put something else, of any length, where the point goes. */
    size_t whole = buffer[0] == '-' ? 1 : 0;
    while (whole < length && buffer[whole] >= '0' && buffer[whole] <= '9') {
        whole++;
    }
    if (digits == 0 || length < whole + 1 + digits) {
        return length;
    }
    memmove(buffer + whole + 1, buffer + length - digits, digits);
    buffer[whole] = '.';
    return whole + 1 + digits;
}

static size_t put_with_unit(char *buffer, double value, int decimals, const char *unit)
{
    size_t length = mtprof__put_fixed(buffer, value, decimals);
    size_t n = strlen(unit);
    if (length + n >= MTPROF__NUMBER_BYTES) {
        return length;
    }
    memcpy(buffer + length, unit, n + 1);
    return length + n;
}

size_t mtprof__put_time(char *buffer, double us, const char *unit)
{
    if (unit != NULL && strcmp(unit, "s") == 0) {
        return put_with_unit(buffer, us / 1e6, 3, "s");
    }
    if (unit != NULL && strcmp(unit, "ms") == 0) {
        return put_with_unit(buffer, us / 1e3, 3, "ms");
    }
    if ((unit != NULL && strcmp(unit, "us") == 0) || us < 1e3) {
        return put_with_unit(buffer, us, 3, "us");
    }
    return us >= 1e6 ? put_with_unit(buffer, us / 1e6, 3, "s")
                     : put_with_unit(buffer, us / 1e3, 3, "ms");
}

size_t mtprof__put_memory(char *buffer, int64_t bytes)
{
    static const char *const units[] = {" KB", " MB", " GB"};
    uint64_t magnitude = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    if (magnitude < 1024) {
        char *end = mtb_put_i64(buffer, bytes);
        memcpy(end, " B", 3);
        return (size_t)(end - buffer) + 2;
    }
    unsigned scale = magnitude >= UINT64_C(1) << 30 ? 3 : magnitude >= UINT64_C(1) << 20 ? 2 : 1;
    return put_with_unit(buffer, (double)bytes / (double)(UINT64_C(1) << 10 * scale), 2,
                         units[scale - 1]);
}

size_t mtprof__put_share(char *buffer, double part, double whole)
{
    if (whole == 0) {
        memcpy(buffer, "NaN", 4);
        return 3;
    }
    return put_with_unit(buffer, part * 100.0 / whole, 2, "%");
}
