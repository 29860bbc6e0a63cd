/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of nodes, see node_names.h. Asked for by people and by the profiler only.
 */
#include "mindtorch/autograd/rules/node_names.h"

#include "mindtorch/ops/op_support.h"

typedef enum variant_kind {
    VARIANT_TENSOR,
    VARIANT_NUMBER,
    VARIANT_GIVEN,
    VARIANT_NOT_GIVEN
} variant_kind;

static const struct {
    const char *name;
    uint16_t op;
    uint8_t argument;
    uint8_t kind; /* variant_kind */
} variants[] = {
#define V(id, argument, kind, name) {name, MT__OP_##id, argument, VARIANT_##kind},
#include "mindtorch/autograd/rules/name_rules.def"
#undef V
};

static bool fits(const mt_node *node, uint32_t argument, variant_kind kind)
{
    const uint32_t *first = node->of.op.first;
    uint32_t value = node->of.op.args[argument].kind;
    bool tensor = first[argument] != first[argument + 1];
    switch (kind) {
    case VARIANT_TENSOR: return tensor;
    case VARIANT_NUMBER: return value >= MT_KIND_BOOL && value <= MT_KIND_REAL;
    case VARIANT_GIVEN: return tensor || value != MT_KIND_NONE;
    case VARIANT_NOT_GIVEN: return !tensor && value == MT_KIND_NONE;
    }
    return false;
}

int mt__node_variant(const mt_node *node)
{
    for (size_t i = 0; i < MT_COUNT(variants); i++) {
        if (variants[i].op == node->row->op &&
            fits(node, variants[i].argument, (variant_kind)variants[i].kind)) {
            return (int)i;
        }
    }
    return MT_NO_VARIANT;
}

const char *mt__variant_name(int variant, const mt__op_row *row)
{
    return variant == MT_NO_VARIANT ? row->derivative->name : variants[variant].name;
}
