/* SPDX-License-Identifier: Apache-2.0
 *
 * CRC32C (Castagnoli), the checksum of the trace format.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Continues a checksum over more bytes: start with 0, the result of "123456789" is 0xE3069283.
 * Uses the CPU's instruction where there is one.
 */
uint32_t mtb_crc32c(uint32_t crc, const void *bytes, size_t length);

/* The table-driven form that every CPU can run; tests compare the two. */
uint32_t mtb_crc32c_portable(uint32_t crc, const void *bytes, size_t length);

#endif /* BASE_CRC32C_H */
