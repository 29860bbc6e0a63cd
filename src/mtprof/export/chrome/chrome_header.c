/* SPDX-License-Identifier: Apache-2.0
 *
 * What comes before and after the events of a Chrome trace: metadata of the trace first, since
 * streaming readers stop looking for it at "traceEvents"; names of processes and threads, the
 * span of the whole, and the trace's name last.
 */
#include "mtprof/export/chrome/export_chrome_impl.h"
#include "mtprof/export/json_text.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/model_impl.h"

#include <mtprof/health.h>
#include <mtprof/version.h>

#include <stdio.h>

enum {
    SORT_DEVICES = 5000000,
    SORT_SPANS = 536870912
};

/* ---- before the events ----------------------------------------------------------------------- */

/* Keys that are ours: what a trace's metadata says under them is left out, except deviceProperties
 * and trace_id, which it knows better. */
static bool is_own_key(const mtprof__chrome *chrome, mtprof_text key)
{
    static const char *const own[] = {"schemaVersion",    "profile_memory", "with_stack",
                                      "record_shapes",    "with_modules",   "with_flops",
                                      "displayTimeUnit",  "traceEvents",    "traceName",
                                      "mtprof_version",   "mtprof_health",  "baseTimeNanoseconds",
                                      "deviceProperties", "mtprof_part",    "mtprof_ids"};
    for (size_t i = 0; i < MT_COUNT(own); i++) {
        if (mtprof__text_is(key, own[i])) {
            /* The health of an imported trace is that in its file. */
            return chrome->job->info.foreign == 0 || strcmp(own[i], "mtprof_health") != 0;
        }
    }
    return false;
}

static bool find_metadata(const mtprof__chrome *chrome, const char *key, mtprof_metadatum *out)
{
    for (uint32_t i = 0; mtprof_model_metadata(chrome->model, i, out); i++) {
        if (mtprof__text_is(out->key, key)) {
            return true;
        }
    }
    return false;
}

static void write_metadata(mtprof__chrome *chrome)
{
    mtb_writer *writer = chrome->writer;
    mtprof_metadatum item;
    mtb_write_literal(writer, "  \"deviceProperties\": ");
    if (find_metadata(chrome, "deviceProperties", &item) && item.is_json != 0) {
        mtprof__json_write_metadatum(writer, &item);
    } else {
        mtb_write_literal(writer, "[]");
    }
    mtb_write_literal(writer, ",\n");
    const uint64_t *uuid = chrome->job->info.uuid;
    if (!find_metadata(chrome, "trace_id", &item) && (uuid[0] | uuid[1]) != 0) {
        mtb_write_format(writer, "  \"trace_id\": \"%016llX%016llX\",\n",
                         (unsigned long long)uuid[0], (unsigned long long)uuid[1]);
    }
    for (uint32_t i = 0; mtprof_model_metadata(chrome->model, i, &item); i++) {
        if (!is_own_key(chrome, item.key)) {
            mtb_write_literal(writer, "  ");
            mtb_write_json(writer, item.key.bytes, item.key.length);
            mtb_write_literal(writer, ": ");
            mtprof__json_write_metadatum(writer, &item);
            mtb_write_literal(writer, ",\n");
        }
    }
}

static void write_flags(mtprof__chrome *chrome)
{
    static const struct {
        const char *name;
        uint64_t wants;
    } flags[] = {{"profile_memory", MTPROF_WANT_MEMORY | MTPROF_WANT_ALLOCS},
                 {"with_stack", MTPROF_WANT_STACKS},
                 {"record_shapes", MTPROF_WANT_INPUTS},
                 {"with_modules", MTPROF_WANT_MODULES},
                 {"with_flops", MTPROF_WANT_FLOPS}};
    for (size_t i = 0; i < MT_COUNT(flags); i++) {
        if ((chrome->job->info.wants & flags[i].wants) != 0) {
            mtb_write_format(chrome->writer, "  \"%s\": 1,\n", flags[i].name);
        }
    }
}

