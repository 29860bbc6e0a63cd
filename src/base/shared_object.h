/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that are opened at run time.
 */
#ifndef BASE_SHARED_OBJECT_H
#define BASE_SHARED_OBJECT_H

#include <stdbool.h>

/* A handle, or NULL. A fork on another thread waits until the library is open: a child that was
 * made in the midst of it would have a dynamic loader that is not fit for use. */
void *mtb_open_shared(const char *name);

/* Stores a function's address, which dlsym gives as an object's, in *slot. False: there is none. */
bool mtb_find_symbol(void *handle, const char *name, void *slot);

#endif /* BASE_SHARED_OBJECT_H */
