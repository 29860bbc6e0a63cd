/* SPDX-License-Identifier: Apache-2.0
 *
 * What a live view is made of.
 *
 *     poll ─► look (live_look.c)       header; chunks that are new; `committed` of open ones
 *          ─► control, definitions     clock, epochs, steps, names (live_control.c)
 *          ─► choose (live_choose.c)   which chunks are read, and by what the rest is made up for
 *          ─► slots, sources           records to rows (live_slot.c, live_device.c)
 *          ─► window (live_rows.c)     this poll in, old ones out
 *
 *     poll_step (live_steps.c) does the same with a limit: what a look found is read step by step.
 *
 *   LVI1  Streams do not move: cursors and slots point to them.
 *   LVI2  Of threads and sources no more is read than `look` saw; control and definitions are
 *        looked at afterwards. So what a record refers to is there (chunk_index.h, CI3).
 *   LVI3  A row is never removed, so indices of rows stay valid: in scopes, caches and polls.
 *   LVI4  window == the sum of the polls' changes; `changes` of a row counts the polls that have
 *         one.
 */
#ifndef MTPROF_LIVE_LIVE_IMPL_H
#define MTPROF_LIVE_LIVE_IMPL_H

#include "base/idmap.h"
#include "mtprof/model/dictionary.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/model/slot/slot_stream.h"
#include "mtprof/read/reader_impl.h"

#include <mtprof/live.h>

enum {
    MTPROF__LIVE_ROWS = 65536,   /* beyond: rows under a coarser one */
    MTPROF__LIVE_POLLS = 4096,   /* in a window; beyond: it is shorter */
    MTPROF__LIVE_DEVICES = 256,  /* beyond: the last one */
    MTPROF__LIVE_ROW_CACHE = 256 /* names of a thread */
};

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct mtprof__live_key {
    uint32_t name, module; /* the dictionary's; module 0: none */
    uint32_t inputs;       /* the reader's list, 0: none */
    uint32_t thread;       /* logical */
    uint32_t device;       /* 0: the host, else place in `devices` + 1 */
    uint32_t kind;         /* enum mtprof_event_kind */
} mtprof__live_key;

typedef struct mtprof__live_sums {
    double calls, ended, self_ns, total_ns;
} mtprof__live_sums;

typedef struct mtprof__live_row {
    mtprof__live_key key;
    uint32_t changes;      /* LVI4 */
    bool touched;          /* by this poll */
    mtprof__live_sums now; /* of this poll */
    mtprof__live_sums window;
    mtprof__live_sums all;
} mtprof__live_row;

/* What one poll did to a row. */
typedef struct mtprof__live_change {
    uint32_t row;
    mtprof__live_sums sums;
} mtprof__live_change;

/* Of one poll, and the sum over a window. */
typedef struct mtprof__live_facts {
    uint64_t bytes_new, bytes_read, events;
    double events_all, steps;
} mtprof__live_facts;

typedef struct mtprof__live_poll {
    int64_t start_ns, end_ns;
    mtprof__live_facts facts;
    mtprof__live_change *changes;
    size_t n_changes;
    double *busy_ns; /* by device */
    uint32_t n_busy;
} mtprof__live_poll;

/* ---- streams --------------------------------------------------------------------------------- */

/* What of an open scope's self time was counted already (LIVE2). */
typedef struct mtprof__live_credit {
    uint64_t key;
    int64_t ns;
} mtprof__live_credit;

/* A thread slot's. */
typedef struct mtprof__live_slot {
    mtprof__slot slot;
    uint64_t thread; /* whose rows the cache has; UINT64_MAX: nobody's */
    struct {
        uint32_t string, kind, row; /* row: plus 1 */
    } cache[MTPROF__LIVE_ROW_CACHE];
    mtprof__live_credit *credits; /* by place on the stack */
    size_t n_credits;
    uint64_t told_damage;
    int64_t done_ns; /* of the last record that was applied: the slot may have fetched one more */
} mtprof__live_slot;

