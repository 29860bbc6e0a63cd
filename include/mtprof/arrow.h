/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model says as Arrow record batches, for pyarrow, polars, DuckDB and other engines: the
 * structs of the Arrow C data interface and C stream interface, which need no library.
 *
 *     struct ArrowArrayStream stream;
 *     if (mtprof_arrow_events(model, NULL, &stream) == MTPROF_OK) {
 *         ... stream.get_schema(&stream, &schema), stream.get_next(&stream, &batch) ...
 *         stream.release(&stream);
 *     }
 *
 * A stream gives one batch, or several where options.batch_rows says so, then a released array,
 * which is the end. docs/arrow.md has the columns and their types.
 *
 * Lifetime: the arrays of mtprof_arrow_events() and mtprof_arrow_dataset() are the model's own
 * columns, not copies. The model must live until the stream, and all that was taken from it, has
 * been released; options.release says when that is. All other streams hold copies. Schemas, arrays
 * and children that were moved out of their parent may be released in any order and on any
 * thread.
 *
 * Texts are UTF-8: bytes that are not become U+FFFD.
 */
#ifndef MTPROF_ARROW_H
#define MTPROF_ARROW_H

#include <mtprof/api.h>
#include <mtprof/averages.h>
#include <mtprof/model.h>
#include <mtprof/status.h>

#include <stdint.h>

MTPROF_BEGIN_DECLS

/* The published ABI, under the guards that all who declare it share. */
#ifndef ARROW_C_DATA_INTERFACE
#    define ARROW_C_DATA_INTERFACE

#    define ARROW_FLAG_DICTIONARY_ORDERED 1
#    define ARROW_FLAG_NULLABLE           2
#    define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#    define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif /* ARROW_C_STREAM_INTERFACE */

/** Set struct_size, leave the rest zero for the defaults. */
typedef struct mtprof_arrow_options {
    uint32_t struct_size;
    uint32_t n_rows;
    /** Events: only these, n_rows of them in this order, as copies; NULL: all. */
    const uint32_t *rows;
    /** Called once when the stream and all that was taken from it has been released, on the thread
     * that releases the last of it; not called where the function fails. NULL: nothing. */
    void (*release)(void *user);
    void *user;
    /** Most rows of a batch, rounded up to a multiple of 64; 0: all rows are one batch, but for
     * mtprof_arrow_dataset(). */
    uint32_t batch_rows;
    uint32_t reserved;
} mtprof_arrow_options;

/** Rows of a batch of mtprof_arrow_dataset() where the options do not say. */
#define MTPROF_ARROW_DATASET_ROWS 131072

/**
 * The events of a model: all columns that were recorded or follow from what was, without copying
 * them. Makes the columns. On failure out->release is NULL, as for the functions below; options may
 * be NULL in all of them.
 *
 * Fails with EINVAL (no such row), and as mtprof_model_get_column().
 */
MTPROF_API mtprof_status mtprof_arrow_events(mtprof_model *model,
                                             const mtprof_arrow_options *options,
                                             struct ArrowArrayStream *out);
/** Rows of averages, in their order. The averages may be freed afterwards. Fails with ENOMEM. */
MTPROF_API mtprof_status mtprof_arrow_averages(const mtprof_averages *averages,
                                               const mtprof_arrow_options *options,
                                               struct ArrowArrayStream *out);
/** Steps: a row for each event that is one. Fails as mtprof_model_get_column(). */
MTPROF_API mtprof_status mtprof_arrow_steps(mtprof_model *model,
                                            const mtprof_arrow_options *options,
                                            struct ArrowArrayStream *out);
/** Threads and queues: what the column `track` of events numbers. Fails as
 * mtprof_model_get_column(). */
MTPROF_API mtprof_status mtprof_arrow_tracks(mtprof_model *model,
                                             const mtprof_arrow_options *options,
                                             struct ArrowArrayStream *out);
/** Nodes of the stacks that events have: what the column `stack` numbers; each has a frame and the
 * node of its caller. Fails as mtprof_model_get_column(). */
MTPROF_API mtprof_status mtprof_arrow_frames(mtprof_model *model,
                                             const mtprof_arrow_options *options,
                                             struct ArrowArrayStream *out);
/** Instants, counters and flows in order of time (mtprof_model_visit_marks()), without metadata.
 * Fails with ENOMEM, EIO, ECALLBACK. */
MTPROF_API mtprof_status mtprof_arrow_marks(mtprof_model *model,
                                            const mtprof_arrow_options *options,
                                            struct ArrowArrayStream *out);
/** Allocations and frees in order of time, as far as they were recorded one by one. Fails with
 * ENOMEM, EIO, ECALLBACK. */
MTPROF_API mtprof_status mtprof_arrow_allocations(mtprof_model *model,
                                                  const mtprof_arrow_options *options,
                                                  struct ArrowArrayStream *out);
/**
 * The events with the columns of a data set of many traces (docs/dataset.md): the same ones for
 * every trace, null where nothing was recorded, and none that follows from others. Beside the
 * model's columns a batch needs at most 50 bytes a row while it is used. options.rows is ignored.
 * Fails as mtprof_model_get_column().
 */
MTPROF_API mtprof_status mtprof_arrow_dataset(mtprof_model *model,
                                              const mtprof_arrow_options *options,
                                              struct ArrowArrayStream *out);
/** What the wall time of each step went to (explain.h): a row for each part that is not 0. Fails as
 * mtprof_explain_new(). */
MTPROF_API mtprof_status mtprof_arrow_parts(mtprof_model *model,
                                            const mtprof_arrow_options *options,
                                            struct ArrowArrayStream *out);

/** A value of a table of cells: what its column's format says. */
typedef struct mtprof_arrow_cell {
    mtprof_text text;
    int64_t number;
    double real;
    uint32_t is_null;
    uint32_t reserved;
} mtprof_arrow_cell;

/** Set struct_size. All of it is copied. */
typedef struct mtprof_arrow_cells {
    uint32_t struct_size;
    uint32_t n_columns; /**< at most 16 */
    const char *const *names;
    const char *formats; /**< a letter a column: b, i, l (number), g (real) or U (text) */
    const mtprof_arrow_cell *cells; /**< row after row */
    uint64_t n_rows;
} mtprof_arrow_cells;

/** A small table of values that the caller has. Fails with EINVAL (too many columns, a format that
 * is none of those), ENOMEM. */
MTPROF_API mtprof_status mtprof_arrow_from_cells(const mtprof_arrow_cells *cells,
                                                 const mtprof_arrow_options *options,
                                                 struct ArrowArrayStream *out);

/**
 * Writes what a stream gives to a file of Parquet, which appears complete or not at all: row groups
 * of at most MTPROF_ARROW_DATASET_ROWS rows, one of them in memory at a time, not compressed.
 * Columns are numbers, bools, doubles and large_utf8, or dictionaries of that; what may be null
 * says so. The stream is read to its end and remains the caller's to release; *rows are those that
 * were written.
 *
 * Fails with EINVAL (a column of another type, or with nulls that it says it has not), ECALLBACK
 * (the stream failed), ENOMEM, EIO, ENOSPC.
 */
MTPROF_API mtprof_status mtprof_arrow_write_parquet(struct ArrowArrayStream *stream,
                                                    const char *path, uint64_t *rows);

MTPROF_END_DECLS

#endif /* MTPROF_ARROW_H */
