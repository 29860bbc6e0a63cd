/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call of Python code and of built-in functions as a scope of kind FUNCTION, by the
 * interpreter's profile hook. The hook is expensive, so this is off unless asked for
 * (_ExperimentalConfig(verbose=True)). Names are torch's:
 *
 *     package/file.py(12): function       relative to sys.path, the line where it is defined
 *     <built-in function len>             of a module
 *     <built-in method append of list object>
 *     nn.Module: Linear_0                 see module_path.c
 *
 *   CTR1  A thread's open calls are a stack. A return takes its own call off and what was left
 *         above it; one that belongs to no call is ignored. So a hook that was removed for a
 *         while, or installed late, cannot upset the order.
 *   CTR2  Frames that are open when a thread is first seen in a recording begin then. On the
 *         thread that starts the tracer inside a window, that is the start of the trace.
 *   CTR3  Stopping ends what is open, on every thread: tokens may be ended anywhere.
 *   CTR4  Our own frames are not shown, nor what they call of Python's library and of built-in
 *         functions, except those of mindtorch_v2.
 *   CTR5  A thread that had a profile function before gets it back at the stop.
 *   CTR6  If a thread's first event is a scope or an op, the frames around it begin
 *         before it (language.c asks for that): spans of a track nest.
 *   CTR7  Switching on or off is always completed. It may run Python code, in which a signal
 *         handler may raise: the exception is raised after the switch.
 */
#include "profiler/stacks/builtin_names.h"
#include "profiler/stacks/python_stacks.h"
#include "profiler/stacks/tracers.h"

#include <frameobject.h>
#include <string.h>

typedef struct open_call {
    uintptr_t frame; /* only to be compared; | 1: a built-in function that the frame calls */
    mtprof_token token;
    bool hidden; /* CTR4 */
} open_call;

struct traced_calls {
    open_call *open; /* CTR1; the GIL's */
    uint32_t count, capacity;
    uint32_t run, recording; /* in which it was last seen */
    bool live;               /* something recorded then */
};

/* A profile function that ours replaced (CTR5). */
typedef struct displaced {
    struct displaced *next;
    uint64_t thread; /* PyThreadState.id: never given twice */
    Py_tracefunc function;
    PyObject *argument; /* held */
} displaced;

/* All of it is the GIL's. */
bool call_tracer_running;
static uint32_t run;
static displaced *others;
static PyObject *thread_hook;    /* what threading.setprofile() was given */
static PyObject *threading_hook; /* what it had before */

/* ---- open calls ---- */

void traced_calls_free(traced_calls *calls)
{
    if (calls != NULL) {
        PyMem_RawFree(calls->open);
        PyMem_RawFree(calls);
    }
}

static traced_calls *calls_of(stacks_thread *thread)
{
    if (thread->calls == NULL) {
        traced_calls *calls = PyMem_RawCalloc(1, sizeof *calls);
        stacks_lock(); /* end_all() */
        thread->calls = calls;
        stacks_unlock();
    }
    return thread->calls;
}

static bool is_hidden(const traced_calls *calls)
{
    return calls->count > 0 && calls->open[calls->count - 1].hidden;
}

/* Begins a call; site NULL: it is not shown. */
static void push(traced_calls *calls, uintptr_t frame, mtprof_site *site)
{
    if (calls->count == calls->capacity) {
        uint32_t capacity = calls->capacity == 0 ? 64 : calls->capacity * 2;
        open_call *larger = PyMem_RawRealloc(calls->open, capacity * sizeof *larger);
        if (larger == NULL) {
            return; /* its return will be ignored */
        }
        calls->open = larger;
        calls->capacity = capacity;
    }
    open_call *call = &calls->open[calls->count++];
    call->frame = frame;
    call->hidden = site == NULL;
    call->token = site != NULL ? mtprof_begin(site) : 0;
}

static void pop(traced_calls *calls, uintptr_t frame) /* CTR1 */
{
    uint32_t at = calls->count;
    while (at > 0 && calls->open[at - 1].frame != frame) {
        at--;
    }
    while (at > 0 && calls->count >= at) {
        mtprof_end(calls->open[--calls->count].token);
    }
}

