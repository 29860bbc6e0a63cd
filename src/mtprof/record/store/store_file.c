/* SPDX-License-Identifier: Apache-2.0
 *
 * Creating the trace file.
 *
 * Two promises: a start that fails does not harm an existing file at the path, and two processes
 * never record into one path. So the new file is made in the same directory under another name, and
 * the file at the path is locked while it is replaced:
 *
 *      open or create PATH ─► lock it (busy: another process records there)
 *        ─► still the same file at PATH? ─► make the new file, locked, first block allocated
 *        ─► (caller maps it) ─► rename over PATH
 *
 * A process that opened the old file meanwhile gets its lock, finds another file at the path and
 * tries again: then it finds our lock on the new file.
 *
 * PATH is the file that links lead to (base/new_file.h). On a file system without locks (NFS
 * without lockd, Lustre without -o flock) the file is not locked, with a warning. Users must not
 * share a path there: the file of the process that starts last remains at the path.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/new_file.h"
#include "mtprof/record/store/store.h"
#include "mtprof/record/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PLACE_TRIES = 16,
    PID_BYTES = 24 /* of a process's id as text */
};

/* The lock on the old file at the path; one start at a time holds it (MTB_RANK_CONTROL). */
static int old_fd = -1;
static bool old_was_made;
static int new_fd = -1; /* what is being made, until it is in its place */
static bool unlocked;   /* the file system has no locks */

static bool has_no_locks(int error)
{
    return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL;
}

static mtprof_status lock_path(const char *shown, const char *path)
{
    unlocked = false;
    for (int i = 0; i < PLACE_TRIES; i++) {
        bool made = true;
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST) {
            made = false;
            fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        }
        if (fd < 0) {
            if (errno == ENOENT && i + 1 < PLACE_TRIES && !made) {
                continue; /* it was removed between the two opens */
            }
            return mtb_fail_errno(MTPROF_EIO, errno, "session_start: cannot create %s", shown);
        }
        struct stat mine, there;
        if (fstat(fd, &mine) != 0 || !S_ISREG(mine.st_mode)) {
            close(fd);
            return mtb_fail(MTPROF_EIO, "session_start: %s is not a regular file", shown);
        }
        int error = mtb_lock_file_soon(fd, LOCK_EX, mtprof__system.lock);
        unlocked = has_no_locks(error);
        if (error != 0 && !unlocked) {
            if (made && error != EWOULDBLOCK) {
                unlink(path); /* our own empty placeholder */
            }
            close(fd);
            if (error == EWOULDBLOCK) {
                return mtb_fail(MTPROF_EBUSY,
                                "session_start: %s is being recorded by another process", shown);
            }
            return mtb_fail_errno(MTPROF_EIO, error, "session_start: cannot lock %s", shown);
        }
        if (stat(path, &there) == 0 && there.st_ino == mine.st_ino && there.st_dev == mine.st_dev) {
            old_fd = fd;
            old_was_made = made;
            return MTPROF_OK;
        }
        close(fd); /* replaced while we waited */
    }
    return mtb_fail(MTPROF_EBUSY, "session_start: %s keeps being replaced by others", shown);
}

static void unlock_path(const char *path, bool failed)
{
    if (old_fd < 0) {
        return;
    }
    if (failed && old_was_made) {
        unlink(path); /* our own empty placeholder */
    }
    mtprof__system.lock(old_fd,
                        LOCK_UN); /* closing is not enough: a forked child may have a copy */
    close(old_fd);
    old_fd = -1;
}

mtprof__file_id mtprof__file_identify(int fd)
{
    struct stat status;
    bool known = fstat(fd, &status) == 0;
    return known ? (mtprof__file_id){status.st_dev, status.st_ino} : (mtprof__file_id){0, 0};
}

bool mtprof__file_is(int fd, mtprof__file_id file)
{
    mtprof__file_id now = mtprof__file_identify(fd);
    return fd >= 0 && now.device == file.device && now.inode == file.inode && now.inode != 0;
}

void mtprof__file_close(int fd, mtprof__file_id file)
{
    if (mtprof__file_is(fd, file)) {
        close(fd);
    }
}

