/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/read/any_file.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/read/trace_bytes.h"

#include <mtprof/format.h>
#include <mtprof/status.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    PACKED_BYTES = 1 << 18
};

/* ---- what it is ---- */

static bool looks_native(const unsigned char *head, size_t n)
{
    const uint64_t magic = MTPROF_FILE_MAGIC;
    return n >= sizeof magic && (memcmp(head, &magic, sizeof magic) == 0 || head[0] == 0);
}

static bool looks_like_json(const mtprof__any_file *file)
{
    size_t i = 0;
    while (i < file->n_head && file->head[i] != 0 && strchr(" \t\r\n", file->head[i]) != NULL) {
        i++;
    }
    return i == file->n_head ? i == sizeof file->head
                             : file->head[i] == '{' || file->head[i] == '[';
}

int mtprof__any_file_open(mtprof__any_file *file, const char *task, const char *path)
{
    *file = (mtprof__any_file){.task = task, .path = path};
    MT_TRY(mtprof__open_regular(task, path, &file->fd, &file->file_bytes));
    int64_t n = mtprof__read_at(file->fd, file->head, sizeof file->head, 0);
    if (n < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "%s: read %s", task, path);
    }
    file->n_head = (size_t)n;
    file->kind = looks_native(file->head, file->n_head)  ? MTPROF__FILE_NATIVE
                 : mtb_gzip_is(file->head, file->n_head) ? MTPROF__FILE_GZIP
                 : looks_like_json(file)                 ? MTPROF__FILE_JSON
                                                         : MTPROF__FILE_OTHER;
    return MTPROF_OK;
}

int mtprof__any_file_open_memory(mtprof__any_file *file, const char *task, const char *path,
                                 const void *bytes, size_t length)
{
    *file = (mtprof__any_file){.task = task, .path = path, .fd = -1, .file_bytes = length};
    file->packed = mtb_calloc(length + 1, 1);
    if (file->packed == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "%s: %s: no memory for %zu bytes", task, path, length);
    }
    memcpy(file->packed, bytes, length);
    file->packed_end = length;
    return MTPROF_OK;
}

void mtprof__any_file_close(mtprof__any_file *file)
{
    mtb_inflate_close(file->inflate);
    mtb_free(file->packed);
    if (file->fd >= 0) {
        close(file->fd);
    }
    *file = (mtprof__any_file){.fd = -1};
}

/* ---- its text ---- */

static int inflate_failed(mtprof__any_file *file, int error)
{
    switch (error) {
    case ENOMEM:
        return mtb_fail(MTPROF_ENOMEM, "%s: %s: no memory to inflate it", file->task, file->path);
    case ENOTSUP:
        return mtb_fail(MTPROF_ENOTSUP,
                        "%s: %s is gzipped and neither ISA-L nor zlib is there; install one of "
                        "them or gunzip the file first",
                        file->task, file->path);
    default:
        file->damaged = true;
        return mtb_fail_at(MTPROF_EFORMAT, (int64_t)file->read_bytes,
                           "%s: %s: damaged gzip before byte %llu of the file; is the download or "
                           "copy complete?",
                           file->task, file->path, (unsigned long long)file->read_bytes);
    }
}

int mtprof__any_file_begin(mtprof__any_file *file)
{
    if (file->kind != MTPROF__FILE_GZIP) {
        return MTPROF_OK;
    }
    file->packed = mtb_calloc(PACKED_BYTES, 1);
    int error = file->packed != NULL ? mtb_inflate_open(&file->inflate) : ENOMEM;
    return error == 0 ? MTPROF_OK : inflate_failed(file, error);
}

static int read_bytes(mtprof__any_file *file, void *buffer, size_t room, size_t *made)
{
    int64_t n = mtprof__read_at(file->fd, buffer, room, file->read_bytes);
    if (n < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "%s: %s: read at byte %llu", file->task,
                              file->path, (unsigned long long)file->read_bytes);
    }
    file->read_bytes += (uint64_t)n;
    *made = (size_t)n;
    return MTPROF_OK;
}

static int read_packed(mtprof__any_file *file, void *buffer, size_t room, size_t *made)
{
    while (*made == 0) {
        if (file->packed_at == file->packed_end) {
            file->packed_at = 0;
            MT_TRY(read_bytes(file, file->packed, PACKED_BYTES, &file->packed_end));
        }
        size_t left = file->packed_end - file->packed_at;
        size_t taken = 0;
        int error = file->damaged ? EBADMSG
                                  : mtb_inflate_run(file->inflate, file->packed + file->packed_at,
                                                    left, &taken, buffer, room, made);
        file->packed_at += taken;
        if (error == EBADMSG && *made > 0) {
            file->damaged = true; /* what came before is given first */
        } else if (error != 0) {
            return inflate_failed(file, error);
        }
        if (left == 0 && *made == 0) {
            break;
        }
    }
    return MTPROF_OK;
}

int mtprof__any_file_read(mtprof__any_file *file, void *buffer, size_t room, size_t *made)
{
    *made = 0;
    if (file->inflate != NULL) {
        return read_packed(file, buffer, room, made);
    }
    if (file->fd >= 0) {
        return read_bytes(file, buffer, room, made);
    }
    size_t left = file->packed_end - file->packed_at;
    *made = left < room ? left : room;
    memcpy(buffer, file->packed + file->packed_at, *made);
    file->packed_at += *made;
    file->read_bytes += *made;
    return MTPROF_OK;
}
