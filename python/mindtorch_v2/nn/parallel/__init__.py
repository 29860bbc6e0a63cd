# SPDX-License-Identifier: Apache-2.0
"""torch.nn.parallel for one process and one device: the wrappers, which call their module."""

from contextlib import contextmanager

from mtprof import record_function as _record_function

from ..modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls its module: there is no second device to share a batch with."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise NotImplementedError(f"DataParallel: one device at a time, got device_ids={list(device_ids)}")
        self.module = module
        self.device_ids = []
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        """What the module gives."""
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """module(*inputs)."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """Calls its module. Gradients of one process need no averaging, so nothing else is done.

    It needs torch.distributed.init_process_group(), as with more processes.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=True,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        **others,
    ):
        from ... import distributed

        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                "device_ids can only be None or contain a single element. "
                f"See documentation for DistributedDataParallel, got {list(device_ids)}"
            )
        distributed.get_world_size(process_group)  # there must be a group
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        self.module = module
        self.device_ids = device_ids
        self.output_device = output_device
        self.dim = dim
        self.process_group = process_group or distributed.group.WORLD
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True

    def forward(self, *inputs, **kwargs):
        """What the module gives."""
        with _record_function("DistributedDataParallel.forward"):
            return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self):
        """Backward inside it averages nothing, as outside."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Nobody has to be waited for."""
        yield

    def register_comm_hook(self, state, hook):
        """Accepted: there is no communication that it could change."""
