/* SPDX-License-Identifier: Apache-2.0
 *
 * Every exporter over a fuzzed model.
 */
#ifndef FUZZ_USE_EXPORTS_H
#define FUZZ_USE_EXPORTS_H

#include <mtprof/model.h>

#include <stdint.h>

/*
 * What is written is looked at for zero bytes where texts have none, and dropped. An export of a
 * model costs more than reading it, so a fuzzer that is to be fast takes one at a time: `which` 0
 * means all of them, otherwise the one (and its options) that it picks.
 */
void use_exports(mtprof_model *model, uint8_t which);

#endif /* FUZZ_USE_EXPORTS_H */
