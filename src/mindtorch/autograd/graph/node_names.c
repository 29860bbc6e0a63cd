/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of nodes, see node_names.h. Asked for by people and by the profiler only.
 */
#include "mindtorch/autograd/graph/node_names.h"

#include "mindtorch/ops/op_support.h"

static bool fits(const mt_node *node, uint32_t argument, mt__node_condition condition)
{
    const uint32_t *first = node->of.op.first;
    uint32_t value = node->of.op.args[argument].kind;
    bool tensor = first[argument] != first[argument + 1];
    switch (condition) {
    case MT_NODE_IF_TENSOR: return tensor;
    case MT_NODE_IF_NUMBER: return value >= MT_KIND_BOOL && value <= MT_KIND_REAL;
    case MT_NODE_IF_GIVEN: return tensor || value != MT_KIND_NONE;
    case MT_NODE_IF_NOT_GIVEN: return !tensor && value == MT_KIND_NONE;
    }
    return false;
}

int mt__node_variant(const mt_node *node)
{
    for (int i = 0; i < MT_NAME_VARIANTS; i++) {
        const mt__node_if *rule = &mt__node_names[i];
        if (rule->op == node->row->op &&
            fits(node, rule->argument, (mt__node_condition)rule->condition)) {
            return i;
        }
    }
    return MT_NO_VARIANT;
}

const char *mt__variant_name(int variant, const mt__op_row *row)
{
    return variant == MT_NO_VARIANT ? row->derivative->name : mt__node_names[variant].name;
}
