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

/* mtprof_recover() of a trace, and a model of what it wrote. That both say the same is the matter
 * of test_recover_random, which makes damage and not nonsense. */
void use_recover(const void *bytes, size_t size);

#endif /* FUZZ_USE_FILE_H */
