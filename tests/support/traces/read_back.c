/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a whole trace back, see read_back.h.
 */
#include "support/traces/read_back.h"

#include "harness/mt_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An end waits here until all begins are known: it may be in another slot's stream. */
typedef struct rb_end {
    uint64_t key, ticks;
    uint32_t epoch;
} rb_end;

typedef struct rb_walk {
    rb_trace *trace;
    rb_end *ends;
    size_t n_ends, ends_capacity, spans_capacity;
} rb_walk;

static void *grown(void *array, size_t count, size_t *capacity, size_t element)
{
    if (count < *capacity) {
        return array;
    }
    *capacity = *capacity == 0 ? 1024 : *capacity * 2;
    void *larger = realloc(array, *capacity * element);
    if (larger == NULL) {
        abort();
    }
    return larger;
}

static void note_problem(rb_trace *trace, uint64_t offset, const char *message)
{
    if (trace->problems++ == 0) {
        snprintf(trace->first_problem, sizeof trace->first_problem, "offset %llu: %s",
                 (unsigned long long)offset, message);
    }
}

static void note_undefined(rb_trace *trace, const mtprof_record *r, const char *what, uint32_t id)
{
    if (trace->undefined++ == 0 && trace->problems == 0) {
        snprintf(trace->first_problem, sizeof trace->first_problem,
                 "offset %llu: record of kind %02x uses %s %u, which is not defined",
                 (unsigned long long)r->offset, r->kind, what, id);
    }
}

/* F3: what a record needs is defined. */
static void check_definitions(rb_trace *t, const mtprof_record *r)
{
    mtprof_text text;
    const uint64_t *words;
    uint32_t n, a, b;
    mtprof_thread_info thread;
    switch (r->kind) {
    case MTPROF_REC_BEGIN:
    case MTPROF_REC_BEGIN_X:
    case MTPROF_REC_INSTANT:
    case MTPROF_REC_COUNTER:
    case MTPROF_REC_FLOW:
    case MTPROF_REC_LAUNCH:
    case MTPROF_REC_META:
        if (r->arg != 0 && !mtprof_reader_string(t->reader, r->arg, &text)) {
            note_undefined(t, r, "string", r->arg);
        }
        if (r->thread == 0 || !mtprof_reader_thread(t->reader, r->thread, &thread)) {
            note_undefined(t, r, "thread", r->thread);
        }
        break;
    case MTPROF_REC_INPUTS:
        if (!mtprof_reader_inputs(t->reader, r->arg, &words, &n)) {
            note_undefined(t, r, "input list", r->arg);
        }
        break;
    case MTPROF_REC_STACK:
        if (!mtprof_reader_stack(t->reader, r->arg, &a, &b)) {
            note_undefined(t, r, "stack", r->arg);
        }
        break;
    default: break;
    }
}

static void note_begin(rb_walk *walk, const mtprof_stream_info *stream, const mtprof_record *r)
{
    rb_trace *t = walk->trace;
    t->spans = grown(t->spans, t->n_spans, &walk->spans_capacity, sizeof *t->spans);
    t->spans[t->n_spans++] = (rb_span){
        .key = r->key,
        .parent = r->kind == MTPROF_REC_BEGIN_X ? r->words[2] : 0,
        .start = r->ticks,
        .offset = r->offset,
        .thread = r->thread,
        .epoch = r->epoch,
        .name = r->arg,
        .slot = stream->slot,
        .flags = r->aux,
    };
}

static void note_event(rb_walk *walk, const mtprof_stream_info *stream, const mtprof_record *r)
{
    rb_trace *t = walk->trace;
    switch (r->kind) {
    case MTPROF_REC_BEGIN:
    case MTPROF_REC_BEGIN_X:
        note_begin(walk, stream, r);
        t->begins++;
        break;
    case MTPROF_REC_LAUNCH: t->begins++; break;
    case MTPROF_REC_END:
    case MTPROF_REC_END_X:
        walk->ends = grown(walk->ends, walk->n_ends, &walk->ends_capacity, sizeof *walk->ends);
        walk->ends[walk->n_ends++] = (rb_end){r->key, r->ticks, r->epoch};
        break;
    case MTPROF_REC_INSTANT:
    case MTPROF_REC_COUNTER:
    case MTPROF_REC_FLOW:
    case MTPROF_REC_ALLOC:
    case MTPROF_REC_OUT_OF_MEMORY: t->others++; break;
    default: break;
    }
}

