/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of problems, see problems.h.
 */
#include "mtprof/read/problems.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"

#include <mtprof/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mtprof__damage_add(mtprof__damage *damage, uint64_t offset, uint64_t bytes)
{
    mtprof__damage_merge(damage, &(mtprof__damage){1, bytes, offset});
}

void mtprof__damage_merge(mtprof__damage *damage, const mtprof__damage *other)
{
    if (other->problems == 0) {
        return;
    }
    if (damage->problems == 0 || other->first < damage->first) {
        damage->first = other->first;
    }
    damage->problems += other->problems;
    damage->bytes += other->bytes;
}

mtprof__damage mtprof__problems_damage(const mtprof__problems *problems)
{
    mtprof__damage damage = {.problems = problems->n + problems->not_listed,
                             .bytes = problems->bytes};
    for (size_t i = 0; i < problems->n; i++) {
        uint64_t offset = problems->items[i].offset;
        damage.first = i == 0 || offset < damage.first ? offset : damage.first;
    }
    return damage;
}

static int add_text(mtprof__problems *problems, uint64_t offset, const char *text)
{
    if (problems->n >= MTPROF__PROBLEMS_MAX) {
        if (problems->not_listed == 0 || offset < problems->first_not_listed) {
            problems->first_not_listed = offset;
        }
        problems->not_listed++;
        return MTPROF_OK;
    }
    char *message = mtb_copy_text(text, strlen(text));
    if (message == NULL || !mtb_grow((void **)&problems->items, &problems->capacity,
                                     problems->n + 1, sizeof *problems->items)) {
        mtb_free(message);
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for problem %zu", problems->n);
    }
    problems->items[problems->n] =
        (mtprof__problem){.offset = offset, .order = problems->n, .message = message};
    problems->n++;
    return MTPROF_OK;
}

int mtprof__problem_add(mtprof__problems *problems, uint64_t offset, const char *format, ...)
{
    char text[MTB_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return add_text(problems, offset, text);
}

int mtprof__problem_add_failure(mtprof__problems *problems)
{
    const mtb_failure *failure = mtb_last_failure();
    return add_text(problems, failure->offset < 0 ? 0 : (uint64_t)failure->offset,
                    failure->message);
}

void mtprof__problems_cut(mtprof__problems *problems, size_t n)
{
    while (problems->n > n) {
        mtb_free(problems->items[--problems->n].message);
    }
    problems->not_listed = 0;
    problems->bytes = 0;
}

static int compare(const void *a, const void *b)
{
    const mtprof__problem *left = a;
    const mtprof__problem *right = b;
    int order = mtb_order(left->offset, right->offset);
    return order != 0 ? order : mtb_order(left->order, right->order);
}

int mtprof__problems_finish(mtprof__problems *problems)
{
    if (problems->not_listed > 0) {
        unsigned long long n = problems->not_listed + 1;
        /* Makes room for the entry that summarizes the others, and counts the one it replaces. */
        mtprof__problem *last = &problems->items[problems->n - 1];
        char text[64];
        snprintf(text, sizeof text, "%llu more problems are not listed", n);
        char *message = mtb_copy_text(text, strlen(text));
        if (message == NULL) {
            return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for problem %zu", problems->n);
        }
        mtb_free(last->message);
        last->message = message;
        if (problems->first_not_listed < last->offset) {
            last->offset = problems->first_not_listed;
        }
    }
    if (problems->n > 1) {
        qsort(problems->items, problems->n, sizeof *problems->items, compare);
    }
    return MTPROF_OK;
}

void mtprof__problems_fini(mtprof__problems *problems)
{
    mtprof__problems_cut(problems, 0);
    mtb_free(problems->items);
    problems->items = NULL;
    problems->capacity = 0;
}
