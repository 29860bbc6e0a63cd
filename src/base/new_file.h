/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that appear at their path complete or not at all: they are written in the same folder and
 * renamed. All writers share this: which file a path means, the permissions of a new one, and the
 * limit on its size.
 *
 *   NF1  A symbolic link is kept: the file that it points to is written, also if it does not exist
 *        yet. Another user's link in a folder that is writable for all (/tmp) is not followed, the
 *        rule of the kernel's protected_symlinks for open().
 *   NF2  A new file gets the permissions of the file that it replaces if the user owns that one,
 *        else at most those that both that file and the umask allow; if there was no file, those of
 *        the umask. They are never wider, not even for a moment.
 *   NF3  Nothing is written past RLIMIT_FSIZE, where the kernel would send SIGXFSZ.
 *   NF4  An incomplete file has no name where the file system supports that; otherwise it is
 *        removed on failure, and can be removed in a signal handler.
 */
#ifndef BASE_NEW_FILE_H
#define BASE_NEW_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Usage:
 *
 *     mtb_new_file_open() ─► write to fd ─► mtb_new_file_close() ─► mtb_new_file_commit()
 *                       └────────┴───────────────────────┴──► mtb_new_file_abandon()
 */
typedef struct mtb_new_file {
    int fd;       /* -1: closed */
    char *target; /* its final path, links followed */
    char *name;   /* its temporary name; NULL: it has none */
} mtb_new_file;

/* 0 or an errno value, as mtb_follow_links() and mtb_file_beside(). On failure no file is left. */
int mtb_new_file_open(mtb_new_file *file, const char *path);
/* Gives it a name and closes it: some file systems report a full disk only on close. 0 or an errno
 * value; after a failure call mtb_new_file_abandon(). */
int mtb_new_file_close(mtb_new_file *file);
/* Renames a closed file to its target, and frees the struct's memory in any case: 0 or an errno
 * value. */
int mtb_new_file_commit(mtb_new_file *file);
/* Drops the file in any state, also a struct of zeros with fd = -1; a file at the path stays. */
void mtb_new_file_abandon(mtb_new_file *file);

/* Writes all of it, unless that is past the limit (NF3). 0 or an errno value. */
int mtb_write_at(int fd, const void *bytes, size_t length, uint64_t offset);

/* Whether an errno value means "no space left": the disk, a quota, the limit. */
static inline bool mtb_is_full(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* flock(fd, operation), retried for 200 ms: when a process is killed, the kernel unmaps its memory
 * and releases its lock only some time after its parent was notified. `lock` is flock, or a
 * replacement for tests. 0 or an errno value; EWOULDBLOCK: another process has it. */
int mtb_lock_file_soon(int fd, int operation, int (*lock)(int fd, int operation));

/* ---- the pieces ---- */

/* NF1. The path to write to; free it with mtb_free(). NULL: errno is set (ENOMEM, ELOOP, EACCES: a
 * link that must not be followed). */
char *mtb_follow_links(const char *path);

/*
 * NF2. A new empty file in the folder of `target`, whose links have been followed; opened for
 * reading and writing. *name is its name, or NULL if it has none and disappears with the process
 * (where the file system supports that, and `named` is false). -1: errno is set; EINVAL, EISDIR:
 * the target exists and is not a regular file.
 */
int mtb_file_beside(const char *target, bool named, char **name);

/* Gives it a name if it has none: 0 or an errno value. */
int mtb_file_name(int fd, const char *target, char **name);

/* Renames it to its target: 0 or an errno value. On success the name is gone. */
int mtb_file_into_place(char **name, const char *target);

/* Removes it; the name is gone. *name may be NULL. */
void mtb_file_remove(char **name);

/* Removes all files of the process that have a name and are not in their place. Only for the
 * handler of a signal that ends the process: it is async-signal-safe, and cleans up nothing
 * else. */
void mtb_files_remove_all(void);

/* NF3. Whether `end` is past the limit on the size of a file. */
bool mtb_past_file_limit(uint64_t end);

#endif /* BASE_NEW_FILE_H */
