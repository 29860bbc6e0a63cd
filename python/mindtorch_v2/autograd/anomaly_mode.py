# SPDX-License-Identifier: Apache-2.0
"""torch.autograd.anomaly_mode: which forward call a derivative belongs to that fails, or gives NaN.

While it is on, the stack of the forward call is kept with each node, in node.metadata["traceback_"].
"""
import warnings

from .. import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


def _made(node):
    """Notes where a node is made, and in whose derivative."""
    import sys
    import traceback

    node.metadata["traceback_"] = traceback.format_stack(sys._getframe(1))
    parent = _C._current_autograd_node()
    if parent is not None:
        node.metadata["parent_"] = parent


def _failed(node):
    """Tells where the node was made, and the nodes in whose derivatives it was."""
    lines = node.metadata.get("traceback_")
    text = f"Error detected in {node.name()}. "
    if lines is None:
        warnings.warn(text + "No forward pass information available. Enable detect anomaly during forward pass for "
                      "more information.", stacklevel=1)
        return
    warnings.warn(text + "Traceback of forward call that caused the error:\n" + "".join(lines), stacklevel=1)
    parent = node.metadata.get("parent_")
    while parent is not None:
        lines = parent.metadata.get("traceback_")
        text = f"\n\nPrevious calculation was induced by {parent.name()}. "
        if lines is None:
            warnings.warn(text + "No forward pass information available. Enable detect anomaly during forward pass for "
                          "more information.", stacklevel=1)
            return
        warnings.warn(text + "Traceback of forward call that induced the previous calculation:\n" + "".join(lines),
                      stacklevel=1)
        parent = parent.metadata.get("parent_")


class _Anomaly:
    """The mode before, and back to it."""

    def __init__(self, mode, check_nan):
        self.prev = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        self.mode, self.check_nan = mode, check_nan

    def __enter__(self):
        _C._set_anomaly(self.mode, self.check_nan, _made, _failed)

    def __exit__(self, *exception):
        _C._set_anomaly(*self.prev, _made, _failed)


class detect_anomaly(_Anomaly):  # noqa: N801, torch's name
    """Inside, a derivative that fails or gives NaN is told with the stack of its forward call. It is slow."""

    def __init__(self, check_nan=True):
        super().__init__(True, check_nan)
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
                      "enabled for debugging.", stacklevel=2)


class set_detect_anomaly(_Anomaly):  # noqa: N801, torch's name
    """The same without a warning: at once, and in a with statement until its end."""

    def __init__(self, mode, check_nan=True):
        super().__init__(mode, check_nan)
        self.__enter__()
