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
#include <sys/stat.h>
#include <unistd.h>

struct bytes_file {
    int fd;
};

static int64_t file_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    const struct bytes_file *file = context;
    ssize_t n;
    do {
        n = pread(file->fd, buffer, length, (off_t)offset);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -(int64_t)errno : (int64_t)n;
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

static int check_regular(int fd, const char *path)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "open trace: %s", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return mtb_fail(MTPROF_EIO, "open trace: %s is %s, expected a regular file", path,
                        kind_name(info.st_mode));
    }
    return MTPROF_OK;
}

int mtprof__bytes_open_file(mtprof__bytes *out, const char *path)
{
    /* O_NONBLOCK: opening a FIFO must not wait for its writer. Regular files ignore it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "open trace: %s", path);
    }
    int status = check_regular(fd, path);
    if (status != MTPROF_OK) {
        close(fd);
        return status;
    }
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
