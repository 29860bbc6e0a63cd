/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantities, see units.h. Numbers are read without the locale, so that reports are the same
 * everywhere.
 */
#include "cli/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit duration_units[] = {
    {"ns", 1}, {"us", 1e3}, {"\xC2\xB5s", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9},
};

static const unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"K", 1024},
    {"KiB", 1024},
    {"M", 1048576},
    {"MiB", 1048576},
    {"G", 1073741824},
    {"GiB", 1073741824},
    {"kB", 1e3},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
    {"T", 1099511627776},
    {"TiB", 1099511627776},
};

static bool find_unit(const unit *units, size_t n, const char *name, double *factor)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(units[i].name, name) == 0) {
            *factor = units[i].factor;
            return true;
        }
    }
    return false;
}

/* Digits with at most one point, not negative; the rest after blanks in *unit_name. */
static bool split_number(const char *text, double *number, const char **unit_name)
{
    size_t length = strspn(text, "0123456789.");
    if (length == 0 || length > 30 || memchr(text, '.', length) != strrchr(text, '.') ||
        (length == 1 && text[0] == '.')) {
        return false;
    }
    char digits[32];
    memcpy(digits, text, length);
    digits[length] = '\0';
    *number = strtod(digits, NULL);
    *unit_name = text + length + strspn(text + length, " ");
    return true;
}

bool cli_parse_duration(const char *text, int64_t *ns)
{
    double number, factor = 0;
    const char *name;
    if (!split_number(text, &number, &name) ||
        !(find_unit(duration_units, sizeof duration_units / sizeof *duration_units, name,
                    &factor) ||
          (number == 0 && *name == '\0')) ||
        number * factor >= 9e18) {
        return false;
    }
    *ns = (int64_t)llround(number * factor);
    return true;
}

bool cli_parse_size(const char *text, uint64_t *bytes)
{
    double number, factor = 0;
    const char *name;
    if (!split_number(text, &number, &name) ||
        !find_unit(size_units, sizeof size_units / sizeof *size_units, name, &factor) ||
        number * factor >= 9e18) {
        return false;
    }
    *bytes = (uint64_t)llround(number * factor);
    return true;
}

bool cli_parse_int(const char *text, int64_t *value)
{
    char *end;
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (digits == 0 || *end != '\0' || errno != 0) {
        return false;
    }
    *value = parsed;
    return true;
}

bool cli_parse_real(const char *text, double *value)
{
    const char *rest;
    return split_number(text, value, &rest) && *rest == '\0';
}

/* ---- printing -------------------------------------------------------------------------------- */

cli_quantity cli_duration(double ns)
{
    cli_quantity q;
    (void)mtprof_duration_text(ns, q.text);
    return q;
}

cli_quantity cli_bytes(double bytes)
{
    cli_quantity q;
    (void)mtprof_bytes_text(bytes, q.text);
    return q;
}

cli_quantity cli_signed_bytes(double bytes)
{
    cli_quantity q = cli_bytes(bytes);
    if (bytes > 0) {
        cli_quantity plus;
        (void)snprintf(plus.text, sizeof plus.text, "+%.30s", q.text);
        return plus;
    }
    return q;
}

cli_quantity cli_count(uint64_t count)
{
    char digits[24];
    cli_quantity q;
    int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            q.text[at++] = ',';
        }
        q.text[at++] = digits[i];
    }
    q.text[at] = '\0';
    return q;
}

const char *cli_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

void cli_print_count(uint64_t count, const char *noun, const char *what)
{
    if (count > 0) {
        printf("  %s %s%s %s\n", cli_count(count).text, noun, cli_plural(count), what);
    }
}

cli_quantity cli_change(double ratio)
{
    cli_quantity q;
    double percent = 100 * ratio;
    if (fabs(percent) < 0.05) {
        (void)snprintf(q.text, sizeof q.text, "0.0 %%");
    } else if (fabs(percent) < 999.5) {
        (void)snprintf(q.text, sizeof q.text, "%+.1f %%", percent);
    } else {
        (void)snprintf(q.text, sizeof q.text, "x%.*f", ratio < 99 ? 1 : 0, fmin(1 + ratio, 1e15));
    }
    return q;
}
