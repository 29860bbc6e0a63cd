/* SPDX-License-Identifier: Apache-2.0
 *
 * Python as the host's language (mtprof/language.h): the recorder asks here for the stack and the
 * module path of what begins, so that code that does not know Python gets both.
 *
 *   an op or a scope begins, stacks are wanted
 *     └─► stack_now()                this thread has the GIL? no ─► the stack that was held, or
 *           │                          └─► look_without_gil(): the same from what is known
 *           └─► stack_cache_node()   stack_cache.c: the frames, compared with the thread's last
 *                 ├─► frames_collect()         frames_walk.h: the interpreter's list of frames
 *                 └─ for each frame that differs
 *                      ├─► code_table_place()  code_table.c: (code, instruction) ─► frame id
 *                      │     ├─ seen before: one look into a hash table
 *                      │     ├─ new: file, qualified name, line ─► mtprof_define_frame()
 *                      │     └─ a module's call ─► module_table_entry(): "nn.Module: Linear_0"
 *                      └─► mtprof_stack_push() libmtprof: (stack, frame) ─► stack
 *   modules are wanted
 *     └─► path_now()                 module_path.c: a number of this thread, or from its frames
 *
 *   every call is traced             call_tracer.c: by the interpreter's profile hook
 *   garbage collections              gc_spans.c
 *
 *   LG1  Who has the GIL: in 3.11 the current thread state is the process's, so it must be the one
 *        that belongs to this thread (PyGILState's, a thread-specific value); comparing pointers
 *        alone, without reading either, is safe while another thread takes or leaves the GIL. From
 *        3.12 on the current thread state is the thread's own, NULL without the GIL; there it must
 *        belong to the main interpreter, whose lock guards our tables. PyGILState_Check() would do,
 *        but says yes to everything once a subinterpreter has been made.
 *   LG2  The start of our source, which comes before the gate opens, marks a new recording.
 *   LG3  A thread that holds a stack while it releases the GIL drops that stack itself.
 *   LG4  A thread without the GIL looks at its own frames, which do not change meanwhile, and at
 *        what is known of them. It takes the GIL only where something is new: code that was not met
 *        yet, a module, a new recording; and only for what may wait (MTPROF_BEGIN_MAY_WAIT): a
 *        signal handler may have interrupted the code that takes the GIL. While a subinterpreter
 *        exists it does not look: in 3.11 it cannot know whether it has the GIL for that one, and
 *        would wait for itself.
 *   LG5  Python frees the frames of other threads when it ends. Before that stacks_end() sets
 *        `ended` and waits for threads whose `looking` is set; a thread sets `looking` and then
 *        reads `ended`. So none looks at frames, or waits for the GIL, that are gone.
 */
#include "common/py_language.h"
#include "profiler/stacks/frames_walk.h"
#include "profiler/stacks/python_stacks.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum {
    END_WAITS = 1000 /* milliseconds for threads that still look (LG5) */
};

uint64_t stacks_generations = 1;
static PyInterpreterState *interpreter;
static mtprof_source *source;
static bool installed;
static bool ended; /* atomic; LG5 */

static inline bool is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

