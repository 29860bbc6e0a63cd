/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what viewers draw is what a trace says of its parents. Viewers sort the spans of a track
 * by start, then by length; of equal ones the first in the file is drawn outside.
 *
 *   function  its "Python parent id" is the number of the function drawn around it
 *   others    the span that "parent_id" names is not drawn inside it: of equal times, the parent
 *             comes first
 *
 * A parent that the track does not have (another thread's, another part's) says nothing.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/check/check_impl.h"

typedef struct id_key {
    uint64_t id;
    uint32_t track;
    bool function;
} id_key;

static bool same_key(const void *context, uint32_t id, const void *key)
{
    const mtprof__check_span *span = &((const mtprof__check_tracks *)context)->spans[id - 1];
    const id_key *wanted = key;
    return span->id == wanted->id && span->track == wanted->track &&
           span->is_function == wanted->function;
}

static uint64_t hash_of(const id_key *key)
{
    return mtb_mix(key->id, (uint64_t)key->track << 1 | key->function);
}

/* The span of a number on a track, or NULL. */
static const mtprof__check_span *find_span(const mtprof__check_tracks *tracks, const mtb_idmap *map,
                                           const id_key *key)
{
    uint32_t at = mtb_idmap_find(map, hash_of(key), same_key, tracks, key);
    return at != 0 ? &tracks->spans[at - 1] : NULL;
}

static int add_ids(const mtprof__check_tracks *tracks, mtb_idmap *map, bool *any)
{
    const mtprof__check_span *spans = tracks->spans;
    for (size_t i = 0; spans != NULL && i < tracks->n_spans; i++) {
        const mtprof__check_span *span = &spans[i];
        id_key key = {span->id, span->track, span->is_function};
        *any = *any || span->parent != 0;
        if (span->id == 0 || find_span(tracks, map, &key) != NULL) {
            continue;
        }
        if (!mtb_idmap_reserve(map)) {
            return mtb_fail(MTPROF_ENOMEM, "check: no memory for the ids of spans");
        }
        (void)mtb_idmap_add(map, hash_of(&key), (uint32_t)i + 1);
    }
    return MTPROF_OK;
}

static int find_wrong(mtprof__check *check, const mtprof__check_tracks *tracks,
                      const mtprof__check_span *span, const mtprof__check_span *parent,
                      const char *what)
{
    const mtprof__check_track *track = &tracks->items[span->track];
    const mtb_json_place place = {span->offset, span->line, span->column};
    return mtprof__check_find(check, MTPROF__RULE_CHROME_PARENT, place,
                              "a span on pid %s, tid %s %s %llu at byte %llu, its parent",
                              track->pid.shown, track->tid.shown, what,
                              (unsigned long long)parent->id, (unsigned long long)parent->offset);
}

/* Whether a span could be drawn around one that comes after it in the order of drawing. Another
 * rule checks whether it sticks out. */
static bool is_around(const mtprof__check_span *outer, const mtprof__check_span *inner)
{
    bool over = outer->end_ns == inner->start_ns && outer->start_ns < inner->start_ns;
    return outer->track == inner->track && outer->start_ns <= inner->start_ns &&
           outer->end_ns >= inner->end_ns && !over;
}

/* Spans are in the order in which they are drawn, so one after another of equal times is inside.
 * functions[depth] is the innermost function among the first `depth` spans of the stack. */
static int check_spans(mtprof__check *check, const mtprof__check_tracks *tracks,
                       const mtb_idmap *map, uint32_t *stack, uint32_t *functions)
{
    size_t depth = 0;
    const mtprof__check_span *spans = tracks->spans;
    for (size_t i = 0; spans != NULL && i < tracks->n_spans; i++) {
        const mtprof__check_span *span = &spans[i];
        if (span->is_async != 0) {
            continue;
        }
        while (depth > 0 && !is_around(&spans[stack[depth - 1]], span)) {
            depth--;
        }
        uint32_t around = depth > 0 ? functions[depth - 1] : 0; /* + 1 */
        id_key key = {span->parent, span->track, span->is_function};
        const mtprof__check_span *parent = span->parent != 0 ? find_span(tracks, map, &key) : NULL;
        if (parent != NULL && span->is_function && is_around(parent, span) &&
            (around == 0 || spans[around - 1].id != parent->id)) {
            MT_TRY(find_wrong(check, tracks, span, parent, "is not drawn right inside function"));
        } else if (parent != NULL && !span->is_function && parent > span &&
                   parent->start_ns == span->start_ns && parent->end_ns == span->end_ns) {
            MT_TRY(find_wrong(check, tracks, span, parent, "is drawn around span"));
        }
        stack[depth] = (uint32_t)i;
        functions[depth++] = span->is_function && span->id != 0 ? (uint32_t)i + 1 : around;
    }
    return MTPROF_OK;
}

int mtprof__check_parents(mtprof__check *check, const mtprof__check_tracks *tracks, uint32_t *stack)
{
    mtb_idmap map = {0};
    bool any = false;
    int status = add_ids(tracks, &map, &any);
    if (status == MTPROF_OK && any) {
        uint32_t *functions = mtb_calloc(tracks->n_spans, sizeof *functions);
        status = functions != NULL
                     ? check_spans(check, tracks, &map, stack, functions)
                     : mtb_fail(MTPROF_ENOMEM, "check: no memory for %zu spans", tracks->n_spans);
        mtb_free(functions);
    }
    mtb_idmap_reset(&map);
    return status;
}
