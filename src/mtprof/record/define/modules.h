/* SPDX-License-Identifier: Apache-2.0
 *
 * Which code lies where: what makes native addresses readable after the process is gone.
 */
#ifndef MTPROF_RECORD_DEFINE_MODULES_H
#define MTPROF_RECORD_DEFINE_MODULES_H

#include "mtprof/record/recording.h"

/* Held while the loader is asked for what is loaded. */
extern mtb_lock mtprof__loader_lock;

/* Writes DEF_MODULE for every piece of code that is loaded right now. */
void mtprof__define_modules(mtprof__recording *recording);

#endif /* MTPROF_RECORD_DEFINE_MODULES_H */
