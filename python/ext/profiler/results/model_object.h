/* SPDX-License-Identifier: Apache-2.0
 *
 * Models, their events and what belongs to them, as the files of this subject share them.
 *
 *     EventList (list) ──► event ──► model ──► mtprof_model (columns)
 *                            ▲         │
 *                            └─ borrowed: events[i]
 *
 *   MO1  An event is made once: while an object for index i lives, model->events[i] is it, and the
 *        event takes itself out when it dies.
 *   MO2  An event refers to its model, never a model to an event; so a model needs no collector,
 *        and an event without attributes of its own cannot be part of a cycle. It has a collector's
 *        header but is tracked from its first own value on: a million events cost the collector
 *        nothing.
 *   MO3  What is read is computed from columns, unless the event's dictionary has the attribute.
 *   MO4  A model without columns (not prepared) has no events.
 */
#ifndef PYTHON_EXT_PROFILER_RESULTS_MODEL_OBJECT_H
#define PYTHON_EXT_PROFILER_RESULTS_MODEL_OBJECT_H

#include "profiler/profiler_state.h"

struct event_object;

enum model_column_state {
    MODEL_COLUMN_UNKNOWN = 0,
    MODEL_COLUMN_HERE = 1,
    MODEL_COLUMN_ABSENT = 2
};

typedef struct model_object {
    PyObject_HEAD mtprof_model *model;
    PyObject *use_device; /* "cuda" …, or None */
    PyObject *cache;      /* dict: what Python code keeps with the model */
    PyObject **progress;  /* what the library may call (model_progress); NULL: nothing */
    mtprof_model_info info;

    bool prepared; /* what follows is there */
    uint32_t n;
    const int64_t *start_ns, *end_ns, *self_ns;
    const uint32_t *parent, *name, *track;
    const int32_t *step;
    const uint8_t *kind, *device;
    const uint16_t *flags;
    const void *columns[MTPROF_COLUMN_COUNT];
    uint8_t states[MTPROF_COLUMN_COUNT]; /* enum model_column_state */
    uint8_t types[MTPROF_COLUMN_COUNT];  /* enum mtprof_column_type */
    uint32_t n_names, n_listed;
    PyObject **names;             /* by name; NULL: not made yet */
    uint8_t *hidden;              /* by name: not listed; NULL: all are */
    struct event_object **events; /* MO1 */
    void *slots; /* memory for all events (event_slots.c); NULL: each has its own */
    size_t slots_bytes;
    uint64_t changed;        /* how often an event of it was given values of its own */
    uint64_t last_id;        /* the largest correlation id; 0: not looked for yet */
    uint32_t *kernel_starts; /* n + 1 places in kernels; NULL: not made yet */
    uint32_t *kernels;       /* device work by the event that launched it */
} model_object;

typedef struct event_object {
    PyObject_HEAD model_object *model; /* NULL: made by hand */
    PyObject *values;                  /* dict of what was set; NULL: nothing */
    PyObject *weakrefs;
    uint32_t index;
    uint32_t reserved;
} event_object;

/* What C needs from Python code (mtprof/events.py), set once by _mtprof.set_event_rules(). */
typedef struct event_rules {
    PyObject *device_types; /* dict: "CUDA" to DeviceType.CUDA */
    PyObject *interval;     /* class Interval(start, end) */
    PyObject *kernel;       /* class Kernel(name, device, duration) */
    PyObject *derive;       /* callable(event, name): attributes that are made in Python */
} event_rules;
extern event_rules event_rules_set;

/* ---- models (model_type.c) ---- */

/* As profiler_raise(), with OSErrors that name the path. Returns NULL. */
PyObject *model_raise(mtprof_status status, const char *path);
/* Raises KeyError(key), whatever the key is. Returns NULL. */
PyObject *model_key_error(PyObject *key);
/* Makes the columns, without the GIL. -1: an exception. */
int model_prepare(model_object *self);
/* A column; NULL where it was not recorded. -1: an exception. */
int model_column(model_object *self, enum mtprof_column_id id, const void **data);
/* What a column has for an event; `otherwise` where it was not recorded. -1: an exception. */
int event_item(const event_object *event, enum mtprof_column_id id, int64_t otherwise,
               int64_t *item);
/* A text of the library as a str; bytes that are no UTF-8 become U+FFFD. */
PyObject *model_text(mtprof_text text);
/* The str of a name: one object per name and model. A new reference. */
PyObject *model_name(model_object *self, uint32_t name);
/* Whether the event is in the list of events. */
bool model_lists(const model_object *self, uint32_t index);
/* Whether its time is that of a device. */
bool model_is_device_work(const model_object *self, uint32_t index);
/* The device work that an event launched itself. -1: an exception. */
int model_kernels(model_object *self, uint32_t index, const uint32_t **kernels, uint32_t *n);
/* A dict of a struct of counters (model_facts.c). */
PyObject *model_info(model_object *self, void *closure);
PyObject *model_findings(model_object *self, PyObject *ignored);
PyObject *model_health(model_object *self, PyObject *ignored);
PyObject *model_damage(model_object *self, PyObject *ignored);
PyObject *model_metadata_dict(const model_object *self, uint32_t metadata);
PyObject *model_metadata_items(const mtprof_metadatum *items, uint32_t n);
PyObject *model_trace_metadata(model_object *self, PyObject *ignored);

