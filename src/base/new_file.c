/* SPDX-License-Identifier: Apache-2.0
 */
#include "base/new_file.h"

#include "base/alloc.h"
#include "base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LINKS_MOST = 40, /* as the kernel */
    NAME_TRIES = 100,
    NAME_BYTES = 64,
    LOCK_TRIES = 40,
    LOCK_REST_NS = 5 * 1000 * 1000
};

/* Length of a path up to and including the last slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash + 1 - path);
}

/* Whether another user may have planted the link. */
static bool is_planted(const char *path, const struct stat *link)
{
    char folder[PATH_MAX];
    size_t length = folder_length(path);
    struct stat around;
    if (length >= sizeof folder || link->st_uid == geteuid()) {
        return false;
    }
    memcpy(folder, length != 0 ? path : ".", length != 0 ? length : 1);
    folder[length != 0 ? length : 1] = '\0';
    return stat(folder, &around) == 0 && (around.st_mode & S_ISVTX) != 0 &&
           (around.st_mode & S_IWOTH) != 0 && around.st_uid != link->st_uid;
}

char *mtb_follow_links(const char *path)
{
    char now[PATH_MAX], to[PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof now) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    memcpy(now, path, length + 1);
    for (int i = 0; i < LINKS_MOST; i++) {
        struct stat there;
        if (lstat(now, &there) != 0 || !S_ISLNK(there.st_mode)) {
            char *copy = mtb_copy_text(now, strlen(now)); /* other errors show when it is opened */
            errno = copy == NULL ? ENOMEM : errno;
            return copy;
        }
        if (is_planted(now, &there)) {
            errno = EACCES;
            return NULL;
        }
        ssize_t size = readlink(now, to, sizeof to - 1);
        size_t folder = size > 0 && to[0] == '/' ? 0 : folder_length(now);
        if (size <= 0 || folder + (size_t)size >= sizeof now) {
            errno = size < 0 ? errno : ENAMETOOLONG;
            return NULL;
        }
        memcpy(now + folder, to, (size_t)size); /* a link is relative to its own folder */
        now[folder + (size_t)size] = '\0';
    }
    errno = ELOOP;
    return NULL;
}

/* ---- names that a signal handler finds (NF4) ------------------------------------------------- */

/* A fixed array, so that a handler never sees a pointer that is being freed. When it is full, the
 * handler does not find further files; nothing else changes. */

enum slot_state {
    SLOT_FREE,
    SLOT_CHANGING,
    SLOT_HELD
};

static struct slot {
    int state; /* atomic */
    pid_t pid; /* a forked child has copies of the parent's names and must not use them */
    char name[PATH_MAX];
} slots[8];

static void note_name(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < MT_COUNT(slots) && length < sizeof slots[0].name; i++) {
        int expected = SLOT_FREE;
        if (__atomic_compare_exchange_n(&slots[i].state, &expected, SLOT_CHANGING, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            memcpy(slots[i].name, name, length + 1);
            slots[i].pid = getpid();
            __atomic_store_n(&slots[i].state, SLOT_HELD, __ATOMIC_SEQ_CST);
            return;
        }
    }
}

static void forget_name(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(slots); i++) {
        if (__atomic_load_n(&slots[i].state, __ATOMIC_SEQ_CST) == SLOT_HELD &&
            strcmp(slots[i].name, name) == 0) {
            __atomic_store_n(&slots[i].state, SLOT_FREE, __ATOMIC_SEQ_CST);
        }
    }
}

void mtb_files_remove_all(void)
{
    int before = errno;
    for (size_t i = 0; i < MT_COUNT(slots); i++) {
        if (__atomic_load_n(&slots[i].state, __ATOMIC_SEQ_CST) == SLOT_HELD &&
            slots[i].pid == getpid()) {
            (void)unlink(slots[i].name);
        }
    }
    errno = before;
}

/* ---- making ---- */

/* A file without a name. Fails where the file system does not support that, or where a name cannot
 * be given later. */
