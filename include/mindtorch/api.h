/* SPDX-License-Identifier: Apache-2.0
 *
 * Visibility and language marks that every public header of libmindtorch uses.
 */
#ifndef MINDTORCH_API_H
#define MINDTORCH_API_H

/* Symbols are hidden by default; MT_API marks the ones that are not. */
#if defined(__GNUC__)
#    define MT_API __attribute__((visibility("default")))
#else
#    define MT_API
#endif

#ifdef __cplusplus
#    define MT_BEGIN_DECLS extern "C" {
#    define MT_END_DECLS   }
#else
#    define MT_BEGIN_DECLS
#    define MT_END_DECLS
#endif

#endif /* MINDTORCH_API_H */