PyThreadState *stacks_python_thread(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState *current = PyThreadState_GetUnchecked();
#else
    PyThreadState *current = _PyThreadState_UncheckedGet();
#endif
    if (current == NULL || is_finalizing()) {
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030C0000
    return current->interp == interpreter ? current : NULL; /* LG1 */
#else
    return current == PyGILState_GetThisThreadState() ? current : NULL;
#endif
}

/* ---- what the recorder asks ---- */

/* LG4. 0 where it must not look or wait, `stranger` where Python does not know the thread. */
static uint32_t look_without_gil(stacks_look *look, uint32_t stranger, bool may_wait)
{
    PyThreadState *python = PyGILState_GetThisThreadState();
    if (python == NULL) {
        return stranger;
    }
    stacks_thread *thread = may_wait ? stacks_thread_mine() : stacks_thread_if_any();
    if (thread == NULL || thread->busy != 0) {
        return 0;
    }
    uint32_t answer = 0;
    __atomic_store_n(&thread->looking, 1, __ATOMIC_SEQ_CST); /* LG5 */
    if (!__atomic_load_n(&ended, __ATOMIC_SEQ_CST) && !is_finalizing() &&
        PyInterpreterState_Head() == interpreter && python->interp == interpreter) {
        answer = FRAMES_NEED_GIL ? LOOK_NEEDS_GIL : look(python, false);
        if (answer == LOOK_NEEDS_GIL && may_wait) {
            int error = errno;
            PyGILState_STATE before = PyGILState_Ensure();
            answer = look(python, true);
            PyGILState_Release(before);
            errno = error;
        }
    }
    __atomic_store_n(&thread->looking, 0, __ATOMIC_RELEASE);
    return answer != LOOK_NEEDS_GIL ? answer : 0;
}

static inline uint32_t stack_with_gil(PyThreadState *python)
{
    if (call_tracer_running) {
        call_tracer_catch_up(python); /* scopes of kind FUNCTION, which have no stacks */
    }
    return stack_cache_node(python);
}

static uint32_t stack_look(PyThreadState *python, bool has_gil)
{
    if (has_gil) {
        return stack_with_gil(python);
    }
    bool is_behind =
        __atomic_load_n(&call_tracer_running, __ATOMIC_RELAXED) && call_tracer_is_behind();
    return is_behind ? LOOK_NEEDS_GIL : stack_cache_known(python);
}

static inline uint32_t tell_stack(bool may_wait)
{
    PyThreadState *python = stacks_python_thread();
    if (python != NULL) {
        return stack_with_gil(python);
    }
    const stacks_thread *thread = stacks_thread_if_any();
    if (thread != NULL && thread->held != 0 &&
        thread->held_recording == stacks_recording_of(stacks_generation())) {
        return thread->held;
    }
    return look_without_gil(stack_look, MTPROF_STACK_NONE, may_wait);
}

static uint32_t stack_now(void *Py_UNUSED(ignored))
{
    return tell_stack(false);
}

static uint32_t stack_waiting(void *Py_UNUSED(ignored))
{
    return tell_stack(true);
}

static inline uint32_t tell_path(bool may_wait)
{
    if (!module_path_in_frames()) {
        return module_path_entered();
    }
    PyThreadState *python = stacks_python_thread();
    return python != NULL ? module_path_look(python, true)
                          : look_without_gil(module_path_look, 0, may_wait);
}

static uint32_t path_now(void *Py_UNUSED(ignored))
{
    return tell_path(false);
}

static uint32_t path_waiting(void *Py_UNUSED(ignored))
{
    return tell_path(true);
}

static mtprof_status recording_begins(void *Py_UNUSED(ignored), mtprof_source *Py_UNUSED(from),
                                      uint64_t Py_UNUSED(wants))
{
    __atomic_add_fetch(&stacks_generations, (uint64_t)1 << 32, __ATOMIC_ACQ_REL); /* LG2 */
    return MTPROF_OK;
}

static void recording_ends(void *Py_UNUSED(ignored))
{
}

/* ---- the capsule (py_language.h) ---- */

static uint32_t hold(void)
{
    stacks_thread *thread = stacks_thread_mine();
    PyThreadState *python = thread != NULL ? stacks_python_thread() : NULL;
    if (python == NULL) {
        return 0;
    }
    uint32_t recording = stacks_recording_of(stacks_generation());
    uint32_t before = thread->held_recording == recording ? thread->held : 0;
    thread->held = stack_cache_node(python);
    thread->held_recording = recording;
    return before;
}

static void drop(uint32_t before)
{
    stacks_thread *thread = stacks_thread_if_any(); /* LG3 */
    if (thread != NULL) {
        thread->held = before; /* of another recording: held_recording says so */
    }
}

static py_language offered = {.version = 1, .hold = hold, .drop = drop};

/* ---- Python's side ---- */

/* A recording that is under way keeps its language: try again later. */
static int install(void)
{
    mtprof_language language = {.struct_size = sizeof language,
                                .stack = stack_now,
                                .module_path = path_now,
                                .stack_waiting = stack_waiting,
                                .module_path_waiting = path_waiting};
    if (installed) {
        return 0;
    }
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS /* it waits for threads that are being asked, which may want the GIL */
        status = mtprof_set_language(&language);
    Py_END_ALLOW_THREADS installed = status == MTPROF_OK;
    if (status == MTPROF_OK || status == MTPROF_EBUSY) {
        return 0;
    }
    (void)profiler_raise(status, NULL);
    return -1;
}

static PyObject *install_language(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return install() == 0 ? PyBool_FromLong(installed) : NULL;
}

static PyObject *set_module_call(PyObject *Py_UNUSED(self), PyObject *code)
{
    if (code_table_module_call(code) != 0) {
        return NULL;
    }
    __atomic_add_fetch(&stacks_generations, 1,
                       __ATOMIC_ACQ_REL); /* frames of it may be known by now */
    Py_RETURN_NONE;
}

static PyObject *add_own_path(PyObject *Py_UNUSED(self), PyObject *path)
{
    PyObject *bytes = NULL;
    if (PyUnicode_FSConverter(path, &bytes) == 0) {
        return NULL;
    }
    char *text = PyBytes_AS_STRING(bytes);
    size_t length = strlen(text);
    int status = -1;
    if (length > 0 && text[length - 1] == '/') {
        status = code_table_own_path(text, length);
    } else {
        PyErr_Format(PyExc_ValueError, "add_own_path: a folder that ends in '/' is needed, not %R",
                     path);
    }
    Py_DECREF(bytes);
    __atomic_add_fetch(&stacks_generations, 1, __ATOMIC_ACQ_REL);
    return status == 0 ? Py_NewRef(Py_None) : NULL;
}

void stacks_release_code(void)
{
    code_table_sync(__atomic_add_fetch(&stacks_generations, 1, __ATOMIC_ACQ_REL));
    code_table_release();
}

static PyObject *release_code(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    stacks_release_code();
    Py_RETURN_NONE;
}

static bool is_anyone_looking(void)
{
    bool found = false;
    stacks_lock();
    for (stacks_thread *t = stacks_thread_first(); t != NULL && !found; t = t->next) {
        found = __atomic_load_n(&t->looking, __ATOMIC_SEQ_CST) != 0;
    }
    stacks_unlock();
    return found;
}

static PyObject *stacks_end(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored)) /* LG5 */
{
    __atomic_store_n(&ended, true, __ATOMIC_SEQ_CST);
    for (int waits = 0; waits < END_WAITS && is_anyone_looking(); waits++) {
        Py_BEGIN_ALLOW_THREADS /* some wait for it */
            struct timespec rest = {0, 1000 * 1000};
        nanosleep(&rest, NULL);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static PyObject *stack_node(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    PyThreadState *python = stacks_python_thread();
    uint32_t node = python != NULL ? stack_cache_node(python) : 0;
    return PyLong_FromUnsignedLong(node != MTPROF_STACK_NONE ? node : 0);
}

static PyObject *stack_state(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    size_t codes = 0;
    size_t places = 0;
    size_t aside = 0;
    code_table_counts(&codes, &places, &aside);
    return Py_BuildValue("{s:s,s:n,s:n,s:n}", "frames", frames_source(), "codes", (Py_ssize_t)codes,
                         "places", (Py_ssize_t)places, "aside", (Py_ssize_t)aside);
}

/* What a look at the stack costs from here, for the bench: `rounds` of them, in nanoseconds; with
 * or without the GIL, of the stack or of the module path. */
static PyObject *stack_cost(PyObject *Py_UNUSED(self), PyObject *arguments)
{
    unsigned long rounds = 0;
    int has_gil = 1;
    int of_path = 0;
    if (!PyArg_ParseTuple(arguments, "k|pp:stack_cost", &rounds, &has_gil, &of_path)) {
        return NULL;
    }
    uint32_t (*look)(void *) = of_path ? path_waiting : stack_waiting;
    uint32_t told = 0;
    PyThreadState *thread = has_gil ? NULL : PyEval_SaveThread();
    uint64_t before = mtprof_ticks();
    for (unsigned long i = 0; i < rounds; i++) {
        uint32_t answer = look(NULL);
        told += answer != 0 && answer != MTPROF_STACK_NONE;
    }
    int64_t ns = mtprof_ticks_to_ns(mtprof_ticks()) - mtprof_ticks_to_ns(before);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return Py_BuildValue("(LI)", (long long)ns, told);
}

static PyMethodDef functions[] = {
    {"install_language", install_language, METH_NOARGS,
     "install_language() -> bool: makes Python the profiler's language; False while something "
     "else records."},
    {"set_module_call", set_module_call, METH_O,
     "set_module_call(code): the function whose calls are shown as 'nn.Module: Linear_0'."},
    {"add_own_path", add_own_path, METH_O,
     "add_own_path(folder): code under it is ours, and not shown in stacks."},
    {"release_code", release_code, METH_NOARGS,
     "release_code(): lets go of the code objects that stacks have met."},
    {"stack_node", stack_node, METH_NOARGS,
     "stack_node() -> int: this stack in the running recording, 0: none."},
    {"stack_state", stack_state, METH_NOARGS, "stack_state() -> dict: what stacks keep."},
    {"stack_cost", stack_cost, METH_VARARGS,
     "stack_cost(rounds, has_gil=True, of_path=False) -> (ns, told): looks at this stack, or at the "
     "path of modules, so many times."},
    {"stacks_end", stacks_end, METH_NOARGS,
     "stacks_end(): from now on threads without the GIL have no stacks. Before Python ends."},
    {NULL, NULL, 0, NULL},
};

/* The folders of both packages: this file is in one of them, the other is next to it. */
static int add_own_packages(PyObject *module)
{
    PyObject *file = PyObject_GetAttrString(module, "__file__");
    if (file == NULL) {
        PyErr_Clear();
        return 0;
    }
    PyObject *bytes = NULL;
    int known = PyUnicode_FSConverter(file, &bytes);
    Py_DECREF(file);
    if (known == 0) {
        return -1;
    }
    static const char beside[] = "mindtorch_v2/";
    char path[4096];
    const char *text = PyBytes_AS_STRING(bytes);
    const char *name = strrchr(text, '/');
    size_t folder = name != NULL ? (size_t)(name - text) + 1 : 0;
    int status = folder > 0 ? code_table_own_path(text, folder) : 0;
    while (folder > 1 && text[folder - 2] != '/') {
        folder--;
    }
    folder = folder > 0 ? folder - 1 : 0;
    if (status == 0 && folder > 0 && folder + sizeof beside <= sizeof path) {
        memcpy(path, text, folder);
        memcpy(path + folder, beside, sizeof beside);
        status = code_table_own_path(path, folder + sizeof beside - 1);
    }
    Py_DECREF(bytes);
    return status;
}

py_part language_part;
int language_part(PyObject *module)
{
    static const mtprof_source_ops ops = {.struct_size = sizeof ops,
                                          .abi = MTPROF_SOURCE_ABI,
                                          .name = "python",
                                          .needs = MTPROF_WANT_STACKS | MTPROF_WANT_MODULES,
                                          .start = recording_begins,
                                          .stop = recording_ends};
    interpreter = PyInterpreterState_Get();
    mtprof_status status = mtprof_source_register(&ops, &source);
    if (status != MTPROF_OK) {
        (void)profiler_raise(status, NULL);
        return -1;
    }
    if (add_own_packages(module) != 0 || install() != 0) {
        return -1;
    }
    PyObject *capsule = PyCapsule_New(&offered, PY_LANGUAGE_CAPSULE, NULL);
    int added = capsule != NULL ? PyModule_AddObjectRef(module, "language", capsule) : -1;
    Py_XDECREF(capsule);
    return added == 0 ? PyModule_AddFunctions(module, functions) : -1;
}
