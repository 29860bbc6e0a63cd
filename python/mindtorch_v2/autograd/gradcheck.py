# SPDX-License-Identifier: Apache-2.0
"""Gradients compared with finite differences."""
from .. import _C
from . import _as_tuple
from . import grad as _grad
from .grad_mode import no_grad

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]


class GradcheckError(RuntimeError):
    """A gradient that finite differences do not confirm."""


def _outputs_of(func, inputs):
    """The differentiable outputs."""
    outputs = _as_tuple(func(*inputs), "outputs")
    return tuple(output for output in outputs if isinstance(output, _C.Tensor) and output.is_floating_point())


def _checked(inputs):
    import warnings

    checked = [i for i, x in enumerate(inputs) if isinstance(x, _C.Tensor) and x.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them "
                         "have requires_grad=True.")
    for i in checked:
        if inputs[i].dtype is not _C.float64:
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or "
                          "complex. This check will likely fail if all the inputs are not of double "
                          "precision floating point or complex.", stacklevel=3)
    return checked


def _numerical(func, inputs, which, eps):
    """d output / d inputs[which] by central differences: for each output a list of columns."""
    flat = inputs[which].detach().contiguous().view(-1)
    columns = []
    for k in range(flat.numel()):
        sides = []
        for sign in (1, -1):
            moved = flat.clone()
            moved[k] = moved[k] + sign * eps
            given = list(inputs)
            given[which] = moved.view(inputs[which].shape)
            with no_grad():
                sides.append([output.detach().double().contiguous().view(-1).tolist()
                              for output in _outputs_of(func, given)])
        columns.append([[(a - b) / (2 * eps) for a, b in zip(high, low)] for high, low in zip(*sides)])
    return columns


def _analytical(outputs, inputs, checked):
    """The same by backward: [output][element of it][input] -> list."""
    rows = []
    for output in outputs:
        of_output = []
        for k in range(output.numel()):
            seed = _C.ops.zeros_like(output.detach()).contiguous()
            seed.view(-1)[k] = 1
            grads = _grad(output, [inputs[i] for i in checked], seed.view(output.shape), retain_graph=True,
                          allow_unused=True)
            of_output.append([None if g is None else g.detach().double().contiguous().view(-1).tolist()
                              for g in grads])
        rows.append(of_output)
    return rows


def _mismatch(o, i, numerical, analytical):
    table = [_C.tensor(side, dtype=_C.float64) for side in (numerical, analytical)]
    return (f"Jacobian mismatch for output {o} with respect to input {i},\n"
            f"numerical:{table[0]}\nanalytical:{table[1]}\n")


def _compare(func, inputs, checked, options):
    outputs = _outputs_of(func, inputs)
    outputs = [output for output in outputs if output.requires_grad]
    if not outputs:
        raise GradcheckError("gradcheck expects at least one output to require gradient")
    analytical = _analytical(outputs, inputs, checked)
    for place, i in enumerate(checked):
        columns = _numerical(func, inputs, i, options["eps"])
        for o, output in enumerate(outputs):
            numerical, given = [], []
            for k in range(inputs[i].numel()):
                numerical.append(columns[k][o])
                given.append([0.0 if row[place] is None else row[place][k] for row in analytical[o]])
            pairs = ((n, g) for ns, gs in zip(numerical, given) for n, g in zip(ns, gs))
            if not all(abs(n - g) <= options["atol"] + options["rtol"] * abs(g) for n, g in pairs):
                raise GradcheckError(_mismatch(o, i, numerical, given))
            del output


def gradcheck(func, inputs, *, eps=1e-06, atol=1e-05, rtol=0.001, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True,
              fast_mode=False, masked=None):
    """Whether backward through func agrees with finite differences, element by element.

    What it does not do: forward mode, batched gradients, the fast mode (`fast_mode` runs the full check).
    """
    if check_forward_ad or check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck(): only backward mode, without batches, can be checked")
    inputs = list(_as_tuple(inputs, "inputs"))
    checked = _checked(inputs)
    try:
        _compare(func, inputs, checked, {"eps": eps, "atol": atol, "rtol": rtol})
        if nondet_tol is not None:
            _repeat(func, inputs, checked, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _repeat(func, inputs, checked, tolerance):
    """Backward twice gives the same."""
    runs = []
    for _ in range(2):
        outputs = [output for output in _outputs_of(func, inputs) if output.requires_grad]
        runs.append(_analytical(outputs, inputs, checked))

    def numbers(run):
        return [x for rows in run for row in rows for grad in row for x in (grad or ())]

    if any(abs(a - b) > tolerance for a, b in zip(*map(numbers, runs))):
        raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and "
                             "grad_output multiple times gives different values. The tolerance for "
                             f"nondeterminism was {tolerance}.")


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-06, atol=1e-05, rtol=0.001, raise_exception=True,
                  **options):
    """gradcheck() of the gradients themselves."""
    inputs = list(_as_tuple(inputs, "inputs"))
    checked = _checked(inputs)
    if grad_outputs is None:
        grad_outputs = [_C.ops.ones_like(output.detach()).mul(0.7).requires_grad_()
                        for output in _outputs_of(func, inputs)]
    else:
        grad_outputs = list(_as_tuple(grad_outputs, "grad_outputs"))
    count = len(inputs)

    def gradients(*given):
        outputs = _outputs_of(func, given[:count])
        wanted = [given[i] for i in checked]
        if not (_C.is_grad_enabled() and all(x.requires_grad for x in wanted)):
            # Finite differences come without graphs.
            wanted_graph = [x.detach().requires_grad_() for x in wanted]
            full = list(given[:count])
            for i, x in zip(checked, wanted_graph):
                full[i] = x
            from .grad_mode import enable_grad

            with enable_grad():
                outputs = _outputs_of(func, full)
                found = _grad(outputs, wanted_graph, [g.detach() for g in given[count:]], allow_unused=True)
        else:
            found = _grad(outputs, wanted, list(given[count:]), create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, inputs + grad_outputs, eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, **options)
