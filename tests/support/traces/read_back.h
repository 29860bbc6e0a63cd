/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a whole trace back for a test: every record counted, begins paired with ends, everything
 * that looks wrong collected. Uses the public reader only.
 */
#ifndef TESTS_SUPPORT_TRACES_READ_BACK_H
#define TESTS_SUPPORT_TRACES_READ_BACK_H

#include <mtprof/reader.h>
#include <mtprof/session.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rb_span {
    uint64_t key, parent; /* parent: as the record says; 0 for BEGIN */
    uint64_t start, end;  /* ticks; end is 0 where there is none */
    uint64_t offset;
    uint32_t thread, epoch, name;
    uint16_t slot, flags;
    bool ended;
} rb_span;

typedef struct rb_trace {
    mtprof_reader *reader;
    mtprof_trace_info info;
    uint64_t records;    /* of all streams */
    uint64_t kinds[256]; /* of all streams, by kind */
    uint64_t others;     /* instants, counters, flows, allocations of threads */
    uint64_t begins;     /* BEGIN, BEGIN_X, LAUNCH */
    rb_span *spans;      /* scopes in order of key */
    size_t n_spans;
    uint64_t open_spans;     /* without an end */
    uint64_t ignored_ends;   /* ends that name no open begin */
    uint64_t chunks_missing; /* gaps of ring mode */
    uint64_t back;           /* times the time of a slot went back */
    uint64_t undefined;      /* ids that are used but not defined */
    uint64_t problems;       /* while opening, and while walking */
    char first_problem[256];
} rb_trace;

/* Called for every record, streams in order; the trace's counters are not complete then. */
typedef void rb_visit(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                      const mtprof_record *record);

/* Open, walk, pair. False (a failed check has been reported) when the trace does not open. */
bool rb_open(rb_trace *trace, const char *path, rb_visit *visit, void *context);
bool rb_open_session(rb_trace *trace, mtprof_session *session, rb_visit *visit, void *context);
/* The same; a trace that does not open is no failure of the test, the status says why. */
mtprof_status rb_try_session(rb_trace *trace, mtprof_session *session, rb_visit *visit,
                             void *context);
void rb_close(rb_trace *trace);

/* Checks that nothing is wrong: no problem, no undefined id. Says what is. */
bool rb_check_clean(const rb_trace *trace, const char *where);

/* The name of a string id, "" where it is unknown. */
const char *rb_name(const rb_trace *trace, uint32_t id);

/* The span of a key, or NULL. */
const rb_span *rb_span_of(const rb_trace *trace, uint64_t key);

/*
 * Reads the file with the second reader (tests/format/mtt_reader.py), which is slow. False when it
 * could not be run (no Python). A refused file is one problem and no record.
 */
bool rb_python(const char *path, uint64_t *records, uint64_t *problems);

/* Checks that both readers find the file clean and count the same records. */
void rb_check_file(const char *path, bool with_python);

#endif /* TESTS_SUPPORT_TRACES_READ_BACK_H */