/* The recorder's counters as the trace has them; exact matching would need the columns. */
static void write_health(mtprof__chrome *chrome)
{
    mtb_writer *writer = chrome->writer;
    mtprof_trace_info info = {.struct_size = sizeof info};
    if (chrome->model->reader == NULL ||
        mtprof_reader_get_info(chrome->model->reader, &info) != MTPROF_OK) {
        return;
    }
    uint64_t lost = 0;
    for (uint32_t i = 0; i < MTPROF_HEALTH_LOST_END; i++) {
        lost += info.health[i];
    }
    uint64_t launches = info.health[MTPROF_HEALTH_LAUNCHES];
    uint64_t answers = info.health[MTPROF_HEALTH_ACTIVITIES];
    mtb_write_literal(writer, "  \"mtprof_health\": {\"begins\":");
    mtb_write_u64(writer, info.health[MTPROF_HEALTH_BEGINS]);
    mtb_write_member_u64(writer, "others", info.health[MTPROF_HEALTH_OTHERS]);
    mtb_write_member_u64(writer, "lost", lost);
    for (uint32_t i = 0; i < MTPROF_HEALTH_LOST_END; i++) {
        if (info.health[i] != 0) {
            mtb_write_format(writer, ",\"lost_%s\":%llu", mtprof_lost_cause(i),
                             (unsigned long long)info.health[i]);
        }
    }
    mtb_write_member_u64(writer, "evicted", info.health[MTPROF_HEALTH_RING_BEGINS]);
    mtb_write_member_u64(writer, "truncated", info.health[MTPROF_HEALTH_TRUNCATED]);
    mtb_write_member_u64(writer, "launches", launches);
    mtb_write_member_u64(writer, "unmatched", launches > answers ? launches - answers : 0);
    mtb_write_member_u64(writer, "stalls", info.health[MTPROF_HEALTH_STALLS]);
    mtb_write_member_u64(writer, "busy_at_stop", info.health[MTPROF_HEALTH_BUSY_AT_STOP]);
    mtb_write_member_u64(writer, "texts_cut", info.health[MTPROF_HEALTH_TEXTS_CUT]);
    mtb_write_member_u64(writer, "clock_back", info.health[MTPROF_HEALTH_CLOCK_BACK]);
    mtb_write_member_u64(writer, "stacks_missed", info.health[MTPROF_HEALTH_STACKS_MISSED]);
    if (info.health[MTPROF_HEALTH_UNRECORDED] != 0) {
        mtb_write_member_u64(writer, "unrecorded", info.health[MTPROF_HEALTH_UNRECORDED]);
    }
    mtb_write_member_u64(
        writer, "pair_cost_ps",
        (uint64_t)(((unsigned __int128)info.begin_cost_ticks * info.tick_period * 1000) >> 64));
    mtb_write_literal(writer, "},\n");
}

void mtprof__chrome_header(mtprof__chrome *chrome)
{
    mtb_writer *writer = chrome->writer;
    const mtprof__export_merge *merge = chrome->job->merge;
    if (merge != NULL && merge->index > 0) {
        return;
    }
    mtb_write_literal(writer, "{\n  \"schemaVersion\": 1,\n");
    if (merge != NULL) { /* metadata, flags and health are a rank's */
        mtb_write_format(writer, "  \"mtprof_merged_ranks\": %u,\n", merge->count);
    } else {
        write_metadata(chrome);
        write_flags(chrome);
        write_health(chrome);
    }
    if (chrome->job->parts != NULL && chrome->job->options.split_bytes != 0) {
        /* flows may go on in another one */
        mtb_write_format(writer, "  \"mtprof_part\": %u,\n", chrome->job->part);
    }
    if (chrome->model->two_id_families) {
        mtb_write_literal(writer, "  \"mtprof_ids\": \"foreign\",\n");
    }
    mtb_write_format(writer,
                     "  \"mtprof_version\": \"%s\",\n  \"displayTimeUnit\": \"ms\",\n"
                     "  \"baseTimeNanoseconds\": %lld,\n  \"traceEvents\": [\n",
                     mtprof_version_string(), (long long)chrome->base_ns);
}

/* ---- after the events ------------------------------------------------------------------------ */

/* One M event: its name, its process or thread, and its value as text (`string`) or number. */
static void write_name_event(mtprof__chrome *chrome, const char *what, int64_t pid, int64_t tid,
                             const mtprof_text *string, int64_t number)
{
    mtb_writer *writer = chrome->writer;
    const char *key = strcmp(what, "process_labels") == 0 ? "labels"
                      : string != NULL                    ? "name"
                                                          : "sort_index";
    mtb_write_format(writer, "{\"name\":\"%s\",\"ph\":\"M\",%s\"ts\":", what,
                     chrome->mindtorch ? "\"cat\":\"metadata\"," : "");
    mtprof__chrome_write_ns(chrome, mtprof__chrome_since_base(chrome, chrome->job->info.start_ns));
    mtb_write_format(writer, ",\"pid\":%lld,\"tid\":%lld,\"args\":{\"%s\":", (long long)pid,
                     (long long)tid, key);
    if (string != NULL) {
        mtb_write_json(writer, string->bytes, string->length);
    } else {
        mtb_write_i64(writer, number);
    }
    mtb_write_literal(writer, "}},\n");
}

