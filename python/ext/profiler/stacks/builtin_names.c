/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of traced calls, see builtin_names.h.
 *
 * Built-in functions are known by their definition and the class they are bound to. Neither is
 * held, so both names are compared each time: an address that was used again cannot give a wrong
 * name.
 */
#include "profiler/stacks/builtin_names.h"

#include "profiler/stacks/frames_walk.h"
#include "profiler/stacks/python_stacks.h"

#include <frameobject.h>
#include <stdio.h>
#include <string.h>

enum {
    FIRST_BUILTINS = 256, /* a power of two */
    MOST_BUILTINS = 1 << 15,
    NAME_BYTES = 256
};

typedef struct builtin {
    const PyMethodDef *definition; /* NULL: free */
    const PyTypeObject *bound_to;  /* NULL: a function of a module */
    size_t name_length;            /* of `name`, which may be cut */
    bool is_own, is_runtime;       /* of mtprof, of mindtorch_v2 */
    mtprof_site site;
    char name[NAME_BYTES];
} builtin;

static struct {
    builtin **at; /* open addressing, at most half full; the GIL's */
    size_t count, capacity;
    PyObject *own_module; /* borrowed: it lives as long as the process */
} table;

static const char function_text[] = "<built-in function ";
static const char method_text[] = "<built-in method ";

void builtin_names_hide(PyObject *module)
{
    table.own_module = module;
}

static size_t slot_of(const PyMethodDef *definition, const PyTypeObject *bound_to, size_t capacity)
{
    uint64_t hash = ((uint64_t)(uintptr_t)definition ^ (uint64_t)(uintptr_t)bound_to << 7) *
                    0x9E3779B97F4A7C15u;
    return (size_t)(hash >> 32) & (capacity - 1);
}

static builtin **find(builtin **at, size_t capacity, const PyMethodDef *definition,
                      const PyTypeObject *bound_to)
{
    size_t slot = slot_of(definition, bound_to, capacity);
    while (at[slot] != NULL &&
           (at[slot]->definition != definition || at[slot]->bound_to != bound_to)) {
        slot = (slot + 1) & (capacity - 1);
    }
    return &at[slot];
}

static bool grow(void)
{
    if (table.count * 2 < table.capacity) {
        return true;
    }
    size_t capacity = table.capacity == 0 ? FIRST_BUILTINS : table.capacity * 2;
    builtin **larger = capacity <= MOST_BUILTINS ? PyMem_RawCalloc(capacity, sizeof *larger) : NULL;
    if (larger == NULL) {
        return false;
    }
    for (size_t i = 0; i < table.capacity; i++) {
        if (table.at[i] != NULL) {
            *find(larger, capacity, table.at[i]->definition, table.at[i]->bound_to) = table.at[i];
        }
    }
    PyMem_RawFree(table.at);
    table.at = larger;
    table.capacity = capacity;
    return true;
}

static void write_name(char *text, size_t size, const char *name, const PyTypeObject *bound_to)
{
    int length = bound_to == NULL ? snprintf(text, size, "%s%s>", function_text, name)
                                  : snprintf(text, size, "%s%s of %s object>", method_text, name,
                                             bound_to->tp_name);
    if (length < 0 || (size_t)length >= size) {
        mtprof_count_cut(1);
    }
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Whose function it is, by the module it says it is from. */
static bool is_from(PyObject *function, const char *package)
{
    PyObject *module = ((PyCFunctionObject *)function)->m_module;
    const char *name = module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    PyErr_Clear();
    return name != NULL && starts_with(name, package);
}

static builtin *make(PyObject *function, const PyMethodDef *definition,
                     const PyTypeObject *bound_to)
{
    builtin *fresh = PyMem_RawCalloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return NULL;
    }
    fresh->definition = definition;
    fresh->bound_to = bound_to;
    fresh->is_own =
        bound_to == NULL ? is_from(function, "mtprof.") : starts_with(bound_to->tp_name, "mtprof.");
    fresh->is_runtime = bound_to == NULL ? is_from(function, "mindtorch_v2.")
                                         : starts_with(bound_to->tp_name, "mindtorch_v2.");
    write_name(fresh->name, sizeof fresh->name, definition->ml_name, bound_to);
    fresh->name_length = strlen(fresh->name);
    fresh->site = (mtprof_site){
        .struct_size = sizeof fresh->site, .flags = MTPROF_KIND_FUNCTION, .name = fresh->name};
    return fresh;
}

