/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of a check share: the job, and the way findings are reported.
 *
 * A rule has a name, a severity and a remedy; check_rules.def lists them. Of each rule
 * the first findings are reported and the others counted, so that a file that is wrong throughout
 * gives a readable report.
 */
#ifndef MTPROF_CHECK_CHECK_IMPL_H
#define MTPROF_CHECK_CHECK_IMPL_H

#include "base/compiler.h"
#include "base/idmap.h"
#include "base/json/json_strict.h"

#include <mtprof/check.h>

enum mtprof__check_rule {
#define X(id, name, severity, remedy) MTPROF__RULE_##id,
#include "mtprof/check/check_rules.def"
#undef X
    MTPROF__RULE_COUNT
};

typedef struct mtprof__check {
    const char *path;
    mtprof_check_options options;
    mtprof_check_summary summary;
    uint64_t found[MTPROF__RULE_COUNT];
    int status; /* ECALLBACK or ENOMEM: the check ends */
} mtprof__check;

/* Reports a finding. place.line 0: none. Not 0: the check ends with this status. */
int mtprof__check_find(mtprof__check *check, enum mtprof__check_rule rule, mtb_json_place place,
                       const char *format, ...) MT_PRINTF(4, 5);

/* Reports progress to the caller. Not 0: cancel. */
int mtprof__check_progress(mtprof__check *check, uint64_t done, uint64_t total);

/* The two kinds of files. Fail as mtprof_check(). */
int mtprof__check_mtt(mtprof__check *check);
int mtprof__check_chrome(mtprof__check *check, mtb_json *json);

/* A line or column, cut to what fits. */
MT_INLINE uint32_t mtprof__check_cut(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* ---- tracks: what must be checked once all events are known ---------------------------------- */

typedef struct mtprof__check_span {
    int64_t start_ns, end_ns;
    uint64_t offset;
    uint32_t track;
    uint32_t line, column; /* cut to what fits */
    uint8_t is_async;      /* flows may bind to it; it does not take part in nesting */
    uint8_t is_function;   /* of a language: its ids are numbers of functions */
    uint64_t id, parent;   /* what the trace says; 0: nothing */
} mtprof__check_span;

/* A flow event: ph s, t or f. */
typedef struct mtprof__check_flow {
    uint64_t key; /* of category and id */
    int64_t ts_ns;
    uint64_t offset;
    uint32_t track;
    uint32_t line, column;
    char phase;
    bool joined; /* tools find its span by equal times (ac2g, fwdbwd) */
} mtprof__check_flow;

/* A pid or tid: a number, or a text by its hash. */
typedef struct mtprof__check_id {
    bool is_text;
    int64_t value;
    char shown[24];
} mtprof__check_id;

typedef struct mtprof__check_track {
    mtprof__check_id pid, tid;
    uint64_t n_spans;
    bool has_name; /* thread_name was given */
    /* B events that wait for their E: indices into `open` chained by `below`. */
    uint32_t top; /* index + 1 */
} mtprof__check_track;

/* A B event without its E. */
typedef struct mtprof__check_open {
    uint64_t name; /* hash */
    mtb_json_place place;
    int64_t ts_ns;
    uint32_t below; /* index + 1 */
} mtprof__check_open;

typedef struct mtprof__check_tracks {
    mtprof__check_track *items;
    size_t n, capacity;
    mtb_idmap map;
    mtprof__check_span *spans;
    size_t n_spans, span_capacity;
    mtprof__check_flow *flows;
    size_t n_flows, flow_capacity;
    mtprof__check_open *open;
    size_t n_open, open_capacity;
    uint32_t free_open; /* index + 1 */
    bool is_part;       /* of an export that was split: flows may cross into other parts */
} mtprof__check_tracks;

/* The track of a pid and tid, made where there is none. Fail with ENOMEM. */
int mtprof__check_track_of(mtprof__check_tracks *tracks, const mtprof__check_id *pid,
                           const mtprof__check_id *tid, uint32_t *track);
int mtprof__check_span_add(mtprof__check_tracks *tracks, uint32_t track, int64_t start_ns,
                           int64_t end_ns, mtb_json_place place);
/* What the span added last says of itself and its parent. */
void mtprof__check_span_ids(mtprof__check_tracks *tracks, bool function, uint64_t id,
                            uint64_t parent);
/* Whether parents are drawn around their children (check_parents.c). Spans are sorted; stack has
 * room for all of them. */
int mtprof__check_parents(mtprof__check *check, const mtprof__check_tracks *tracks,
                          uint32_t *stack);
/* The begin of an asynchronous span. */
int mtprof__check_async_add(mtprof__check_tracks *tracks, uint32_t track, int64_t start_ns,
                            mtb_json_place place);
int mtprof__check_flow_add(mtprof__check_tracks *tracks, const mtprof__check_flow *flow);
int mtprof__check_begin(mtprof__check_tracks *tracks, uint32_t track, uint64_t name, int64_t ts_ns,
                        mtb_json_place place);
/* An E. name 0: it has none. Reports what does not fit. */
int mtprof__check_end(mtprof__check *check, mtprof__check_tracks *tracks, uint32_t track,
                      uint64_t name, int64_t ts_ns, mtb_json_place place);

/* Checks nesting, flows, B without E, names of tracks. named: some track has a name. */
int mtprof__check_tracks_finish(mtprof__check *check, mtprof__check_tracks *tracks, bool named);
void mtprof__check_tracks_fini(mtprof__check_tracks *tracks);

#endif /* MTPROF_CHECK_CHECK_IMPL_H */
