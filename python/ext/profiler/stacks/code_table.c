/* SPDX-License-Identifier: Apache-2.0
 *
 * Code objects that stacks and traced calls have met, and what is shown of them.
 *
 *     place (an instruction) ──► frame of libmtprof: file, qualified name, line
 *     code object            ──► of ours? a module's call? its site
 *
 *   CT1  A place is an address inside a code object, and the table holds the object: while a place
 *        is known, nothing else can lie there.
 *   CT2  References are let go when a recording begins, and when results are released. A code
 *        object's end may run Python code (weak references have callbacks), which a look at the
 *        stack must not: they are put aside first, and released by a pending call or by the caller.
 *   CT3  Everything here needs the GIL. Places are changed under the lock too (python_stacks.h), so
 *        that they can be looked up without the GIL.
 */
#include "profiler/stacks/frames_walk.h"
#include "profiler/stacks/pointer_table.h"
#include "profiler/stacks/python_stacks.h"

#include <string.h>

enum {
    FIRST_CODES = 256, /* powers of two */
    FIRST_PLACES = 1024,
    OWN_PATHS = 8
};

typedef struct place_entry {
    const void *place; /* NULL: free */
    uint32_t frame;
} place_entry;

/* References put aside (CT2). */
typedef struct retired {
    struct retired *next;
    pointer_table codes;
    PyObject **weaks;
    size_t n_weaks;
} retired;

static struct {
    uint64_t generation;
    pointer_table codes;  /* code_entry */
    pointer_table places; /* place_entry */
    retired *aside;
    bool release_pending;
    struct {
        char *text;
        size_t length;
    } own[OWN_PATHS];
    size_t n_own;
    PyCodeObject *module_call; /* held until the process ends */
} table;

/* ---- letting go (CT2) ---- */

static void release_one(retired *old)
{
    code_entry *codes = (code_entry *)(void *)old->codes.entries;
    for (size_t i = 0; i < old->codes.capacity; i++) {
        PyMem_RawFree(codes[i].site);
        Py_XDECREF(codes[i].code);
    }
    for (size_t i = 0; i < old->n_weaks; i++) {
        Py_DECREF(old->weaks[i]);
    }
    PyMem_RawFree(codes);
    PyMem_RawFree(old->weaks);
    PyMem_RawFree(old);
}

void code_table_release(void)
{
    while (table.aside != NULL) {
        retired *old = table.aside;
        table.aside = old->next;
        release_one(old);
    }
}

static int release_pending(void *Py_UNUSED(ignored))
{
    table.release_pending = false;
    code_table_release();
    return 0;
}

/* Without memory they simply stay: CT1 still holds. */
static void retire(void)
{
    retired *old = PyMem_RawCalloc(1, sizeof *old);
    if (old == NULL) {
        return;
    }
    old->codes = table.codes;
    old->weaks = module_table_take(&old->n_weaks);
    old->next = table.aside;
    table.aside = old;
    table.codes = (pointer_table){.count = 0};
    stacks_lock();
    pointer_table_clear(&table.places, sizeof(place_entry));
    stacks_unlock();
}

void code_table_sync(uint64_t generation)
{
    if (table.generation == generation) {
        return;
    }
    retire();
    __atomic_store_n(&table.generation, generation, __ATOMIC_RELAXED);
    if (table.aside != NULL && !table.release_pending) {
        table.release_pending = Py_AddPendingCall(release_pending, NULL) == 0;
    }
}

bool code_table_is_of(uint64_t generation)
{
    return __atomic_load_n(&table.generation, __ATOMIC_RELAXED) == generation;
}

void code_table_counts(size_t *codes, size_t *places, size_t *aside)
{
    *codes = table.codes.count;
    *places = table.places.count;
    *aside = 0;
    for (const retired *old = table.aside; old != NULL; old = old->next) {
        *aside += old->codes.count;
    }
}

/* ---- texts ---- */

const char *code_text(PyObject *text, Py_ssize_t *length, PyObject **keep)
{
    *keep = NULL;
    if (PyUnicode_Check(text)) {
        const char *bytes = PyUnicode_AsUTF8AndSize(text, length);
        if (bytes != NULL) {
            return bytes;
        }
        PyErr_Clear(); /* bytes that were no UTF-8 come back as they were */
        *keep = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
        if (*keep == NULL) {
            PyErr_Clear();
            *keep = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
        }
        if (*keep != NULL) {
            *length = PyBytes_GET_SIZE(*keep);
            return PyBytes_AS_STRING(*keep);
        }
        PyErr_Clear();
    }
    *length = 1;
    return "?";
}

/* ---- what is ours ---- */

