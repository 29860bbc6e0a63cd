# SPDX-License-Identifier: Apache-2.0
"""torch.func: transforms of functions, by autograd and by loops.

grad, vjp, jacrev and their like are backward passes, nested ones with graphs. vmap() calls the function once for each
slice and stacks the results: what it gives is what torch's gives, without being faster than the loop it is. There is no
forward mode: jvp, jacfwd and linearize are not there, and hessian is two backward modes.
"""

import functools

import mindtorch_v2 as torch

from ..autograd import grad as _backward
from ._modules import functional_call, stack_module_state
from ._nested import flatten, unflatten

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacrev",
    "stack_module_state",
    "vjp",
    "vmap",
]

_depth = 0  # of grad() inside grad(): inner ones need graphs


def _differentiable(tree):
    """The tree with tensors that can be differentiated, and these tensors."""
    leaves, shape = flatten(tree)
    made = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in leaves]
    outer = _depth > 1 or any(x.requires_grad for x in leaves)
    return unflatten(made, shape), made, shape, outer


def _run(function, args, kwargs, argnums, has_aux):
    """(output, aux, tensors that it is differentiated by, their shape, whether a graph is wanted)."""
    single = isinstance(argnums, int)
    chosen = args[argnums] if single else tuple(args[i] for i in argnums)
    tree, made, shape, outer = _differentiable(chosen)
    args = list(args)
    for i, value in zip((argnums,) if single else argnums, (tree,) if single else tree):
        args[i] = value
    with torch.enable_grad():
        output = function(*args, **kwargs)
    aux = None
    if has_aux:
        output, aux = output
    return output, aux, made, shape, outer


def _plain(tree, outer):
    leaves, shape = flatten(tree)
    return unflatten([x if outer else x.detach() for x in leaves], shape)


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives (gradient of func by arguments argnums, what func gives)."""

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        global _depth
        _depth += 1
        try:
            output, aux, made, shape, outer = _run(func, args, kwargs, argnums, has_aux)
            if not isinstance(output, torch.Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output).__name__}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            found = [None] * len(made)
            if output.requires_grad:
                found = _backward([output], made, create_graph=outer, allow_unused=True)
            slopes = [torch.zeros_like(x) if g is None else g for x, g in zip(made, found)]
            value = output if outer else output.detach()
            if has_aux:
                value = (value, _plain(aux, outer))
            return unflatten(slopes, shape), value
        finally:
            _depth -= 1

    return wrapped


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of func by arguments argnums (and what func gave besides, has_aux)."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        slopes, value = both(*args, **kwargs)
        return (slopes, value[1]) if has_aux else slopes

    return wrapped


def vjp(func, *primals, has_aux=False):
    """(func(*primals), a function of vectors that gives their products with the Jacobian)."""
    output, aux, made, shape, outer = _run(func, primals, {}, tuple(range(len(primals))), has_aux)
    leaves, form = flatten(output)

    def pull(cotangents, retain_graph=True, create_graph=None):
        vectors, _ = flatten(cotangents)
        pairs = [(o, v) for o, v in zip(leaves, vectors) if o.requires_grad]
        found = [None] * len(made)
        if pairs:
            found = _backward(
                [o for o, _ in pairs],
                made,
                [v for _, v in pairs],
                allow_unused=True,
                retain_graph=retain_graph,
                create_graph=outer if create_graph is None else create_graph,
            )
        return unflatten([torch.zeros_like(x) if g is None else g for x, g in zip(made, found)], shape)

    value = unflatten([x if outer else x.detach() for x in leaves], form)
    return (value, pull, _plain(aux, outer)) if has_aux else (value, pull)


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that gives the Jacobian of func by arguments argnums, a backward pass for each output element."""

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        global _depth
        _depth += 1
        try:
            output, aux, made, shape, outer = _run(func, args, kwargs, argnums, has_aux)
            leaves, form = flatten(output)
            rows = []
            for leaf in leaves:
                rows.append(unflatten(_jacobian(leaf, made, outer), shape))
            result = unflatten(rows, form)
            return (result, _plain(aux, outer)) if has_aux else result
        finally:
            _depth -= 1

    return wrapped


def _jacobian(output, inputs, create_graph):
    parts = [[] for _ in inputs]
    flat = output.detach().reshape(-1)
    for i in range(flat.numel()):
        one = torch.zeros_like(flat)
        one[i] = 1.0
        found = [None] * len(inputs)
        if output.requires_grad:
            found = _backward(
                [output],
                inputs,
                [one.view_as(output)],
                allow_unused=True,
                retain_graph=True,
                create_graph=create_graph,
            )
        for part, x, value in zip(parts, inputs, found):
            part.append(torch.zeros_like(x) if value is None else value)
    return [torch.stack(p).reshape(output.shape + x.shape) for p, x in zip(parts, inputs)]


def hessian(func, argnums=0):
    """A function that gives the second derivatives of func."""
    return jacrev(jacrev(func, argnums), argnums)


def functionalize(func, *, remove="mutations"):
    """func itself: nothing is traced here."""
    return func


# ---- vmap ----


def _dims_of(dims, tree, what):
    """A dimension, or None, for each tensor of a tree."""
    leaves, shape = flatten(tree)
    if dims is None or isinstance(dims, int):
        return [dims] * len(leaves)
    if not isinstance(dims, type(tree)) and not (isinstance(dims, (tuple, list)) and isinstance(tree, (tuple, list))):
        raise ValueError(f"vmap: {what} does not have the structure of what it is for: {dims}")
    found = []
    for part, dim in zip(
        tree.values() if isinstance(tree, dict) else tree, dims.values() if isinstance(dims, dict) else dims
    ):
        found += _dims_of(dim, part, what)
    return found


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function of batches: func is called for each slice along in_dims, and the results are stacked along out_dims."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        leaves, shape = flatten(args)
        dims = _dims_of(in_dims, args, "in_dims")
        sizes = [x.shape[d] for x, d in zip(leaves, dims) if d is not None]
        if not sizes:
            raise ValueError("vmap: at least one argument must have a dimension to map over, got in_dims without one")
        if len(set(sizes)) > 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                f"{sizes} for the mapped dimension"
            )
        state = torch.get_rng_state()
        results = []
        for i in range(sizes[0]):
            if randomness == "same":
                torch.set_rng_state(state)
            slices = [x if d is None else x.select(d, i) for x, d in zip(leaves, dims)]
            results.append(func(*unflatten(slices, shape), **kwargs))
            if randomness == "error" and i == 0 and not torch.equal(torch.get_rng_state(), state):
                raise RuntimeError(
                    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
                )
        return _stacked(results, out_dims, func)

    return wrapped


def _stacked(results, out_dims, func):
    name = getattr(func, "__name__", repr(func))
    trees = [flatten(result, strict=name) for result in results]
    if not trees:
        raise ValueError(f"vmap({name}): the mapped dimension has size 0")
    dims = _dims_of(out_dims, results[0], "out_dims")
    columns = zip(*(leaves for leaves, _ in trees))
    made = [column[0] if dim is None else torch.stack(column, dim) for column, dim in zip(columns, dims)]
    return unflatten(made, trees[0][1])