/* ---- names ---- */

static mtprof_site *make_site(const char *name, size_t length)
{
    mtprof_site *site = PyMem_RawCalloc(1, sizeof *site + length + 1);
    if (site != NULL) {
        char *copy = (char *)(site + 1);
        memcpy(copy, name, length);
        site->struct_size = sizeof *site;
        site->name = copy;
        site->flags = MTPROF_KIND_FUNCTION;
    }
    return site;
}

/* The site of a frame that is called; NULL: not shown, or no memory. */
static mtprof_site *site_of_frame(PyFrameObject *frame, bool called_by_us)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    code_entry *entry = code_table_entry(code);
    mtprof_site *site = NULL;
    char name[1024];
    if (entry != NULL && entry->is_module_call) {
        PyObject *self = call_first_argument(frame);
        module_entry *module = self != NULL ? module_table_entry(self) : NULL;
        if (module != NULL && module->site == NULL) {
            module->site = make_site(name, module_entry_name(module, self, name, sizeof name));
        }
        site = module != NULL ? module->site : NULL;
        Py_XDECREF(self);
    } else if (entry != NULL && !entry->is_ours && !(called_by_us && entry->is_library)) {
        /* CTR4 */
        if (entry->site == NULL) {
            entry->site = make_site(name, call_name(code, name, sizeof name));
        }
        site = entry->site;
    }
    Py_DECREF(code);
    return site;
}

/* ---- the hook ---- */

/* CTR2. Begins the frames around `frame`, and it too where `inclusive`. */
static void adopt(traced_calls *calls, PyFrameObject *frame, bool inclusive)
{
    PyFrameObject *around = PyFrame_GetBack(frame);
    uint32_t depth = 0;
    for (PyFrameObject *f = around; f != NULL; depth++) {
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(f); /* the thread runs in it */
        f = back;
    }
    PyFrameObject **chain = depth > 0 ? PyMem_RawMalloc(depth * sizeof *chain) : NULL;
    PyFrameObject *f = PyFrame_GetBack(frame);
    for (uint32_t i = 0; f != NULL; i++) {
        if (chain != NULL && i < depth) {
            chain[i] = f;
        }
        PyFrameObject *back = PyFrame_GetBack(f);
        Py_DECREF(f);
        f = back;
    }
    for (uint32_t i = chain != NULL ? depth : 0; i > 0; i--) {
        push(calls, (uintptr_t)chain[i - 1], site_of_frame(chain[i - 1], is_hidden(calls)));
    }
    PyMem_RawFree(chain);
    if (inclusive) {
        push(calls, (uintptr_t)frame, site_of_frame(frame, is_hidden(calls)));
    }
}

/* Whether a thread's calls are those of this recording, and were recorded. */
static bool is_current(const traced_calls *calls)
{
    return calls->run == run && calls->recording == stacks_recording_of(stacks_generation()) &&
           (calls->live || !mtprof_wants(MTPROF_WANT_SCOPES));
}

/* This thread's calls; NULL: no memory. */
static traced_calls *calls_now(PyFrameObject *frame, bool inclusive)
{
    stacks_thread *thread = stacks_thread_mine();
    traced_calls *calls = thread != NULL ? calls_of(thread) : NULL;
    if (calls != NULL && !is_current(calls)) {
        calls->run = run;
        calls->recording = stacks_recording_of(stacks_generation());
        calls->live = mtprof_wants(MTPROF_WANT_SCOPES);
        calls->count = 0; /* tokens of a recording that is over end nothing */
        adopt(calls, frame, inclusive);
    }
    return calls;
}

static int hook(PyObject *Py_UNUSED(ignored), PyFrameObject *frame, int what, PyObject *argument)
{
    if (!call_tracer_running) {
        return 0;
    }
    stacks_error error = stacks_error_aside();
    code_table_sync(stacks_generation());
    traced_calls *calls = calls_now(frame, what != PyTrace_CALL);
    uintptr_t id = (uintptr_t)frame;
    if (calls != NULL && what == PyTrace_CALL) {
        push(calls, id, site_of_frame(frame, is_hidden(calls)));
    } else if (calls != NULL && what == PyTrace_RETURN) {
        pop(calls, id);
    } else if (calls != NULL && what == PyTrace_C_CALL) {
        push(calls, id | 1, builtin_site(argument, is_hidden(calls)));
    } else if (calls != NULL && (what == PyTrace_C_RETURN || what == PyTrace_C_EXCEPTION)) {
        pop(calls, id | 1);
    }
    PyErr_Clear();
    stacks_error_back(&error);
    return 0;
}