/* The name of a process: from the trace, else its main thread's name, which is the program's unless
 * it was changed. Empty: unknown. */
static mtprof_text process_name(const mtprof__chrome *chrome, int64_t pid)
{
    mtprof_text name = mtprof__export_process_name(chrome->job, pid);
    return name.length > 0 ? name : (mtprof_text){"process", 7};
}

static void write_process(mtprof__chrome *chrome, int64_t pid, mtprof_text name, const char *label,
                          int64_t sort)
{
    mtprof_text labels = {label, strlen(label)};
    write_name_event(chrome, "process_name", pid, 0, &name, 0);
    write_name_event(chrome, "process_labels", pid, 0, &labels, 0);
    write_name_event(chrome, "process_sort_index", pid, 0, NULL, sort);
}

static void write_track_name(mtprof__chrome *chrome, int64_t pid, int64_t tid, mtprof_text name)
{
    write_name_event(chrome, "thread_name", pid, tid, &name, 0);
    write_name_event(chrome, "thread_sort_index", pid, tid, NULL, tid);
}

/* A thread without a name shows its process's name, which the system gives it. */
static void write_thread(mtprof__chrome *chrome, int64_t pid, int64_t tid, mtprof_text name)
{
    char text[256];
    int n;
    if (name.length == 0 && chrome->job->info.foreign == 0) {
        name = mtprof__export_process_name(chrome->job, pid);
    }
    if (name.length > 0) {
        n = snprintf(text, sizeof text, "thread %lld (%.*s)", (long long)tid,
                     (int)(name.length < 128 ? name.length : 128), name.bytes);
    } else {
        n = snprintf(text, sizeof text, "thread %lld", (long long)tid);
    }
    write_track_name(chrome, pid, tid, (mtprof_text){text, (size_t)n});
}

static void write_stream(mtprof__chrome *chrome, const mtprof__chrome_track *track)
{
    char text[64];
    int n = snprintf(text, sizeof text, "stream %lld ", (long long)track->tid);
    write_track_name(chrome, track->pid, track->tid, (mtprof_text){text, (size_t)n});
}

/* Whether an earlier track that was seen has the same process. */
static bool is_first_of_process(const mtprof__chrome *chrome, size_t index)
{
    const mtprof__chrome_track *track = &chrome->tracks[index];
    for (size_t i = 0; i < index; i++) {
        const mtprof__chrome_track *other = &chrome->tracks[i];
        if (other->seen && other->is_thread == track->is_thread && other->pid == track->pid) {
            return false;
        }
    }
    return true;
}

/* Counters of a source that is no device are a process's, on thread 0, which has no name: Perfetto
 * takes it for the main thread and would show that name there. */
static void write_processes(mtprof__chrome *chrome)
{
    mtprof_track info;
    bool any_thread = false;
    int64_t last_pid = -1; /* threads of one process are adjacent: saves most searches */
    for (size_t i = 0; i < chrome->n_tracks; i++) {
        const mtprof__chrome_track *track = &chrome->tracks[i];
        if (!track->seen || !mtprof_model_track(chrome->model, (uint32_t)i, &info)) {
            continue;
        }
        if (track->is_thread && track->pid != last_pid && is_first_of_process(chrome, i)) {
            write_process(chrome, track->pid, process_name(chrome, track->pid), "CPU", track->pid);
        } else if (!track->is_thread && is_first_of_process(chrome, i)) {
            mtprof_device device = {0};
            char label[64] = "GPU";
            if (mtprof_model_device(chrome->model, info.device, &device)) {
                bool cuda = mtprof__text_is(device.type, "CUDA");
                (void)snprintf(label, sizeof label, "%.32s %d", cuda ? "GPU" : device.type.bytes,
                               device.index);
            }
            mtprof_text name = process_name(chrome, (int64_t)chrome->job->info.pid);
            write_process(chrome, track->pid, name, label, SORT_DEVICES + track->pid);
        }
        last_pid = track->is_thread ? track->pid : last_pid;
        if (track->is_thread && (track->tid != 0 || chrome->job->info.foreign != 0)) {
            write_thread(chrome, track->pid, track->tid, info.name);
        } else if (!track->is_thread) {
            write_stream(chrome, track);
        }
        any_thread = any_thread || track->is_thread;
    }
    int64_t pid = (int64_t)chrome->job->info.pid;
    if (!any_thread && pid > 0) { /* without events, at least the process is named */
        write_process(chrome, pid, process_name(chrome, pid), "CPU", pid);
        write_thread(chrome, pid, pid, (mtprof_text){"", 0});
    }
}

