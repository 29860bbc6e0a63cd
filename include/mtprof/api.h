/* SPDX-License-Identifier: Apache-2.0
 *
 * Visibility and language marks that every public header uses.
 */
#ifndef MTPROF_API_H
#define MTPROF_API_H

/* Symbols are hidden by default; MTPROF_API marks the ones that are not. */
#if defined(__GNUC__)
#    define MTPROF_API __attribute__((visibility("default")))
#else
#    define MTPROF_API
#endif

#ifdef __cplusplus
#    define MTPROF_BEGIN_DECLS extern "C" {
#    define MTPROF_END_DECLS   }
#else
#    define MTPROF_BEGIN_DECLS
#    define MTPROF_END_DECLS
#endif

#endif /* MTPROF_API_H */