int mtprof__store_fd(mtprof__store *store)
{
    int fd = __atomic_load_n(&store->fd, __ATOMIC_ACQUIRE);
    if (fd < 0 || mtprof__file_is(fd, store->file)) {
        return fd;
    }
    const char *path = store->made != NULL ? store->made : store->target;
    int again = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (again >= 0 && !mtprof__file_is(again, store->file)) {
        close(again);
        again = -1;
    }
    if (!__atomic_compare_exchange_n(&store->fd, &fd, again, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        if (again >= 0) {
            close(again);
        }
        return fd; /* another thread was first */
    }
    if (again >= 0) {
        (void)mtprof__system.lock(again, LOCK_EX | LOCK_NB);
    }
    return again;
}

mtprof_status mtprof__file_create(mtprof__store *store, uint64_t first_bytes)
{
    const char *path = store->path;
    store->target = mtb_follow_links(path);
    if (store->target == NULL) {
        return mtb_fail_errno(errno == ENOMEM ? MTPROF_ENOMEM : MTPROF_EIO, errno,
                              "session_start: cannot follow %s", path);
    }
    MT_TRY(lock_path(path, store->target));
    store->fd = mtb_file_beside(store->target, true, &store->made);
    if (store->fd < 0) {
        int error = errno;
        unlock_path(store->target, true);
        return mtb_fail_errno(error == ENOMEM ? MTPROF_ENOMEM : MTPROF_EIO, error,
                              "session_start: cannot create a file beside %s", path);
    }
    new_fd = store->fd;
    store->file = mtprof__file_identify(store->fd);
    store->unlocked = unlocked;
    (void)mtprof__system.lock(store->fd, LOCK_EX | LOCK_NB);
    int error = mtprof__system.allocate(store->fd, 0, (off_t)first_bytes);
    if (error == EOPNOTSUPP || error == EINVAL || error == ENOSYS) {
        error = 0; /* found out again, and dealt with, where segments are made */
    }
    if (error != 0) {
        mtprof__file_discard(store);
        return mtb_fail_errno(mtb_is_full(error) ? MTPROF_ENOSPC : MTPROF_EIO, error,
                              "session_start: no room for the first block of %s", path);
    }
    return MTPROF_OK;
}

mtprof_status mtprof__file_place(mtprof__store *store)
{
    int error = mtb_file_into_place(&store->made, store->target);
    if (error != 0) {
        return mtb_fail_errno(MTPROF_EIO, error, "session_start: cannot put %s in place",
                              store->path);
    }
    unlock_path(store->target, false);
    new_fd = -1;
    return MTPROF_OK;
}

void mtprof__file_discard(mtprof__store *store)
{
    if (mtprof__file_is(store->fd, store->file)) {
        (void)mtprof__system.lock(store->fd, LOCK_UN);
        close(store->fd);
    }
    store->fd = -1;
    mtb_file_remove(&store->made);
    unlock_path(store->target, true);
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

char *mtprof__path_with_pid(const char *path)
{
    size_t marks = 0;
    for (const char *at = strstr(path, "%p"); at != NULL; at = strstr(at + 2, "%p")) {
        marks++;
    }
    size_t room = strlen(path) + marks * PID_BYTES + 1;
    char *made = mtb_calloc(room, 1);
    size_t used = 0;
    for (const char *at = path; made != NULL && *at != '\0';) {
        const char *mark = strstr(at, "%p");
        int length = mark != NULL ? (int)(mark - at) : (int)strlen(at);
        used += (size_t)snprintf(made + used, room - used, "%.*s", length, at);
        if (mark != NULL) {
            used += (size_t)snprintf(made + used, room - used, "%ld", (long)getpid());
        }
        at += length + (mark != NULL ? 2 : 0);
    }
    return made;
}

char *mtprof__path_of_process(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t stem = dot != NULL && dot != name ? (size_t)(dot - path) : strlen(path);
    size_t room = strlen(path) + PID_BYTES + 2;
    char *made = mtb_calloc(room, 1);
    if (made != NULL) {
        (void)snprintf(made, room, "%.*s.%ld%s", (int)stem, path, (long)getpid(), path + stem);
    }
    return made;
}
