/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fault tests share: refusing system calls, warnings, a file system of one's own.
 */
#ifndef TESTS_FAULT_FAULT_H
#define TESTS_FAULT_FAULT_H

#include "mtprof/record/sys.h"
#include "stress/stress.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* Warnings as they came. */
typedef struct fault_warnings {
    uint64_t count;
    int status; /* of the last one */
    char message[400];
} fault_warnings;

static inline void fault_on_warning(void *user, mtprof_status status, const char *message)
{
    fault_warnings *w = user;
    w->status = status;
    snprintf(w->message, sizeof w->message, "%s", message);
    __atomic_add_fetch(&w->count, 1, __ATOMIC_RELEASE);
}

static inline uint64_t fault_warned(const fault_warnings *w)
{
    return __atomic_load_n(&w->count, __ATOMIC_ACQUIRE);
}

/* A disk of so many bytes per file. */
static uint64_t fault_disk_bytes = UINT64_MAX;

static inline int fault_allocate(int fd, off_t offset, off_t bytes)
{
    uint64_t limit = __atomic_load_n(&fault_disk_bytes, __ATOMIC_RELAXED);
    if ((uint64_t)offset + (uint64_t)bytes > limit) {
        return ENOSPC;
    }
    return mtprof__system_default.allocate(fd, offset, bytes);
}

static inline void fault_disk(uint64_t bytes)
{
    __atomic_store_n(&fault_disk_bytes, bytes, __ATOMIC_RELAXED);
    mtprof__system.allocate = fault_allocate;
}

/*
 * A tmpfs of `size` at a new folder of the case, in a mount namespace of this process alone, so
 * that it goes with it. False, with a line printed, where that is not allowed.
 */
static inline bool fault_mount(char *folder, const char *name, const char *options, bool read_only)
{
    stress_path(folder, name);
    mkdir(folder, 0755);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder, "tmpfs", read_only ? MS_RDONLY : 0, options) != 0) {
        printf("not allowed to mount a tmpfs: %s\n", strerror(errno));
        return false;
    }
    return true;
}

static inline void fault_write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        FAIL("cannot write %s: %s", path, strerror(errno));
    }
}

/* Whether the file holds exactly this text. */
static inline bool fault_holds(const char *path, const char *text)
{
    char buffer[256] = "";
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    size_t n = fread(buffer, 1, sizeof buffer - 1, file);
    fclose(file);
    return n == strlen(text) && strcmp(buffer, text) == 0;
}

#endif /* TESTS_FAULT_FAULT_H */
