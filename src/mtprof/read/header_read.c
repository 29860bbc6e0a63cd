/* SPDX-License-Identifier: Apache-2.0
 *
 * The file header, in three parts that are checked apart: the fixed fields, without which nothing
 * can be read; the counters and the mark of a closed file; the fields written at closing.
 */
#include "mtprof/read/header_read.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "mtprof/format/layout.h"

#include <string.h>

/* Offset of a field, which is also its name in a message's offset. */
#define AT(field) ((int64_t)offsetof(mtprof__file_header, field))

enum {
    CLOCK_LAST = 1,
    FIXED_END = offsetof(mtprof__file_header, unused),
    FINAL_END = offsetof(mtprof__file_header, unused2),
    CLOSED_BYTES =
        offsetof(mtprof__file_header, closed_crc) - offsetof(mtprof__file_header, health),
    FINAL_BYTES =
        offsetof(mtprof__file_header, final_crc) - offsetof(mtprof__file_header, end_ticks),
    READS_MAX = 3 /* of a header that is being closed while it is read */
};

typedef union header_page {
    mtprof__file_header fields;
    unsigned char bytes[MTPROF_HEADER_BYTES];
} header_page;

/* The magic and the major version first: a trace of another major version gets another error than a
 * file that is no trace. */
static int check_identity(const mtprof__file_header *header, size_t length)
{
    if (length < sizeof header->magic || header->magic != MTPROF_FILE_MAGIC) {
        return mtb_fail_at(MTPROF_EFORMAT, AT(magic),
                           "open trace: no .mtt file: the first bytes are not \"MTTRACE\\n\"");
    }
    if (length >= FIXED_END && header->major != MTPROF_FORMAT_MAJOR) {
        return mtb_fail_at(MTPROF_EVERSION, AT(major),
                           "open trace: format version %u.%u, this build reads %u.x", header->major,
                           header->minor, MTPROF_FORMAT_MAJOR);
    }
    if (length < MTPROF_HEADER_BYTES) {
        return mtb_fail_at(MTPROF_EFORMAT, (int64_t)length,
                           "open trace: truncated: %zu bytes, the header alone has %u", length,
                           MTPROF_HEADER_BYTES);
    }
    return MTPROF_OK;
}

static int check_fixed(const mtprof__file_header *header)
{
    uint32_t crc = mtb_crc32c(0, header, (size_t)AT(header_crc));
    if (crc != header->header_crc) {
        return mtb_fail_at(MTPROF_EFORMAT, AT(header_crc),
                           "open trace: the header's checksum is %08x, expected %08x",
                           header->header_crc, crc);
    }
    uint32_t required = (uint32_t)header->features;
    if (required != 0) {
        return mtb_fail_at(MTPROF_EVERSION, AT(features),
                           "open trace: needs features %08x, this build knows none", required);
    }
    bool larger_allowed = header->minor > MTPROF_FORMAT_MINOR;
    if (header->header_bytes != MTPROF_HEADER_BYTES &&
        (!larger_allowed || header->header_bytes == 0 ||
         header->header_bytes % MTPROF_CHUNK_ALIGN != 0)) {
        return mtb_fail_at(MTPROF_EFORMAT, AT(header_bytes),
                           "open trace: header_bytes is %u, expected %u", header->header_bytes,
                           MTPROF_HEADER_BYTES);
    }
    if (header->tick_period == 0) {
        return mtb_fail_at(MTPROF_EFORMAT, AT(tick_period), "open trace: tick_period is 0");
    }
    if (header->clock > CLOCK_LAST) {
        return mtb_fail_at(MTPROF_EFORMAT, AT(clock), "open trace: clock is %u, expected 0 or 1",
                           header->clock);
    }
    if (header->policy > MTPROF_POLICY_STOP) {
        return mtb_fail_at(MTPROF_EFORMAT, AT(policy), "open trace: policy is %u, expected 0 to 2",
                           header->policy);
    }
    return MTPROF_OK;
}

static void copy_fields(const mtprof__file_header *header, mtprof_trace_info *info)
{
    info->major = header->major;
    info->minor = header->minor;
    memcpy(info->uuid, header->uuid, sizeof info->uuid);
    info->pid = header->pid;
    info->features = header->features;
    info->tick_period = header->tick_period;
    info->start_ticks = header->start_ticks;
    info->start_mono_ns = header->start_mono_ns;
    info->start_real_ns = header->start_real_ns;
    info->clock = header->clock;
    info->policy = header->policy;
    info->budget_bytes = header->budget_bytes;
    info->ring_ns = header->ring_ns;
    info->begin_cost_ticks = header->begin_cost_ticks;
    info->closed = header->closed == MTPROF_CLOSED_MARK;
    memcpy(info->health, header->health, sizeof info->health);
}

