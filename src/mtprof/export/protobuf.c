/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/protobuf.h"

#include "base/text_writer.h"

void mtprof__pb_text(mtprof__pb *pb, uint32_t field, const char *text, size_t length,
                     uint64_t *replaced)
{
    size_t from = 0;
    size_t at = 0;
    unsigned bad = 0;
    size_t start = mtprof__pb_begin(pb, field);
    while (at < length) {
        unsigned n = mtb_utf8_length(text + at, length - at, &bad);
        if (n == 0) {
            mtprof__pb_raw(pb, text + from, at - from);
            mtprof__pb_raw(pb, "\xEF\xBF\xBD", 3);
            *replaced += bad;
            from = at + bad;
            n = bad;
        }
        at += n;
    }
    if (from < length) {
        mtprof__pb_raw(pb, text + from, length - from);
    }
    mtprof__pb_end(pb, start);
}
