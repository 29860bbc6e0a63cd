/* SPDX-License-Identifier: Apache-2.0
 *
 * What takes paths, not bytes: checking and recovering.
 */
#ifndef FUZZ_USE_FILE_H
#define FUZZ_USE_FILE_H

#include <mtprof/model.h>

#include <stddef.h>

/* mtprof_check() of a file with these bytes: it may find anything, and never fails. */
void use_check(const void *bytes, size_t size);

/* mtprof_recover() of a trace: what it writes has the events of the model, which is of the same
 * bytes and covers all that is saved, at the same times. */
void use_recover(const void *bytes, size_t size, mtprof_model *model);

#endif /* FUZZ_USE_FILE_H */