/* A source's. */
typedef struct mtprof__live_source {
    mtprof_cursor cursor;
    mtprof__source_clock clock;
    mtprof__timebase timebase;
    bool has_work; /* an ACTIVITY whose name may follow */
    mtprof_record work;
    uint64_t words[6];
    mtprof__payload_store payload;
} mtprof__live_source;

typedef struct mtprof__live_stream {
    mtprof__read_stream stream; /* chunks that are not read yet, after the one that is being read */
    size_t capacity;
    uint64_t next_sequence; /* of a chunk that was not seen yet */
    bool at_start;          /* nothing of it was read yet */
    uint8_t kind;
    mtprof_cursor *cursor; /* of one of these */
    mtprof__live_slot *thread;
    mtprof__live_source *source;
    mtprof_cursor plain; /* control and definitions */
    uint64_t told_gone;  /* of stream.gone: counted */
    double scale;        /* 1: all of it is read */
    bool held;           /* its last chunk is left for the next poll */
    uint64_t read, left; /* bytes, of this poll */
    uint64_t missing;    /* chunks, of this poll */
} mtprof__live_stream;

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct mtprof__live_span {
    uint32_t device;
    int64_t start_ns, end_ns;
    double scale;
} mtprof__live_span;

/* A step began. */
typedef struct mtprof__live_begin {
    int64_t ns;
    uint64_t step;
} mtprof__live_begin;

typedef struct mtprof__live_device {
    mtprof_text type;
    uint32_t index;
    int64_t busy_to_ns; /* counted up to here */
    double now_ns;      /* busy, of this poll */
    double window_ns;
    int64_t allocated, reserved;
} mtprof__live_device;

/* ---- all of it ------------------------------------------------------------------------------- */

struct mtprof_live {
    mtprof_reader reader; /* its index has no streams: ours grow */
    mtprof_live_options options;
    uint64_t first_chunk;
    uint64_t resume_events, resume_texts; /* from where chunks are looked for */
    uint64_t n_looks;
    bool opened; /* the first poll was made */
    bool ended;  /* nothing more will come */
    enum mtprof_live_state state;
    uint64_t random;

    mtprof__live_stream **streams; /* LVI1 */
    size_t n_streams, streams_capacity;
    mtb_idmap stream_map;

    mtprof__epoch_block *blocks; /* one per epoch, and one for those that are not known */
    size_t n_blocks, blocks_capacity;
    int64_t step;
    struct mtprof__gap gaps[MTPROF__WALK_GAPS]; /* LLK4 */
    size_t n_gaps;
    bool steps_told; /* by the control stream */
    bool by_step;    /* live_steps.c polls, and keeps these: */
    bool looking;    /* what the last look found is not read completely */
    bool in_step;    /* `running` has begun */
    mtprof__live_begin running;
    mtprof__live_begin *begins; /* of steps after it, from `first_begin` on */
    size_t first_begin, n_begins, begins_capacity;
    int64_t allocated_most;
    uint64_t n_definitions;

    mtprof__dictionary dictionary;
    mtprof__live_row *rows;
    size_t n_rows, rows_capacity;
    mtb_idmap row_map;
    uint64_t rows_merged;
    uint32_t *touched;
    size_t n_touched, touched_capacity;

    mtprof__live_poll *polls; /* oldest first, from `first_poll` on */
    size_t first_poll, n_polls, polls_capacity;
    mtprof__live_facts now, window;

    mtprof__live_device *devices;
    size_t n_devices, devices_capacity;
    mtprof__live_span *spans;
    size_t n_spans, spans_capacity;
    mtprof__foreign_end *ends; /* of scopes of other slots */
    size_t n_ends, ends_capacity;
    int64_t allocated;

    int64_t floor_ns; /* what was before does not count */
    int64_t now_ns, last_ns;
    uint64_t missed, damaged, walk_damaged;

