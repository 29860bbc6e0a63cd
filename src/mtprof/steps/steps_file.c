/* SPDX-License-Identifier: Apache-2.0
 *
 * See steps_file.h.
 */
#include "mtprof/steps/steps_file.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/new_file.h"
#include "mtprof/steps/steps_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    HALF_LEAST = 4 * MTPROF_STEPS_RECORD_BYTES
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- records --------------------------------------------------------------------------------- */

static void seal(void *record, size_t bytes, uint16_t kind)
{
    mtprof__steps_head head = {.magic = MTPROF__STEPS_MAGIC,
                               .bytes = (uint16_t)bytes,
                               .kind = kind,
                               .version = MTPROF__STEPS_VERSION};
    memcpy(record, &head, sizeof head);
    head.crc = mtb_crc32c(0, (const char *)record + MTPROF__STEPS_CRC_FROM,
                          bytes - MTPROF__STEPS_CRC_FROM);
    memcpy(record, &head, sizeof head);
}

/* Bytes of a name that fit, without a part of a character of UTF-8. */
static size_t name_length(mtprof_text name)
{
    size_t n = name.length;
    if (n > MTPROF_STEPS_NAME_BYTES) {
        n = MTPROF_STEPS_NAME_BYTES;
        while (n > 0 && ((unsigned char)name.bytes[n] & 0xC0) == 0x80) {
            n--;
        }
    }
    return n;
}

static size_t put_op(char *to, const mtprof_step_op *op)
{
    size_t length = name_length(op->name);
    size_t padded = (length + 7) / 8 * 8;
    const mtprof__steps_op out = {
        .self_ns = op->self_ns,
        .total_ns = op->total_ns,
        .calls = op->calls,
        .device = op->device,
        .kind = (uint8_t)op->kind,
        .name_cut = length < op->name.length || op->name_cut != 0,
        .name_bytes = (uint16_t)length,
    };
    memcpy(to, &out, sizeof out);
    memset(to + sizeof out, 0, padded);
    if (length > 0) {
        memcpy(to + sizeof out, op->name.bytes, length);
    }
    return sizeof out + padded;
}

static size_t put_device(char *to, const mtprof_step_device *device)
{
    mtprof__steps_device out = {
        .index = (uint32_t)device->index,
        .busy_ns = device->busy_ns,
        .allocated = device->allocated,
        .reserved_memory = device->reserved_memory,
    };
    size_t length = device->type.length < sizeof out.type ? device->type.length : sizeof out.type;
    if (length > 0) {
        memcpy(out.type, device->type.bytes, length);
    }
    memcpy(to, &out, sizeof out);
    return sizeof out;
}

static size_t put_step(char *to, const mtprof_step_summary *s)
{
    uint32_t n_ops = s->n_ops < MTPROF_STEPS_OPS ? s->n_ops : MTPROF_STEPS_OPS;
    uint32_t n_devices = s->n_devices < MTPROF_STEPS_DEVICES ? s->n_devices : MTPROF_STEPS_DEVICES;
    const mtprof__steps_step out = {
        .fixed = sizeof out,
        .n_ops = (uint16_t)n_ops,
        .n_devices = (uint16_t)n_devices,
        .first = s->first,
        .steps = s->steps,
        .start_ns = s->start_ns,
        .duration_ns = s->duration_ns,
        .events = s->events,
        .read_share = s->read_share,
        .lost = s->lost,
        .missed = s->missed,
        .rss_bytes = s->rss_bytes,
        .allocated = s->allocated,
        .allocated_most = s->allocated_most,
        .self_ns = s->self_ns,
        .ops_all = s->ops_all,
        .devices_all = s->devices_all,
    };
    size_t at = sizeof out;
    memcpy(to, &out, sizeof out);
    for (uint32_t i = 0; i < n_devices; i++) {
        at += put_device(to + at, &s->devices[i]);
    }
    for (uint32_t i = 0; i < n_ops; i++) {
        at += put_op(to + at, &s->ops[i]);
    }
    seal(to, at, MTPROF__STEPS_STEP);
    return at;
}

/* ---- the file -------------------------------------------------------------------------------- */