bool call_tracer_is_behind(void)
{
    const stacks_thread *mine = stacks_thread_if_any();
    return mine == NULL || mine->calls == NULL || !is_current(mine->calls);
}

void call_tracer_catch_up(PyThreadState *thread) /* CTR6 */
{
    if (!call_tracer_is_behind()) {
        return;
    }
    stacks_error error = stacks_error_aside();
    int collecting = PyGC_Disable(); /* making frame objects must not start a collection here */
    PyFrameObject *frame = PyThreadState_GetFrame(thread);
    if (frame != NULL) {
        code_table_sync(stacks_generation());
        (void)calls_now(frame, true);
        Py_DECREF(frame);
    }
    if (collecting) {
        PyGC_Enable();
    }
    PyErr_Clear();
    stacks_error_back(&error);
}

/* What a new thread gets by threading.setprofile(): it replaces itself by the hook. */
static PyObject *trace_thread(PyObject *Py_UNUSED(self), PyObject *arguments)
{
    PyObject *frame = PyTuple_GET_SIZE(arguments) == 3 ? PyTuple_GET_ITEM(arguments, 0) : NULL;
    if (frame == NULL || !PyFrame_Check(frame)) {
        PyErr_SetString(PyExc_TypeError, "trace_thread: (frame, event, argument) are needed");
        return NULL;
    }
    PyEval_SetProfile(call_tracer_running ? hook : NULL, NULL);
    if (call_tracer_running) {
        (void)calls_now((PyFrameObject *)frame, true);
    }
    Py_RETURN_NONE;
}

/* ---- on and off ---- */