int code_table_own_path(const char *path, size_t length)
{
    for (size_t i = 0; i < table.n_own; i++) {
        if (table.own[i].length == length && memcmp(table.own[i].text, path, length) == 0) {
            return 0;
        }
    }
    char *copy = table.n_own < OWN_PATHS ? PyMem_RawMalloc(length) : NULL;
    if (copy == NULL) {
        PyErr_Format(PyExc_MemoryError, "mtprof: no room for another folder of its own code");
        return -1;
    }
    memcpy(copy, path, length);
    table.own[table.n_own].text = copy;
    table.own[table.n_own].length = length;
    table.n_own++;
    return 0;
}

int code_table_module_call(PyObject *code)
{
    if (!PyCode_Check(code)) {
        PyErr_Format(PyExc_TypeError, "set_module_call: a code object is needed, not %.200s",
                     Py_TYPE(code)->tp_name);
        return -1;
    }
    Py_INCREF(code);
    Py_XDECREF((PyObject *)__atomic_exchange_n(&table.module_call, (PyCodeObject *)code,
                                               __ATOMIC_ACQ_REL));
    return 0;
}

const PyCodeObject *code_table_module_code(void)
{
    return __atomic_load_n(&table.module_call, __ATOMIC_ACQUIRE);
}

/* Python's own library: its folder without what is installed below it, and code without a file. */
static bool is_library(const char *file, size_t length)
{
    PyObject *folder = PySys_GetObject("_stdlib_dir");
    Py_ssize_t n = 0;
    const char *text =
        folder != NULL && PyUnicode_Check(folder) ? PyUnicode_AsUTF8AndSize(folder, &n) : NULL;
    PyErr_Clear();
    if (length > 0 && file[0] == '<') {
        return true;
    }
    return text != NULL && n > 0 && (size_t)n < length && memcmp(file, text, (size_t)n) == 0 &&
           file[n] == '/' && memmem(file, length, "-packages/", 10) == NULL;
}

static void classify(code_entry *entry)
{
    PyObject *keep = NULL;
    Py_ssize_t length = 0;
    const char *file = code_text(entry->code->co_filename, &length, &keep);
    entry->is_module_call = entry->code == table.module_call;
    for (size_t i = 0; i < table.n_own && !entry->is_module_call && !entry->is_ours; i++) {
        entry->is_ours = (size_t)length > table.own[i].length &&
                         memcmp(file, table.own[i].text, table.own[i].length) == 0;
    }
    entry->is_library = is_library(file, (size_t)length);
    Py_XDECREF(keep);
}

/* ---- entries ---- */

code_entry *code_table_entry(PyCodeObject *code)
{
    if (!pointer_table_reserve(&table.codes, sizeof(code_entry), FIRST_CODES)) {
        return NULL;
    }
    code_entry *entry = pointer_table_find(&table.codes, sizeof *entry, code);
    if (entry->code == NULL) {
        entry->code = (PyCodeObject *)Py_NewRef((PyObject *)code);
        classify(entry);
        table.codes.count++;
    }
    return entry;
}

/* What libmtprof calls the frame; 0: no memory. */
static uint32_t define_frame(PyCodeObject *code, const void *frame)
{
    PyObject *keep_file = NULL;
    PyObject *keep_name = NULL;
    Py_ssize_t file_length = 0;
    Py_ssize_t name_length = 0;
    const char *file = code_text(code->co_filename, &file_length, &keep_file);
    const char *name = code_text(code->co_qualname, &name_length, &keep_name);
    int line = PyCode_Addr2Line(code, frames_offset(frame));
    line = line > 0 ? line : code->co_firstlineno;
    uint32_t id = mtprof_define_frame(name, (size_t)name_length, file, (size_t)file_length,
                                      line > 0 ? (uint32_t)line : 0);
    Py_XDECREF(keep_file);
    Py_XDECREF(keep_name);
    return id;
}

uint32_t code_table_place(const void *place, const void *frame)
{
    if (!pointer_table_reserve(&table.places, sizeof(place_entry), FIRST_PLACES)) {
        return PLACE_UNKNOWN;
    }
    place_entry *found = pointer_table_find(&table.places, sizeof *found, place);
    if (found->place != NULL) {
        return found->frame;
    }
    PyCodeObject *code = frames_code(frame);
    const code_entry *entry = code_table_entry(code); /* CT1 */
    if (entry == NULL) {
        return PLACE_UNKNOWN;
    }
    uint32_t id = PLACE_HIDDEN;
    if (entry->is_module_call) {
        id = PLACE_MODULE;
    } else if (!entry->is_ours) {
        id = define_frame(code, frame);
        if (id == 0) {
            return PLACE_UNKNOWN;
        }
    }
    stacks_lock();
    *found = (place_entry){place, id};
    table.places.count++;
    stacks_unlock();
    return id;
}

uint32_t code_table_known(const void *place)
{
    if (table.places.capacity == 0) {
        return PLACE_UNKNOWN;
    }
    const place_entry *found = pointer_table_find(&table.places, sizeof *found, place);
    return found->place != NULL ? found->frame : PLACE_UNKNOWN;
}