/* Whether the stored name still matches the definition and the class. */
static bool is_current(const builtin *known)
{
    size_t before = known->bound_to == NULL ? sizeof function_text - 1 : sizeof method_text - 1;
    size_t length = strlen(known->definition->ml_name);
    if (known->name_length + 1 == sizeof known->name) {
        return true; /* cut, so it cannot be compared */
    }
    const char *rest = known->name + before + length;
    if (before + length >= known->name_length ||
        memcmp(known->name + before, known->definition->ml_name, length) != 0) {
        return false;
    }
    if (known->bound_to == NULL) {
        return strcmp(rest, ">") == 0;
    }
    size_t type = strlen(known->bound_to->tp_name);
    return strncmp(rest, " of ", 4) == 0 &&
           strncmp(rest + 4, known->bound_to->tp_name, type) == 0 &&
           strcmp(rest + 4 + type, " object>") == 0;
}

mtprof_site *builtin_site(PyObject *function, bool called_by_us)
{
    static mtprof_site any = MTPROF_SITE_INIT("<built-in function>", MTPROF_KIND_FUNCTION);
    if (function == NULL || !PyCFunction_Check(function)) {
        return called_by_us ? NULL : &any;
    }
    PyObject *self = ((PyCFunctionObject *)function)->m_self;
    if (self != NULL && self == table.own_module) {
        return NULL;
    }
    const PyMethodDef *definition = ((PyCFunctionObject *)function)->m_ml;
    const PyTypeObject *bound_to = self == NULL || PyModule_Check(self) ? NULL : Py_TYPE(self);
    if (!grow()) {
        return called_by_us ? NULL : &any;
    }
    builtin **place = find(table.at, table.capacity, definition, bound_to);
    if (*place == NULL || !is_current(*place)) {
        builtin *fresh = make(function, definition, bound_to);
        if (fresh == NULL) {
            return called_by_us ? NULL : &any;
        }
        table.count += *place == NULL;
        PyMem_RawFree(*place);
        *place = fresh;
    }
    bool hidden = (*place)->is_own || (called_by_us && !(*place)->is_runtime);
    return hidden ? NULL : &(*place)->site;
}

/* ---- Python's functions ---- */

/* The length of the longest folder of sys.path that the path begins with. */
static size_t longest_prefix(const char *file, size_t length)
{
    PyObject *path = PySys_GetObject("path");
    size_t longest = 0;
    for (Py_ssize_t i = 0; path != NULL && PyList_Check(path) && i < PyList_GET_SIZE(path); i++) {
        PyObject *item = PyList_GET_ITEM(path, i);
        Py_ssize_t n = 0;
        const char *folder = PyUnicode_Check(item) ? PyUnicode_AsUTF8AndSize(item, &n) : NULL;
        if (folder == NULL) {
            PyErr_Clear();
            continue;
        }
        while (n > 0 && folder[n - 1] == '/') {
            n--;
        }
        if ((size_t)n > longest && (size_t)n + 1 < length && file[n] == '/' &&
            memcmp(file, folder, (size_t)n) == 0) {
            longest = (size_t)n;
        }
    }
    return longest > 0 ? longest + 1 : 0;
}

size_t call_name(PyCodeObject *code, char *text, size_t size)
{
    PyObject *keep_file = NULL;
    PyObject *keep_name = NULL;
    Py_ssize_t file_length = 0;
    Py_ssize_t name_length = 0;
    const char *file = code_text(code->co_filename, &file_length, &keep_file);
    const char *name = code_text(code->co_name, &name_length, &keep_name);
    size_t prefix = longest_prefix(file, (size_t)file_length);
    int length = snprintf(text, size, "%.*s(%d): %.*s", (int)((size_t)file_length - prefix),
                          file + prefix, code->co_firstlineno, (int)name_length, name);
    Py_XDECREF(keep_file);
    Py_XDECREF(keep_name);
    size_t written = length > 0 ? (size_t)length : 0;
    return written < size ? written : size - 1;
}

PyObject *call_first_argument(PyFrameObject *frame)
{
    PyObject *self = NULL;
#if PY_VERSION_HEX >= 0x030C0000
    self = PyFrame_GetVarString(frame, "self");
#else
    PyObject *locals = PyFrame_GetLocals(frame);
    self = locals != NULL ? Py_XNewRef(PyDict_GetItemString(locals, "self")) : NULL;
    Py_XDECREF(locals);
#endif
    PyErr_Clear();
    return self;
}
