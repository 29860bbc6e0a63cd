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


class _Formatter:
    """Writes numbers in one width, which the numbers that are shown decide."""

    def __init__(self, values, floating):
        self.floating = floating
        self.int_mode = True
        self.sci_mode = False
        self.width = 1
        if floating:
            self._plan_floats([v for v in values if v != 0 and math.isfinite(v)])
        else:
            for value in values:
                self.width = max(self.width, len(str(value)))

    def _plan_floats(self, shown):
        if not shown:
            return
        sizes = [abs(v) for v in shown]
        least, most = min(sizes), max(sizes)
        self.int_mode = all(v == math.ceil(v) for v in shown)
        self.sci_mode = PRINT_OPTS.sci_mode
        if self.sci_mode is None:
            self.sci_mode = most / least > 1000.0 or most > 1.0e8 or (not self.int_mode and least < 1.0e-4)
        for value in shown:
            self.width = max(self.width, len(self._text(value)))

    def _text(self, value):
        if self.sci_mode:
            return f"{value:.{PRINT_OPTS.precision}e}"
        if self.int_mode:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{PRINT_OPTS.precision}f}"

    def format(self, value):
        """The number, as wide as all of them."""
        text = self._text(value) if self.floating else str(value)
        return text.rjust(self.width)


def _vector(values, size, indent, summarize, formatter):
    """A row: as many elements on a line as fit."""
    per_line = max(1, math.floor((PRINT_OPTS.linewidth - indent) / (formatter.width + 2)))
    texts = [formatter.format(value) for value in values]
    if summarize and size > 2 * PRINT_OPTS.edgeitems:
        texts.insert(PRINT_OPTS.edgeitems, " ...")
    lines = [", ".join(texts[i:i + per_line]) for i in range(0, len(texts), per_line)] or [""]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(values, sizes, indent, summarize, formatter):
    """`values` are lists as deep as there are sizes; where summarised they hold the edges alone."""
    if not sizes:
        return formatter.format(values)
    if len(sizes) == 1:
        return _vector(values, sizes[0], indent, summarize, formatter)
    parts = [_nested(value, sizes[1:], indent + 1, summarize, formatter) for value in values]
    if summarize and sizes[0] > 2 * PRINT_OPTS.edgeitems:
        parts.insert(PRINT_OPTS.edgeitems, "...")
    return "[" + ("," + "\n" * (len(sizes) - 1) + " " * (indent + 1)).join(parts) + "]"


def _edges(tensor):
    """The elements that a summary shows, as nested lists."""
    edge = PRINT_OPTS.edgeitems
    for dim, size in enumerate(tensor.shape):
        if size > 2 * edge:
            parts = (tensor.narrow(dim, 0, edge), tensor.narrow(dim, size - edge, edge))
            tensor = _C.ops.cat(parts, dim)
    return tensor.tolist()


def _flatten(values, depth):
    for _ in range(depth - 1):
        values = [value for row in values for value in row]
    return values if depth else [values]


def _elements(tensor, indent):
    plain = tensor.detach()
    summarize = plain.numel() > PRINT_OPTS.threshold
    if summarize and PRINT_OPTS.edgeitems == 0:
        return "[...]"
    values = _edges(plain) if summarize else plain.tolist()
    formatter = _Formatter(_flatten(values, plain.dim()), plain.is_floating_point())
    return _nested(values, tuple(plain.shape), indent, summarize, formatter)


def _with_suffixes(text, suffixes, indent):
    """What stands behind the elements, on a new line where it would be too long."""
    parts = [text]
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            length = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            length += len(suffix) + 2
    parts.append(")")
    return "".join(parts)


def _str(tensor):
    """repr() of a tensor."""
    prefix = "tensor("
    indent = len(prefix)
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    default = _C.get_default_dtype()
    if tensor.dim() != 1 if tensor.numel() == 0 else PRINT_OPTS.edgeitems == 0:
        suffixes.append(f"size={tuple(tensor.shape)}")
    if tensor.numel() == 0:
        if tensor.dtype is not default:
            suffixes.append(f"dtype={tensor.dtype}")
        text = "[]"
    else:
        if tensor.dtype not in (default, _C.int64, _C.bool):
            suffixes.append(f"dtype={tensor.dtype}")
        text = _elements(tensor, indent)
    node = tensor.grad_fn
    if node is not None:
        suffixes.append(f"grad_fn=<{node.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes(prefix + text, suffixes, indent)
