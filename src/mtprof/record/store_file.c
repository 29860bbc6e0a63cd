/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace file's way into the world.
 *
 * Two promises meet here: a file that stands at the path is not harmed by a start that fails, and
 * two processes never record into one path. So the new file is made beside the path, and what
 * stands at the path is locked while it is replaced:
 *
 *      open or create PATH ─► lock it (busy: somebody records there) ─► still the same file at
 * PATH? ─► make PATH.PID-N.part, locked, first block allocated ─► (caller maps it) ─► rename over
 * PATH
 *
 * Whoever opened the old file meanwhile gets its lock only to find that another file stands at the
 * path, and tries again: then he meets our lock on the new one.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/record/store.h"
#include "mtprof/record/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PLACE_TRIES = 16,
    LOCK_TRIES = 40,
    LOCK_REST_NS = 5 * 1000 * 1000
};

/* The lock on what stood at the path; one start at a time holds it (MTB_RANK_CONTROL). */
static int old_fd = -1;
static bool old_was_made;
static int new_fd = -1; /* what is being made, until it is in its place */

/*
 * Takes the lock if it is free, or becomes free at once: of a process that was killed the kernel
 * takes the mapping apart, and gives the lock back, some moments after its parent was told.
 */
static bool lock_soon(int fd)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return true;
        }
        if (errno != EWOULDBLOCK) {
            return false;
        }
        struct timespec rest = {0, LOCK_REST_NS};
        nanosleep(&rest, NULL);
        errno = EWOULDBLOCK;
    }
    return false;
}

static mtprof_status lock_path(const char *path)
{
    for (int i = 0; i < PLACE_TRIES; i++) {
        bool made = true;
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 && errno == EEXIST) {
            made = false;
            fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        }
        if (fd < 0) {
            if (errno == ENOENT && i + 1 < PLACE_TRIES && !made) {
                continue; /* it was removed between the two opens */
            }
            return mtb_fail_errno(MTPROF_EIO, errno, "session_start: cannot create %s", path);
        }
        struct stat mine, there;
        if (fstat(fd, &mine) != 0 || !S_ISREG(mine.st_mode)) {
            close(fd);
            return mtb_fail(MTPROF_EIO, "session_start: %s is not a regular file", path);
        }
        if (!lock_soon(fd)) {
            int error = errno;
            close(fd);
            if (error == EWOULDBLOCK) {
                return mtb_fail(MTPROF_EBUSY,
                                "session_start: %s is being recorded by another process", path);
            }
            return mtb_fail_errno(MTPROF_EIO, error, "session_start: cannot lock %s", path);
        }
        if (stat(path, &there) == 0 && there.st_ino == mine.st_ino && there.st_dev == mine.st_dev) {
            old_fd = fd;
            old_was_made = made;
            return MTPROF_OK;
        }
        close(fd); /* replaced while we waited */
    }
    return mtb_fail(MTPROF_EBUSY, "session_start: %s keeps being replaced by others", path);
}

static void unlock_path(const char *path, bool failed)
{
    if (old_fd < 0) {
        return;
    }
    if (failed && old_was_made) {
        unlink(path); /* our own empty placeholder */
    }
    flock(old_fd, LOCK_UN); /* closing is not enough: a forked child may have a copy */
    close(old_fd);
    old_fd = -1;
}

int mtprof__file_beside(const char *path, char **name)
{
    static uint32_t count;
    struct stat there;
    *name = NULL;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) {
        errno = EINVAL; /* a device, a FIFO: putting a trace in its place would be its end */
        return -1;
    }
    size_t length = strlen(path) + 40;
    *name = mtb_calloc(length, 1);
    if (*name == NULL) {
        errno = ENOMEM;
        return -1;
    }
    for (int i = 0; i < PLACE_TRIES; i++) {
        uint32_t n = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
        snprintf(*name, length, "%s.%ld-%u.part", path, (long)getpid(), n);
        int fd = open(*name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd >= 0) {
            return fd;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    int error = errno;
    mtb_free(*name);
    *name = NULL;
    errno = error;
    return -1;
}

mtprof_status mtprof__file_create(const char *path, uint64_t first_bytes, int *fd, char **made)
{
    *fd = -1;
    *made = NULL;
    MT_TRY(lock_path(path));
    char *name;
    int file = mtprof__file_beside(path, &name);
    if (file < 0) {
        int error = errno;
        unlock_path(path, true);
        return mtb_fail_errno(error == ENOMEM ? MTPROF_ENOMEM : MTPROF_EIO, error,
                              "session_start: cannot create a file beside %s", path);
    }
    new_fd = file;
    flock(file, LOCK_EX | LOCK_NB);
    int error = mtprof__system.allocate(file, 0, (off_t)first_bytes);
    if (error == EOPNOTSUPP || error == EINVAL || error == ENOSYS) {
        error = 0; /* found out again, and dealt with, where segments are made */
    }
    if (error != 0) {
        mtprof__file_discard(path, file, name);
        return mtb_fail_errno(mtprof__is_full(error) ? MTPROF_ENOSPC : MTPROF_EIO, error,
                              "session_start: no room for the first block of %s", path);
    }
    *fd = file;
    *made = name;
    return MTPROF_OK;
}

mtprof_status mtprof__file_place(const char *path, const char *made)
{
    if (rename(made, path) != 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "session_start: cannot put %s in place", path);
    }
    unlock_path(path, false);
    new_fd = -1;
    return MTPROF_OK;
}

void mtprof__file_discard(const char *path, int fd, char *made)
{
    if (made != NULL) {
        unlink(made);
    }
    if (fd >= 0) {
        flock(fd, LOCK_UN);
        close(fd);
    }
    mtb_free(made);
    unlock_path(path, true);
    new_fd = -1;
}

void mtprof__file_after_fork(void)
{
    /* Copies in the child of a fork: they must not keep the parent's locks alive. */
    if (old_fd >= 0) {
        close(old_fd);
    }
    if (new_fd >= 0) {
        close(new_fd);
    }
    old_fd = new_fd = -1;
}
