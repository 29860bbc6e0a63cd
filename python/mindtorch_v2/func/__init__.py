# SPDX-License-Identifier: Apache-2.0
"""torch.func: transforms of functions, by autograd and by loops.

grad, vjp, jacrev and their like are backward passes, nested ones with graphs. vmap() calls the function once for each
slice and stacks the results: what it gives is what torch's gives, without being faster than the loop it is. There is no
forward mode: jvp and linearize differentiate a backward pass, jacfwd is jacrev, and hessian is two backward modes.
"""

import functools

import mindtorch_v2 as torch

from ..autograd import grad as _backward
from ._modules import functional_call, stack_module_state
from ._nested import flatten, unflatten, values

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

_depth = 0  # of grad() inside grad(): inner ones need graphs


def _check_argnums(argnums, args):
    many = argnums if isinstance(argnums, tuple) else (argnums,)
    for number in many:
        if not isinstance(number, int):
            raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
    if not many:
        raise RuntimeError("argnums must be non-empty")
    if len({number % len(args) for number in many}) != len(many):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")


def _differentiable(tree):
    """The tree with tensors that can be differentiated, and these tensors."""
    leaves, shape = flatten(tree)
    for part in values(shape):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(part)}")
    made = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in leaves]
    outer = _depth > 1 or any(x.requires_grad for x in leaves)
    return unflatten(made, shape), made, shape, outer


def _run(function, args, kwargs, argnums, has_aux):
    """(output, aux, tensors that it is differentiated by, their shape, whether a graph is wanted)."""
    _check_argnums(argnums, args)
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


def _outputs(output, name):
    """The tensors that a function gave, and their shape as a tree."""
    leaves, form = flatten(output)
    for part in values(form):
        raise RuntimeError(f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(part)}")
    return leaves, form


def _check_types(leaves):
    for leaf in leaves:
        if not (leaf.is_floating_point() or leaf.is_complex()):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                f"{leaf.dtype}"
            )


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
    leaves, form = _outputs(output, "vjp(f, *primals)")
    _check_types(leaves)

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


def _forward(func, primals, has_aux):
    """(output, aux, push): push(tangents) gives the product of the Jacobian with tangents, and the outputs without one.

    A backward pass is linear in the vector that it starts from, and its derivative by that vector is the Jacobian. So
    push() differentiates the backward pass once more, by a vector of zeros.
    """
    output, aux, made, _, outer = _run(func, primals, {}, tuple(range(len(primals))), has_aux)
    leaves, form = _outputs(output, "jvp(f, primals, tangents)")
    chosen = [x for x in leaves if x.requires_grad]
    with torch.enable_grad():
        starts = [torch.zeros_like(x).requires_grad_() for x in chosen]
    found = [None] * len(made)
    if chosen:
        found = _backward(chosen, made, starts, allow_unused=True, create_graph=True)

    def push(tangents, retain_graph=False):
        for x, v in zip(made, tangents):
            if x.shape != v.shape:
                raise RuntimeError(
                    "Trying to set a forward gradient that has a different size than that of the original Tensor, this "
                    f"is not supported. Tensor is of size {list(x.shape)} while the given forward gradient is of size "
                    f"{list(v.shape)}."
                )
        graph = outer or any(v.requires_grad for v in tangents)
        pairs = [(g, v.to(g.dtype)) for g, v in zip(found, tangents) if g is not None and g.requires_grad]
        slopes = iter([None] * len(starts))
        if pairs:
            slopes = iter(
                _backward(
                    [g for g, _ in pairs], starts, [v for _, v in pairs], allow_unused=True,
                    retain_graph=retain_graph or graph, create_graph=graph,
                )
            )
        products = [next(slopes) if x.requires_grad else None for x in leaves]
        made_whole = [torch.zeros_like(x) if p is None else p for x, p in zip(leaves, products)]
        return unflatten(made_whole, form), any(p is None for p in products)

    value = unflatten([x if outer else x.detach() for x in leaves], form)
    return value, _plain(aux, outer), push


def _tangents(primals, tangents, name):
    """The tensors of tangents; they must have the places of those of primals."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    places, shape = flatten(primals)
    found, form = flatten(tangents)
    if form != shape:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got {len(places)} tensors in {type(primals).__name__} and "
            f"{len(found)} in {type(tangents).__name__}"
        )
    if not places:
        raise RuntimeError(f"{name}: Expected primals to contain at least one Tensor.")
    return found


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(func(*primals), the product of its Jacobian with tangents), by two backward passes."""
    global _depth
    vectors = _tangents(primals, tangents, "jvp(f, primals, tangents)")
    _depth += 1
    try:
        value, aux, push = _forward(func, primals, has_aux)
        product, independent = push(vectors)
        if strict and independent:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        return (value, product, aux) if has_aux else (value, product)
    finally:
        _depth -= 1


def linearize(func, *primals):
    """(func(*primals), a function of tangents that gives their product with the Jacobian there)."""
    value, _, push = _forward(func, primals, False)

    def pushed(*tangents):
        return push(_tangents(primals, tangents, "linearize(f, *primals)"), retain_graph=True)[0]

    return value, pushed


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """What jacrev() gives: a backward pass for each output element, as there is no forward mode."""
    return jacrev(func, argnums, has_aux=has_aux)


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that gives the Jacobian of func by arguments argnums, a backward pass for each output element."""

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        global _depth
        _depth += 1
        try:
            output, aux, made, shape, outer = _run(func, args, kwargs, argnums, has_aux)
            leaves, form = _outputs(output, "vjp(f, *primals)")
            _check_types(leaves)
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
