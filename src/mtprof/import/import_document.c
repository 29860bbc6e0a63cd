/* SPDX-License-Identifier: Apache-2.0
 *
 * The document around the events: an object with "traceEvents" among other members, in any order,
 * or a bare array of events. Either may be cut off: what is there is read, and the cut counts as a
 * problem. Only a bare array that ends after an event is whole without its bracket: the format
 * allows tools to omit it.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

enum {
    METADATA_MOST = 1 << 20 /* longest value of the trace that is kept */
};

typedef struct reader {
    mtprof__import *import;
    mtprof__source *source;
    mtb_scan scan;
    bool cut; /* the text ended before the document did */
} reader;

/* ---- the window ------------------------------------------------------------------------------ */

/* What has been read up to scan.at is done with. */
static void consume(reader *r)
{
    r->source->begin = (size_t)(r->scan.at - r->source->window);
}

/* Starts again at what is not done with. */
static void restart(reader *r)
{
    r->scan.at = r->source->window + r->source->begin;
    r->scan.end = r->source->window + r->source->end;
}

static int report_progress(const reader *r)
{
    const mtprof_model_options *options = &r->import->model->options;
    if (options->progress == NULL) {
        return MTPROF_OK;
    }
    if (options->progress(options->user, "reading", r->source->file.read_bytes,
                          r->source->file.file_bytes) != 0) {
        return mtb_fail(MTPROF_ECALLBACK, "open trace: %s: given up on request",
                        r->source->file.path);
    }
    return MTPROF_OK;
}

/* The offset in the text of what comes next. */
static uint64_t text_offset(const reader *r)
{
    return r->source->offset + (uint64_t)(r->scan.at - r->source->window);
}

/* Damage is reported once, not again for what follows from it. */
static void note_problem(reader *r, uint64_t offset)
{
    if (r->import->found.problems == 0) {
        r->import->found.problems = 1;
        r->import->found.problem_offset = offset;
    }
}

static void note_cut(reader *r)
{
    note_problem(r, r->source->offset + r->source->end);
}

/* More text; r->cut where there is none. */
static int refill(reader *r)
{
    if (r->source->ended) {
        r->cut = true;
        return MTPROF_OK;
    }
    MT_TRY(mtprof__source_fill(r->source));
    restart(r);
    return report_progress(r);
}

static int bad_text(const reader *r)
{
    uint64_t offset = text_offset(r);
    unsigned char found = (unsigned char)*r->scan.at;
    char shown[8] = {(char)found, 0};
    if (found < 0x20 || found > 0x7E) {
        static const char hex[] = "0123456789abcdef";
        memcpy(shown, "\\x00", 5);
        shown[2] = hex[found >> 4];
        shown[3] = hex[found & 15];
    }
    return mtb_fail_at(MTPROF_EFORMAT, (int64_t)offset,
                       "open trace: %s: expected %s at byte %llu%s, found '%s'; not valid JSON "
                       "there: repair that place, or write the trace again",
                       r->source->file.path, r->scan.wanted != NULL ? r->scan.wanted : "JSON",
                       (unsigned long long)offset,
                       r->source->file.inflate != NULL ? " of the unpacked text" : "", shown);
}

/* The next character that is not white space, 0 at the end of the text (r->cut). */
static int peek(reader *r, char *out)
{
    *out = 0;
    while (!r->cut) {
        r->scan.at = mtb_skip_space(r->scan.at);
        if (r->scan.at < r->scan.end) {
            *out = *r->scan.at;
            return MTPROF_OK;
        }
        consume(r);
        MT_TRY(refill(r));
    }
    return MTPROF_OK;
}

/* What an item that was scanned is: *done, or bad text, or there is more to read (r->cut: there is
 * not). */
static int settle(reader *r, int status, bool *done)
{
    *done = status == MTB_SCAN_OK;
    return *done ? MTPROF_OK : status == MTB_SCAN_BAD ? bad_text(r) : refill(r);
}