/* Whether a record carries a time of its own. */
static bool is_timed(uint8_t kind)
{
    return kind == MTPROF_REC_END || (kind >= MTPROF_REC_BEGIN && kind <= MTPROF_REC_LAUNCH) ||
           kind == MTPROF_REC_TIME || kind == MTPROF_REC_EPOCH || kind == MTPROF_REC_THREAD ||
           kind == MTPROF_REC_OUT_OF_MEMORY;
}

static void walk_stream(rb_walk *walk, uint32_t index, rb_visit *visit, void *context)
{
    rb_trace *t = walk->trace;
    mtprof_stream_info stream = {.struct_size = sizeof stream};
    mtprof_cursor *cursor;
    CHECK_OK(mtprof_reader_get_stream(t->reader, index, &stream));
    if (!CHECK_OK(mtprof_cursor_open(t->reader, index, &cursor))) {
        return;
    }
    bool events = stream.kind == MTPROF_STREAM_THREAD;
    uint64_t last = 0;
    mtprof_record r;
    mtprof_status status;
    while ((status = mtprof_cursor_next(cursor, &r)) != MTPROF_EEND) {
        if (status != MTPROF_OK) {
            const mtprof_error *error = mtprof_last_error();
            note_problem(t, (uint64_t)error->offset, error->message);
            if (status == MTPROF_ENOMEM) {
                break;
            }
            continue;
        }
        t->records++;
        t->kinds[r.kind]++;
        if (events) {
            if (is_timed(r.kind)) {
                t->back += r.ticks < last;
                last = r.ticks;
            }
            check_definitions(t, &r);
            note_event(walk, &stream, &r);
        }
        if (visit != NULL) {
            visit(context, t, &stream, &r);
        }
    }
    mtprof_cursor_close(cursor);
    CHECK_OK(mtprof_reader_get_stream(t->reader, index, &stream));
    t->chunks_missing += stream.chunks_missing;
}

static int by_key(const void *a, const void *b)
{
    const rb_span *left = a, *right = b;
    return left->key < right->key ? -1 : left->key > right->key;
}

static rb_span *find(const rb_trace *trace, uint64_t key)
{
    rb_span wanted = {.key = key};
    return trace->n_spans == 0
               ? NULL
               : bsearch(&wanted, trace->spans, trace->n_spans, sizeof wanted, by_key);
}

const rb_span *rb_span_of(const rb_trace *trace, uint64_t key)
{
    return find(trace, key);
}

static void pair(rb_walk *walk)
{
    rb_trace *t = walk->trace;
    if (t->n_spans > 1) {
        qsort(t->spans, t->n_spans, sizeof *t->spans, by_key);
    }
    for (size_t i = 1; i < t->n_spans; i++) {
        if (t->spans[i].key == t->spans[i - 1].key) {
            note_problem(t, t->spans[i].offset, "a key was given to two begins");
        }
    }
    for (size_t i = 0; i < walk->n_ends; i++) {
        rb_span *span = find(t, walk->ends[i].key);
        if (span == NULL || span->ended || span->epoch != walk->ends[i].epoch) {
            t->ignored_ends++;
            continue;
        }
        span->ended = true;
        span->end = walk->ends[i].ticks;
    }
    for (size_t i = 0; i < t->n_spans; i++) {
        t->open_spans += !t->spans[i].ended;
    }
}

static void walk_all(rb_trace *trace, rb_visit *visit, void *context)
{
    rb_walk walk = {.trace = trace};
    mtprof_problem problem;
    trace->info.struct_size = sizeof trace->info;
    CHECK_OK(mtprof_reader_get_info(trace->reader, &trace->info));
    for (uint32_t i = 0; mtprof_reader_problem(trace->reader, i, &problem); i++) {
        note_problem(trace, problem.offset, problem.message);
    }
    for (uint32_t i = 0; i < mtprof_reader_stream_count(trace->reader); i++) {
        walk_stream(&walk, i, visit, context);
    }
    pair(&walk);
    free(walk.ends);
}

