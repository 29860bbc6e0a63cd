/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a file of step summaries. Nothing in it is trusted: a record counts when its checksum is
 * right, and its lengths are checked all the same.
 *
 *   SRD1  Where there is no record, the next multiple of 8 is tried. What was passed over is
 *         damage once a record follows, or once it is longer than a record that is being written
 *         can be; until then it is the tail, and tried again by the next call.
 */
#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/steps/steps_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WINDOW = 1 << 16
};

struct mtprof_steps {
    int fd;
    uint64_t at;     /* of the next record */
    uint64_t from;   /* in the file: what the window has */
    size_t n_window; /* bytes in it */
    bool in_run;
    uint64_t next_step; /* of this run */
    mtprof__steps_run run;
    mtprof_steps_info info;
    mtprof_step_op ops[MTPROF_STEPS_OPS];
    mtprof_step_device devices[MTPROF_STEPS_DEVICES];
    _Alignas(8) char window[WINDOW];
};

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Reads from a place on; the window may end with the file. */
static mtprof_status load(mtprof_steps *s, uint64_t from)
{
    s->from = from;
    s->n_window = 0;
    while (s->n_window < WINDOW) {
        ssize_t got = pread(s->fd, s->window + s->n_window, WINDOW - s->n_window,
                            (off_t)(from + s->n_window));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return mtb_fail_errno(MTPROF_EIO, errno, "step summaries: cannot read at %llu",
                                  (unsigned long long)(from + s->n_window));
        }
        if (got == 0) {
            break;
        }
        s->n_window += (size_t)got;
    }
    return MTPROF_OK;
}

/* The bytes at a place and how many there are: a whole record's, unless the file ends. */
static mtprof_status reach(mtprof_steps *s, uint64_t at, const char **bytes, size_t *n)
{
    if (at < s->from || at + MTPROF_STEPS_RECORD_BYTES > s->from + s->n_window) {
        MT_TRY(load(s, at));
    }
    *bytes = s->window + (at - s->from);
    *n = s->n_window - (size_t)(at - s->from);
    return MTPROF_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

static bool is_record(const char *bytes, size_t n, mtprof__steps_head *head)
{
    if (n < sizeof *head) {
        return false;
    }
    memcpy(head, bytes, sizeof *head);
    return head->magic == MTPROF__STEPS_MAGIC && head->bytes >= sizeof *head &&
           head->bytes % 8 == 0 && head->bytes <= MTPROF_STEPS_RECORD_BYTES && head->bytes <= n &&
           mtb_crc32c(0, bytes + MTPROF__STEPS_CRC_FROM, head->bytes - MTPROF__STEPS_CRC_FROM) ==
               head->crc;
}

static void add_damage(mtprof_steps *s, uint64_t to)
{
    s->info.damaged++;
    s->info.bytes_lost += to - s->at;
    s->at = to;
}

/* The next record from s->at on (SRD1). *bytes is NULL: there is none yet. */
static mtprof_status find_record(mtprof_steps *s, const char **bytes, mtprof__steps_head *head)
{
    uint64_t at = s->at;
    for (;;) {
        size_t n = 0;
        MT_TRY(reach(s, at, bytes, &n));
        if (is_record(*bytes, n, head)) {
            break;
        }
        if (n < sizeof *head) {
            *bytes = NULL;
            uint64_t end = at + n;
            uint64_t least = end > MTPROF_STEPS_RECORD_BYTES ? end - MTPROF_STEPS_RECORD_BYTES : 0;
            least = least / 8 * 8;
            if (least > s->at) {
                add_damage(s, least);
            }
            s->info.tail_bytes = end - s->at;
            s->n_window = 0; /* the file may grow */
            return MTPROF_OK;
        }
        at += 8;
    }
    if (at > s->at) {
        add_damage(s, at);
    }
    s->at = at + head->bytes;
    s->info.tail_bytes = 0;
    return MTPROF_OK;
}

static bool take_devices(mtprof_steps *s, const char *bytes, size_t length, size_t *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        mtprof__steps_device in;
        if (length - *at < sizeof in) {
            return false;
        }
        memcpy(&in, bytes + *at, sizeof in);
        s->devices[i] = (mtprof_step_device){
            .type = {bytes + *at, strnlen(bytes + *at, sizeof in.type)},
            .index = in.index,
            .busy_ns = in.busy_ns,
            .allocated = in.allocated,
            .reserved_memory = in.reserved_memory,
        };
        *at += sizeof in;
    }
    return true;
}

static bool take_ops(mtprof_steps *s, const char *bytes, size_t length, size_t *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        mtprof__steps_op in;
        if (length - *at < sizeof in) {
            return false;
        }
        memcpy(&in, bytes + *at, sizeof in);
        *at += sizeof in;
        size_t padded = ((size_t)in.name_bytes + 7) / 8 * 8;
        if (length - *at < padded) {
            return false;
        }
        s->ops[i] = (mtprof_step_op){
            .name = {bytes + *at, in.name_bytes},
            .self_ns = in.self_ns,
            .total_ns = in.total_ns,
            .calls = in.calls,
            .device = in.device,
            .kind = in.kind,
            .name_cut = in.name_cut,
        };
        *at += padded;
    }
    return true;
}

