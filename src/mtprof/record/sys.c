/* SPDX-License-Identifier: Apache-2.0
 *
 * The real system calls behind sys.h.
 */
#include "mtprof/record/sys.h"

#include "base/alloc.h"
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map(size_t bytes, int fd, off_t offset)
{
    if (mtb_fail_here()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
}

static int allocate(int fd, off_t offset, off_t bytes)
{
    if (mtb_past_file_limit((uint64_t)(offset + bytes))) {
        return EFBIG;
    }
    int error;
    do {
        error = posix_fallocate(fd, offset, bytes);
    } while (error == EINTR);
    return error;
}

static int write_all(int fd, const void *bytes, size_t length, off_t offset)
{
    return mtb_write_at(fd, bytes, length, (uint64_t)offset);
}

const mtprof__sys mtprof__system_default = {map, allocate, write_all, flock};
mtprof__sys mtprof__system = {map, allocate, write_all, flock};
