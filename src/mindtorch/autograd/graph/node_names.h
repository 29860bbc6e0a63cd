/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of nodes that depend on the arguments of the call, from the NODE_IF lines of the op table.
 */
#ifndef MINDTORCH_AUTOGRAD_GRAPH_NODE_NAMES_H
#define MINDTORCH_AUTOGRAD_GRAPH_NODE_NAMES_H

#include "mindtorch/autograd/graph/node.h"
#include "op_numbers.h"

enum {
    MT_NO_VARIANT = -1
};

/* Number of the NODE_IF line that fits the call, or MT_NO_VARIANT. For MT_NODE_OP. */
int mt__node_variant(const mt_node *node);

const char *mt__variant_name(int variant, const mt__op_row *row);

#endif /* MINDTORCH_AUTOGRAD_GRAPH_NODE_NAMES_H */
