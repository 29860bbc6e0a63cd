/* SPDX-License-Identifier: Apache-2.0
 *
 * pprof's profile.proto: a sample for each distinct path (path_tree.h) with the number of events,
 * the host's and the device's nanoseconds and the bytes allocated there and not deeper. `pprof`,
 * Go's tool, speedscope and Pyroscope read it.
 *
 * Parts of paths are locations of one line each: a frame has its function, file and line; an op or
 * scope is a function without a file. Ids of strings, functions and locations follow from the
 * number of the part, so nothing but the tree is kept in memory.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/export/path_tree.h"
#include "mtprof/export/protobuf.h"

#include <string.h>

/* Field numbers, as published with the format. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
    VALUE_TYPE = 1,
    VALUE_UNIT = 2,
    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    LOCATION_ID = 1,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4
};

/* The first strings; then come two for each part: its name and its file. */
static const char *const first_strings[] = {"",       "events",      "count", "cpu", "nanoseconds",
                                            "device", "alloc_space", "bytes"};

enum {
    STRING_CPU = 3,
    STRING_PARTS = MT_COUNT(first_strings)
};

static const struct {
    uint8_t type, unit; /* strings */
} values[MTPROF__PATH_VALUES] = {[MTPROF__PATH_COUNT] = {1, 2},
                                 [MTPROF__PATH_HOST_NS] = {STRING_CPU, 4},
                                 [MTPROF__PATH_DEVICE_NS] = {5, 4},
                                 [MTPROF__PATH_ALLOCATED] = {6, 7}};

typedef struct pprof {
    mtprof__path_tree tree;
    mtprof__pb pb;
    bool has[MTPROF__PATH_VALUES]; /* what the trace recorded */
} pprof;

/* What is in the message goes to the file; it is a sequence of fields of the profile. */
static int flush(pprof *p)
{
    if (p->pb.failed) {
        return mtb_fail(MTPROF_ENOMEM, "export pprof: no memory for a message");
    }
    mtb_write(p->tree.job->writer, p->pb.bytes, p->pb.used);
    mtprof__pb_clear(&p->pb);
    return mtprof__export_tick(p->tree.job, NULL);
}

static void put_head(pprof *p)
{
    const mtprof_model_info *info = &p->tree.job->info;
    int64_t start = 0;
    for (size_t i = 0; i < MT_COUNT(first_strings); i++) {
        mtprof__pb_bytes(&p->pb, PROFILE_STRING, first_strings[i], strlen(first_strings[i]));
    }
    for (size_t i = 0; i < MTPROF__PATH_VALUES; i++) {
        if (p->has[i]) {
            size_t type = mtprof__pb_begin(&p->pb, PROFILE_SAMPLE_TYPE);
            mtprof__pb_u64(&p->pb, VALUE_TYPE, values[i].type);
            mtprof__pb_u64(&p->pb, VALUE_UNIT, values[i].unit);
            mtprof__pb_end(&p->pb, type);
        }
    }
    mtprof__pb_u64(&p->pb, PROFILE_DEFAULT_SAMPLE_TYPE, STRING_CPU);
    if (!__builtin_add_overflow(info->start_ns, info->real_offset_ns, &start) && start > 0) {
        mtprof__pb_u64(&p->pb, PROFILE_TIME_NANOS, (uint64_t)start);
    }
    if (info->end_ns > info->start_ns) {
        mtprof__pb_u64(&p->pb, PROFILE_DURATION_NANOS,
                       (uint64_t)info->end_ns - (uint64_t)info->start_ns);
    }
}

