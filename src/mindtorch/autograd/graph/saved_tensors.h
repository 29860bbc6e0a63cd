/* SPDX-License-Identifier: Apache-2.0
 *
 * Saved tensors that the user packs (mt_set_pack): a node then holds what the pack function made of
 * a tensor, and unpacks it each time backward reads it.
 *
 *   PK1  A node's value of kind MT__KIND_PACKED has one reference to its mt__packed, under the lock
 *        of the node as other saved values. Unpacking runs outside of the lock, with a reference.
 *   PK2  Tensors in lists (the indices of index()) are not packed.
 *   PK3  What was unpacked has no version to check, and gets the place in the graph of the tensor
 *        that was packed.
 */
#ifndef MINDTORCH_AUTOGRAD_GRAPH_SAVED_TENSORS_H
#define MINDTORCH_AUTOGRAD_GRAPH_SAVED_TENSORS_H

#include "mindtorch/autograd/graph/meta.h"

enum {
    MT__KIND_PACKED = MT_KIND_COUNT /* in values of nodes only: of.integer is an mt__packed */
};

typedef struct mt__packed {
    _Atomic uint32_t refs;
    mt_packed *made;
} mt__packed;

MT_INLINE mt__packed *mt__packed_in(const mt_value *value)
{
    return (mt__packed *)(intptr_t)value->of.integer; /* NOLINT(performance-no-int-to-ptr) */
}

MT_INLINE mt_value mt__packed_value(mt__packed *packed)
{
    return (mt_value){.kind = MT__KIND_PACKED, .of.integer = (int64_t)(intptr_t)packed};
}

mt__packed *mt__packed_retain(mt__packed *packed);
void mt__packed_release(mt__packed *packed); /* accepts NULL */

/* Calls the thread's pack function, if there is one (*out is NULL if not). */
int mt__pack(mt_tensor *tensor, mt__packed **out);

/* One reference in *out. */
int mt__unpack(mt__packed *packed, mt_tensor **out);

/* Packs what a node of kind OP has saved. `args` are those of the call. */
int mt__node_pack(mt_node *node, const mt_value *args);

/* The tensor with the place in the graph that an edge leads to, in place of *held. */
int mt__place_at(mt_tensor **held, const mt__edge *edge);

#endif /* MINDTORCH_AUTOGRAD_GRAPH_SAVED_TENSORS_H */
