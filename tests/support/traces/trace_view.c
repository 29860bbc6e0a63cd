/* SPDX-License-Identifier: Apache-2.0
 *
 * See trace_view.h.
 */
#include "support/traces/trace_view.h"

#include "harness/mt_test.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *block)
{
    if (block == NULL) {
        abort();
    }
    return block;
}

static bool is_payload(uint8_t kind)
{
    switch (kind) {
    case MTPROF_REC_META:
    case MTPROF_REC_NAME:
    case MTPROF_REC_INPUTS_INLINE:
    case MTPROF_REC_SCALARS:
    case MTPROF_REC_TENSORS:
    case MTPROF_REC_OPINFO:
    case MTPROF_REC_INPUTS:
    case MTPROF_REC_STACK:
    case MTPROF_REC_MEM_BEFORE:
    case MTPROF_REC_MEM_AFTER: return true;
    default: return false;
    }
}

static bool may_own(uint8_t kind)
{
    switch (kind) {
    case MTPROF_REC_BEGIN:
    case MTPROF_REC_BEGIN_X:
    case MTPROF_REC_LAUNCH:
    case MTPROF_REC_INSTANT:
    case MTPROF_REC_ATTACH:
    case MTPROF_REC_ACTIVITY:
    case MTPROF_REC_END:
    case MTPROF_REC_END_X: return true;
    default: return false;
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

static void load_stream(trace_view *v, uint32_t index, size_t *capacity)
{
    mtprof_stream_info info = {.struct_size = sizeof info};
    mtprof_cursor *cursor = NULL;
    REQUIRE_OK(mtprof_reader_get_stream(v->reader, index, &info));
    REQUIRE_OK(mtprof_cursor_open(v->reader, index, &cursor));
    mtprof_record r;
    mtprof_status status;
    while ((status = mtprof_cursor_next(cursor, &r)) != MTPROF_EEND) {
        if (status != MTPROF_OK) {
            FAIL("stream %u.%u is damaged: %s", info.kind, info.slot, mtprof_last_error()->message);
            continue;
        }
        if (v->count == *capacity) {
            *capacity = *capacity * 2 + 64;
            v->records = must(realloc(v->records, *capacity * sizeof *v->records));
        }
        uint64_t *words = must(malloc(r.n_words * 8 + 8));
        if (r.n_words != 0) {
            memcpy(words, r.words, r.n_words * sizeof *words);
        }
        r.words = words;
        v->records[v->count++] = (tv_record){.r = r, .stream = info.kind, .slot = info.slot};
    }
    mtprof_cursor_close(cursor);
}

static void tie_payloads(trace_view *v)
{
    const tv_record *owner = NULL;
    for (size_t i = 0; i < v->count; i++) {
        tv_record *p = &v->records[i];
        if (i > 0 && (p->stream != p[-1].stream || p->slot != p[-1].slot)) {
            owner = NULL;
        }
        if (!is_payload(p->r.kind)) {
            owner = may_own(p->r.kind) ? p : NULL;
            continue;
        }
        bool after_end =
            owner != NULL && (owner->r.kind == MTPROF_REC_END || owner->r.kind == MTPROF_REC_END_X);
        bool fits_end =
            p->r.kind == MTPROF_REC_MEM_AFTER || (p->r.kind == MTPROF_REC_TENSORS && p->r.aux == 1);
        bool fits_begin = p->r.kind != MTPROF_REC_MEM_AFTER ||
                          (owner != NULL && owner->r.kind == MTPROF_REC_ATTACH);
        if (owner == NULL || !(after_end ? fits_end : fits_begin)) {
            FAIL("payload 0x%02x at offset %llu belongs to nothing", p->r.kind,
                 (unsigned long long)p->r.offset);
            continue;
        }
        p->owner = owner;
        p->owner_key = owner->r.kind == MTPROF_REC_ATTACH ? owner->r.words[0] : owner->r.key;
    }
}

/* ---- pairing --------------------------------------------------------------------------------- */

/* What is open while the records of one slot are walked: indices of spans, oldest first. */
typedef struct open_spans {
    size_t *at;
    size_t count;
} open_spans;

/* All END_X of slots other than their begin's, by key. */
typedef struct foreign_ends {
    const tv_record **at;
    size_t count;
} foreign_ends;

static int by_key_and_time(const void *a, const void *b)
{
    const tv_record *x = *(const tv_record *const *)a, *y = *(const tv_record *const *)b;
    if (x->r.key != y->r.key) {
        return x->r.key < y->r.key ? -1 : 1;
    }
    return x->r.ticks < y->r.ticks ? -1 : x->r.ticks > y->r.ticks;
}

static bool crosses_slots(const tv_record *p)
{
    return p->r.kind == MTPROF_REC_END_X && p->r.key >> MTPROF_ORDINAL_BITS != p->slot;
}

static foreign_ends find_foreign(const trace_view *v)
{
    foreign_ends f = {must(calloc(v->count + 1, sizeof *f.at)), 0};
    for (size_t i = 0; i < v->count; i++) {
        if (crosses_slots(&v->records[i])) {
            f.at[f.count++] = &v->records[i];
        }
    }
    qsort(f.at, f.count, sizeof *f.at, by_key_and_time);
    return f;
}

/* The earliest END_X of another slot for this scope. */
static const tv_record *foreign_end(const foreign_ends *f, const tv_span *span)
{
    size_t low = 0, high = f->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (f->at[middle]->r.key < span->key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < f->count && f->at[low]->r.key == span->key; low++) {
        if (f->at[low]->r.epoch == span->begin->r.epoch) {
            return f->at[low];
        }
    }
    return NULL;
}

static void close_at(trace_view *v, open_spans *open, size_t index, const tv_record *end)
{
    tv_span *span = &v->spans[open->at[index]];
    mtprof_epoch_info epoch;
    span->end = end;
    if (end != NULL) {
        span->stop = end->r.ticks;
    } else if (tv_epoch(v, span->begin->r.epoch, &epoch)) {
        span->stop = epoch.close_ticks;
    }
    open->count--;
    memmove(open->at + index, open->at + index + 1, (open->count - index) * sizeof *open->at);
}

/* Ends what other slots ended up to this time, and at the end of its epoch what was not ended. */
static void settle(trace_view *v, open_spans *open, const tv_record *at)
{
    for (size_t i = open->count; i > 0; i--) {
        const tv_span *span = &v->spans[open->at[i - 1]];
        bool over =
            at == NULL || span->begin->slot != at->slot || span->begin->r.epoch != at->r.epoch;
        if (over || (span->end != NULL && span->end->r.ticks <= at->r.ticks)) {
            close_at(v, open, i - 1, span->end);
        }
    }
}

static uint64_t innermost(const trace_view *v, const open_spans *open, const tv_record *begin)
{
    for (size_t i = open->count; i > 0; i--) {
        const tv_span *span = &v->spans[open->at[i - 1]];
        if (span->begin->r.thread == begin->r.thread) {
            return span->key;
        }
    }
    return 0;
}

static void begin_span(trace_view *v, open_spans *open, const foreign_ends *f, const tv_record *p)
{
    tv_span span = {.begin = p, .key = p->r.key, .start = p->r.ticks};
    span.parent = p->r.kind == MTPROF_REC_BEGIN_X ? p->r.words[2] : MTPROF_KEY_STRUCTURE;
    if (span.parent == MTPROF_KEY_STRUCTURE) {
        span.parent = innermost(v, open, p);
    }
    span.end = foreign_end(f, &span);
    open->at[open->count++] = v->n_spans;
    v->spans[v->n_spans++] = span;
}

static bool end_of_open(trace_view *v, open_spans *open, const tv_record *p)
{
    for (size_t i = open->count; i > 0; i--) {
        if (v->spans[open->at[i - 1]].key == p->r.key) {
            close_at(v, open, i - 1, p);
            return true;
        }
    }
    return false;
}

static void pair(trace_view *v)
{
    open_spans open = {must(calloc(v->count + 1, sizeof *open.at)), 0};
    foreign_ends foreign = find_foreign(v);
    v->spans = must(calloc(v->count + 1, sizeof *v->spans));
    for (size_t i = 0; i < v->count; i++) {
        const tv_record *p = &v->records[i];
        uint8_t kind = p->r.kind;
        if (p->stream != MTPROF_STREAM_THREAD) {
            continue;
        }
        settle(v, &open, p);
        if (kind == MTPROF_REC_BEGIN || kind == MTPROF_REC_BEGIN_X) {
            begin_span(v, &open, &foreign, p);
        } else if (kind == MTPROF_REC_END || kind == MTPROF_REC_END_X) {
            v->ignored_ends += !crosses_slots(p) && !end_of_open(v, &open, p);
        }
    }
    settle(v, &open, NULL);
    for (size_t i = 0; i < v->n_spans; i++) {
        v->spans[i].name = tv_name(v, v->spans[i].begin);
    }
    free(open.at);
    free(foreign.at);
}

trace_view *tv_reader(mtprof_reader *reader)
{
    trace_view *v = must(calloc(1, sizeof *v));
    size_t capacity = 0;
    v->reader = reader;
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        load_stream(v, i, &capacity);
    }
    mtprof_problem problem;
    for (uint32_t i = 0; mtprof_reader_problem(reader, i, &problem); i++) {
        FAIL("problem at offset %llu: %s", (unsigned long long)problem.offset, problem.message);
    }
    tie_payloads(v);
    pair(v);
    return v;
}

mtprof_session *tv_start(uint64_t wants)
{
    mtprof_config config = {.struct_size = sizeof config, .wants = wants};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    return session;
}

trace_view *tv_finish(mtprof_session *session, mtprof_health *health)
{
    REQUIRE_OK(mtprof_session_stop(session));
    if (health != NULL) {
        memset(health, 0, sizeof *health);
        health->struct_size = sizeof *health;
        REQUIRE_OK(mtprof_session_get_health(session, health));
    }
    trace_view *view = tv_session(session);
    CHECK_OK(mtprof_session_close(session));
    return view;
}

trace_view *tv_session(mtprof_session *session)
{
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_session_get_bytes(session, &bytes));
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    return tv_reader(reader);
}

