/* SPDX-License-Identifier: Apache-2.0
 *
 * nn.Modules: which are being called on a thread, as a path, and what each is called in traces.
 *
 *     TOP(GPT)::forward.h.0(Block)::forward.attn(Attention)::forward.
 *         │                 │ └─ its class      name under which the module that called it, or one
 *         │                 └─ name             that holds it there (a list, say), has it
 *         └─ the outermost call of the thread
 *
 *     nn.Module: Linear_0       Linear: its class; 0: the first of that class that was called
 *
 *   MP1  Each thread has its own stack of calls. A module that was entered is left with the token
 *        of its enter, also when forward raises; this removes everything entered since.
 *   MP2  The module path is read without the GIL: it is a number (a string of the process).
 *   MP3  Modules are held weakly by the table and strongly only while they are being called.
 *   MP4  Calls deeper than PATH_LEVELS have the path of the level above: a module that calls
 *        itself must not make new strings without end.
 *   MP5  Where nobody reports calls (set_paths_from_frames), the modules are found in the thread's
 *        frames: the first local variable of each frame of the function that calls modules.
 *   MP6  The table is changed with the GIL and under the lock. Without the GIL a module is an
 *        address that the thread's own frame holds, so an entry with this address and a weak
 *        reference that still leads there is the module's.
 */
#include "profiler/stacks/frames_walk.h"
#include "profiler/stacks/pointer_table.h"
#include "profiler/stacks/python_stacks.h"

#include <stdio.h>
#include <string.h>

enum {
    FIRST_MODULES = 64, /* a power of two */
    PATH_LEVELS = 64,
    PATH_BYTES = 4096,
    SEARCH_DEPTH = 8, /* nesting of lists that hold a module */
    SEARCH_VISITS = 20000,
    STEPS = 128 /* a power of two */
};

struct module_level {
    PyObject *module; /* held */
    PyObject *text;   /* held: its path, bytes */
    uint32_t path;    /* the same as a string of the process; 0: no memory for it */
};

/* Paths of modules below several others; of one, the module's entry has it. */
struct module_steps {
    struct {
        uint64_t serial;
        uint32_t under, path;
    } at[STEPS];
};

static bool from_frames; /* atomic; MP5 */

static struct {
    pointer_table modules; /* module_entry; MP6 */
    uint64_t serial;       /* given last */
    PyObject *numbers;     /* class name -> how many were called */
    PyObject *children;    /* "_modules" */
} table;

/* ---- modules ---- */

/* Whether the object, which is alive, is the one a weak reference was made for. */
static bool leads_to(const PyObject *weak, const PyObject *module)
{
    return ((const PyWeakReference *)weak)->wr_object == module;
}

