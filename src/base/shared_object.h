/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening libraries at run time.
 */
#ifndef BASE_SHARED_OBJECT_H
#define BASE_SHARED_OBJECT_H

#include <stdbool.h>

/* A handle, or NULL. A fork on another thread waits until the library is open: a child forked in
 * between would have a dynamic loader in an inconsistent state. */
void *mtb_open_shared(const char *name);

/* A handle of a library that the process has loaded already, by its SONAME; NULL: it has not. */
void *mtb_find_loaded(const char *name);

/* Stores a function's address in *slot, without casting the object pointer that dlsym returns.
 * False: there is no such symbol. */
bool mtb_find_symbol(void *handle, const char *name, void *slot);

/* Between these two a fork on another thread waits. For calls into such a library that hold locks
 * of its own for a while: a child would find them locked for ever. Do not nest them, nor call
 * mtb_open_shared() between them. */
void mtb_hold_forks(void);
void mtb_release_forks(void);

#endif /* BASE_SHARED_OBJECT_H */