    mtprof_live_row *shown;
    size_t n_shown, shown_capacity;
    mtb_idmap shown_map; /* the next four are of live_query.c, kept for the next query */
    mtprof__live_key *shown_keys;
    uint32_t *shown_inputs;
    size_t shown_keys_capacity, shown_inputs_capacity;
    mtb_arena texts; /* of the rows that are shown */
};

/* live_look.c: who records, how it goes. Fails with EIO, EFORMAT (also where it is another trace
 * than before), EVERSION, ENOMEM. */
int mtprof__live_read_header(mtprof_live *live);
/* Finds what is new. Fails with EIO, EFORMAT, ENOMEM. */
int mtprof__live_look(mtprof_live *live);
/* The stream of that kind and slot, made where it is not there yet. Fails with ENOMEM. */
int mtprof__live_stream_get(mtprof_live *live, uint8_t kind, uint16_t slot,
                            mtprof__live_stream **out);
void mtprof__live_stream_free(mtprof__live_stream *stream);
/* Forgets chunks that were read. */
void mtprof__live_stream_trim(mtprof__live_stream *stream);

/* live_control.c: clock, epochs, steps; names. Fail with ENOMEM, EIO. */
int mtprof__live_read_control(mtprof_live *live);
int mtprof__live_read_definitions(mtprof_live *live);

/* live_choose.c: before the first poll's records: leaves out chunks that ended before a time. */
void mtprof__live_skip_old(mtprof_live *live, int64_t floor_ns);
/* What this poll reads. Fails with ENOMEM. */
int mtprof__live_choose(mtprof_live *live);
/* After reading: what was left goes back. */
void mtprof__live_chosen_end(mtprof_live *live);

/* live.c: finds what is new, reads control and definitions, chooses. Times before the floor do not
 * count: the first poll sets it. */
int mtprof__live_find(mtprof_live *live, int64_t now);
/* Reads what was chosen, up to a time. */
int mtprof__live_read(mtprof_live *live, int64_t limit_ns);
/* Settles what is open and busy up to live->now_ns. */
int mtprof__live_settle(mtprof_live *live);
int64_t mtprof__live_clock_ns(void);

/* live_slot.c: records of a thread slot before a time. Fail with ENOMEM, EIO. */
int mtprof__live_read_slot(mtprof_live *live, mtprof__live_stream *stream, int64_t limit_ns);
/* Ends that slots recorded for scopes of others. */
int mtprof__live_foreign_ends(mtprof_live *live);
/* LIVE2, up to live->now_ns. */
int mtprof__live_credit_open(mtprof_live *live, mtprof__live_stream *stream);

/* live_device.c: work that began before a time, as far as the source reports it in order. */
int mtprof__live_read_source(mtprof_live *live, mtprof__live_stream *stream, int64_t limit_ns);
/* Adds up the time in which devices were busy. */
void mtprof__live_add_busy(mtprof_live *live);
/* Of the first source that has one, as in a model; "NPU" where none has. */
mtprof_text mtprof__live_device_type(const mtprof_live *live);
/* The place of a device. Fails with ENOMEM. */
int mtprof__live_device_get(mtprof_live *live, mtprof_text type, uint32_t index, uint32_t *place);

/* live_rows.c: the row of a key, made where it is not there yet. Fails with ENOMEM. */
int mtprof__live_row_get(mtprof_live *live, const mtprof__live_key *key, uint32_t *row);
/* A name's number; of the first 65,536, then that of row 0. Fails with ENOMEM. */
int mtprof__live_name(mtprof_live *live, mtprof_text text, uint32_t *name);
/* Adds to what this poll does to a row. Fails with ENOMEM. */
int mtprof__live_touch(mtprof_live *live, mtprof__live_row *row);
/* This poll becomes part of the window, and old ones leave it. Fails with ENOMEM: the poll's
 * numbers then come with the next one. */
int mtprof__live_window_add(mtprof_live *live, int64_t start_ns);
void mtprof__live_window_fini(mtprof_live *live);

#endif /* MTPROF_LIVE_LIVE_IMPL_H */
