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
extern uint64_t stacks_generations; /* atomic; language.c */
static inline uint64_t stacks_generation(void)
{
    /* The gate was read before, relaxed: what its opener did before must be seen now (LG2). */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&stacks_generations, __ATOMIC_ACQUIRE);
}
static inline uint32_t stacks_recording_of(uint64_t generation)
{
    return (uint32_t)(generation >> 32);
}

/* This thread's state if it has the GIL and may look at Python; NULL otherwise. */
PyThreadState *stacks_python_thread(void);

/* A question about the frames of the calling thread, which has the GIL or not. The answer is a
 * number, or LOOK_NEEDS_GIL where it cannot be had without. */
typedef uint32_t stacks_look(PyThreadState *thread, bool has_gil);
enum {
    LOOK_NEEDS_GIL = UINT32_MAX - 1 /* no node and no string has this number */
};

/* ---- what a thread keeps (stacks_thread.c) ---- */

typedef struct stack_walk stack_walk;     /* stack_cache.c */
typedef struct module_level module_level; /* module_path.c */
typedef struct module_steps module_steps; /* module_path.c */
typedef struct traced_calls traced_calls; /* call_tracer.c */
typedef struct stacks_thread stacks_thread;

/* Belongs to its thread, and goes with it. Holds no reference to an object but by `levels`. */
struct stacks_thread {
    stacks_thread *next, *previous; /* of all threads; the lock's */
    uint32_t busy; /* looks at its stack or has the lock: only a signal handler can find it set */
    uint32_t looking; /* atomic: at its frames, without the GIL (LG5) */
    stack_walk *walk;
    uint32_t held; /* the stack for the time without the GIL; 0: none */
    uint32_t held_recording;
    module_level *levels; /* modules that are being called, outermost first */
    uint32_t n_levels, levels_capacity;
    module_steps *steps; /* paths of modules that were found in its frames */
    traced_calls *calls;
};

/* The calling thread's; NULL: it has none yet. */
extern __thread stacks_thread *stacks_mine __attribute__((tls_model("initial-exec")));
static inline stacks_thread *stacks_thread_if_any(void)
{
    return stacks_mine;
}
/* Makes it; NULL: no memory. */
stacks_thread *stacks_thread_new(void);
/* The calling thread's, made where it has none; NULL: no memory. */
static inline stacks_thread *stacks_thread_mine(void)
{
    return stacks_mine != NULL ? stacks_mine : stacks_thread_new();
}
/* The first of all; `next` leads on. Valid under the lock. */
stacks_thread *stacks_thread_first(void);

/*
 * The lock of what is read without the GIL: places (code_table.c), modules (module_path.c), the
 * list of threads. The GIL comes first: who has the lock does not wait for it, runs no Python code
 * and makes no object. Tables are changed with both, so either is enough to read them.
 */
void stacks_lock(void);
void stacks_unlock(void);

/* Frees what the parts keep for a thread that ends. Called without the GIL. */
void stack_walk_free(stack_walk *walk);
void module_steps_free(module_steps *steps);
void traced_calls_free(traced_calls *calls);

/* ---- stacks (stack_cache.c) ---- */

/* The node of the calling thread's stack; 0: unknown, MTPROF_STACK_NONE: it has none. */
uint32_t stack_cache_node(PyThreadState *thread);
/* The same without the GIL, from what is known; else LOOK_NEEDS_GIL. */
uint32_t stack_cache_known(PyThreadState *thread);

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
/* The same where it was met before; UNKNOWN: it was not. The lock is enough. */
uint32_t code_table_known(const void *place);
/* Whether the tables are of this generation. The lock is enough. */
bool code_table_is_of(uint64_t generation);
/* Releases what was put aside: may run Python code. */
void code_table_release(void);
/* A folder whose code is ours; ends in a slash. Which code object calls modules. */
int code_table_own_path(const char *path, size_t length);
int code_table_module_call(PyObject *code);
/* That one, only to be compared; NULL: none. Needs no GIL. */
const PyCodeObject *code_table_module_code(void);
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
/* The serial of the entry of a module, 0: it has none. Cheap; the GIL or the lock. `frame` (or
 * NULL) gets its frame, 0: not defined yet. */
uint64_t module_table_serial(const PyObject *module, uint32_t *frame);
/* Its frame, "nn.Module: Linear_0"; 0: no memory. */
uint32_t module_entry_frame(module_entry *entry, PyObject *module);
/* The same as text, cut to size. Returns the length. */
size_t module_entry_name(const module_entry *entry, PyObject *module, char *text, size_t size);
/* Takes the table's weak references away: an array, its length in *n_weaks; NULL: none. */
PyObject **module_table_take(size_t *n_weaks);
/* Whether the path is to be found in the frames: nobody reports modules on this thread. */
bool module_path_in_frames(void);
/* The path that was reported, and that of the frames; 0: in no module. */
uint32_t module_path_entered(void);
stacks_look module_path_look;

/* Lets go of the code objects that stacks have met (language.c). */
void stacks_release_code(void);

/* ---- traced calls (call_tracer.c) ---- */

/* Whether calls are traced; the GIL's. */
extern bool call_tracer_running;
/* Begins the frames that are open where this thread has not been seen in this recording. */
void call_tracer_catch_up(PyThreadState *thread);
/* Whether it would do something. Needs no GIL. */
bool call_tracer_is_behind(void);

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
