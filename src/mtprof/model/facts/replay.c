/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/facts/replay.h"

/* CUPTI's numbers have the graph in their upper half: each graph has places of its own. */
static uint32_t graph_of(uint64_t node)
{
    return (uint32_t)(node >> 32);
}

bool mtprof__replay_begin(mtprof__forwards *table, const mtprof__event *event,
                          mtprof__replay_walk *walk)
{
    const mtprof_metadatum *list = mtprof__event_find(event, "graph dependencies");
    const mtprof_metadatum *node = list != NULL ? mtprof__event_find(event, "graph node id") : NULL;
    bool known = node != NULL && event->correlation != 0 &&
                 (node->type == MTPROF_META_UINT || node->type == MTPROF_META_INT) &&
                 list->type == MTPROF_META_TEXT;
    if (!known) {
        return false;
    }
    bool added;
    mtprof__replayed *entry =
        mtprof__forward_add(table, graph_of(node->value), (int64_t)node->value, &added);
    if (entry != NULL) {
        entry->forward.note = event->track;
        entry->start_ns = event->shown_start_ns;
        entry->correlation = event->correlation;
        entry->used = 0;
    }
    *walk = (mtprof__replay_walk){list->text.bytes, list->text.bytes + list->text.length,
                                  event->correlation, node->value};
    return true;
}

/* The next number of "[4, 7]". */
static bool next_number(mtprof__replay_walk *walk, uint64_t *number)
{
    while (walk->at < walk->end && (*walk->at < '0' || *walk->at > '9')) {
        walk->at++;
    }
    if (walk->at == walk->end) {
        return false;
    }
    *number = 0;
    for (; walk->at < walk->end && *walk->at >= '0' && *walk->at <= '9'; walk->at++) {
        *number = *number * 10 + (uint64_t)(*walk->at - '0');
    }
    return true;
}

mtprof__replayed *mtprof__replay_next(mtprof__forwards *table, mtprof__replay_walk *walk,
                                      uint64_t *node)
{
    while (next_number(walk, node)) {
        mtprof__replayed *from = mtprof__forward_find(table, graph_of(*node), (int64_t)*node);
        if (from != NULL && from->correlation == walk->correlation && *node != walk->node) {
            return from; /* RG1 */
        }
    }
    return NULL;
}