static bool take_step(mtprof_steps *s, const char *bytes, size_t length, mtprof_step_summary *out)
{
    mtprof__steps_step in;
    if (length < sizeof in) {
        return false;
    }
    memcpy(&in, bytes, sizeof in);
    size_t at = in.fixed;
    if (in.fixed < sizeof in || in.fixed > length || in.fixed % 8 != 0 ||
        in.n_ops > MTPROF_STEPS_OPS || in.n_devices > MTPROF_STEPS_DEVICES || in.steps == 0 ||
        in.first > UINT64_MAX - in.steps || !take_devices(s, bytes, length, &at, in.n_devices) ||
        !take_ops(s, bytes, length, &at, in.n_ops)) {
        return false;
    }
    *out = (mtprof_step_summary){
        .run = s->info.runs > 0 ? s->info.runs - 1 : 0,
        .first = in.first,
        .steps = in.steps,
        .start_ns = in.start_ns,
        .start_real_ns = (int64_t)((uint64_t)s->run.start_real_ns +
                                   ((uint64_t)in.start_ns - (uint64_t)s->run.start_ns)),
        .duration_ns = in.duration_ns,
        .events = in.events,
        .read_share = in.read_share,
        .lost = in.lost,
        .missed = in.missed,
        .rss_bytes = in.rss_bytes,
        .allocated = in.allocated,
        .allocated_most = in.allocated_most,
        .self_ns = in.self_ns,
        .n_ops = in.n_ops,
        .n_devices = in.n_devices,
        .ops_all = in.ops_all,
        .devices_all = in.devices_all,
        .ops = s->ops,
        .devices = s->devices,
    };
    return true;
}

static void count_step(mtprof_steps *s, const mtprof_step_summary *step)
{
    if (s->in_run && step->first > s->next_step) {
        s->info.gaps += step->first - s->next_step;
    }
    s->in_run = true;
    s->next_step = step->first + step->steps;
    s->info.summaries++;
    s->info.steps += step->steps;
}

/* A run that goes on in another file (SFI2) does not begin with step 0. */
static void begin_run(mtprof_steps *s, const char *bytes, size_t length)
{
    mtprof__steps_run run;
    if (length < sizeof run) {
        s->info.unknown++;
        return;
    }
    memcpy(&run, bytes, sizeof run);
    s->run = run;
    s->info.pid = run.pid;
    s->info.runs++;
    s->in_run = false;
}

mtprof_status mtprof_steps_next(mtprof_steps *steps, mtprof_step_summary *summary)
{
    if (steps == NULL || summary == NULL || summary->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "step summaries: no handle, no summary, or struct_size 0");
    }
    for (;;) {
        const char *bytes = NULL;
        mtprof__steps_head head;
        mtprof_step_summary full;
        MT_TRY(find_record(steps, &bytes, &head));
        if (bytes == NULL) {
            return MTPROF_EEND;
        }
        if (head.version > MTPROF__STEPS_VERSION) {
            return mtb_fail(MTPROF_EVERSION, "step summaries: version is %u, at most %d is known",
                            head.version, MTPROF__STEPS_VERSION);
        }
        if (head.kind == MTPROF__STEPS_RUN) {
            begin_run(steps, bytes, head.bytes);
        } else if (head.kind != MTPROF__STEPS_STEP) {
            steps->info.unknown++;
        } else if (!take_step(steps, bytes, head.bytes, &full)) {
            steps->info.damaged++;
            steps->info.bytes_lost += head.bytes;
        } else {
            count_step(steps, &full);
            mtb_write_struct(summary, &full);
            return MTPROF_OK;
        }
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

static mtprof_status check_file(mtprof_steps *steps, const char *path)
{
    struct stat st;
    const char *bytes = NULL;
    uint32_t magic = 0;
    size_t n = 0;
    if (steps->fd < 0 || fstat(steps->fd, &st) != 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "step summaries: cannot open %s", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return mtb_fail(MTPROF_EFORMAT, "step summaries: %s is not a regular file", path);
    }
    MT_TRY(reach(steps, 0, &bytes, &n));
    memcpy(&magic, bytes, n < sizeof magic ? n : sizeof magic);
    if (n > 0 && magic != MTPROF__STEPS_MAGIC) {
        return mtb_fail(MTPROF_EFORMAT, "step summaries: %s is not a file of step summaries", path);
    }
    return MTPROF_OK;
}

mtprof_status mtprof_steps_open(const char *path, mtprof_steps **out)
{
    if (path == NULL || out == NULL) {
        return mtb_fail(MTPROF_EINVAL, "step summaries: no path, or no place for the handle");
    }
    *out = NULL;
    mtprof_steps *steps = mtb_calloc(1, sizeof *steps);
    if (steps == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "step summaries: no memory");
    }
    steps->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    mtprof_status status = check_file(steps, path);
    if (status != MTPROF_OK) {
        mtprof_steps_close(steps);
        return status;
    }
    *out = steps;
    return MTPROF_OK;
}

void mtprof_steps_close(mtprof_steps *steps)
{
    if (steps == NULL) {
        return;
    }
    if (steps->fd >= 0) {
        close(steps->fd);
    }
    mtb_free(steps);
}

mtprof_status mtprof_steps_get_info(const mtprof_steps *steps, mtprof_steps_info *info)
{
    if (steps == NULL || info == NULL || info->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "step summaries: no handle, no info, or struct_size 0");
    }
    mtb_write_struct(info, &steps->info);
    return MTPROF_OK;
}
