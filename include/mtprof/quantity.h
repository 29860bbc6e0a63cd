/* SPDX-License-Identifier: Apache-2.0
 *
 * Times and amounts of memory as the commands, and tables made for terminals, show them: one set of
 * units everywhere. (Tables in torch's layout have torch's.) Numbers have a point in every locale.
 */
#ifndef MTPROF_QUANTITY_H
#define MTPROF_QUANTITY_H

#include <mtprof/api.h>

#include <stddef.h>

MTPROF_BEGIN_DECLS

enum {
    MTPROF_QUANTITY_BYTES = 32 /**< room for any quantity and its zero */
};

/** Four digits and a unit: "1.234 ms", "12.34 s"; whole nanoseconds below a microsecond: "999 ns".
 * Returns the length. */
MTPROF_API size_t mtprof_duration_text(double ns, char out[MTPROF_QUANTITY_BYTES]);

/** "1.5 MiB"; whole bytes below 1 KiB: "1023 B". Returns the length. */
MTPROF_API size_t mtprof_bytes_text(double bytes, char out[MTPROF_QUANTITY_BYTES]);

MTPROF_END_DECLS

#endif /* MTPROF_QUANTITY_H */
