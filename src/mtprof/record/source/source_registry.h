/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller's view of event sources (include/mtprof/source.h is the plug-in's).
 *
 * Callbacks of a source are made one at a time (its `calling` mutex) and with no mtb_lock held.
 */
#ifndef MTPROF_RECORD_SOURCE_SOURCE_REGISTRY_H
#define MTPROF_RECORD_SOURCE_SOURCE_REGISTRY_H

#include "mtprof/record/recording.h"

#include <mtprof/source.h>

/* Lets the sources take part in the recording; `warn` is called for those that refuse. */
void mtprof__sources_start(mtprof__recording *recording, uint64_t wants,
                           void (*warn)(void *user, mtprof_status status, const char *message),
                           void *user);
/* Recording has ended or pauses: sources stop and push what they have. Waits for a source as long
 * as it reports something within each `quiet_ns`; `warn` is called for those that do not. */
void mtprof__sources_stop(mtprof__recording *recording, uint64_t quiet_ns,
                          void (*warn)(void *user, mtprof_status status, const char *message),
                          void *user);
/* Descriptions of the devices of the sources that take part: a JSON list, which the caller frees
 * with mtb_free(). NULL: there are none, or there is no memory. */
char *mtprof__sources_describe(void);
/* No source pushes into the recording any more. */
void mtprof__sources_detach(mtprof__recording *recording);
/* A clock pair from every source that takes part. */
void mtprof__sources_sync(void);
void mtprof__sources_after_fork(void);

#endif /* MTPROF_RECORD_SOURCE_SOURCE_REGISTRY_H */
