/* SPDX-License-Identifier: Apache-2.0
 */
#include "use_file.h"

#include "fuzz_require.h"

#include <mtprof/check.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file in memory; its path. */
static int make_file(const void *bytes, size_t size, char path[64])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0);
    require(write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static int look_at(void *user, const mtprof_finding *finding)
{
    require(finding->rule[0] != '\0' && finding->message[0] != '\0');
    ++*(uint64_t *)user;
    return 0;
}

void use_check(const void *bytes, size_t size)
{
    char path[64];
    uint64_t found = 0;
    int fd = make_file(bytes, size, path);
    mtprof_check_options options = {
        .struct_size = sizeof options, .report = look_at, .user = &found};
    mtprof_check_summary summary = {.struct_size = sizeof summary};
    require(mtprof_check(path, &options, &summary) == MTPROF_OK);
    require(found <= summary.errors + summary.warnings + summary.notes + 64);
    close(fd);
}

/* The columns of times say the same. */
static void require_same(mtprof_model *a, mtprof_model *b)
{
    static const enum mtprof_column_id ids[] = {MTPROF_COLUMN_START_NS, MTPROF_COLUMN_END_NS,
                                                MTPROF_COLUMN_SELF_NS, MTPROF_COLUMN_KIND};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        mtprof_column one;
        mtprof_column other;
        require(mtprof_model_get_column(a, ids[i], &one) == MTPROF_OK);
        require(mtprof_model_get_column(b, ids[i], &other) == MTPROF_OK);
        require(one.count == other.count);
        require(one.count == 0 || memcmp(one.data, other.data, one.count * one.item_bytes) == 0);
    }
}

void use_recover(const void *bytes, size_t size, mtprof_model *model)
{
    char path[64];
    char out[64];
    mtprof_reader *reader = NULL;
    mtprof_model *recovered = NULL;
    const mtprof_model_options options = {
        .struct_size = sizeof options, .workers = 1, .discarded = 1};
    int fd = make_file(bytes, size, path);
    snprintf(out, sizeof out, "/dev/shm/mtprof-fuzz-%ld.mtt", (long)getpid());
    require(mtprof_recover(path, out, NULL) == MTPROF_OK);
    close(fd);
    require(mtprof_reader_open(out, &reader) == MTPROF_OK);
    unlink(out); /* the reader has it open; a failure below leaves no file */
    require(mtprof_model_take_reader(reader, &options, &recovered) == MTPROF_OK);
    require_same(model, recovered);
    mtprof_model_free(recovered);
}
