/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorded trace laid out for questions: every record of every stream in one array, payloads tied
 * to their events, begins and ends paired as docs/format.md 3.2 says. For tests of the recorder:
 * whatever a reader complains about fails the test.
 *
 *      trace_view *v = tv_session(session);        // live or stopped
 *      const tv_span *s = tv_span_named(v, "step");
 *      CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), 1);
 *      tv_free(v);
 */
#ifndef TESTS_SUPPORT_TRACES_TRACE_VIEW_H
#define TESTS_SUPPORT_TRACES_TRACE_VIEW_H

#include <mtprof/reader.h>
#include <mtprof/session.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tv_record {
    mtprof_record r; /* its words live as long as the view */
    uint8_t stream;
    uint16_t slot;
    /* Payloads: the record they follow, NULL for misplaced ones, and the key they belong to
     * (also through ATTACH); events of instants have key 0. */
    const struct tv_record *owner;
    uint64_t owner_key;
} tv_record;

typedef struct tv_span {
    const tv_record *begin;
    const tv_record *end; /* NULL: truncated */
    const char *name;     /* "" where it has none */
    uint64_t key, parent;
    uint64_t start, stop; /* ticks */
} tv_span;

typedef struct trace_view {
    mtprof_reader *reader;
    tv_record *records;
    size_t count;
    tv_span *spans; /* in the order of the slots, then of their begins */
    size_t n_spans;
    uint64_t ignored_ends; /* that name no open begin */
} trace_view;

/* A session in memory; 0: the default wants. */
mtprof_session *tv_start(uint64_t wants);
/* Stops the session, takes its health (may be NULL), reads it and closes it. */
trace_view *tv_finish(mtprof_session *session, mtprof_health *health);

/* Reads a session's bytes, a file, or takes over an open reader. Failures leave the case. */
trace_view *tv_session(mtprof_session *session);
trace_view *tv_path(const char *path);
trace_view *tv_reader(mtprof_reader *reader);
/* Accepts NULL. */
void tv_free(trace_view *view);

/* How many records of a kind there are; the nth (from 0), NULL when there is none. */
size_t tv_count(const trace_view *view, uint8_t kind);
const tv_record *tv_nth(const trace_view *view, uint8_t kind, size_t n);

/* The text of a string id, "" for unknown ones. */
const char *tv_string(const trace_view *view, uint64_t id);
/* The name of an event: its string, or its NAME payload. */
const char *tv_name(const trace_view *view, const tv_record *event);
/* The nth event of a kind with this name. */
const tv_record *tv_event(const trace_view *view, uint8_t kind, const char *name, size_t n);

/* The nth payload of a kind that belongs to an event; NULL when there is none. */
const tv_record *tv_payload(const trace_view *view, const tv_record *event, uint8_t kind, size_t n);

/* The first scope with this name, and the nth. NULL when there is none. */
const tv_span *tv_span_named(const trace_view *view, const char *name);
const tv_span *tv_span_nth(const trace_view *view, const char *name, size_t n);
const tv_span *tv_span_key(const trace_view *view, uint64_t key);
/* The name of a scope's parent, "" for roots. */
const char *tv_parent_name(const trace_view *view, const tv_span *span);

/* An epoch by its number; false when the trace does not know it. */
bool tv_epoch(const trace_view *view, uint32_t number, mtprof_epoch_info *out);

/* The value of a metadata key of the trace, NULL when it is not there. */
const char *tv_metadata(const trace_view *view, const char *key);

#endif /* TESTS_SUPPORT_TRACES_TRACE_VIEW_H */