static int open_unnamed(const char *target, mode_t mode)
{
    char folder[PATH_MAX], self[64];
    size_t length = folder_length(target);
    if (length >= sizeof folder) {
        return -1;
    }
    memcpy(folder, length != 0 ? target : ".", length != 0 ? length : 1);
    folder[length != 0 ? length : 1] = '\0';
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (fd >= 0 && access(self, F_OK) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Chooses an unused name and gives it to the file, or to a new one if fd < 0. An errno value.
 */
static int take_name(const char *target, mode_t mode, int *fd, char **name)
{
    static unsigned count; /* atomic */
    size_t folder = folder_length(target);
    char *made = mtb_calloc(folder + NAME_BYTES, 1);
    if (made == NULL) {
        return ENOMEM;
    }
    memcpy(made, target, folder);
    int error = EEXIST;
    for (int i = 0; i < NAME_TRIES && error == EEXIST; i++) {
        unsigned number = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
        (void)snprintf(made + folder, NAME_BYTES, ".mtprof-%ld-%u.part", (long)getpid(), number);
        note_name(made); /* before the file exists: a signal may come at any moment */
        int done;
        if (*fd >= 0) {
            char self[64];
            (void)snprintf(self, sizeof self, "/proc/self/fd/%d", *fd);
            done = linkat(AT_FDCWD, self, AT_FDCWD, made, AT_SYMLINK_FOLLOW);
        } else {
            *fd = done = open(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        }
        error = done < 0 ? errno : 0;
        if (error != 0) {
            forget_name(made);
        }
    }
    if (error != 0) {
        mtb_free(made);
        made = NULL;
    }
    *name = made;
    return error;
}

int mtb_file_beside(const char *target, bool named, char **name)
{
    struct stat there;
    bool replaces = stat(target, &there) == 0;
    mode_t mode = replaces ? there.st_mode & 0777 : 0666; /* less the umask, when it is made */
    *name = NULL;
    if (replaces && !S_ISREG(there.st_mode)) {
        errno =
            S_ISDIR(there.st_mode) ? EISDIR : EINVAL; /* a device or a pipe: not to be replaced */
        return -1;
    }
    int fd = named ? -1 : open_unnamed(target, mode);
    if (fd < 0) {
        int error = take_name(target, mode, &fd, name);
        if (error != 0) {
            errno = error;
            return -1;
        }
    }
    if (replaces && there.st_uid == geteuid()) {
        (void)fchmod(fd, mode); /* where it is refused the umask's stays */
    }
    return fd;
}

int mtb_file_name(int fd, const char *target, char **name)
{
    return *name != NULL ? 0 : take_name(target, 0, &fd, name);
}

int mtb_file_into_place(char **name, const char *target)
{
    if (rename(*name, target) != 0) {
        return errno;
    }
    forget_name(*name);
    mtb_free(*name);
    *name = NULL;
    return 0;
}

void mtb_file_remove(char **name)
{
    if (*name != NULL) {
        (void)unlink(*name);
        forget_name(*name);
        mtb_free(*name);
        *name = NULL;
    }
}

bool mtb_past_file_limit(uint64_t end)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           end > (uint64_t)limit.rlim_cur;
}

/* ---- all of it ---- */

int mtb_new_file_open(mtb_new_file *file, const char *path)
{
    *file = (mtb_new_file){.fd = -1, .target = mtb_follow_links(path)};
    if (file->target != NULL) {
        file->fd = mtb_file_beside(file->target, false, &file->name);
    }
    if (file->fd < 0) {
        int error = errno;
        mtb_new_file_abandon(file);
        return error;
    }
    return 0;
}

int mtb_new_file_close(mtb_new_file *file)
{
    int error = mtb_file_name(file->fd, file->target, &file->name);
    if (error == 0) {
        error = close(file->fd) == 0 || errno == EINTR ? 0 : errno;
        file->fd = -1;
    }
    return error;
}

int mtb_new_file_commit(mtb_new_file *file)
{
    int error = mtb_file_into_place(&file->name, file->target);
    mtb_new_file_abandon(file);
    return error;
}

void mtb_new_file_abandon(mtb_new_file *file)
{
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    mtb_file_remove(&file->name);
    mtb_free(file->target);
    *file = (mtb_new_file){.fd = -1};
}

int mtb_write_at(int fd, const void *bytes, size_t length, uint64_t offset)
{
    const char *from = bytes;
    if (mtb_past_file_limit(offset + length)) {
        return EFBIG;
    }
    while (length > 0) {
        ssize_t n = pwrite(fd, from, length, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : ENOSPC;
        }
        from += n;
        offset += (uint64_t)n;
        length -= (size_t)n;
    }
    return 0;
}

int mtb_lock_file_soon(int fd, int operation, int (*lock)(int fd, int operation))
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (lock(fd, operation | LOCK_NB) == 0) {
            return 0;
        }
        if (errno != EWOULDBLOCK) {
            return errno;
        }
        struct timespec rest = {0, LOCK_REST_NS};
        nanosleep(&rest, NULL);
    }
    return EWOULDBLOCK;
}
