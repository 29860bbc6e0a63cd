/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of scopes, see scope_sites.h.
 *
 *   SS1  A site lives as long as the process, so only names that are used again get one, at most
 *        SITES_MAX. Names that differ each time (f"batch {i}") go through
 *        mtprof_begin_named(), which keeps them with the recording.
 *   SS2  The cache holds references to str objects: an address in it is that of a living str.
 */
#include "profiler/scopes/scope_sites.h"

#include <stdlib.h>
#include <string.h>

enum {
    SITES_MAX = 16384
};

scope_entry scope_cache[SCOPE_CACHE];

/* Sites by text: a dict of str or bytes to the site's address. */
static PyObject *sites_by_text;
static uint32_t n_sites;

bool scope_text(PyObject *name, const char **text, size_t *length, PyObject **owner)
{
    Py_ssize_t size = 0;
    *owner = NULL;
    if (PyUnicode_Check(name)) {
        *text = PyUnicode_AsUTF8AndSize(name, &size);
        if (*text == NULL) {
            /* Lone surrogates: bytes that are no UTF-8; exports show and count them. */
            PyErr_Clear();
            *owner = PyUnicode_AsEncodedString(name, "utf-8", "surrogatepass");
        }
    } else {
        *owner = Py_NewRef(name);
    }
    if (*owner != NULL) {
        *text = PyBytes_AS_STRING(*owner);
        size = PyBytes_GET_SIZE(*owner);
    } else if (*text == NULL) {
        PyErr_Clear();
        return false;
    }
    *length = (size_t)size;
    return true;
}

static mtprof_site *site_new(PyObject *name)
{
    const char *text = NULL;
    size_t length = 0;
    PyObject *owner = NULL;
    mtprof_site *site = NULL;
    if (n_sites >= SITES_MAX || !scope_text(name, &text, &length, &owner)) {
        return NULL;
    }
    if (memchr(text, 0, length) == NULL) {
        site = calloc(1, sizeof *site + length + 1);
    }
    if (site != NULL) {
        char *copy = (char *)(site + 1);
        memcpy(copy, text, length + 1);
        site->struct_size = sizeof *site;
        site->flags = MTPROF_KIND_SCOPE;
        site->name = copy;
        site->file = "";
        n_sites++;
    }
    Py_XDECREF(owner);
    return site;
}

/* The site of a text, from the dict or new. `name` is an exact str or bytes: nothing runs. */
static mtprof_site *site_by_text(PyObject *name)
{
    if (sites_by_text == NULL && (sites_by_text = PyDict_New()) == NULL) {
        PyErr_Clear();
        return NULL;
    }
    mtprof_site *site = NULL;
    PyObject *known = PyDict_GetItemWithError(sites_by_text, name);
    if (known != NULL) {
        site = PyLong_AsVoidPtr(known);
    } else if (PyErr_Occurred() == NULL && (site = site_new(name)) != NULL) {
        PyObject *address = PyLong_FromVoidPtr(site);
        /* Forgotten on failure: it may be known to the recorder by now, never freed. */
        if (address == NULL || PyDict_SetItem(sites_by_text, name, address) != 0) {
            site = NULL;
        }
        Py_XDECREF(address);
    }
    PyErr_Clear();
    return site;
}

/* A subclass has a __hash__ of its own, and attributes that the dict would keep: its text alone. */
static PyObject *exact_text(PyObject *name)
{
    if (PyUnicode_CheckExact(name) || PyBytes_CheckExact(name)) {
        return Py_NewRef(name);
    }
    return PyUnicode_Check(name)
               ? PyUnicode_FromObject(name)
               : PyBytes_FromStringAndSize(PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name));
}

static void remember(PyObject *name, mtprof_site *site)
{
    scope_entry *place = scope_place(name);
    PyObject *old = place->name;
    place->name = Py_NewRef(name);
    place->site = site;
    Py_XDECREF(old);
}