bool rb_open(rb_trace *trace, const char *path, rb_visit *visit, void *context)
{
    memset(trace, 0, sizeof *trace);
    if (!CHECK_OK(mtprof_reader_open(path, &trace->reader))) {
        return false;
    }
    walk_all(trace, visit, context);
    return true;
}

mtprof_status rb_try_session(rb_trace *trace, mtprof_session *session, rb_visit *visit,
                             void *context)
{
    memset(trace, 0, sizeof *trace);
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    mtprof_status status = mtprof_session_get_bytes(session, &bytes);
    if (status == MTPROF_OK) {
        status = mtprof_reader_open_bytes(&bytes, &trace->reader);
    }
    if (status == MTPROF_OK) {
        walk_all(trace, visit, context);
    }
    return status;
}

bool rb_open_session(rb_trace *trace, mtprof_session *session, rb_visit *visit, void *context)
{
    return CHECK_OK(rb_try_session(trace, session, visit, context));
}

void rb_close(rb_trace *trace)
{
    mtprof_reader_close(trace->reader);
    free(trace->spans);
    memset(trace, 0, sizeof *trace);
}

bool rb_check_clean(const rb_trace *trace, const char *where)
{
    if (trace->problems != 0 || trace->undefined != 0) {
        FAIL("%s: %llu problems, %llu undefined ids; first: %s", where,
             (unsigned long long)trace->problems, (unsigned long long)trace->undefined,
             trace->first_problem);
        return false;
    }
    return true;
}

const char *rb_name(const rb_trace *trace, uint32_t id)
{
    mtprof_text text;
    return mtprof_reader_string(trace->reader, id, &text) ? text.bytes : "";
}

/* ---- the second reader ---- */

static const char script[] =
    "import sys; sys.path.insert(0, sys.argv[1]); import mtt_reader\n"
    "try:\n"
    "    t = mtt_reader.Trace(sys.argv[2])\n"
    "    n = sum(1 for s in t.streams() for r in t.records(s))\n"
    "    for p in t.problems[:3]: print(sys.argv[2], 'problem', *p, file=sys.stderr)\n"
    "    print(n, len(t.problems))\n"
    "except mtt_reader.TraceError as e:\n"
    "    print(sys.argv[2], 'refused', e, file=sys.stderr); print(0, 1)\n";

bool rb_python(const char *path, uint64_t *records, uint64_t *problems)
{
    const char *source = getenv("MT_SOURCE_DIR");
    char folder[1024], program[1024], command[4096];
    snprintf(folder, sizeof folder, "%s/tests/format", source != NULL ? source : MT_SOURCE_DIR);
    snprintf(program, sizeof program, "%s", script);
    snprintf(command, sizeof command, "${PYTHON:-/usr/bin/python3} -c \"%s\" '%s' '%s'", program,
             folder, path);
    FILE *pipe = popen(command, "r");
    unsigned long long n = 0, bad = 0;
    bool ran = pipe != NULL && fscanf(pipe, "%llu %llu", &n, &bad) == 2;
    if (pipe != NULL) {
        pclose(pipe);
    }
    *records = n;
    *problems = bad;
    return ran;
}

void rb_check_file(const char *path, bool with_python)
{
    rb_trace t;
    if (!rb_open(&t, path, NULL, NULL)) {
        return;
    }
    rb_check_clean(&t, path);
    CHECK(t.info.closed);
    CHECK_EQ_U64(t.info.chunks_damaged, 0);
    CHECK_EQ_U64(t.info.chunks_unchecked, 0);
    if (with_python) {
        uint64_t records, problems;
        if (CHECK(rb_python(path, &records, &problems))) {
            CHECK_EQ_U64(records, t.records);
            CHECK_EQ_U64(problems, 0);
        }
    }
    rb_close(&t);
}