trace_view *tv_path(const char *path)
{
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_reader_open(path, &reader));
    return tv_reader(reader);
}

void tv_free(trace_view *view)
{
    if (view == NULL) {
        return;
    }
    for (size_t i = 0; i < view->count; i++) {
        free((uint64_t *)(uintptr_t)view->records[i].r.words);
    }
    mtprof_reader_close(view->reader);
    free(view->records);
    free(view->spans);
    free(view);
}

/* ---- questions ------------------------------------------------------------------------------- */

size_t tv_count(const trace_view *view, uint8_t kind)
{
    size_t count = 0;
    for (size_t i = 0; i < view->count; i++) {
        count += view->records[i].r.kind == kind;
    }
    return count;
}

const tv_record *tv_nth(const trace_view *view, uint8_t kind, size_t n)
{
    for (size_t i = 0; i < view->count; i++) {
        if (view->records[i].r.kind == kind && n-- == 0) {
            return &view->records[i];
        }
    }
    return NULL;
}

const char *tv_string(const trace_view *view, uint64_t id)
{
    mtprof_text text;
    return mtprof_reader_string(view->reader, (uint32_t)id, &text) ? text.bytes : "";
}

const char *tv_name(const trace_view *view, const tv_record *event)
{
    const tv_record *full = event->r.arg == 0 ? tv_payload(view, event, MTPROF_REC_NAME, 0) : NULL;
    if (full != NULL) {
        char *text = (char *)(uintptr_t)(full->r.words + 1); /* load_stream left room for a zero */
        text[full->r.words[0]] = '\0';
        return text;
    }
    return event->r.arg != 0 ? tv_string(view, event->r.arg) : "";
}

