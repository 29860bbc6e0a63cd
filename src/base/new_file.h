/* SPDX-License-Identifier: Apache-2.0
 *
 * Files that appear at their path complete or not at all: made beside it and renamed. What all
 * writers share: which file a path means, under which permissions a new one is made, and the limit
 * on its size.
 *
 *   NF1  A symbolic link stays one: the file that it names is written, also if there is none yet.
 *        Somebody else's link in a folder where anybody may write (/tmp) is not followed, as the
 *        kernel's protected_symlinks has it for open().
 *   NF2  A new file has the permissions of the one that it replaces, if that is the user's own;
 *        never more than that one and the umask allow otherwise; the umask's where there was none.
 *        Not even for a moment are they wider.
 *   NF3  Nothing is written past RLIMIT_FSIZE, where the kernel would send SIGXFSZ.
 *   NF4  What is not complete has no name where the file system allows it; else it is removed by
 *        who fails, and can be removed in a handler of a signal.
 */
#ifndef BASE_NEW_FILE_H
#define BASE_NEW_FILE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The usual way, for a file that is written and then stands at its path:
 *
 *     mtb_new_file_open() ─► write to fd ─► mtb_new_file_close() ─► mtb_new_file_commit()
 *                       └────────┴───────────────────────┴──► mtb_new_file_abandon()
 */
typedef struct mtb_new_file {
    int fd;       /* -1: closed */
    char *target; /* where it will stand: the path, links followed */
    char *name;   /* its own until then; NULL: it has none */
} mtb_new_file;

/* 0 or an errno value, as mtb_follow_links() and mtb_file_beside(). On failure nothing is left. */
int mtb_new_file_open(mtb_new_file *file, const char *path);
/* Gives it a name and closes it: some file systems tell of a full disk only now. 0 or an errno
 * value; after a failure it is to be abandoned. */
int mtb_new_file_close(mtb_new_file *file);
/* Puts a closed file into its place, and ends it in any case: 0 or an errno value. */
int mtb_new_file_commit(mtb_new_file *file);
/* Ends it in any state, also one of zeros with fd = -1; what stood at the path still does. */
void mtb_new_file_abandon(mtb_new_file *file);

/* Writes all of it, unless that is past the limit (NF3). 0 or an errno value. */
int mtb_write_at(int fd, const void *bytes, size_t length, uint64_t offset);

/* Whether an errno value says that nothing more fits: the disk, a quota, the limit. */
static inline bool mtb_is_full(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* flock(fd, operation), tried for 200 ms: of a process that was killed the kernel takes the
 * mappings apart, and gives its lock back, some moments after its parent was told. `lock` is flock,
 * or what stands for it. 0 or an errno value; EWOULDBLOCK: another process has it. */
int mtb_lock_file_soon(int fd, int operation, int (*lock)(int fd, int operation));

/* ---- the pieces ---- */

/* NF1. The path that is to be written, for mtb_free(). NULL: errno says why (ENOMEM, ELOOP, EACCES:
 * a link that is not to be followed). */
char *mtb_follow_links(const char *path);

/*
 * NF2. A new empty file in the folder of `target`, which links have been followed to; for reading
 * and writing. *name is its name, or NULL: it has none, and disappears with the process (where the
 * file system can do that, and `named` is false). -1: errno says why; EINVAL, EISDIR: what stands
 * at the target is no file that could be replaced.
 */
int mtb_file_beside(const char *target, bool named, char **name);

/* Gives it a name if it has none: 0 or an errno value. */
int mtb_file_name(int fd, const char *target, char **name);

/* Renames it to its target: 0 or an errno value. On success the name is gone. */
int mtb_file_into_place(char **name, const char *target);

/* Removes it; the name is gone. *name may be NULL. */
void mtb_file_remove(char **name);

/* Removes all files of the process that have a name and are not in their place. Only for a handler
 * of a signal that ends the process: async-signal-safe, and what else happens is left as it is. */
void mtb_files_remove_all(void);

/* NF3. Whether a regular file cannot be made that long. */
bool mtb_past_file_limit(uint64_t end);

#endif /* BASE_NEW_FILE_H */
