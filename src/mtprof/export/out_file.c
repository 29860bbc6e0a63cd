/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/out_file.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/new_file.h"

#include <mtprof/status.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WRITE_MOST = 1 << 30,
    RESERVE_FROM = 4 << 20, /* bytes; smaller files are written as they come */
    RESERVE_MOST = 256 << 20
};

int mtprof__write_status(int error)
{
    return mtb_is_full(error) ? MTPROF_ENOSPC : error == ENOMEM ? MTPROF_ENOMEM : MTPROF_EIO;
}

/* /dev/stdout and the like name a descriptor, even if that is open on a regular file. */
static bool names_descriptor(const char *path)
{
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/", 6) == 0;
}

static int open_somewhere(mtprof__out_file *out, const char *path, bool direct)
{
    struct stat there;
    if (names_descriptor(path)) { /* /dev/stdout is a link, to no file perhaps */
        out->file.fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        return out->file.fd < 0 ? errno : 0;
    }
    if (!direct && (stat(path, &there) != 0 || S_ISREG(there.st_mode))) {
        int error = mtb_new_file_open(&out->file, path);
        out->aside = error == 0;
        return error;
    }
    out->file.target = mtb_follow_links(path);
    if (out->file.target == NULL) {
        return errno;
    }
    out->file.fd = open(out->file.target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return out->file.fd < 0 ? errno : 0;
}

int mtprof__out_file_open(mtprof__out_file *file, const char *path, bool direct)
{
    *file = (mtprof__out_file){.file.fd = -1, .name = mtb_copy_text(path, strlen(path))};
    int error = file->name == NULL ? ENOMEM : open_somewhere(file, path, direct);
    if (error != 0) {
        mtprof__out_file_abandon(file);
        return mtb_fail_errno(mtprof__write_status(error), error, "export: cannot write %s", path);
    }
    return MTPROF_OK;
}

/* Takes room ahead for a file that grows large: the kernel then writes it in two thirds of the
 * time. Where that is refused (a full disk, another file system) it is written as it comes. */
static void reserve(mtprof__out_file *out, size_t length)
{
    uint64_t end = out->bytes + length;
    if (end <= out->reserved || out->bytes < RESERVE_FROM || !out->aside || out->as_it_comes) {
        return;
    }
    uint64_t ahead = end < RESERVE_MOST ? end : RESERVE_MOST;
    if (!mtb_past_file_limit(end + ahead) &&
        fallocate(out->file.fd, FALLOC_FL_KEEP_SIZE, (off_t)out->bytes, (off_t)(length + ahead)) ==
            0) {
        out->reserved = end + ahead;
    } else {
        out->as_it_comes = true;
    }
}

int mtprof__out_file_write(void *file, const void *bytes, size_t length)
{
    mtprof__out_file *out = file;
    const char *from = bytes;
    /* A pipe has no size, and of what else is written as it is the size is not ours to know. */
    if (out->aside && mtb_past_file_limit(out->bytes + length)) {
        return EFBIG;
    }
    reserve(out, length);
    while (length > 0) {
        ssize_t n = write(out->file.fd, from, length < WRITE_MOST ? length : WRITE_MOST);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        from += n;
        length -= (size_t)n;
        out->bytes += (uint64_t)n;
    }
    return 0;
}

int mtprof__out_file_close(mtprof__out_file *file)
{
    int fd = file->file.fd;
    if (fd < 0) {
        return MTPROF_OK;
    }
    if (file->reserved > file->bytes && ftruncate(fd, (off_t)file->bytes) != 0) {
        /* What was reserved and not needed stays with the file; its size is right all the same. */
    }
    int error = 0;
    if (file->aside) {
        error = mtb_new_file_close(&file->file);
    } else {
        file->file.fd = -1;
        error = close(fd) == 0 || errno == EINTR ? 0 : errno;
    }
    return error == 0 ? MTPROF_OK
                      : mtb_fail_errno(mtprof__write_status(error), error,
                                       "export: cannot write %s", file->name);
}

int mtprof__out_file_commit(mtprof__out_file *file)
{
    int error = file->aside ? mtb_new_file_commit(&file->file) : 0;
    int status = error == 0 ? MTPROF_OK
                            : mtb_fail_errno(mtprof__write_status(error), error,
                                             "export: cannot replace %s", file->name);
    mtprof__out_file_abandon(file);
    return status;
}

void mtprof__out_file_abandon(mtprof__out_file *file)
{
    mtb_new_file_abandon(&file->file);
    mtb_free(file->name);
    *file = (mtprof__out_file){.file.fd = -1};
}
