/* SPDX-License-Identifier: Apache-2.0
 *
 * How events become rows.
 *
 *     name, kind, device ─► base ──────────────────────────────► group   (the usual case: one table
 *                            └─ filters, shapes, stack, step … ─► group    lookup an event)
 *
 * A base is (name as it is grouped, device type, annotation or not); names are dense numbers, so a
 * base is found by indexing. A group is a base, or with options a base and what they add, found by
 * hashing. Events are done in blocks: first the groups of a block, then each column that is there
 * is added up, so columns that are not there cost nothing.
 *
 *   AV1  Base 0 and group 0 collect events that count nowhere; they are not rows.
 *   AV2  Row r is group r + 1; groups are in the order of their first events.
 *   AV3  Once a grouper has seen all events it is only read: the same events give the same groups
 *        again, without a change (quantiles rely on it).
 */
#ifndef MTPROF_ANALYZE_AVERAGES_AVERAGES_IMPL_H
#define MTPROF_ANALYZE_AVERAGES_AVERAGES_IMPL_H

#include "base/arena.h"
#include "base/idmap.h"
#include "base/lock.h"
#include "mtprof/analyze/table/table_impl.h"

#include <mtprof/averages.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__GROUP_BLOCK = 1024, /* events */
    MTPROF__KINDS = 32,
    MTPROF__DEVICES = 256,
    /* 0: left out. One for each device type, kind of special and annotation or not: never too few.
     */
    MTPROF__CLASSES = 1 + 6 * MTPROF__DEVICES
};

/* The columns that are needed; NULL: not recorded. */
typedef struct mtprof__source_columns {
    size_t n;
    const int64_t *start_ns, *end_ns, *self_ns;
    const uint32_t *parent, *name, *track;
    const int32_t *step;
    const uint8_t *kind, *device;
    const uint16_t *flags;
    const uint32_t *inputs, *stack, *overload, *module, *record_scope; /* may be NULL, as below */
    const uint64_t *flops;
    const int64_t *device_ns, *self_device_ns;
    const int64_t *cpu_memory, *self_cpu_memory, *device_memory, *self_device_memory;
} mtprof__source_columns;

/* What events are: device type, and whether it is a user's annotation. */
typedef struct mtprof__event_class {
    uint32_t device_type; /* number of the type; 0: CPU */
    uint8_t device;       /* the first device of that type */
    bool is_annotation;
    uint8_t special; /* MTPROF_EVENT_KIND_MEMORY or _OUT_OF_MEMORY: a name of its own; 0: none */
} mtprof__event_class;

typedef struct mtprof__base {
    uint32_t name; /* as it is grouped; UINT32_MAX: special */
    uint32_t class;
    mtprof_text key;
} mtprof__base;

/* Sums of a group. What every event adds to comes first, in one cache line. */
typedef struct mtprof__group {
    uint64_t count;
    int64_t cpu_ns, self_ns, min_ns, max_ns;
    int64_t loose_ns; /* of cpu_ns: of events that do not nest */
    uint32_t base, first_event;
    int64_t device_ns, self_device_ns;
    int64_t cpu_memory, self_cpu_memory, device_memory, self_device_memory;
    uint64_t flops;
} mtprof__group;

/* What options add to a base. Four words, hashed and compared as they are. */
typedef struct mtprof__group_key {
    uint32_t base;
    uint32_t shapes;           /* number of a text, 0: not grouped by it */
    uint32_t stack;            /* number of a stack, 0: none */
    uint32_t overload, module; /* name + 1, 0: none */
    int32_t step;
    uint32_t track;
    uint32_t reserved;
} mtprof__group_key;

typedef struct mtprof__grouper {
    mtprof_model *model;
    mtprof__source_columns columns;
    mtprof_averages_options options; /* of its texts only the name stays */

    uint16_t class_of[MTPROF__KINDS][MTPROF__DEVICES];
    mtprof__event_class classes[MTPROF__CLASSES];
    uint32_t n_classes, n_names;
    uint32_t *own_names; /* columns.name with MTPROF_GROUP_CAPTURE; NULL: the model's */
    uint32_t *slots; /* [name][class]: base, or UINT32_MAX: not seen. NULL: it would be too large */

    mtprof__base *bases;
    size_t n_bases, bases_capacity;
    mtb_idmap base_map;

    bool has_filter, has_keys;             /* has_keys: groups are not bases */
    uint8_t *track_passes, *module_passes; /* by track, by name + 1; NULL: all do */

    mtprof__group *groups;
    mtprof__group_key *keys; /* parallel to groups, where has_keys */
    size_t n_groups, groups_capacity, keys_capacity;
    mtb_idmap group_map;

    mtb_arena texts;
    mtprof_text *shapes; /* number - 1 */
    size_t n_shapes, shapes_capacity;
    mtb_idmap shapes_map;
    uint32_t *shapes_of; /* by input list: number, 0: not seen */
    uint32_t n_shapes_of;
    uint32_t *stacks; /* number - 1: a node with these innermost frames */
    size_t n_stacks, stacks_capacity;
    mtb_idmap stacks_map;
    uint32_t *stack_of; /* by node: number, 0: not seen */
    uint32_t n_stack_of;
    mtprof_frame *frames; /* two times room for stack_n */
} mtprof__grouper;