/* The strings, the function and the location of a part; ids count from 1. */
static void put_part(pprof *p, uint32_t id)
{
    const mtprof__path_part *part = &p->tree.parts[id - 1];
    bool is_frame = part->frame.function.bytes != NULL && part->frame.function.length > 0;
    mtprof_text name = is_frame ? part->frame.function : part->text;
    mtprof_text file = is_frame ? part->frame.file : (mtprof_text){"", 0};
    uint64_t first = STRING_PARTS + 2 * (uint64_t)(id - 1);
    uint64_t *replaced = &p->tree.job->writer->replaced;
    mtprof__pb_text(&p->pb, PROFILE_STRING, name.bytes, name.length, replaced);
    mtprof__pb_text(&p->pb, PROFILE_STRING, file.bytes, file.length, replaced);
    size_t function = mtprof__pb_begin(&p->pb, PROFILE_FUNCTION);
    mtprof__pb_u64(&p->pb, FUNCTION_ID, id);
    mtprof__pb_u64(&p->pb, FUNCTION_NAME, first);
    mtprof__pb_u64(&p->pb, FUNCTION_SYSTEM_NAME, first);
    mtprof__pb_u64(&p->pb, FUNCTION_FILE, first + 1);
    mtprof__pb_end(&p->pb, function);
    size_t location = mtprof__pb_begin(&p->pb, PROFILE_LOCATION);
    mtprof__pb_u64(&p->pb, LOCATION_ID, id);
    size_t line = mtprof__pb_begin(&p->pb, LOCATION_LINE);
    mtprof__pb_u64(&p->pb, LINE_FUNCTION, id);
    if (is_frame) {
        mtprof__pb_u64(&p->pb, LINE_LINE, part->frame.line & INT64_MAX);
    }
    mtprof__pb_end(&p->pb, line);
    mtprof__pb_end(&p->pb, location);
}

static bool has_values(const pprof *p, const mtprof__path_node *node)
{
    bool any = false;
    for (size_t i = 0; i < MTPROF__PATH_VALUES; i++) {
        any |= p->has[i] && node->values[i] != 0;
    }
    return any;
}

/* The leaf comes first. */
static void put_sample(pprof *p, uint32_t node)
{
    const mtprof__path_node *nodes = p->tree.nodes;
    size_t sample = mtprof__pb_begin(&p->pb, PROFILE_SAMPLE);
    size_t path = mtprof__pb_begin(&p->pb, SAMPLE_LOCATION);
    for (uint32_t at = node; at != 0; at = nodes[at].parent) {
        mtprof__pb_varint(&p->pb, nodes[at].part);
    }
    mtprof__pb_end(&p->pb, path);
    size_t numbers = mtprof__pb_begin(&p->pb, SAMPLE_VALUE);
    for (size_t i = 0; i < MTPROF__PATH_VALUES; i++) {
        if (p->has[i]) {
            mtprof__pb_varint(&p->pb, (uint64_t)nodes[node].values[i]);
        }
    }
    mtprof__pb_end(&p->pb, numbers);
    mtprof__pb_end(&p->pb, sample);
}

static int write_profile(pprof *p)
{
    put_head(p);
    MT_TRY(flush(p));
    for (uint32_t id = 1; id <= p->tree.n_parts; id++) {
        put_part(p, id);
        MT_TRY(flush(p));
    }
    for (uint32_t node = 1; node < p->tree.n_nodes; node++) {
        if (has_values(p, &p->tree.nodes[node])) {
            put_sample(p, node);
            MT_TRY(flush(p));
        }
    }
    return MTPROF_OK;
}

int mtprof__export_pprof(mtprof__export_job *job)
{
    pprof p = {.has = {[MTPROF__PATH_COUNT] = true,
                       [MTPROF__PATH_HOST_NS] = true,
                       [MTPROF__PATH_DEVICE_NS] = job->info.device_type != NULL,
                       [MTPROF__PATH_ALLOCATED] = (job->info.wants & MTPROF_WANT_ALLOCS) != 0}};
    int status = mtprof__path_tree_init(&p.tree, job);
    if (status == MTPROF_OK) {
        status = mtprof__path_tree_add_host(&p.tree);
    }
    if (status == MTPROF_OK && p.has[MTPROF__PATH_DEVICE_NS]) {
        status = mtprof__path_tree_add_device(&p.tree, NULL);
    }
    if (status == MTPROF_OK) {
        status = write_profile(&p);
    }
    mtprof__pb_fini(&p.pb);
    mtprof__path_tree_fini(&p.tree);
    return status;
}
