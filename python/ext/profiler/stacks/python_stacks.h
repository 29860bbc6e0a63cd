/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files about Python stacks share. language.c says how they work together.
 */
#ifndef PYTHON_EXT_PROFILER_STACKS_PYTHON_STACKS_H
#define PYTHON_EXT_PROFILER_STACKS_PYTHON_STACKS_H

#include "profiler/profiler_state.h"

/* ---- generations (language.c) ---- */

/*
 * recording << 32 | code. The upper half grows before a recording begins (nodes belong to one
 * recording). When either half grows, places (addresses in code objects) are to be forgotten.
 */
uint64_t stacks_generation(void);
static inline uint32_t stacks_recording_of(uint64_t generation)
{
    return (uint32_t)(generation >> 32);
}

/* This thread's state if it has the GIL and may look at Python; NULL otherwise. */
PyThreadState *stacks_python_thread(void);

/* ---- what a thread keeps (stack_cache.c) ---- */

typedef struct stack_walk stack_walk;     /* stack_cache.c */
typedef struct module_level module_level; /* module_path.c */
typedef struct traced_calls traced_calls; /* call_tracer.c */

/* Belongs to its thread, and goes with it. Holds no reference to an object but by `levels`. */
typedef struct stacks_thread {
    stack_walk *walk;
    uint32_t held; /* the stack for the time without the GIL; 0: none */
    uint32_t held_recording;
    module_level *levels; /* modules that are being called, outermost first */
    uint32_t n_levels, levels_capacity;
    traced_calls *calls;
} stacks_thread;

/* The calling thread's; NULL: no memory. */
stacks_thread *stacks_thread_mine(void);
/* The same, NULL also where it has none yet. */
stacks_thread *stacks_thread_if_any(void);

/* Frees what the parts keep for a thread that ends. Called without the GIL. */
void stack_walk_free(stack_walk *walk);
void traced_calls_free(traced_calls *calls);

/* ---- stacks (stack_cache.c) ---- */

/* The node of the calling thread's stack; 0: unknown. */
uint32_t stack_cache_node(PyThreadState *thread);

/* ---- code objects (code_table.c) ---- */

/* A code object that was met, with the reference that keeps its address its own. */
typedef struct code_entry {
    PyCodeObject *code;
    bool is_ours;        /* of these packages: not shown */
    bool is_module_call; /* shown as the module that is called */
    bool is_library;     /* of Python's own library */
    mtprof_site *site;   /* call_tracer.c; NULL until it was called under it */
} code_entry;

/* How a place is shown. */
enum {
    PLACE_HIDDEN = 0,          /* not shown */
    PLACE_MODULE = UINT32_MAX, /* a module's call: the object decides */
    PLACE_UNKNOWN = UINT32_MAX - 1
};

/* Puts all code and modules aside where the generation has grown, to be released at a safe time. */
void code_table_sync(uint64_t generation);
/* The entry of a code object, made on first sight; NULL: no memory. Valid until the next one is
 * asked for. */
code_entry *code_table_entry(PyCodeObject *code);
/* The frame (mtprof_define_frame) of a place, or one of the above; UNKNOWN: no memory. */
uint32_t code_table_place(const void *place, const void *frame);
/* Releases what was put aside: may run Python code. */
void code_table_release(void);
/* A folder whose code is ours; ends in a slash. Which code object calls modules. */
int code_table_own_path(const char *path, size_t length);
int code_table_module_call(PyObject *code);
/* A text of a code object as bytes; never fails, at worst "?". *keep is released by the caller. */
const char *code_text(PyObject *text, Py_ssize_t *length, PyObject **keep);
/* What it keeps: how many code objects, and how many are put aside. For tests. */
void code_table_counts(size_t *codes, size_t *places, size_t *aside);

/* ---- modules (module_path.c) ---- */

/* A module that was called in this recording. Held weakly. */
typedef struct module_entry {
    PyObject *address; /* borrowed: only to be compared */
    PyObject *weak;
    uint64_t serial;   /* no other entry ever has it */
    PyObject *text;    /* its path below the module that called it last; NULL: not asked for yet */
    uint32_t under;    /* that one's path */
    uint32_t path;     /* `text` as a string of the process */
    uint32_t frame;    /* "nn.Module: Linear_0"; 0: not defined yet */
    uint32_t number;   /* among its class, by first call */
    mtprof_site *site; /* call_tracer.c */
} module_entry;

/* The entry of a module that is alive, made on first sight; NULL: no memory, or it cannot be held
 * weakly. Valid until the next one is asked for. */
module_entry *module_table_entry(PyObject *module);
/* The serial of the entry of a module, 0: it has none. Cheap. */
uint64_t module_table_serial(PyObject *module);
/* Its frame, "nn.Module: Linear_0"; 0: no memory. */
uint32_t module_entry_frame(module_entry *entry, PyObject *module);
/* The same as text, cut to size. Returns the length. */
size_t module_entry_name(const module_entry *entry, PyObject *module, char *text, size_t size);
/* Takes the table's weak references away: an array, its length in *count; NULL: none. */
PyObject **module_table_take(size_t *count);
/* The path where the calling thread is; 0: in no module. Needs no GIL. */
uint32_t module_path_now(void);

/* Lets go of the code objects that stacks have met (language.c). */
void stacks_release_code(void);

/* ---- traced calls (call_tracer.c) ---- */

/* Whether calls are traced; the GIL's. */
extern bool call_tracer_running;
/* Begins the frames that are open where this thread has not been seen in this recording. */
void call_tracer_catch_up(PyThreadState *thread);

/* ---- exceptions ---- */

/* Puts the current exception aside while we do something that may raise. */
typedef struct stacks_error {
    PyObject *value;
#if PY_VERSION_HEX < 0x030C0000
    PyObject *type, *traceback;
#endif
} stacks_error;

static inline stacks_error stacks_error_aside(void)
{
    stacks_error error = {0};
#if PY_VERSION_HEX >= 0x030C0000
    error.value = PyErr_GetRaisedException();
#else
    PyErr_Fetch(&error.type, &error.value, &error.traceback);
#endif
    return error;
}

static inline void stacks_error_back(const stacks_error *error)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(error->value);
#else
    PyErr_Restore(error->type, error->value, error->traceback);
#endif
}

#endif /* PYTHON_EXT_PROFILER_STACKS_PYTHON_STACKS_H */