/* MindTorch's readers look for the user's metadata among the events. */
static void write_user_metadata(mtprof__chrome *chrome)
{
    static const char *const others[] = {"process_name", "process_labels", "process_sort_index",
                                         "thread_name",  "host_name",      "thread_sort_index",
                                         "trace_id"};
    mtb_writer *writer = chrome->writer;
    mtprof_metadatum item;
    for (uint32_t i = 0; mtprof_model_metadata(chrome->model, i, &item); i++) {
        bool shown = !is_own_key(chrome, item.key);
        for (size_t k = 0; k < MT_COUNT(others) && shown; k++) {
            shown = !mtprof__text_is(item.key, others[k]);
        }
        if (!shown) {
            continue;
        }
        mtb_write_literal(writer, "{\"name\":");
        mtb_write_json(writer, item.key.bytes, item.key.length);
        mtb_write_literal(writer, ",\"ph\":\"M\",\"cat\":\"metadata\",\"ts\":");
        mtprof__chrome_write_ns(chrome,
                                mtprof__chrome_since_base(chrome, chrome->job->info.start_ns));
        mtb_write_member_i64(writer, "pid", (int64_t)chrome->job->info.pid);
        mtb_write_literal(writer, ",\"tid\":0,\"args\":{\"value\":");
        mtprof__json_write_metadatum(writer, &item);
        mtb_write_literal(writer, "}},\n");
    }
}

void mtprof__chrome_trailer(mtprof__chrome *chrome)
{
    mtb_writer *writer = chrome->writer;
    const mtprof__export_job *job = chrome->job;
    int64_t start = mtprof__chrome_since_base(chrome, job->info.start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, job->info.end_ns);
    write_processes(chrome);
    if (job->merge != NULL) {
        if (job->merge->index + 1 == job->merge->count) {
            mtb_write_literal(writer, "{\"name\":\"Record Window End\",\"ph\":\"i\",\"s\":\"g\","
                                      "\"pid\":\"\",\"tid\":\"\",\"ts\":");
            mtprof__chrome_write_ns(chrome, end > start ? end : start);
            mtb_write_literal(writer, "}\n  ],\n  \"traceName\": ");
            mtb_write_json(writer, job->path, strlen(job->path));
            mtb_write_literal(writer, "\n}\n");
        }
        return;
    }
    if (chrome->mindtorch) {
        write_user_metadata(chrome);
    }
    mtb_write_literal(writer, "{\"ph\":\"X\",\"cat\":\"Trace\",\"ts\":");
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_member_thousandths(writer, "dur", end > start ? end - start : 0);
    mtb_write_literal(writer, ",\"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\","
                              "\"name\":\"PyTorch Profiler (0)\",\"args\":{\"Op count\":0}},\n"
                              "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"ts\":");
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_literal(writer, ",\"pid\":\"Spans\",\"tid\":0,\"args\":{\"sort_index\":");
    mtb_write_i64(writer, SORT_SPANS);
    mtb_write_literal(writer, "}},\n{\"name\":\"Iteration Start: PyTorch Profiler\","
                              "\"ph\":\"i\",\"s\":\"g\",\"pid\":\"Traces\","
                              "\"tid\":\"Trace PyTorch Profiler\",\"ts\":");
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_literal(writer, "},\n{\"name\":\"Record Window End\",\"ph\":\"i\",\"s\":\"g\","
                              "\"pid\":\"\",\"tid\":\"\",\"ts\":");
    mtprof__chrome_write_ns(chrome, end > start ? end : start);
    const char *name = job->options.trace_name != NULL ? job->options.trace_name : job->path;
    mtb_write_literal(writer, "}\n  ],\n  \"traceName\": ");
    mtb_write_json(writer, name != NULL ? name : "", name != NULL ? strlen(name) : 0);
    mtprof__export_write_damage(job);
    mtb_write_literal(writer, "\n}\n");
}
