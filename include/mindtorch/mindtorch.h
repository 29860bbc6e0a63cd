/* SPDX-License-Identifier: Apache-2.0
 *
 * All of libmindtorch: tensors with torch's semantics, in C. README.md shows it at work.
 */
#ifndef MINDTORCH_MINDTORCH_H
#define MINDTORCH_MINDTORCH_H

#include <mindtorch/autocast.h>
#include <mindtorch/autograd.h>
#include <mindtorch/backend.h>
#include <mindtorch/device.h>
#include <mindtorch/dtype.h>
#include <mindtorch/generator.h>
#include <mindtorch/op.h>
#include <mindtorch/ops.h>
#include <mindtorch/optim.h>
#include <mindtorch/status.h>
#include <mindtorch/stream.h>
#include <mindtorch/tensor.h>
#include <mindtorch/value.h>
#include <mindtorch/version.h>

#endif /* MINDTORCH_MINDTORCH_H */
