/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/import/import_source.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <mtprof/status.h>

#include <string.h>

/* Makes the window hold `capacity` bytes. */
static int resize_window(mtprof__source *source, size_t capacity)
{
    char *window = mtb_resize(source->window, capacity + 1 + MTB_SCAN_PAD, 1);
    if (window == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: %s: no memory for %zu bytes", source->file.path,
                        capacity);
    }
    source->window = window;
    source->capacity = capacity;
    return MTPROF_OK;
}

int mtprof__source_fill(mtprof__source *source)
{
    if (source->begin > 0) {
        memmove(source->window, source->window + source->begin, source->end - source->begin);
        source->offset += source->begin;
        source->end -= source->begin;
        source->begin = 0;
    } else if (source->end == source->capacity) {
        if (source->capacity >= MTPROF__SOURCE_MOST) {
            return mtb_fail_at(MTPROF_ENOTSUP, (int64_t)source->offset,
                               "open trace: %s: the item at byte %llu is larger than %u MiB",
                               source->file.path, (unsigned long long)source->offset,
                               MTPROF__SOURCE_MOST >> 20);
        }
        MT_TRY(resize_window(source, source->capacity * 2));
    }
    while (source->end < source->capacity && !source->ended) {
        size_t made = 0;
        MT_TRY(mtprof__any_file_read(&source->file, source->window + source->end,
                                     source->capacity - source->end, &made));
        source->ended = made == 0;
        source->end += made;
    }
    /* json_scan.h JSC1 */
    source->window[source->end] = '"';
    memset(source->window + source->end + 1, 0, MTB_SCAN_PAD);
    return MTPROF_OK;
}

int mtprof__source_begin(mtprof__source *source, mtprof__any_file *file)
{
    *source = (mtprof__source){.file = *file};
    *file = (mtprof__any_file){.fd = -1};
    MT_TRY(mtprof__any_file_begin(&source->file));
    return resize_window(source, MTPROF__SOURCE_BYTES);
}

int mtprof__source_open_memory(mtprof__source *source, const char *path, const void *bytes,
                               size_t length)
{
    *source = (mtprof__source){.window = NULL};
    MT_TRY(mtprof__any_file_open_memory(&source->file, "open trace", path, bytes, length));
    /* Small, so that items meet the window's edge. */
    return resize_window(source, 64);
}

void mtprof__source_close(mtprof__source *source)
{
    mtprof__any_file_close(&source->file);
    mtb_free(source->window);
    source->window = NULL;
}
