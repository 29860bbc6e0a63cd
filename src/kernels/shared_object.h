/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that are opened at run time.
 */
#ifndef KERNELS_SHARED_OBJECT_H
#define KERNELS_SHARED_OBJECT_H

#include <stdbool.h>

/* A handle, or NULL. A fork on another thread waits until the library is open: a child that was
 * made in the midst of it would have a dynamic loader that is not fit for use. */
void *mt__open_shared(const char *name);

/* Stores a function's address, which dlsym gives as an object's, in *slot. False: there is none. */
bool mt__find_symbol(void *handle, const char *name, void *slot);

#endif /* KERNELS_SHARED_OBJECT_H */