/* One value as a whole. r->cut: it is not there as a whole. */
static int read_value(reader *r, mtb_slice *value)
{
    consume(r);
    for (bool done = false; !done && !r->cut;) {
        MT_TRY(settle(r, mtb_scan_value(&r->scan, value), &done));
    }
    return MTPROF_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int read_event(reader *r)
{
    mtprof__import *import = r->import;
    consume(r);
    while (!r->cut) {
        bool done;
        MT_TRY(settle(r, mtprof__scan_event(&r->scan, &import->raw), &done));
        if (MT_LIKELY(done)) {
            return mtprof__import_add(import);
        }
    }
    note_cut(r); /* in the middle of an event */
    return MTPROF_OK;
}

/* Entries up to the closing bracket. Commas too many or too few are let pass. */
static int read_events(reader *r)
{
    r->scan.at++;
    for (;;) {
        char next;
        MT_TRY(peek(r, &next));
        if (r->cut) {
            return MTPROF_OK;
        }
        if (MT_LIKELY(next == '{')) {
            MT_TRY(read_event(r));
        } else if (next == ',') {
            r->scan.at++;
        } else if (next == ']') {
            r->scan.at++;
            return MTPROF_OK;
        } else {
            mtb_slice ignored;
            MT_TRY(read_value(r, &ignored));
            r->import->entries++;
            r->import->found.skipped++;
        }
    }
}

/* ---- metadata of the trace ------------------------------------------------------------------- */

/* Members that say what was recorded. */
static uint64_t want_of(const mtb_slice *key)
{
    static const struct {
        const char *key;
        uint64_t want;
    } flags[] = {
        {"with_stack", MTPROF_WANT_STACKS},    {"profile_memory", MTPROF_WANT_ALLOCS},
        {"record_shapes", MTPROF_WANT_INPUTS}, {"with_modules", MTPROF_WANT_MODULES},
        {"with_flops", MTPROF_WANT_FLOPS},
    };
    for (size_t i = 0; i < MT_COUNT(flags); i++) {
        if (mtb_slice_is(key, flags[i].key, strlen(flags[i].key))) {
            return flags[i].want;
        }
    }
    return 0;
}

/* Members that every export writes for itself. */
static bool is_frame(const mtb_slice *key)
{
    return mtb_slice_is_literal(key, "schemaVersion") ||
           mtb_slice_is_literal(key, "displayTimeUnit") || mtb_slice_is_literal(key, "traceName");
}

static int add_member(mtprof__import *import, const mtb_slice *key, const mtb_slice *value)
{
    int64_t number = 0;
    if (mtb_slice_is_literal(key, "baseTimeNanoseconds")) {
        if (mtb_slice_integer(value, &number)) {
            import->base_ns = mtb_bound_time(number);
        }
        return MTPROF_OK;
    }
    if (mtb_slice_is_literal(key, "mtprof_version")) {
        import->is_ours = true;
        return MTPROF_OK;
    }
    if (mtb_slice_is_literal(key, "mtprof_ids")) {
        import->two_id_families = true;
        return MTPROF_OK;
    }
    uint64_t want = want_of(key);
    if (want != 0) {
        bool on =
            value->type == MTB_SLICE_TRUE || (mtb_slice_integer(value, &number) && number != 0);
        import->wants |= on ? want : 0;
        return MTPROF_OK;
    }
    bool empty = value->type == MTB_SLICE_ARRAY && value->length <= 2;
    if (is_frame(key) || empty) {
        return MTPROF_OK;
    }
    if ((size_t)key->length + value->length > METADATA_MOST) {
        import->found.skipped++;
        return MTPROF_OK;
    }
    char *room = mtprof__import_scratch(import, (size_t)key->length + value->length);
    if (room == NULL) {
        return MTPROF_ENOMEM;
    }
    mtprof_metadatum item = {.key = {key->bytes, key->length}};
    if (key->escaped != 0) {
        item.key = (mtprof_text){room, mtb_slice_decode(key, room)};
        room += key->length;
    }
    mtprof__import_metadatum(value, room, &item);
    return mtprof__dictionary_trace_metadata(&import->model->dictionary, &item);
}

/* A member other than the events: key, colon and value as one item. */
static int read_member(reader *r, bool *is_events)
{
    mtb_slice key;
    mtb_slice value;
    *is_events = false;
    consume(r);
    while (!r->cut) {
        int status = mtb_scan_string(&r->scan, &key);
        if (status == MTB_SCAN_OK) {
            status = mtb_scan_expect(&r->scan, ':', "':'");
        }
        if (status == MTB_SCAN_OK && mtb_slice_is_literal(&key, "traceEvents")) {
            *is_events = true;
            return MTPROF_OK;
        }
        if (status == MTB_SCAN_OK) {
            status = mtb_scan_value(&r->scan, &value);
        }
        bool done;
        MT_TRY(settle(r, status, &done));
        if (done) {
            return add_member(r->import, &key, &value);
        }
    }
    return MTPROF_OK;
}

/* ---- the document ---------------------------------------------------------------------------- */

static int read_object(reader *r, bool *has_events)
{
    char next;
    r->scan.at++;
    for (;;) {
        bool is_events;
        MT_TRY(peek(r, &next));
        if (next == ',') {
            r->scan.at++;
            continue;
        }
        if (r->cut || next == '}') {
            r->scan.at += next == '}';
            if (r->cut) {
                note_cut(r);
            }
            return MTPROF_OK;
        }
        MT_TRY(read_member(r, &is_events));
        if (!is_events) {
            continue;
        }
        *has_events = true;
        MT_TRY(peek(r, &next));
        if (next != '[' && !r->cut) {
            r->scan.wanted = "'[' (an array of events)";
            return bad_text(r);
        }
        if (!r->cut) {
            MT_TRY(read_events(r));
        }
    }
}

static int not_a_trace(const reader *r, const char *what)
{
    return mtb_fail_at(MTPROF_EFORMAT, 0,
                       "open trace: %s: %s; expected a .mtt trace, or JSON with \"traceEvents\" as "
                       "Chrome and torch.profiler write it",
                       r->source->file.path, what);
}

/* Whether what was read is a trace at all. */
static int judge(const reader *r, bool has_events)
{
    const mtprof__import *import = r->import;
    if (!has_events) {
        return not_a_trace(r, r->cut ? "the text ends before any events come"
                                     : "a JSON object without \"traceEvents\"");
    }
    if (import->entries > 0 && import->events == 0) {
        return not_a_trace(r, "none of the entries is an event");
    }
    return MTPROF_OK;
}

int mtprof__import_document(mtprof__import *import)
{
    reader r = {.import = import, .source = import->source};
    bool has_events = false;
    char next;
    MT_TRY(mtprof__source_fill(r.source));
    restart(&r);
    if (r.scan.end - r.scan.at >= 3 && memcmp(r.scan.at, "\xEF\xBB\xBF", 3) == 0) {
        r.scan.at += 3; /* a byte order mark */
    }
    MT_TRY(peek(&r, &next));
    if (r.cut) {
        return not_a_trace(&r, "it is empty");
    }
    if (next == '[') {
        has_events = true;
        MT_TRY(read_events(&r));
    } else if (next == '{') {
        MT_TRY(read_object(&r, &has_events));
    } else if (r.scan.end - r.scan.at >= 8 && memcmp(r.scan.at, "MTTRACE\n", 8) == 0) {
        return not_a_trace(&r, "a .mtt trace inside gzip (gunzip it first)");
    } else {
        return not_a_trace(&r, "neither JSON nor .mtt");
    }
    MT_TRY(judge(&r, has_events));
    MT_TRY(peek(&r, &next));
    if (next != 0) {
        note_problem(&r, text_offset(&r)); /* something after the document */
    }
    if (r.source->file.inflate != NULL && !mtb_inflate_is_whole(r.source->file.inflate)) {
        note_cut(&r); /* at least its checksum is missing */
    }
    return MTPROF_OK;
}

/* ---- the whole import ---- */

static void import_fini(mtprof__import *import)
{
    for (size_t t = 0; t < import->n_tracks; t++) {
        mtprof__run_fini(&import->tracks[t].run);
        mtb_free(import->tracks[t].open);
    }
    mtb_free(import->tracks);
    mtb_idmap_reset(&import->track_map);
    mtprof__cache_fini(&import->names);
    mtprof__cache_fini(&import->inputs);
    mtprof__cache_fini(&import->stacks);
    mtprof__cache_fini(&import->metadata);
    mtb_free(import->scratch);
    mtb_free(import->points);
    mtb_free(import->asyncs);
    mtb_free(import->async_heads);
    mtb_free(import->head_checks);
    mtb_idmap_reset(&import->async_map);
    mtb_free(import->steps);
    mtb_free(import->processes);
    mtb_free(import);
}

int mtprof__import_source(mtprof__source *source, const mtprof_model_options *options,
                          mtprof_model **out)
{
    mtprof_model *model = NULL;
    *out = NULL;
    MT_TRY(mtprof__model_new_foreign(options, &model));
    mtprof__import *import = mtb_calloc(1, sizeof *import);
    if (import == NULL) {
        mtprof_model_free(model);
        return mtb_fail(MTPROF_ENOMEM, "open trace: %s: %zu bytes", source->file.path,
                        sizeof *import);
    }
    import->model = model;
    import->source = source;
    import->first_ns = INT64_MAX;
    import->last_ns = INT64_MIN;
    int status = mtprof__import_document(import);
    if (status == MTPROF_OK) {
        status = mtprof__import_finish(import);
    }
    import_fini(import);
    if (status != MTPROF_OK) {
        mtprof_model_free(model);
        return status;
    }
    *out = model;
    return MTPROF_OK;
}