static const char *class_name(PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name;
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

PyObject **module_table_take(size_t *n_weaks)
{
    size_t taken = 0;
    *n_weaks = 0;
    size_t count = table.modules.count;
    const module_entry *entries = (const module_entry *)(void *)table.modules.entries;
    PyObject **weaks = count > 0 ? PyMem_RawMalloc(count * sizeof *weaks) : NULL;
    if (weaks == NULL && count > 0) {
        return NULL; /* entries stay, and are still right: each is compared when it is used */
    }
    stacks_lock();
    for (size_t i = 0; taken < count; i++) {
        if (entries[i].weak != NULL) {
            weaks[taken++] = entries[i].weak;
            Py_XDECREF(entries[i].text);
            PyMem_RawFree(entries[i].site);
        }
    }
    pointer_table_clear(&table.modules, sizeof *entries);
    stacks_unlock();
    if (table.numbers != NULL) {
        PyDict_Clear(table.numbers); /* texts and numbers: nothing runs */
    }
    *n_weaks = taken;
    return weaks;
}

/* The module's entry, or the free one where it belongs. */
static module_entry *find(const PyObject *module)
{
    return pointer_table_find(&table.modules, sizeof(module_entry), module);
}

/* The number of the next module of a class. Returns false with an exception. */
static bool next_number(PyObject *module, uint32_t *number)
{
    if (table.numbers == NULL) {
        table.numbers = PyDict_New();
    }
    PyObject *name = table.numbers != NULL ? PyUnicode_FromString(class_name(module)) : NULL;
    PyObject *before = name != NULL ? PyDict_GetItemWithError(table.numbers, name) : NULL;
    *number = before != NULL ? (uint32_t)PyLong_AsUnsignedLong(before) : 0;
    PyObject *after = PyErr_Occurred() == NULL ? PyLong_FromUnsignedLong(*number + 1ul) : NULL;
    bool kept = after != NULL && PyDict_SetItem(table.numbers, name, after) == 0;
    Py_XDECREF(after);
    Py_XDECREF(name);
    return kept;
}

/* NULL: no memory, or no weak references to it. May leave an exception. */
static module_entry *add(PyObject *module)
{
    module_entry *entry = find(module);
    bool is_new = entry->weak == NULL;
    uint32_t number = 0;
    PyObject *weak = PyWeakref_NewRef(module, NULL);
    if (weak == NULL || !next_number(module, &number)) {
        Py_XDECREF(weak);
        return NULL;
    }
    module_entry old = *entry;
    stacks_lock();
    *entry =
        (module_entry){.address = module, .weak = weak, .serial = ++table.serial, .number = number};
    table.modules.count += is_new;
    stacks_unlock();
    Py_XDECREF(old.weak); /* of one that died here; it has no callback */
    Py_XDECREF(old.text);
    PyMem_RawFree(old.site);
    return entry;
}

module_entry *module_table_entry(PyObject *module)
{
    code_table_sync(stacks_generation());
    if (!pointer_table_reserve(&table.modules, sizeof(module_entry), FIRST_MODULES)) {
        return NULL;
    }
    module_entry *entry = find(module);
    if (entry->weak != NULL && leads_to(entry->weak, module)) {
        return entry;
    }
    int collecting = PyGC_Disable(); /* this may be asked for in the middle of a walk */
    stacks_error error = stacks_error_aside();
    entry = add(module);
    PyErr_Clear();
    stacks_error_back(&error);
    if (collecting) {
        PyGC_Enable();
    }
    return entry;
}

/* The entry of a module, NULL: it has none. The GIL or the lock. */
static inline const module_entry *find_known(const PyObject *module)
{
    const module_entry *entry = table.modules.capacity > 0 ? find(module) : NULL;
    return entry != NULL && entry->weak != NULL && leads_to(entry->weak, module) ? entry : NULL;
}

uint64_t module_table_serial(const PyObject *module, uint32_t *frame)
{
    const module_entry *entry = find_known(module);
    if (entry != NULL && frame != NULL) {
        *frame = __atomic_load_n(&entry->frame, __ATOMIC_RELAXED);
    }
    return entry != NULL ? entry->serial : 0;
}

size_t module_entry_name(const module_entry *entry, PyObject *module, char *text, size_t size)
{
    int length =
        snprintf(text, size, "nn.Module: %s_%u", class_name(module), (unsigned)entry->number);
    return length < 0 ? 0 : (size_t)length < size ? (size_t)length : size - 1;
}

uint32_t module_entry_frame(module_entry *entry, PyObject *module)
{
    if (entry->frame == 0) {
        char name[512];
        size_t length = module_entry_name(entry, module, name, sizeof name);
        uint32_t frame = mtprof_define_frame(name, length, "", 0, 0);
        __atomic_store_n(&entry->frame, frame, __ATOMIC_RELAXED);
    }
    return entry->frame;
}

/* ---- paths ---- */

/* A path while it is made. */
typedef struct path_text {
    char text[PATH_BYTES];
    size_t length;
    int visits; /* how many more modules the search may visit */
    bool cut;   /* the path did not fit, or the search was given up */
} path_text;

static void put(path_text *path, const char *text, size_t length)
{
    size_t room = sizeof path->text - path->length;
    path->cut = path->cut || length > room;
    length = length < room ? length : room;
    memcpy(path->text + path->length, text, length);
    path->length += length;
}

static void put_text(path_text *path, const char *text)
{
    put(path, text, strlen(text));
}

static bool put_name(path_text *path, PyObject *holder, PyObject *module, int depth);

/* The same for one of the holder's children, if it is the module (direct) or holds it. */
static bool put_child(path_text *path, PyObject *name, PyObject *child, PyObject *module, int depth)
{
    size_t before = path->length;
    PyObject *keep = NULL;
    Py_ssize_t length = 0;
    const char *text = code_text(name, &length, &keep);
    put(path, text, (size_t)length);
    Py_XDECREF(keep);
    if (child == module) {
        return true;
    }
    put_text(path, ".");
    Py_INCREF(child);
    bool found = put_name(path, child, module, depth - 1);
    Py_DECREF(child);
    path->length = found ? path->length : before;
    return found;
}

/* Finds the name under which `holder` has a module, directly or in a container, and appends it:
 * "attn", "h.0". False: it does not have it. */
static bool put_name(path_text *path, PyObject *holder, PyObject *module, int depth)
{
    PyObject *children =
        depth > 0 && path->visits > 0 ? PyObject_GetAttr(holder, table.children) : NULL;
    if (children == NULL || !PyDict_Check(children)) {
        PyErr_Clear();
        Py_XDECREF(children);
        return false;
    }
    bool found = false;
    for (int direct = 1; direct >= 0 && !found; direct--) { /* own children first */
        Py_ssize_t at = 0;
        PyObject *name = NULL;
        PyObject *child = NULL;
        while (!found && PyDict_Next(children, &at, &name, &child)) {
            path->visits--;
            if (PyUnicode_Check(name) && child != Py_None && (direct != 0) == (child == module)) {
                found = put_child(path, name, child, module, depth);
            }
        }
    }
    Py_DECREF(children);
    return found;
}

/* The path of a module called from a level (NULL: the outermost call), as bytes. */
static PyObject *make_path(const module_level *above, PyObject *module)
{
    path_text path = {.length = 0, .visits = SEARCH_VISITS};
    if (above == NULL) {
        put_text(&path, "TOP");
    } else {
        put(&path, PyBytes_AS_STRING(above->text), (size_t)PyBytes_GET_SIZE(above->text));
        /* The search for a name runs user code, which may leave `above` or rename a class: so
         * `above` is not used after it, and the class's name not before it. */
        if (!put_name(&path, above->module, module, SEARCH_DEPTH)) {
            path.cut = path.cut || path.visits <= 0;
            put_text(&path, class_name(module)); /* no attribute: a variable, an argument */
        }
    }
    put_text(&path, "(");
    put_text(&path, class_name(module));
    put_text(&path, ")::forward.");
    if (path.cut) {
        mtprof_count_cut(1);
    }
    return PyBytes_FromStringAndSize(path.text, (Py_ssize_t)path.length);
}

/* The path of a module below a level, as it was last time where the same level called it. A new
 * reference; NULL with an exception. */
static PyObject *path_below(const module_level *above, PyObject *module, uint32_t *id)
{
    uint32_t under = above != NULL ? above->path : 0;
    const module_entry *known = module_table_entry(module);
    if (known != NULL && known->text != NULL && known->under == under) {
        *id = known->path;
        return Py_NewRef(known->text);
    }
    PyObject *text = make_path(above, module);
    if (text == NULL) {
        return NULL;
    }
    *id = mtprof_intern(PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text));
    module_entry *entry = module_table_entry(module); /* looking for names may have moved it */
    if (entry != NULL) {
        PyObject *old = entry->text;
        stacks_lock();
        entry->text = Py_NewRef(text);
        entry->under = under;
        entry->path = *id;
        stacks_unlock();
        Py_XDECREF(old);
    }
    return text;
}

