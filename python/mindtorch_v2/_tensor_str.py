# SPDX-License-Identifier: Apache-2.0
"""How tensors are printed: torch's layout, to the character.

    tensor([[ 1.0000, -2.5000],
            [    nan,     inf]], dtype=torch.float64, grad_fn=<AddBackward0>)

Elements are read once (tolist()), so printing calls hardly any op.
"""
import contextlib
import math

from . import _C

__all__ = ["set_printoptions", "get_printoptions", "printoptions"]


class _Options:
    """What set_printoptions() sets."""

    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


PRINT_OPTS = _Options()

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None,
                     sci_mode=None):
    """How tensors are printed from now on. `profile`: "default", "short" or "full"."""
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be one of {sorted(_PROFILES)}, not {profile!r}")
        for name, value in _PROFILES[profile].items():
            setattr(PRINT_OPTS, name, value)
    for name, value in (("precision", precision), ("threshold", threshold), ("edgeitems", edgeitems),
                        ("linewidth", linewidth)):
        if value is not None:
            setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    """The options as a dict."""
    return {name: getattr(PRINT_OPTS, name) for name in ("precision", "threshold", "edgeitems", "linewidth",
                                                         "sci_mode")}


@contextlib.contextmanager
def printoptions(**kwargs):
    """Other options inside the block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def _whole(value):
    return f"{value:.0f}." if math.isfinite(value) else str(value)


def _notation(values):
    """A function that writes floats: in one notation, which the numbers other than 0 decide."""
    if not values:
        return _whole
    sizes = [abs(value) for value in values]
    least, most = min(sizes), max(sizes)
    whole = all(size == math.floor(size) for size in sizes)
    exponents = PRINT_OPTS.sci_mode
    if exponents is None:
        exponents = most / least > 1000.0 or most > 1.0e8 or (least < 1.0e-4 and not whole)
    if exponents:
        return f"{{:.{PRINT_OPTS.precision}e}}".format
    return _whole if whole else f"{{:.{PRINT_OPTS.precision}f}}".format


class _Layout:
    """Numbers of one width in nested brackets."""

    def __init__(self, numbers, floating, edge):
        self.write = str
        self.edge = edge  # so many at each end of a dimension are there, if it has more; None: all are
        if floating:
            numbers = [number for number in numbers if number != 0 and math.isfinite(number)]
            self.write = _notation(numbers)
        self.width = max((len(self.write(number)) for number in numbers), default=1)

    def number(self, value):
        return self.write(value).rjust(self.width)

    def parts(self, values, size, part, gap):
        """Texts of the members of a dimension, with a gap where some are left out."""
        texts = [part(value) for value in values]
        if self.edge is not None and size > 2 * self.edge:
            texts.insert(self.edge, gap)
        return texts

    def brackets(self, values, sizes, indent):
        """`values`: lists as deep as there are sizes."""
        if not sizes:
            return self.number(values)
        size, *inner = sizes
        if inner:
            lines = self.parts(values, size, lambda value: self.brackets(value, inner, indent + 1), "...")
        else:  # as many on a line as fit
            texts = self.parts(values, size, self.number, " ...")
            fit = max(1, int((PRINT_OPTS.linewidth - indent) // (self.width + 2)))
            lines = [", ".join(texts[i:i + fit]) for i in range(0, len(texts), fit)]
        return "[" + ("," + "\n" * max(1, len(inner)) + " " * (indent + 1)).join(lines) + "]"


class _ComplexLayout(_Layout):
    """Complex numbers: real and imaginary parts have a notation and a width each."""

    def __init__(self, numbers, edge):
        self.edge = edge
        self.real = _Layout([number.real for number in numbers], True, edge)
        self.imag = _Layout([number.imag for number in numbers], True, edge)
        self.width = self.real.width + self.imag.width + 1

    def number(self, value):
        imag = self.imag.number(value.imag).lstrip() + "j"
        return self.real.number(value.real) + ("" if imag[0] in "+-" else "+") + imag


def _edges(tensor, edge):
    """The elements that a summary shows, as nested lists."""
    for dim, size in enumerate(tensor.shape):
        if size > 2 * edge:
            parts = (tensor.narrow(dim, 0, edge), tensor.narrow(dim, size - edge, edge))
            tensor = _C.ops.cat(parts, dim)
    return tensor.tolist()


def _elements(tensor, indent):
    if tensor.is_meta:
        return "..."
    if tensor.numel() == 0:
        return "[]"
    plain = tensor.detach()
    edge = PRINT_OPTS.edgeitems if plain.numel() > PRINT_OPTS.threshold else None
    if edge == 0:
        return "[...]"
    values = plain.tolist() if edge is None else _edges(plain, edge)
    numbers = [values]
    for _ in plain.shape:
        numbers = [number for row in numbers for number in row]
    layout = _ComplexLayout(numbers, edge) if plain.is_complex() else _Layout(numbers, plain.is_floating_point(), edge)
    return layout.brackets(values, plain.shape, indent)


def _facts(tensor):
    """What is printed after the elements: facts that they do not show."""
    if tensor.device.type != "cpu":
        yield f"device='{tensor.device}'"
    empty = tensor.numel() == 0
    if tensor.is_meta or (tensor.dim() != 1 if empty else PRINT_OPTS.edgeitems == 0):
        yield f"size={tuple(tensor.shape)}"
    evident = () if empty or tensor.is_meta else (_C.int64, _C.bool)
    if tensor.is_complex() and not empty:
        evident = (_C.complex128 if _C.get_default_dtype() == _C.float64 else _C.complex64,)
    if tensor.dtype not in (_C.get_default_dtype(), *evident):
        yield f"dtype={tensor.dtype}"
    if tensor.grad_fn is not None:
        yield f"grad_fn=<{tensor.grad_fn.name()}>"
    elif tensor.requires_grad:
        yield "requires_grad=True"


def text_of(tensor):
    """repr() of a tensor."""
    indent = len("tensor(")
    text = "tensor(" + _elements(tensor, indent)
    length = len(text) - text.rfind("\n") + 1
    for fact in _facts(tensor):
        if length + len(fact) + 2 > PRINT_OPTS.linewidth:  # on a new line
            text += ",\n" + " " * indent + fact
            length = indent + len(fact)
        else:
            text += ", " + fact
            length += len(fact) + 2
    return text + ")"