mtprof_site *scope_site(PyObject *name)
{
    const scope_entry *place = scope_place(name);
    if (place->name == name && place->site != NULL) {
        return place->site;
    }
    PyObject *text = exact_text(name);
    if (text == NULL) {
        PyErr_Clear();
        return NULL;
    }
    mtprof_site *site = site_by_text(text);
    Py_DECREF(text);
    if (site != NULL && PyUnicode_CheckExact(name)) {
        remember(name, site);
    }
    return site;
}

mtprof_site *scope_site_again(PyObject *name)
{
    const scope_entry *place = scope_place(name);
    if (place->name == name) {
        return scope_site(name); /* used for the second time: likely to come again (SS1) */
    }
    if (PyUnicode_CheckExact(name)) {
        remember(name, NULL);
    }
    return NULL;
}

mtprof_token scope_begin_slow(PyObject *name)
{
    const char *text = NULL;
    size_t length = 0;
    PyObject *owner = NULL;
    mtprof_site *site = scope_site_again(name);
    if (site != NULL) {
        return mtprof_begin(site);
    }
    mtprof_token token = 0;
    if (scope_text(name, &text, &length, &owner)) {
        token = mtprof_begin_named(text, length, MTPROF_KIND_SCOPE);
    }
    Py_XDECREF(owner);
    return token;
}

uint32_t scope_intern_here(PyObject *text)
{
    const char *utf8 = NULL;
    size_t length = 0;
    PyObject *owner = NULL;
    uint32_t id = 0;
    if (scope_text(text, &utf8, &length, &owner)) {
        id = mtprof_intern_here(utf8, length);
    }
    Py_XDECREF(owner);
    return id;
}

/* ---- metadata ---- */

int scope_metadata_check(PyObject *key, PyObject *value)
{
    if (PyUnicode_Check(value) || PyLong_Check(value) || PyFloat_Check(value) ||
        PyIndex_Check(value) || PyList_Check(value) || PyTuple_Check(value) || value == Py_None) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError,
                 "metadata %R must be a str, int, float, bool or a list of them, not %R", key,
                 value);
    return -1;
}

static void metadata_text(mtprof_token token, uint32_t key, PyObject *value)
{
    const char *text = NULL;
    size_t length = 0;
    PyObject *owner = NULL;
    PyObject *shown = PyUnicode_Check(value) ? Py_NewRef(value) : PyObject_Str(value);
    if (shown != NULL && scope_text(shown, &text, &length, &owner)) {
        mtprof_meta_text(token, key, text, length);
    }
    PyErr_Clear();
    Py_XDECREF(owner);
    Py_XDECREF(shown);
}

static void metadata_one(mtprof_token token, uint32_t key, PyObject *value)
{
    if (PyBool_Check(value)) {
        mtprof_meta_bool(token, key, value == Py_True);
    } else if (PyFloat_Check(value)) {
        mtprof_meta_real(token, key, PyFloat_AS_DOUBLE(value));
    } else if (PyIndex_Check(value)) {
        int overflow = 0;
        PyObject *integer = PyNumber_Index(value);
        long long number = integer != NULL ? PyLong_AsLongLongAndOverflow(integer, &overflow) : 0;
        if (integer != NULL && overflow == 0) {
            mtprof_meta_int(token, key, number);
        } else {
            PyErr_Clear();
            metadata_text(token, key, value);
        }
        Py_XDECREF(integer);
    } else {
        metadata_text(token, key, value);
    }
}

void scope_metadata(mtprof_token token, PyObject *metadata)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t position = 0;
    if (token == 0) {
        return;
    }
    /* Values may run Python code (__str__): the dict is then the object's own, not the user's. */
    while (PyDict_Next(metadata, &position, &key, &value)) {
        uint32_t id = PyUnicode_Check(key) ? scope_intern_here(key) : 0;
        if (id != 0) {
            PyObject *held = Py_NewRef(value);
            metadata_one(token, id, held);
            Py_DECREF(held);
        }
    }
}
