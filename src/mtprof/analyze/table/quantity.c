/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantities with their units, see output.h.
 */
#include "mtprof/analyze/table/table_impl.h"

#include <mtprof/output.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LARGEST 1e15 /* beyond it digits say less than the power of ten */

static size_t put(double value, int decimals, const char *unit, char *out)
{
    char number[MTPROF__NUMBER_BYTES];
    size_t unit_length = strlen(unit);
    unsigned power = 0; /* without libm, which programs would have to link */
    bool large = isfinite(value) && fabs(value) >= LARGEST;
    for (; large && fabs(value) >= 10; power++) {
        value /= 10;
    }
    size_t length = mtprof__put_fixed(number, value, large ? 3 : decimals);
    if (power > 0) {
        length += (size_t)snprintf(number + length, 8, "e%u", power);
    }
    memcpy(out, number, length);
    out[length] = ' ';
    memcpy(out + length + 1, unit, unit_length + 1);
    return length + 1 + unit_length;
}

/* Four digits: 1.234, 12.34, 123.4, 1234. */
static size_t put_digits(double value, const char *unit, char *out)
{
    double size = fabs(value);
    int decimals = size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : 0;
    return put(value, decimals, unit, out);
}

size_t mtprof_duration_text(double ns, char out[MTPROF_QUANTITY_BYTES])
{
    double size = fabs(ns);
    if (size < 999.5) {
        return put(size < 0.5 ? 0.0 : ns, 0, "ns", out); /* no "-0" */
    }
    if (size < 999.95e3) {
        return put_digits(ns / 1e3, "us", out);
    }
    return size < 999.95e6 ? put_digits(ns / 1e6, "ms", out) : put_digits(ns / 1e9, "s", out);
}

size_t mtprof_bytes_text(double bytes, char out[MTPROF_QUANTITY_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;
    double value = bytes == 0 ? 0.0 : bytes;
    while (fabs(value) >= 1023.95 && i + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        i++;
    }
    return put(value, i == 0 ? 0 : 1, units[i], out);
}
