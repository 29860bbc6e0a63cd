/* SPDX-License-Identifier: Apache-2.0
 *
 * Python as the host's language (mtprof/language.h): the recorder asks here for the stack and the
 * module path of what begins, so that code that does not know Python gets both.
 *
 *   an op or a scope begins, stacks are wanted
 *     └─► stack_now()                this thread has the GIL? no ─► the stack that was held, or 0
 *           └─► stack_cache_node()   stack_cache.c: the frames, compared with the thread's last
 *                 ├─► frames_collect()         frames_walk.h: the interpreter's list of frames
 *                 └─ for each frame that differs
 *                      ├─► code_table_place()  code_table.c: (code, instruction) ─► frame id
 *                      │     ├─ seen before: one look into a hash table
 *                      │     ├─ new: file, qualified name, line ─► mtprof_define_frame()
 *                      │     └─ a module's call ─► module_table_entry(): "nn.Module: Linear_0"
 *                      └─► mtprof_stack_push() libmtprof: (stack, frame) ─► stack
 *   modules are wanted
 *     └─► module_path_now()          module_path.c: a number of this thread
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
 */
#include "common/py_language.h"
#include "profiler/stacks/frames_walk.h"
#include "profiler/stacks/python_stacks.h"

#include <string.h>

static uint64_t generation = 1; /* atomic; see python_stacks.h */
static PyInterpreterState *interpreter;
static mtprof_source *source;
static bool installed;

uint64_t stacks_generation(void)
{
    /* The gate was read before, relaxed: what its opener did before must be seen now (LG2). */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
}

PyThreadState *stacks_python_thread(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyThreadState *current = PyThreadState_GetUnchecked();
    bool ending = Py_IsFinalizing();
#else
    PyThreadState *current = _PyThreadState_UncheckedGet();
    bool ending = _Py_IsFinalizing();
#endif
    if (current == NULL || ending) {
        return NULL;
    }
#if PY_VERSION_HEX >= 0x030C0000
    return current->interp == interpreter ? current : NULL; /* LG1 */
#else
    return current == PyGILState_GetThisThreadState() ? current : NULL;
#endif
}

/* ---- what the recorder asks ---- */

static uint32_t stack_now(void *Py_UNUSED(ignored))
{
    PyThreadState *python = stacks_python_thread();
    if (python != NULL) {
        if (call_tracer_running) {
            call_tracer_catch_up(python); /* scopes of kind FUNCTION, which have no stacks */
        }
        return stack_cache_node(python);
    }
    const stacks_thread *thread = stacks_thread_if_any();
    bool valid =
        thread != NULL && thread->held_recording == stacks_recording_of(stacks_generation());
    return valid ? thread->held : 0;
}

static uint32_t path_now(void *Py_UNUSED(ignored))
{
    return module_path_now();
}

static mtprof_status recording_begins(void *Py_UNUSED(ignored), mtprof_source *Py_UNUSED(from),
                                      uint64_t Py_UNUSED(wants))
{
    __atomic_add_fetch(&generation, (uint64_t)1 << 32, __ATOMIC_ACQ_REL); /* LG2 */
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
    mtprof_language language = {
        .struct_size = sizeof language, .stack = stack_now, .module_path = path_now};
    if (installed) {
        return 0;
    }
    mtprof_status status = mtprof_set_language(&language);
    installed = status == MTPROF_OK;
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
    __atomic_add_fetch(&generation, 1, __ATOMIC_ACQ_REL); /* frames of it may be known by now */
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
    __atomic_add_fetch(&generation, 1, __ATOMIC_ACQ_REL);
    return status == 0 ? Py_NewRef(Py_None) : NULL;
}

void stacks_release_code(void)
{
    code_table_sync(__atomic_add_fetch(&generation, 1, __ATOMIC_ACQ_REL));
    code_table_release();
}

static PyObject *release_code(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    stacks_release_code();
    Py_RETURN_NONE;
}

static PyObject *stack_node(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    PyThreadState *python = stacks_python_thread();
    return PyLong_FromUnsignedLong(python != NULL ? stack_cache_node(python) : 0);
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

/* What a look at the stack costs from here, for the bench: `rounds` of them, in nanoseconds. */
static PyObject *stack_cost(PyObject *Py_UNUSED(self), PyObject *argument)
{
    unsigned long rounds = PyLong_AsUnsignedLong(argument);
    if (rounds == (unsigned long)-1 && PyErr_Occurred() != NULL) {
        return NULL;
    }
    uint32_t node = 0;
    uint64_t before = mtprof_ticks();
    for (unsigned long i = 0; i < rounds; i++) {
        node += stack_now(NULL) != 0;
    }
    int64_t ns = mtprof_ticks_to_ns(mtprof_ticks()) - mtprof_ticks_to_ns(before);
    return Py_BuildValue("(LI)", (long long)ns, node);
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
    {"stack_cost", stack_cost, METH_O,
     "stack_cost(rounds) -> (ns, told): looks at this stack so many times."},
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
