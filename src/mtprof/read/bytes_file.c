/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace file through pread.
 *
 * Why not mmap: other processes may change the file. It may be cut while we read, and a mapping
 * would turn that into SIGBUS where pread returns fewer bytes.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/read/trace_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct bytes_file {
    int fd;
};

int64_t mtprof__read_at(int fd, void *buffer, size_t length, uint64_t offset)
{
    ssize_t n;
    do {
        n = pread(fd, buffer, length, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    return (int64_t)n;
}

static int64_t file_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    int64_t n = mtprof__read_at(((const struct bytes_file *)context)->fd, buffer, length, offset);
    return n < 0 ? -(int64_t)errno : n;
}

static uint64_t file_size(void *context)
{
    const struct bytes_file *file = context;
    struct stat info;
    return fstat(file->fd, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
}

static void file_close(void *context)
{
    struct bytes_file *file = context;
    close(file->fd);
    mtb_free(file);
}

static uint64_t file_next_data(void *context, uint64_t offset)
{
    const struct bytes_file *file = context;
    off_t at = lseek(file->fd, (off_t)offset, SEEK_DATA);
    if (at >= 0) {
        return (uint64_t)at;
    }
    /* ENXIO: only a hole is left. Anything else: this file system does not know. */
    return errno == ENXIO ? UINT64_MAX : offset;
}

static const char *kind_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return "a directory";
    case S_IFIFO: return "a FIFO";
    case S_IFSOCK: return "a socket";
    case S_IFCHR: return "a character device";
    case S_IFBLK: return "a block device";
    default: return "something else";
    }
}

int mtprof__open_regular(const char *task, const char *path, int *fd, uint64_t *size)
{
    /* O_NONBLOCK: opening a FIFO must not wait for its writer. Regular files ignore it. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    int status = MTPROF_OK;
    if (*fd < 0 || fstat(*fd, &info) != 0) {
        status = mtb_fail_errno(MTPROF_EIO, errno, "%s: %s", task, path);
    } else if (!S_ISREG(info.st_mode)) {
        status = mtb_fail(MTPROF_EIO, "%s: %s is %s, expected a regular file", task, path,
                          kind_name(info.st_mode));
    } else {
        *size = (uint64_t)info.st_size;
        return MTPROF_OK;
    }
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
    return status;
}

int mtprof__bytes_open_file(mtprof__bytes *out, const char *path)
{
    int fd;
    uint64_t size;
    MT_TRY(mtprof__open_regular("open trace", path, &fd, &size));
    struct bytes_file *file = mtb_calloc(1, sizeof *file);
    if (file == NULL) {
        close(fd);
        return mtb_fail(MTPROF_ENOMEM, "open trace: %s: %zu bytes", path, sizeof *file);
    }
    file->fd = fd;
    *out = (mtprof__bytes){
        .calls = {.struct_size = sizeof out->calls,
                  .context = file,
                  .read = file_read,
                  .size = file_size,
                  .close = file_close},
        .next_data = file_next_data,
    };
    return MTPROF_OK;
}

/* A recorder's lock is exclusive, so the attempt does nothing to it; where it succeeds there is no
 * recorder any more. */
int mtprof__bytes_is_locked(const mtprof__bytes *bytes)
{
    if (bytes->calls.read != file_read) {
        return -1;
    }
    const struct bytes_file *file = bytes->calls.context;
    if (flock(file->fd, LOCK_SH | LOCK_NB) == 0) {
        flock(file->fd, LOCK_UN);
        return 0;
    }
    return errno == EWOULDBLOCK ? 1 : -1;
}