static mtprof_status write_records(mtprof__steps_file *file, const void *records, size_t bytes)
{
    int error = mtb_write_at(file->fd, records, bytes, file->end);
    if (error == 0) {
        file->end += bytes;
        return MTPROF_OK;
    }
    (void)!ftruncate(file->fd, (off_t)file->end); /* SFI1; readers pass over it otherwise */
    return mtb_fail_errno(mtb_is_full(error) ? MTPROF_ENOSPC : MTPROF_EIO, error,
                          "step summaries: cannot write %s", file->path);
}

static mtprof_status write_run(mtprof__steps_file *file)
{
    mtprof__steps_run run = {
        .pid = file->pid, .start_ns = file->start_ns, .start_real_ns = file->start_real_ns};
    seal(&run, sizeof run, MTPROF__STEPS_RUN);
    return write_records(file, &run, sizeof run);
}

/* Whether it is empty, or begins as these files do. */
static mtprof_status check_old(mtprof__steps_file *file)
{
    struct stat st;
    uint32_t magic = 0;
    if (fstat(file->fd, &st) != 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "step summaries: cannot read %s", file->path);
    }
    if (!S_ISREG(st.st_mode) ||
        (st.st_size > 0 && (pread(file->fd, &magic, sizeof magic, 0) != sizeof magic ||
                            magic != MTPROF__STEPS_MAGIC))) {
        return mtb_fail(MTPROF_EFORMAT, "step summaries: %s is another file", file->path);
    }
    file->end = ((uint64_t)st.st_size + 7) / 8 * 8; /* SLY1, behind what a kill may have left */
    return MTPROF_OK;
}

static mtprof_status open_locked(mtprof__steps_file *file)
{
    file->fd = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file->fd < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "step summaries: cannot open %s", file->path);
    }
    /* File systems without locks have to do without. */
    if (mtb_lock_file_soon(file->fd, LOCK_EX | LOCK_NB, flock) == EWOULDBLOCK) {
        return mtb_fail(MTPROF_EBUSY, "step summaries: another process writes %s", file->path);
    }
    return check_old(file);
}

mtprof_status mtprof__steps_file_open(mtprof__steps_file *file, const char *path,
                                      uint64_t most_bytes)
{
    *file = (mtprof__steps_file){
        .fd = -1,
        .half = most_bytes / 2 > HALF_LEAST ? most_bytes / 2 : HALF_LEAST,
        .pid = (uint64_t)getpid(),
        .start_ns = clock_ns(CLOCK_MONOTONIC),
        .start_real_ns = clock_ns(CLOCK_REALTIME),
    };
    (void)snprintf(file->path, sizeof file->path, "%s", path);
    mtprof_status status = open_locked(file);
    if (status == MTPROF_OK) {
        status = write_run(file);
    }
    if (status != MTPROF_OK) {
        mtprof__steps_file_close(file);
    }
    return status;
}

/* SFI2. The new file is made before the old one is given up. */
static mtprof_status begin_another(mtprof__steps_file *file)
{
    char old[sizeof file->path + 8];
    mtprof__steps_file next = *file;
    (void)snprintf(old, sizeof old, "%s.old", file->path);
    if (rename(file->path, old) != 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "step summaries: cannot rename %s", file->path);
    }
    mtprof_status status = open_locked(&next);
    if (status == MTPROF_OK) {
        status = write_run(&next);
    }
    if (status != MTPROF_OK) {
        mtprof__steps_file_close(&next);
        (void)rename(old, file->path);
        return status;
    }
    mtprof__steps_file_close(file);
    *file = next;
    return MTPROF_OK;
}

bool mtprof__steps_file_is_full(const mtprof__steps_file *file)
{
    return file->gathered + MTPROF_STEPS_RECORD_BYTES > sizeof file->records ||
           file->end + file->gathered + MTPROF_STEPS_RECORD_BYTES > file->half;
}

void mtprof__steps_file_add(mtprof__steps_file *file, const mtprof_step_summary *summary)
{
    MT_ASSERT(file->gathered + MTPROF_STEPS_RECORD_BYTES <= sizeof file->records);
    file->gathered += put_step(file->records + file->gathered, summary);
}

mtprof_status mtprof__steps_file_write(mtprof__steps_file *file)
{
    size_t bytes = file->gathered;
    file->gathered = 0;
    if (bytes == 0) {
        return MTPROF_OK;
    }
    if (file->end + bytes > file->half) {
        MT_TRY(begin_another(file));
    }
    return write_records(file, file->records, bytes);
}

void mtprof__steps_file_close(mtprof__steps_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
    }
    file->fd = -1;
}
