/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tensors a node keeps: what the formula looks at (derivatives.def), less what it does not
 * look at because nobody wants that gradient (save_rules.def).
 */
#ifndef MINDTORCH_AUTOGRAD_RULES_SAVE_RULES_H
#define MINDTORCH_AUTOGRAD_RULES_SAVE_RULES_H

#include "mindtorch/dispatch/op_row.h"

/* `wants` has a bit for each argument that needs a gradient. Bits as in mt__derivative. */
uint32_t mt__saves_of(const mt__op_row *row, uint32_t wants);

#endif /* MINDTORCH_AUTOGRAD_RULES_SAVE_RULES_H */
