/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups and sort keys, see groups.h.
 */
#include "cli/groups.h"

#include "cli/command.h"
#include "cli/term.h"
#include "cli/units.h"

#include <stdio.h>
#include <string.h>

const char *const cli_group_names[] = {"shapes", "stack:5", "overload", "module",
                                       "step",   "thread",  "capture",  NULL};

static const struct {
    const char *name;
    uint32_t bit;
} group_bits[] = {
    {"shapes", MTPROF_GROUP_SHAPES}, {"overload", MTPROF_GROUP_OVERLOAD},
    {"module", MTPROF_GROUP_MODULE}, {"step", MTPROF_GROUP_STEP},
    {"thread", MTPROF_GROUP_THREAD}, {"capture", MTPROF_GROUP_CAPTURE},
};

static bool parse_group(cli_groups *groups, const char *word, cli_refusal *why)
{
    int64_t n;
    for (size_t i = 0; i < sizeof group_bits / sizeof *group_bits; i++) {
        if (strcmp(word, group_bits[i].name) == 0) {
            groups->group |= group_bits[i].bit;
            return true;
        }
    }
    if (strncmp(word, "stack:", 6) == 0 && cli_parse_int(word + 6, &n) && n >= 1 && n <= 1000) {
        groups->stack_n = (uint32_t)n;
        return true;
    }
    (void)snprintf(why->text, sizeof why->text,
                   "expected shapes, stack:N (1 to 1000 frames), overload, module, step, thread "
                   "or capture");
    return false;
}

bool cli_parse_groups(void *value, const char *text, cli_refusal *why)
{
    while (true) {
        char word[32];
        size_t length = strcspn(text, ",");
        (void)snprintf(word, sizeof word, "%.*s", (int)(length < 31 ? length : 31), text);
        if (!parse_group(value, word, why)) {
            return false;
        }
        if (text[length] == '\0') {
            return true;
        }
        text += length + 1;
    }
}

mtprof_averages_options cli_averages_options(const cli_groups *groups, const char *name,
                                             const cli_range *steps)
{
    return (mtprof_averages_options){
        .struct_size = sizeof(mtprof_averages_options),
        .group = groups->group,
        .stack_n = groups->stack_n,
        .name = name,
        .steps_given = steps->given,
        .first_step = (int32_t)steps->first,
        .last_step = (int32_t)steps->last,
    };
}

const char *const cli_sort_keys[] = {
    "self_cpu_time_total",
    "cpu_time_total",
    "cpu_time",
    "self_device_time_total",
    "device_time_total",
    "device_time",
    "self_cpu_memory_usage",
    "cpu_memory_usage",
    "self_device_memory_usage",
    "device_memory_usage",
    "count",
    "flops",
    "key",
    "min",
    "p50",
    "p99",
    "max",
    "none",
    NULL,
};

int cli_bad_sort_key(const char *command, const char *key)
{
    size_t n = sizeof cli_sort_keys / sizeof *cli_sort_keys - 1;
    const char *near = cli_nearest(key, cli_sort_keys, n);
    cli_error("%s: option '--sort': '%s': no such key", command, key);
    if (near != NULL) {
        cli_hint("did you mean '%s'?", near);
    } else {
        cli_hint("'mtprof help %s' lists the common ones", command);
    }
    return CLI_MISUSE;
}