/* Reads columns and options. Must be finished also where it fails. EINVAL, ENOMEM, and as
 * mtprof_model_get_column(). */
int mtprof__grouper_init(mtprof__grouper *grouper, mtprof_model *model,
                         const mtprof_averages_options *options);
void mtprof__grouper_fini(mtprof__grouper *grouper);

/* Calls the progress callback now and then, before the event `first` is read. Fails with
 * ECALLBACK. */
int mtprof__grouper_ask(const mtprof__grouper *grouper, size_t first);

/* Groups of n events (at most a block) from `first` on. With `bases` only whether they count: 0, or
 * their base. ENOMEM. */
int mtprof__grouper_rows(mtprof__grouper *grouper, size_t first, size_t n, bool bases,
                         uint32_t *rows);
/* Adds all events up. ENOMEM. */
int mtprof__grouper_run(mtprof__grouper *grouper);

/* Filters (averages_filter.c). EINVAL, ENOMEM. */
int mtprof__filter_init(mtprof__grouper *grouper);
/* Sets the rows of events that do not pass to 0. */
void mtprof__filter_rows(const mtprof__grouper *grouper, size_t first, size_t n, uint32_t *rows);
/* Whether a text matches a shell pattern: * ? [a-z] [!a-z], bytes as they are. */
bool mtprof__pattern_matches(const char *pattern, mtprof_text text);

/* Keys (averages_key.c): from bases to groups. ENOMEM. */
int mtprof__key_init(mtprof__grouper *grouper);
int mtprof__key_rows(mtprof__grouper *grouper, size_t first, size_t n, uint32_t *rows);
/* Number of the text of an event's shapes. ENOMEM. */
int mtprof__key_shapes(mtprof__grouper *grouper, uint32_t inputs, uint32_t *number);
mtprof_text mtprof__key_shapes_text(const mtprof__grouper *grouper, uint32_t number);
/* Another group with this base. ENOMEM. */
int mtprof__group_add(mtprof__grouper *grouper, uint32_t base, uint32_t event, uint32_t *group);

/* ---- averages -------------------------------------------------------------------------------- */

struct mtprof_averages {
    mtprof__grouper grouper;
    mtprof_given_rows given; /* is_given: the caller's rows (averages_given.c), else a model's */
    bool is_given, is_events;
    uint32_t *events; /* is_events: the event of each row */
    uint32_t n_rows;
    uint32_t *order; /* place in the list: row */

    mtb_lock lock;        /* what follows: made when first requested */
    uint64_t *row_starts; /* n_rows + 1 places in row_events */
    uint32_t *row_events;
    int64_t *sorted; /* durations of one row */
    uint32_t sorted_row;
    size_t n_sorted;
};

/* The rows as an input of tables; `context` is the caller's and lives as long as the input. */
typedef struct mtprof__averages_view {
    mtprof_averages *averages;
    mtprof_frame *frames;
    mtprof_text *texts;
    char *bytes;
    size_t bytes_capacity;
    mtprof_health health;
} mtprof__averages_view;

int mtprof__averages_view_init(mtprof__averages_view *view, const mtprof_averages *averages,
                               mtprof__table_input *input);
void mtprof__averages_view_fini(mtprof__averages_view *view);

/* Averages of a model, or of given rows. EINVAL, ENOMEM, and as mtprof__grouper_init(). */
int mtprof__averages_make(mtprof_model *model, const mtprof_averages_options *options,
                          const mtprof_given_rows *given, bool is_events, mtprof_averages **out);

/* A given row, with what the caller need not say. */
void mtprof__given_fill(const mtprof_given_rows *given, uint32_t index, mtprof_row *row);

/* A row by its number, before sorting. */
void mtprof__averages_fill(const mtprof_averages *averages, uint32_t row, mtprof_row *out);

/* Sorts times, smallest first, in place. */
void mtprof__sort_times(int64_t *times, size_t n);

/* With MTPROF_GROUP_CAPTURE: work of graphs gets the names of the ops that captured it. ENOMEM, and
 * as mtprof_model_get_column(). */
int mtprof__use_captured_names(mtprof__grouper *grouper);

/* The largest number of a column. */
MT_INLINE uint32_t mtprof__largest(const uint32_t *column, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        most = column[i] > most ? column[i] : most;
    }
    return most;
}

/* Whether an event does not nest on its thread. */
MT_INLINE bool mtprof__is_loose(uint16_t flags)
{
    return (flags & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP)) != 0;
}

#endif /* MTPROF_ANALYZE_AVERAGES_AVERAGES_IMPL_H */