/* ---- modules in the frames (MP5) ---- */

void module_steps_free(module_steps *steps)
{
    PyMem_RawFree(steps);
}

static size_t step_of(uint64_t serial, uint32_t under)
{
    return (size_t)(((serial ^ (uint64_t)under << 32) * 0x9E3779B97F4A7C15u) >> 32) & (STEPS - 1);
}

/* The path of a module below another path, if it is known. The GIL or the lock. */
static bool known_step(const module_steps *steps, const PyObject *module, uint32_t *path)
{
    const module_entry *entry = find_known(module);
    if (entry == NULL) {
        return false;
    }
    if (entry->text != NULL && entry->under == *path) {
        *path = entry->path;
        return true;
    }
    size_t at = step_of(entry->serial, *path);
    bool known =
        steps != NULL && steps->at[at].serial == entry->serial && steps->at[at].under == *path;
    *path = known ? steps->at[at].path : 0;
    return known;
}

/* Remembers it, for a module that several others call in turn. */
static void keep_step(stacks_thread *thread, PyObject *module, uint32_t under, uint32_t path)
{
    const module_entry *entry = find_known(module);
    if (thread->steps == NULL) {
        thread->steps = PyMem_RawCalloc(1, sizeof *thread->steps);
    }
    if (entry != NULL && thread->steps != NULL) {
        size_t at = step_of(entry->serial, under);
        thread->steps->at[at].serial = entry->serial;
        thread->steps->at[at].under = under;
        thread->steps->at[at].path = path;
    }
}

