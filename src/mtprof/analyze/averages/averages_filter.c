/* SPDX-License-Identifier: Apache-2.0
 *
 * Which events count. What depends on a name, a thread or a module is decided once for each.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/analyze/averages/averages_impl.h"

#include <mtprof/status.h>

#include <stdlib.h>
#include <string.h>

/* ---- patterns -------------------------------------------------------------------------------- */

/* Whether a byte is in the set that begins after '['; *end is after its ']', or NULL where the set
 * has none and '[' means itself. */
static bool set_has(const char *set, unsigned char byte, const char **end)
{
    bool negated = *set == '!' || *set == '^';
    bool found = false;
    const char *at = set + (negated ? 1 : 0);
    const char *first = at;
    for (; *at != '\0' && (*at != ']' || at == first); at++) {
        unsigned char low = (unsigned char)*at;
        unsigned char high = low;
        if (at[1] == '-' && at[2] != '\0' && at[2] != ']') {
            high = (unsigned char)at[2];
            at += 2;
        }
        found |= byte >= low && byte <= high;
    }
    *end = *at == ']' ? at + 1 : NULL;
    return found != negated;
}

/* The rest of the pattern if its next item matches this byte; NULL if it does not. */
static const char *take_item(const char *pattern, unsigned char byte)
{
    const char *end;
    switch (*pattern) {
    case '?': return pattern + 1;
    case '[': {
        bool has = set_has(pattern + 1, byte, &end);
        if (end != NULL) {
            return has ? end : NULL;
        }
        break;
    }
    case '\\':
        if (pattern[1] != '\0') {
            return (unsigned char)pattern[1] == byte ? pattern + 2 : NULL;
        }
        break;
    default: break;
    }
    return *pattern != '\0' && (unsigned char)*pattern == byte ? pattern + 1 : NULL;
}

/* Only the latest star needs to be tried again: what came before it matched as early as
 * possible. */
bool mtprof__pattern_matches(const char *pattern, mtprof_text text)
{
    const char *star = NULL;
    size_t star_at = 0;
    size_t at = 0;
    while (at < text.length) {
        const char *next =
            *pattern != '*' ? take_item(pattern, (unsigned char)text.bytes[at]) : NULL;
        if (*pattern == '*') {
            star = ++pattern;
            star_at = at;
        } else if (next != NULL) {
            pattern = next;
            at++;
        } else if (star != NULL) {
            pattern = star;
            at = ++star_at;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

/* ---- threads and modules --------------------------------------------------------------------- */

typedef struct thread_wish {
    const char *pattern; /* NULL: one of the numbers */
    bool is_logical;
    long long number;
} thread_wish;

static int parse_thread(const char *text, thread_wish *wish)
{
    char *end;
    bool is_logical = text[0] == '#';
    const char *digits = text + (is_logical ? 1 : 0);
    bool is_number = digits[0] >= '0' && digits[0] <= '9';
    *wish = (thread_wish){.is_logical = is_logical};
    wish->number = is_number ? strtoll(digits, &end, 10) : 0;
    if (is_number && *end == '\0') {
        return 0;
    }
    if (is_logical) {
        return mtb_fail(MTPROF_EINVAL, "averages: thread '%.100s' is no '#' and a number", text);
    }
    wish->pattern = text;
    return 0;
}

static bool thread_passes(const mtprof_track *track, const thread_wish *wish)
{
    if (track->device != 0) {
        return false;
    }
    if (wish->pattern != NULL) {
        return mtprof__pattern_matches(wish->pattern, track->name);
    }
    return wish->is_logical ? track->number == wish->number : track->tid == wish->number;
}

static int choose_tracks(mtprof__grouper *grouper)
{
    thread_wish wish;
    MT_TRY(parse_thread(grouper->options.thread, &wish));
    size_t n = (size_t)mtprof__largest(grouper->columns.track, grouper->columns.n) + 1;
    grouper->track_passes = mtb_calloc(n, 1);
    if (grouper->track_passes == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for %zu threads", n);
    }
    for (size_t i = 0; i < n; i++) {
        mtprof_track track;
        grouper->track_passes[i] =
            mtprof_model_track(grouper->model, (uint32_t)i, &track) && thread_passes(&track, &wish);
    }
    return 0;
}

static int choose_modules(mtprof__grouper *grouper)
{
    const uint32_t *module = grouper->columns.module;
    size_t n = module != NULL ? (size_t)mtprof__largest(module, grouper->columns.n) + 1 : 1;
    grouper->module_passes = mtb_calloc(n, 1);
    if (grouper->module_passes == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "averages: no memory for %zu modules", n);
    }
    const char *pattern = grouper->options.module_name;
    grouper->module_passes[0] = mtprof__pattern_matches(pattern, (mtprof_text){"", 0});
    for (size_t i = 1; i < n; i++) {
        mtprof_text text = mtprof_model_name(grouper->model, (uint32_t)(i - 1));
        grouper->module_passes[i] = mtprof__pattern_matches(pattern, text);
    }
    return 0;
}

int mtprof__filter_init(mtprof__grouper *grouper)
{
    const mtprof_averages_options *options = &grouper->options;
    if (options->thread != NULL) {
        MT_TRY(choose_tracks(grouper));
    }
    if (options->module_name != NULL) {
        MT_TRY(choose_modules(grouper));
    }
    grouper->has_filter = options->thread != NULL || options->module_name != NULL ||
                          options->steps_given != 0 || options->top_level != 0 ||
                          options->min_ns > 0;
    return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool event_passes(const mtprof__grouper *grouper, size_t event)
{
    const mtprof__source_columns *c = &grouper->columns;
    const mtprof_averages_options *options = &grouper->options;
    if (options->steps_given != 0 &&
        (c->step[event] < options->first_step || c->step[event] > options->last_step)) {
        return false;
    }
    if (options->top_level != 0 && c->parent[event] != MTPROF_NO_EVENT) {
        return false;
    }
    if (mtb_sub_sat(c->end_ns[event], c->start_ns[event]) < options->min_ns) {
        return false;
    }
    if (grouper->track_passes != NULL && grouper->track_passes[c->track[event]] == 0) {
        return false;
    }
    return grouper->module_passes == NULL ||
           grouper->module_passes[c->module != NULL ? c->module[event] : 0] != 0;
}

void mtprof__filter_rows(const mtprof__grouper *grouper, size_t first, size_t n, uint32_t *rows)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i] != 0 && !event_passes(grouper, first + i)) {
            rows[i] = 0;
        }
    }
}
