/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/json_text.h"

#include "base/json/json_strict.h"

#include <mtprof/format.h>

bool mtprof__json_valid(const char *text, size_t length)
{
    return mtb_json_is_valid(text, length, MTPROF__EMBED_DEPTH);
}

void mtprof__json_write_spaced(mtb_writer *writer, const char *text, size_t length)
{
    const char *end = text + length;
    while (text < end) {
        if (*text == '"') {
            const char *from = text++;
            while (*text != '"') {
                text += *text == '\\' ? 2 : 1;
            }
            text++;
            mtb_write(writer, from, (size_t)(text - from));
        } else if (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r') {
            text++;
        } else {
            mtb_write(writer, text, 1);
            if (*text == ',' || *text == ':') {
                mtb_write_literal(writer, " ");
            }
            text++;
        }
    }
}

void mtprof__json_write_metadatum(mtb_writer *writer, const mtprof_metadatum *item)
{
    double real;
    switch (item->type) {
    case MTPROF_META_INT: mtb_write_i64(writer, (int64_t)item->value); break;
    case MTPROF_META_UINT: mtb_write_u64(writer, item->value); break;
    case MTPROF_META_REAL:
        memcpy(&real, &item->value, sizeof real);
        mtb_write_double(writer, real);
        break;
    case MTPROF_META_BOOL: mtb_write_text(writer, item->value != 0 ? "true" : "false"); break;
    default:
        if (item->is_json != 0 && mtprof__json_valid(item->text.bytes, item->text.length)) {
            mtprof__json_write_spaced(writer, item->text.bytes, item->text.length);
        } else {
            mtb_write_json(writer, item->text.bytes, item->text.length);
        }
        break;
    }
}
