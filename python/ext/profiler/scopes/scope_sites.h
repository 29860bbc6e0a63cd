/* SPDX-License-Identifier: Apache-2.0
 *
 * From a Python name to a site. A str object that is seen again (a literal in a loop) gets
 * a site of its own, found by its address; others are recorded by their text.
 */
#ifndef PYTHON_EXT_PROFILER_SCOPES_SCOPE_SITES_H
#define PYTHON_EXT_PROFILER_SCOPES_SCOPE_SITES_H

#include "profiler/profiler_state.h"

#define SCOPE_WANTS                                                                            \
    ((uint32_t)MTPROF_WANT_SCOPES | (uint32_t)MTPROF_WANT_OPS | (uint32_t)MTPROF_WANT_DEVICE | \
     (uint32_t)MTPROF_WANT_RUNTIME)

enum {
    SCOPE_CACHE = 2048 /* str objects remembered by address; each is held by a reference */
};

typedef struct scope_entry {
    PyObject *name;    /* an exact str, or NULL */
    mtprof_site *site; /* NULL: seen once */
} scope_entry;

extern scope_entry scope_cache[SCOPE_CACHE];

/* The site of a str or bytes, made where there is none. NULL without an exception: it has to be
 * recorded by its text (a zero byte in it, no memory, too many names). */
mtprof_site *scope_site(PyObject *name);

/* The same for a name that was met before (SS1); NULL: this is the first time, or as above. */
mtprof_site *scope_site_again(PyObject *name);

/* Begins a scope of this name (str or bytes). 0: not recorded. Never raises. */
mtprof_token scope_begin_slow(PyObject *name);

static inline scope_entry *scope_place(const PyObject *name)
{
    uintptr_t address = (uintptr_t)name;
    return &scope_cache[(address >> 4 ^ address >> 15) % SCOPE_CACHE];
}

static inline mtprof_token scope_begin(PyObject *name)
{
    const scope_entry *place = scope_place(name);
    if (place->name == name && place->site != NULL) {
        return mtprof_begin(place->site);
    }
    return scope_begin_slow(name);
}

/* The bytes of a str or bytes; *owner is to be released. false without an exception: no memory. */
bool scope_text(PyObject *name, const char **text, size_t *length, PyObject **owner);

/* The id of a text in the running recording (mtprof_intern_here), 0: none. */
uint32_t scope_intern_here(PyObject *text);

/* Attaches a dict of texts, numbers and truth values to what a token stands for. Never raises. */
void scope_metadata(mtprof_token token, PyObject *metadata);

/* Is it something scope_metadata() can write? -1: TypeError, naming key and value. */
int scope_metadata_check(PyObject *key, PyObject *value);

/* Begins a scope with a list of inputs, where those are recorded. Never raises. */
mtprof_token scope_begin_inputs(PyObject *name, PyObject *const *inputs, Py_ssize_t n_inputs);

#endif /* PYTHON_EXT_PROFILER_SCOPES_SCOPE_SITES_H */
