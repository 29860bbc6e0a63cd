/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of nodes that depend on the arguments of the call, from name_rules.def.
 */
#ifndef MINDTORCH_AUTOGRAD_RULES_NODE_NAMES_H
#define MINDTORCH_AUTOGRAD_RULES_NODE_NAMES_H

#include "mindtorch/autograd/graph/node.h"

enum {
    MT_NO_VARIANT = -1,
    MT_NAME_VARIANTS = 0
#define V(id, argument, kind, name) +1
#include "mindtorch/autograd/rules/name_rules.def"
#undef V
};

/* Number of the line of name_rules.def that fits the call, or MT_NO_VARIANT. For MT_NODE_OP. */
int mt__node_variant(const mt_node *node);

const char *mt__variant_name(int variant, const mt__op_row *row);

#endif /* MINDTORCH_AUTOGRAD_RULES_NODE_NAMES_H */
