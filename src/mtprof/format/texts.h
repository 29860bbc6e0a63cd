/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing texts, which are not terminated and may hold any bytes.
 */
#ifndef MTPROF_FORMAT_TEXTS_H
#define MTPROF_FORMAT_TEXTS_H

#include "base/compiler.h"

#include <mtprof/reader.h>

#include <stdbool.h>
#include <string.h>

MT_INLINE bool mtprof__text_same(mtprof_text a, mtprof_text b)
{
    return a.length == b.length &&
           (a.bytes == b.bytes || a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* `other`, `start` and `end` are terminated. */
MT_INLINE bool mtprof__text_is(mtprof_text text, const char *other)
{
    return mtprof__text_same(text, (mtprof_text){other, strlen(other)});
}

MT_INLINE bool mtprof__text_starts(mtprof_text text, const char *start)
{
    size_t n = strlen(start);
    return text.length >= n && memcmp(text.bytes, start, n) == 0;
}

MT_INLINE bool mtprof__text_ends(mtprof_text text, const char *end)
{
    size_t n = strlen(end);
    return text.length >= n && memcmp(text.bytes + text.length - n, end, n) == 0;
}

/* By bytes, as memcmp(); of two that begin alike the shorter one first. */
MT_INLINE int mtprof__text_order(mtprof_text a, mtprof_text b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common != 0 ? memcmp(a.bytes, b.bytes, common) : 0;
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

#endif /* MTPROF_FORMAT_TEXTS_H */