/* ---- events (event_object.c) ---- */

/* The event with this index; a new reference. */
PyObject *model_event(model_object *model, uint32_t index);
/* Fills a list with all events / says whether a list is exactly that, unchanged. */
PyObject *model_fill(model_object *self, PyObject *list);
PyObject *model_covers(model_object *self, PyObject *list);

/* ---- memory for events (event_slots.c) ---- */

/* Finds out whether events can lie in one piece of memory; -1: an exception. */
int event_slots_start(void);
/* Memory for all events of a model, where that is possible. */
void model_slots_take(model_object *model);
void model_slots_give(model_object *model);
/* A new event, not tracked, its fields not set; NULL: an exception. */
event_object *event_slot_new(model_object *model, uint32_t index);
/* Whether its memory is its model's. */
bool event_in_slot(const event_object *event);

/* ---- what events say (event_fields.c, event_inputs.c, event_mapping.c) ---- */

extern PyGetSetDef event_getset[];
int event_fields_start(void);
int event_mapping_start(void);
/* "op", "scope" …; steps are scopes. */
PyObject *event_kind_word(uint32_t kind);
PyObject *event_subscript(PyObject *self, PyObject *key);
int event_contains(PyObject *self, PyObject *key);
PyObject *event_to_dict(PyObject *self, PyObject *ignored);

/* The DeviceType with this name. */
PyObject *event_device_type_of(mtprof_text name);
PyObject *event_input_shapes(event_object *event);

/* event_relatives.c */
PyObject *event_cpu_parent(event_object *event);
PyObject *event_cpu_children(event_object *event);
PyObject *event_kernels(event_object *event);
PyObject *event_stack_list(model_object *model, uint32_t node);

enum event_inputs_face {
    EVENT_INPUT_SHAPES,  /* a tensor its sizes, everything else [] */
    EVENT_INPUT_DIMS,    /* the same, with the sizes of lists of tensors */
    EVENT_INPUT_STRIDES, /* the same with strides */
    EVENT_INPUT_TYPES,   /* "float", "Scalar", "TensorList" … */
    EVENT_INPUT_VALUES   /* scalars and lists of them; None for others */
};
PyObject *event_inputs(const event_object *event, enum event_inputs_face face);
PyObject *event_keyword_inputs(const event_object *event);

/* ---- rows of averages (average_rows.c) ---- */

/* The rows of a model's averages, which it takes, as objects of a type made of _mtprof.Row. */
PyObject *row_list(model_object *model, mtprof_averages *averages, PyTypeObject *type, bool shapes);

/* Items of a list as the library's rows. Zero is empty. */
typedef struct rows_buffer {
    mtprof_row *rows;
    mtprof_text *frames;
    uint32_t n_rows, n_frames;
    bool has_shapes; /* any has */
    PyObject *kept;  /* a list of what texts are borrowed from */
} rows_buffer;
/* -1: an exception. Must be released also where it fails. */
int rows_read(rows_buffer *buffer, PyObject *list);
void rows_release(rows_buffer *buffer);

/* Adds the type, a FormattedTimesMixin. -1: an exception. */
int rows_start(PyObject *module, PyObject *mixin);

/* ---- averages, tables and files (model_results.c, given_rows.c, column_buffer.c) ---- */

PyObject *model_averages(model_object *self, PyObject *args, PyObject *keywords);
PyObject *model_table(model_object *self, PyObject *args, PyObject *keywords);
PyObject *model_export(model_object *self, PyObject *args, PyObject *keywords);
/* (explanation.c) */
PyObject *model_explain(model_object *self, PyObject *args, PyObject *keywords);
PyObject *model_report_text(model_object *self, PyObject *args, PyObject *keywords);
/* Instants, counters and flows, a list of tuples (marks_list.c). */
PyObject *model_marks(model_object *self, PyObject *ignored);
PyObject *model_column_object(model_object *self, PyObject *name);
PyObject *model_column_names(model_object *self, PyObject *ignored);
/* Capsules of Arrow streams (arrow_capsule.c): one with a released stream, and that stream. */
struct ArrowArrayStream;
PyObject *arrow_capsule_new(struct ArrowArrayStream **stream);
PyObject *model_arrow_tables(model_object *self, PyObject *ignored);
PyObject *model_arrow_stream(model_object *self, PyObject *args);
PyObject *averages_arrow_stream(const mtprof_averages *averages);

/* Options of a table from keywords that all tables share. Texts are borrowed from `options`. */
int table_options_from(PyObject *options, mtprof_table_options *out);
/* What a function of the library writes for these options, as a str. */
typedef mtprof_status text_writer(const void *what, const void *options,
                                  const mtprof_output *output);
PyObject *written_text(text_writer *write, const void *what, const void *options);
/* The text of a table. */
PyObject *table_text(mtprof_averages *averages, const mtprof_table_options *options);

#endif /* PYTHON_EXT_PROFILER_RESULTS_MODEL_OBJECT_H */
