/* SPDX-License-Identifier: Apache-2.0
 *
 * The derivatives by op number, from derivatives.def, underived.def and save_rules.def.
 */
#include "mindtorch/autograd/graph/node.h"
#include "mindtorch/autograd/rules/save_rules.h"
#include "mindtorch/ops/op_support.h"

#define A(n) ((uint32_t)MT_SAVE_ARG << (n))
#define R(n) ((uint32_t)MT_SAVE_RESULT << (n))
#define W(n) (1U << (n))

enum {
    RULED_ARGS = 4 /* save_rules.def speaks of the first few */
};

#define D(id, node, saves, formula) int mt__##formula(mt__backward *backward);
#include "mindtorch/autograd/rules/derivatives.def"
#undef D

static int refuse(mt__backward *backward)
{
    return mtb_fail(MT_ENOTSUP, "the derivative for '%s' is not implemented",
                    backward->node->row->name);
}

const mt__derivative mt__derivatives[MT__OP_COUNT] = {
#define D(id, node, saves, formula) [MT__OP_##id] = {node, mt__##formula, saves},
#include "mindtorch/autograd/rules/derivatives.def"
#undef D
#define N(id) [MT__OP_##id] = {"NotImplemented", refuse, 0},
#include "mindtorch/autograd/rules/underived.def"
#undef N
};

/* 0: kept whoever wants a gradient. */
static const uint16_t rules[MT__OP_COUNT][RULED_ARGS] = {
#define S(id, argument, wanted) [MT__OP_##id][argument] = (wanted),
#include "mindtorch/autograd/rules/save_rules.def"
#undef S
};

uint32_t mt__saves_of(const mt__op_row *row, uint32_t wants)
{
    uint32_t saves = row->derivative->saves;
    if (row->op >= MT__OP_COUNT) {
        return saves; /* a user's */
    }
    const uint16_t *rule = rules[row->op];
    for (uint32_t i = 0; i < RULED_ARGS; i++) {
        if (rule[i] != 0 && (rule[i] & wants) == 0) {
            saves &= ~A(i);
        }
    }
    return saves;
}