/* The path of all of them, the outermost last: makes what is not known, which may run Python code.
 * `text` gets its text, a new reference; NULL: no memory. */
static uint32_t make_steps(stacks_thread *thread, PyObject *const *modules, uint32_t count,
                           PyObject **text)
{
    module_level above = {.module = NULL};
    PyObject *held[PATH_LEVELS];
    for (uint32_t i = 0; i < count; i++) {
        held[i] = Py_NewRef(modules[i]);
    }
    for (uint32_t i = count; i > 0; i--) {
        module_level level = {.module = held[i - 1]};
        level.text = path_below(i < count ? &above : NULL, level.module, &level.path);
        Py_XDECREF(above.text);
        if (level.text != NULL) {
            keep_step(thread, level.module, above.path, level.path);
        }
        above = level;
        if (level.text == NULL) {
            break;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        Py_DECREF(held[i]); /* the frames hold them */
    }
    *text = above.text;
    return above.path;
}

/* The same where an exception and a collection would be out of place. */
static uint32_t make_steps_quietly(stacks_thread *thread, PyObject *const *modules, uint32_t count)
{
    int collecting = PyGC_Disable();
    stacks_error error = stacks_error_aside();
    PyObject *text = NULL;
    uint32_t path = make_steps(thread, modules, count, &text);
    if (text == NULL) {
        mtprof_count_cut(1);
    }
    Py_XDECREF(text);
    PyErr_Clear();
    stacks_error_back(&error);
    if (collecting) {
        PyGC_Enable();
    }
    return path;
}

/* The path of all of them from what is known; LOOK_NEEDS_GIL: it is not. */
static uint32_t known_steps(const stacks_thread *thread, PyObject *const *modules, uint32_t count,
                            bool has_gil)
{
    uint32_t path = 0;
    if (!has_gil) {
        stacks_lock();
    }
    bool known = code_table_is_of(stacks_generation());
    for (uint32_t i = count; i > 0 && known; i--) {
        known = known_step(thread->steps, modules[i - 1], &path);
    }
    if (!has_gil) {
        stacks_unlock();
    }
    return known ? path : LOOK_NEEDS_GIL;
}

bool module_path_in_frames(void)
{
    const stacks_thread *thread = stacks_thread_if_any();
    return __atomic_load_n(&from_frames, __ATOMIC_RELAXED) &&
           (thread == NULL || thread->n_levels == 0);
}

uint32_t module_path_look(PyThreadState *python, bool has_gil)
{
    const PyCodeObject *code = code_table_module_code();
    stacks_thread *thread = stacks_thread_mine();
    if (code == NULL || thread == NULL || thread->busy != 0) {
        return 0;
    }
    thread->busy++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    PyObject *modules[PATH_LEVELS];
    uint32_t count = frames_first_locals(python, code, modules, PATH_LEVELS); /* MP4 */
    uint32_t path = count > 0 ? known_steps(thread, modules, count, has_gil) : 0;
    if (path == LOOK_NEEDS_GIL && has_gil) {
        path = make_steps_quietly(thread, modules, count);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->busy--;
    return path;
}

/* ---- calls ---- */

uint32_t module_path_entered(void)
{
    const stacks_thread *thread = stacks_thread_if_any();
    return thread != NULL && thread->n_levels > 0 ? thread->levels[thread->n_levels - 1].path : 0;
}

static bool reserve_level(stacks_thread *thread)
{
    if (thread->n_levels < thread->levels_capacity) {
        return true;
    }
    uint32_t capacity = thread->levels_capacity == 0 ? 16 : thread->levels_capacity * 2;
    module_level *larger = PyMem_RawRealloc(thread->levels, capacity * sizeof *larger);
    if (larger != NULL) {
        thread->levels = larger;
        thread->levels_capacity = capacity;
    }
    return larger != NULL;
}

/* Everything from a level on is over. */
static void leave_levels(stacks_thread *thread, uint32_t keep)
{
    while (thread->n_levels > keep) {
        module_level gone = thread->levels[--thread->n_levels];
        Py_DECREF(gone.text);
        Py_DECREF(gone.module); /* may run Python code: the level is off by now */
    }
}

static PyObject *module_active(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mtprof_wants(MTPROF_WANT_MODULES));
}

static PyObject *module_enter(PyObject *Py_UNUSED(self), PyObject *module)
{
    stacks_thread *thread = stacks_thread_mine();
    if (thread == NULL || !reserve_level(thread)) {
        return PyErr_NoMemory();
    }
    uint32_t depth = thread->n_levels;
    const module_level *above = depth > 0 ? &thread->levels[depth - 1] : NULL;
    module_level level = {.module = module};
    if (depth >= PATH_LEVELS) { /* MP4 */
        level.path = above->path;
        level.text = Py_NewRef(above->text);
    } else {
        level.text = path_below(above, module, &level.path);
        if (level.text == NULL) {
            return NULL;
        }
    }
    if (thread->n_levels != depth || !reserve_level(thread)) {
        Py_DECREF(level.text); /* the search for a name entered a module and did not leave it */
        PyErr_SetString(PyExc_RuntimeError, "enter: a module was entered while a name was sought");
        return NULL;
    }
    Py_INCREF(module);
    thread->levels[thread->n_levels++] = level;
    return PyLong_FromUnsignedLong(depth);
}

static PyObject *module_leave(PyObject *Py_UNUSED(self), PyObject *token)
{
    unsigned long depth = PyLong_AsUnsignedLong(token);
    if (depth == (unsigned long)-1 && PyErr_Occurred() != NULL) {
        return NULL;
    }
    stacks_thread *thread = stacks_thread_if_any();
    if (thread != NULL && depth < thread->n_levels) {
        leave_levels(thread, (uint32_t)depth);
    }
    Py_RETURN_NONE;
}

static PyObject *module_path(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    stacks_thread *thread = stacks_thread_mine();
    if (thread == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *text = NULL;
    if (module_path_in_frames()) {
        const PyCodeObject *code = code_table_module_code();
        PyObject *modules[PATH_LEVELS];
        uint32_t count =
            code != NULL ? frames_first_locals(PyThreadState_Get(), code, modules, PATH_LEVELS) : 0;
        (void)make_steps(thread, modules, count, &text);
    } else if (thread->n_levels > 0) {
        text = Py_NewRef(thread->levels[thread->n_levels - 1].text);
    }
    if (text == NULL) {
        return PyErr_Occurred() == NULL ? Py_NewRef(Py_None) : NULL;
    }
    PyObject *path =
        PyUnicode_DecodeUTF8(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), "replace");
    Py_DECREF(text);
    return path;
}

static PyObject *set_paths_from_frames(PyObject *Py_UNUSED(self), PyObject *on)
{
    int yes = PyObject_IsTrue(on);
    if (yes < 0) {
        return NULL;
    }
    __atomic_store_n(&from_frames, yes != 0, __ATOMIC_RELAXED);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"module_active", module_active, METH_NOARGS,
     "module_active() -> bool: whether a recording wants the path of modules."},
    {"module_enter", module_enter, METH_O,
     "module_enter(module) -> token: this thread calls a module now; leave with the token."},
    {"module_leave", module_leave, METH_O,
     "module_leave(token): the call is over, and all that were entered since."},
    {"module_path", module_path, METH_NOARGS,
     "module_path() -> str or None: the path of the modules this thread is in."},
    {"set_paths_from_frames", set_paths_from_frames, METH_O,
     "set_paths_from_frames(on): finds modules in the frames of threads that report none."},
    {NULL, NULL, 0, NULL},
};

py_part module_path_part;
int module_path_part(PyObject *module)
{
    table.children = PyUnicode_InternFromString("_modules");
    return table.children == NULL ? -1 : PyModule_AddFunctions(module, functions);
}
