# SPDX-License-Identifier: Apache-2.0
"""torch.autograd.functional: Jacobians, Hessians and their products with vectors, by backward passes.

Inputs and outputs are tensors or tuples of them; a result has the nesting of torch's: by output, then by input.
"""

import mindtorch_v2 as torch

from . import grad as _grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(values, what, function):
    """(tuple of tensors, whether there was a tuple)."""
    is_tuple = isinstance(values, tuple)
    values = values if is_tuple else (values,)
    for i, value in enumerate(values):
        if not isinstance(value, torch.Tensor):
            if is_tuple:
                raise TypeError(
                    f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the value at "
                    f"index {i} has type {type(value)}."
                )
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the given {what} "
                f"has type {type(value)}."
            )
    return values, is_tuple


def _begin(inputs, create_graph):
    """Inputs that can be differentiated: copies in the graph where a graph is wanted, leaves otherwise."""
    made = []
    for value in inputs:
        if create_graph and value.requires_grad:
            made.append(value.view_as(value))
        else:
            made.append(value.detach().requires_grad_())
    return tuple(made)


def _call(function, inputs, name):
    with torch.enable_grad():
        outputs, is_tuple = _tuple(function(*inputs), "outputs of the user-provided function", name)
    return outputs, is_tuple


def _check_outputs(outputs, strict):
    for i, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed "
                "in a differentiable manner from the input when running in strict mode."
            )


def _gradients(outputs, inputs, vectors, create_graph, strict=False):
    """Gradients by the inputs, zeros where one was not used."""
    pairs = [(o, v) for o, v in zip(outputs, vectors) if o.requires_grad]
    found = [None] * len(inputs)
    if pairs:
        found = _grad(
            [o for o, _ in pairs],
            inputs,
            [v for _, v in pairs],
            allow_unused=True,
            create_graph=create_graph,
            retain_graph=True,
        )
    for i, value in enumerate(found):
        if strict and value is None:
            raise RuntimeError(
                f"Output of the user-provided function is independent of input {i}. This is not allowed in strict mode."
            )
    return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found))


def _given(values, is_tuple, create_graph):
    values = tuple(v if create_graph else v.detach() for v in values)
    return values if is_tuple else values[0]


def _vectors(v, outputs, is_tuple, of):
    if v is None:
        if len(outputs) != 1 or outputs[0].nelement() != 1:
            raise RuntimeError(
                "The vector v can only be None if the "
                + ("user-provided function returns" if of == "outputs" else "input to the user-provided function is")
                + " a single Tensor with a single element."
            )
        return (torch.ones_like(outputs[0]),)
    v = v if isinstance(v, tuple) else (v,)
    if len(v) != len(outputs):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(outputs)} but got {len(v)}.")
    for i, (one, output) in enumerate(zip(v, outputs)):
        if one.size() != output.size():
            place = f"Entry {i} in v has" if is_tuple else "v has"
            raise RuntimeError(f"{place} invalid size: should be {output.size()} but got {one.size()}.")
    return v


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, products of the vector v with the Jacobian)."""
    inputs, is_tuple = _tuple(inputs, "inputs", "vjp")
    inputs = _begin(inputs, create_graph)
    outputs, outputs_tuple = _call(func, inputs, "vjp")
    _check_outputs(outputs, strict)
    vectors = _vectors(v, outputs, outputs_tuple, "outputs")
    products = _gradients(outputs, inputs, vectors, create_graph, strict)
    return _given(outputs, outputs_tuple, create_graph), _given(products, is_tuple, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, products of the Jacobian with the vector v), by differentiating twice."""
    inputs, is_tuple = _tuple(inputs, "inputs", "jvp")
    inputs = _begin(inputs, create_graph)
    vectors = _vectors(v, inputs, is_tuple, "inputs")
    outputs, outputs_tuple = _call(func, inputs, "jvp")
    _check_outputs(outputs, strict)
    with torch.enable_grad():
        weights = tuple(torch.zeros_like(o).requires_grad_() for o in outputs)
        by_input = _gradients(outputs, inputs, weights, True)
    products = _gradients(by_input, weights, vectors, create_graph, strict)
    return _given(outputs, outputs_tuple, create_graph), _given(products, outputs_tuple, create_graph)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """d outputs / d inputs: a backward pass for each element of the outputs, whatever `vectorize` says."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function '
            'has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, '
            'prefer to use "reverse-mode".'
        )
    inputs, is_tuple = _tuple(inputs, "inputs", "jacobian")
    inputs = _begin(inputs, create_graph)
    outputs, outputs_tuple = _call(func, inputs, "jacobian")
    _check_outputs(outputs, strict)
    rows = []
    for output in outputs:
        parts = [[] for _ in inputs]
        flat = output.reshape(-1)
        for i in range(output.nelement()):
            one = torch.zeros_like(flat)
            one[i] = 1.0
            for part, value in zip(
                parts, _gradients((output,), inputs, (one.view_as(output),), create_graph, strict)
            ):
                part.append(value)
        shaped = [
            torch.stack(p).view(output.size() + x.size()) if p else x.new_zeros(output.size() + x.size())
            for p, x in zip(parts, inputs)
        ]
        rows.append(_given(shaped, is_tuple, create_graph))
    return tuple(rows) if outputs_tuple else rows[0]


def _check_scalar(outputs, name):
    if len(outputs) != 1 or not isinstance(outputs[0], torch.Tensor):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return outputs[0].reshape(())


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of a function with one result: by input, then by input."""
    inputs, is_tuple = _tuple(inputs, "inputs", "hessian")

    def gradient(*values):
        values = tuple(v if v.requires_grad else v.detach().requires_grad_() for v in values)
        outputs, _ = _call(func, values, "hessian")
        _check_outputs(outputs, strict)
        return _gradients(
            (_check_scalar(outputs, "hessian"),), values, (torch.ones(()).to(outputs[0]),), True, strict
        )

    result = jacobian(gradient, inputs, create_graph=create_graph, strict=strict)
    return result if is_tuple else result[0][0]


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, product of the vector v with the Hessian)."""
    inputs, is_tuple = _tuple(inputs, "inputs", "vhp")
    inputs = _begin(inputs, create_graph)
    vectors = _vectors(v, inputs, is_tuple, "inputs")
    outputs, _ = _call(func, inputs, "vhp")
    _check_outputs(outputs, strict)
    scalar = _check_scalar(outputs, "vhp")
    with torch.enable_grad():
        slopes = _gradients((scalar,), inputs, (torch.ones_like(scalar),), True, strict)
    products = _gradients(slopes, inputs, vectors, create_graph, strict)
    return _given(outputs, False, create_graph), _given(products, is_tuple, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, product of the Hessian with the vector v); the Hessian is symmetric, so vhp() computes it."""
    return vhp(func, inputs, v, create_graph, strict)
