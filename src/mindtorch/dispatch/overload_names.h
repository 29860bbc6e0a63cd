/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of torch's overloads a call is: a row often covers several ("add" with a tensor or a
 * number). Only profiles ask, and only where capture_overload_names is set.
 */
#ifndef MINDTORCH_DISPATCH_OVERLOAD_NAMES_H
#define MINDTORCH_DISPATCH_OVERLOAD_NAMES_H

#include "mindtorch/dispatch/op_row.h"

/* "Tensor" of aten::add.Tensor, "" for the overload without a name. Lives as long as the row. */
const char *mt__overload_of(const mt__op_row *row, const mt_value *args);

#endif /* MINDTORCH_DISPATCH_OVERLOAD_NAMES_H */