static uint32_t closed_crc(const mtprof__file_header *header)
{
    return mtb_crc32c(0, header->health, CLOSED_BYTES);
}

static uint32_t final_crc(const mtprof__file_header *header)
{
    return mtb_crc32c(0, &header->end_ticks, FINAL_BYTES);
}

/* In a closed file of our own minor the bytes that no field claims are zero. */
static int check_unlisted(const unsigned char *bytes, mtprof__problems *problems)
{
    static const uint16_t gaps[][2] = {{FIXED_END, offsetof(mtprof__file_header, health)},
                                       {FINAL_END, MTPROF_HEADER_BYTES}};
    for (size_t i = 0; i < MT_COUNT(gaps); i++) {
        for (size_t at = gaps[i][0]; at < gaps[i][1]; at++) {
            if (bytes[at] != 0) {
                return mtprof__problem_add(
                    problems, at, "header: byte %zu belongs to no field and is %02x, expected 00",
                    at, bytes[at]);
            }
        }
    }
    return MTPROF_OK;
}

/* What the header says of the file's end, once its checksum holds. */
static int check_end(const mtprof__file_header *header, mtprof_trace_info *info,
                     mtprof__problems *problems)
{
    unsigned long long size = info->file_bytes;
    unsigned long long expected = header->file_bytes;
    info->end_ticks = header->end_ticks;
    if (size < expected) {
        problems->bytes += expected - size;
        return mtprof__problem_add(
            problems, size, "truncated: the trace has %llu bytes, expected %llu", size, expected);
    }
    info->file_bytes = expected;
    if (size > expected) {
        return mtprof__problem_add(problems, expected,
                                   "%llu bytes behind the end of the trace at %llu are not read",
                                   size - expected, expected);
    }
    return MTPROF_OK;
}

static int check_closing(const header_page *page, mtprof_trace_info *info,
                         mtprof__problems *problems)
{
    const mtprof__file_header *header = &page->fields;
    if (closed_crc(header) != header->closed_crc) {
        MT_TRY(mtprof__problem_add(
            problems, (uint64_t)AT(closed_crc),
            "header: the checksum of the health counters and the closed mark is %08x, expected "
            "%08x",
            header->closed_crc, closed_crc(header)));
    }
    if (final_crc(header) == header->final_crc) {
        MT_TRY(check_end(header, info, problems));
    } else {
        MT_TRY(mtprof__problem_add(
            problems, (uint64_t)AT(final_crc),
            "header: the checksum of end_ticks and file_bytes is %08x, expected %08x",
            header->final_crc, final_crc(header)));
    }
    return info->minor == MTPROF_FORMAT_MINOR ? check_unlisted(page->bytes, problems) : MTPROF_OK;
}

/* Reads until closing, if it is going on just now, is over. */
static int read_page(const mtprof__bytes *bytes, header_page *page)
{
    for (int reads = 0; reads < READS_MAX; reads++) {
        size_t got = 0;
        memset(page, 0, sizeof *page);
        MT_TRY(mtprof__bytes_read(bytes, 0, page, sizeof *page, &got));
        MT_TRY(check_identity(&page->fields, got));
        MT_TRY(check_fixed(&page->fields));
        if (page->fields.closed != MTPROF_CLOSED_MARK ||
            (closed_crc(&page->fields) == page->fields.closed_crc &&
             final_crc(&page->fields) == page->fields.final_crc)) {
            break;
        }
    }
    return MTPROF_OK;
}

int mtprof__header_read(const mtprof__bytes *bytes, mtprof_trace_info *info, uint64_t *first_chunk,
                        bool *end_told, mtprof__problems *problems)
{
    header_page page;
    MT_TRY(read_page(bytes, &page));
    copy_fields(&page.fields, info);
    info->file_bytes = mtprof__bytes_size(bytes);
    *first_chunk = page.fields.header_bytes;
    *end_told = info->closed && final_crc(&page.fields) == page.fields.final_crc;
    if (info->closed) {
        return check_closing(&page, info, problems);
    }
    if (page.fields.closed != 0) {
        return mtprof__problem_add(problems, (uint64_t)AT(closed),
                                   "header: closed is %08x, expected 0 or %08x; read as not closed",
                                   page.fields.closed, MTPROF_CLOSED_MARK);
    }
    return MTPROF_OK;
}