/* CTR5 */
static int displace(PyThreadState *thread)
{
    if (thread->c_profilefunc == NULL || thread->c_profilefunc == hook) {
        return 0;
    }
    displaced *other = PyMem_RawCalloc(1, sizeof *other);
    if (other == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *other = (displaced){.next = others,
                         .thread = thread->id,
                         .function = thread->c_profilefunc,
                         .argument = Py_XNewRef(thread->c_profileobj)};
    others = other;
    return 0;
}

static const displaced *displaced_of(const PyThreadState *thread)
{
    const displaced *other = others;
    while (other != NULL && other->thread != thread->id) {
        other = other->next;
    }
    return other;
}

/* May run Python code: only when no thread states are walked. */
static void free_displaced(void)
{
    while (others != NULL) {
        displaced *other = others;
        others = other->next;
        Py_XDECREF(other->argument);
        PyMem_RawFree(other);
    }
}

/* Installs the hook in every existing thread. */
static int set_hooks(void)
{
    PyThreadState *first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    for (PyThreadState *t = first; t != NULL; t = PyThreadState_Next(t)) {
        if (displace(t) != 0) {
            return -1;
        }
    }
#if PY_VERSION_HEX >= 0x030C0000
    PyEval_SetProfileAllThreads(hook, NULL);
    return 0;
#else
    int status = 0;
    for (PyThreadState *t = first; t != NULL && status == 0; t = PyThreadState_Next(t)) {
        status = _PyEval_SetProfile(t, hook, NULL);
    }
    return status;
#endif
}

/* Removes the hook where it is still installed (CTR5). */
static int clear_hooks(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState *now = PyThreadState_Get(); /* of others it can only be taken away */
    const displaced *other = now->c_profilefunc == hook ? displaced_of(now) : NULL;
    bool replaced = now->c_profilefunc != hook;
    Py_tracefunc function = replaced ? now->c_profilefunc : other != NULL ? other->function : NULL;
    PyObject *argument = Py_XNewRef(replaced        ? now->c_profileobj
                                    : other != NULL ? other->argument
                                                    : NULL);
    PyEval_SetProfileAllThreads(NULL, NULL);
    if (function != NULL) {
        PyEval_SetProfile(function, argument);
    }
    Py_XDECREF(argument);
    return 0;
#else
    int status = 0;
    PyThreadState *t = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    for (; t != NULL && status == 0; t = PyThreadState_Next(t)) {
        if (t->c_profilefunc == hook) {
            const displaced *other = displaced_of(t);
            status = _PyEval_SetProfile(t, other != NULL ? other->function : NULL,
                                        other != NULL ? other->argument : NULL);
        }
    }
    return status;
#endif
}

/* For new threads: threading installs this profile function when it starts one. */
static int set_threading(bool on)
{
    PyObject *threading = PyImport_ImportModule("threading");
    PyObject *now = threading != NULL ? PyObject_CallMethod(threading, "getprofile", NULL) : NULL;
    PyObject *done = NULL;
    if (now != NULL && on) {
        if (now != thread_hook) { /* else an earlier, interrupted try did this */
            Py_XSETREF(threading_hook, Py_NewRef(now));
        }
        done = PyObject_CallMethod(threading, "setprofile", "O", thread_hook);
    } else if (now != NULL && now == thread_hook && threading_hook != NULL) {
        done = PyObject_CallMethod(threading, "setprofile", "O", threading_hook);
    } else if (now != NULL) {
        done = Py_NewRef(now); /* it was replaced since */
    }
    if (!on && done != NULL) {
        Py_CLEAR(threading_hook);
    }
    Py_XDECREF(now);
    Py_XDECREF(threading);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

static void end_all(void) /* CTR3 */
{
    stacks_lock();
    for (stacks_thread *thread = stacks_thread_first(); thread != NULL; thread = thread->next) {
        traced_calls *calls = thread->calls;
        while (calls != NULL && calls->count > 0) {
            mtprof_end(calls->open[--calls->count].token);
        }
        if (calls != NULL) {
            calls->run = 0;
        }
    }
    stacks_unlock();
}

enum {
    TRIES = 16 /* each takes another signal in the same microseconds (CTR7) */
};

/* CTR7 */
static int set_threading_surely(bool on)
{
    stacks_error first = {0};
    int status = set_threading(on);
    bool raised = status != 0;
    for (int i = 0; status != 0 && i < TRIES; i++) {
        if (i == 0) {
            first = stacks_error_aside();
        }
        PyErr_Clear();
        status = set_threading(on);
    }
    PyErr_Clear();
    if (raised) {
        stacks_error_back(&first);
    }
    return raised ? -1 : 0;
}

int call_tracer_stop(void)
{
    if (!call_tracer_running) {
        return 0;
    }
    call_tracer_running = false;
    end_all();
    int hooks = clear_hooks();
    free_displaced();
    return set_threading_surely(false) == 0 && hooks == 0 ? 0 : -1;
}

int call_tracer_start(void)
{
    if (call_tracer_running) {
        return 0;
    }
    int status = set_threading_surely(true);
    call_tracer_running = true;
    run = run + 1 != 0 ? run + 1 : 1;
    if (status == 0) {
        call_tracer_catch_up(PyThreadState_Get());
        status = set_hooks();
    }
    if (status != 0) {
        stacks_error error = stacks_error_aside();
        (void)call_tracer_stop();
        PyErr_Clear();
        stacks_error_back(&error);
    }
    return status;
}

static PyObject *stop_call_tracer(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return call_tracer_stop() == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyObject *start_call_tracer(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return call_tracer_start() == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
    {"start_call_tracer", start_call_tracer, METH_NOARGS,
     "start_call_tracer(): records every call, in every thread. After a window has opened."},
    {"stop_call_tracer", stop_call_tracer, METH_NOARGS,
     "stop_call_tracer(): ends that. Before the window closes."},
    {"trace_thread", trace_thread, METH_VARARGS, "For threading.setprofile()."},
    {NULL, NULL, 0, NULL},
};

py_part call_tracer_part;
int call_tracer_part(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) != 0) {
        return -1;
    }
    builtin_names_hide(module);
    thread_hook = PyObject_GetAttrString(module, "trace_thread");
    return thread_hook != NULL ? 0 : -1;
}
