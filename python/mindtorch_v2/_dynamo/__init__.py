# SPDX-License-Identifier: Apache-2.0
"""torch._dynamo's names that programs use although they are private: nothing is compiled."""

from types import SimpleNamespace as _Settings

from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset

__all__ = ["allow_in_graph", "assume_constant_result", "config", "disable", "graph_break", "is_compiling",
           "list_backends", "mark_dynamic", "mark_static", "reset"]

config = _Settings(suppress_errors=False, cache_size_limit=8, verbose=False, optimize_ddp=True,
                   capture_scalar_outputs=False, force_parameter_static_shapes=True)


def graph_break(msg=""):
    """There is no graph to break."""


def mark_dynamic(t, index, *, min=None, max=None):
    """Sizes are always taken as they come."""


maybe_mark_dynamic = mark_dynamic


def mark_static(t, index=None):
    """Sizes are always taken as they come."""


mark_static_address = mark_static
