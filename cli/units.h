/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantities as people write and read them.
 */
#ifndef CLI_UNITS_H
#define CLI_UNITS_H

#include <mtprof/output.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLI_UNIT_BYTES = MTPROF_QUANTITY_BYTES /* room for any printed quantity */
};

typedef struct cli_quantity {
    char text[CLI_UNIT_BYTES];
} cli_quantity;

/* "10us", "1.5 ms", "2s"; 0 needs no unit. */
bool cli_parse_duration(const char *text, int64_t *ns);
/* "4096", "100MB" (powers of 1000), "64MiB" and "64M" (powers of 1024). */
bool cli_parse_size(const char *text, uint64_t *bytes);
/* A whole number and nothing else. */
bool cli_parse_int(const char *text, int64_t *value);
/* A finite number and nothing else. */
bool cli_parse_real(const char *text, double *value);

/* Four digits and a unit: "1.234 ms". */
cli_quantity cli_duration(double ns);
/* The same for bytes: "1.5 MiB"; whole numbers of bytes below 1 KiB. */
cli_quantity cli_bytes(double bytes);
/* With a sign, also for growth. */
cli_quantity cli_signed_bytes(double bytes);
/* "1,234,567". */
cli_quantity cli_count(uint64_t count);
/* "s" unless there is one of them. */
const char *cli_plural(uint64_t count);
/* Prints "  3 events " and what is said about them, a line; nothing where there are none. */
void cli_print_count(uint64_t count, const char *noun, const char *what);
/* "+12.3 %"; "0.0 %" where it rounds to that. */
cli_quantity cli_change(double ratio);

#endif /* CLI_UNITS_H */