const tv_record *tv_event(const trace_view *view, uint8_t kind, const char *name, size_t n)
{
    for (size_t i = 0; i < view->count; i++) {
        const tv_record *p = &view->records[i];
        if (p->r.kind == kind && strcmp(tv_name(view, p), name) == 0 && n-- == 0) {
            return p;
        }
    }
    return NULL;
}

const tv_record *tv_payload(const trace_view *view, const tv_record *event, uint8_t kind, size_t n)
{
    for (size_t i = 0; i < view->count; i++) {
        const tv_record *p = &view->records[i];
        bool its = event->r.key != 0 ? p->owner_key == event->r.key : p->owner == event;
        if (p->r.kind == kind && its && n-- == 0) {
            return p;
        }
    }
    return NULL;
}

const tv_span *tv_span_nth(const trace_view *view, const char *name, size_t n)
{
    for (size_t i = 0; i < view->n_spans; i++) {
        if (strcmp(view->spans[i].name, name) == 0 && n-- == 0) {
            return &view->spans[i];
        }
    }
    return NULL;
}

const tv_span *tv_span_named(const trace_view *view, const char *name)
{
    return tv_span_nth(view, name, 0);
}

const tv_span *tv_span_key(const trace_view *view, uint64_t key)
{
    for (size_t i = 0; i < view->n_spans; i++) {
        if (view->spans[i].key == key) {
            return &view->spans[i];
        }
    }
    return NULL;
}

const char *tv_parent_name(const trace_view *view, const tv_span *span)
{
    const tv_span *parent = span->parent != 0 ? tv_span_key(view, span->parent) : NULL;
    return parent != NULL ? parent->name : "";
}

bool tv_epoch(const trace_view *view, uint32_t number, mtprof_epoch_info *out)
{
    for (uint32_t i = 0; mtprof_reader_epoch(view->reader, i, out); i++) {
        if (out->epoch == number) {
            return true;
        }
    }
    return false;
}

const char *tv_metadata(const trace_view *view, const char *key)
{
    mtprof_text k, value;
    bool is_json;
    for (uint32_t i = 0; mtprof_reader_metadata(view->reader, i, &k, &value, &is_json); i++) {
        if (k.length == strlen(key) && memcmp(k.bytes, key, k.length) == 0) {
            return value.bytes;
        }
    }
    return NULL;
}
