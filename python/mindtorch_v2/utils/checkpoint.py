# SPDX-License-Identifier: Apache-2.0
"""torch.utils.checkpoint: a part of the forward pass is computed again in the backward pass instead of kept."""

import contextlib
import itertools

import mindtorch_v2 as torch

__all__ = ["checkpoint", "checkpoint_sequential", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
           "noop_context_fn", "CheckpointError"]


def noop_context_fn():
    """Two blocks that do nothing, around the first and the second computation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Changes nothing: there is nothing to debug."""
    yield


_early_stop = None  # None: as checkpoint() is told


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Inside: whether the second computation ends when it has made all that backward needs."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


class CheckpointError(RuntimeError):
    """The second computation was not that of the first time."""


class _Stop(Exception):
    """Ends the second computation."""


class _Part:
    """A part that is computed again: what its ops save is a place in a list, filled when backward asks for it.

    The list belongs to one backward; each tensor is given away once.
    """

    def __init__(self, call, blocks, keep_random, check, early_stop):
        self.call, self.block, self.check, self.early_stop = call, blocks[1], check, early_stop
        self.random = torch.get_rng_state() if keep_random else None
        self.casts = [(device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
                      for device in ("cpu", "cuda")]
        self.saved = []  # what is known of the tensors: shape, type, device
        self.found, self.run = {}, None

    @staticmethod
    def facts(tensor):
        return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}

    def pack(self, tensor):
        self.saved.append(self.facts(tensor))
        return len(self.saved) - 1

    def unpack(self, place):
        run = torch._C._current_run()
        if run != self.run or place not in self.found:
            self.compute()
            self.run = run
        if place not in self.found:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.saved)}\nNumber of tensors saved "
                f"during recomputation: {len(self.found)}.")
        found = self.found.pop(place)
        if self.check and self.facts(found) != self.saved[place]:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\ntensor at position {place}:\nsaved metadata: {self.saved[place]}\n"
                f"recomputed metadata: {self.facts(found)}")
        return found

    def compute(self):
        """Runs the part again; its own graph is not kept."""
        self.found = {}
        places = itertools.count()

        def keep(tensor):
            self.found[next(places)] = tensor.detach()
            if self.early_stop and len(self.found) == len(self.saved):
                raise _Stop
            return tensor.detach()

        before = torch.get_rng_state() if self.random is not None else None
        if self.random is not None:
            torch.set_rng_state(self.random)
        try:
            with contextlib.ExitStack() as stack:
                for device, enabled, dtype in self.casts:
                    stack.enter_context(torch.autocast(device, enabled=enabled, dtype=dtype))
                stack.enter_context(torch.enable_grad())
                stack.enter_context(self.block)
                stack.enter_context(torch.autograd.graph.saved_tensors_hooks(keep, lambda packed: packed))
                self.call()
        except _Stop:
            pass
        finally:
            if before is not None:
                torch.set_rng_state(before)


def _without_reentry(call, blocks, keep_random, check, early_stop):
    part = _Part(call, blocks, keep_random, check, early_stop)
    with blocks[0], torch.autograd.graph.saved_tensors_hooks(part.pack, part.unpack):
        return call()


class _Again(torch.autograd.Function):
    """Keeps the input alone."""

    @staticmethod
    def forward(ctx, function, blocks, keep_random, *tensors):
        ctx.function, ctx.block, ctx.random = function, blocks[1], torch.get_rng_state() if keep_random else None
        ctx.save_for_backward(*tensors)
        with blocks[0]:
            result = function(*tensors)
        ctx.several = isinstance(result, (tuple, list))
        return tuple(result) if ctx.several else result

    @staticmethod
    def backward(ctx, *grads):
        inputs = [x.detach().requires_grad_(needed) for x, needed in zip(ctx.saved_tensors, ctx.needs_input_grad[3:])]
        before = torch.get_rng_state() if ctx.random is not None else None
        if ctx.random is not None:
            torch.set_rng_state(ctx.random)
        try:
            with torch.enable_grad(), ctx.block:
                results = ctx.function(*inputs)
        finally:
            if before is not None:
                torch.set_rng_state(before)
        results = results if ctx.several else (results,)
        pairs = [(result, grad) for result, grad in zip(results, grads)
                 if isinstance(result, torch.Tensor) and result.requires_grad and grad is not None]
        if pairs:
            torch.autograd.backward([result for result, _ in pairs], [grad for _, grad in pairs])
        return (None, None, None, *[x.grad for x in inputs])


def checkpoint(function, *args, use_reentrant=None, context_fn=noop_context_fn, determinism_check="default",
               debug=False, early_stop=True, preserve_rng_state=True, **kwargs):
    """function(*args): what it computes between its input and its result is not kept, but computed again.

    use_reentrant=False: saved tensors are computed again when backward asks for the first of them; else one node
    stands for the whole part, whose derivative runs a backward of its own.
    """
    if not torch.is_grad_enabled():
        return function(*args, **kwargs)
    if use_reentrant is False:
        stop = early_stop if _early_stop is None else _early_stop
        return _without_reentry(lambda: function(*args, **kwargs), context_fn(), preserve_rng_state,
                                determinism_check != "none", stop)
    places = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]

    def call(*tensors):
        given = list(args)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        return function(*given, **kwargs)

    tensors = [args[place] for place in places]
    # A node is needed although only parameters, which are no arguments, may need a gradient.
    if not any(tensor.requires_grad for tensor in tensors):
        tensors.append(torch.zeros((), requires_grad=True))
    return _Again.apply(call, context_fn(), preserve_rng_state, *tensors)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Checkpoints the modules of a sequence in so many parts; the last one is computed once."""
    if isinstance(functions, torch.nn.Sequential):
        functions = list(functions.children())

    def run(part):
        def call(value):
            for function in part:
                value = function(value)
            return value
        return call

    size = max(len(functions) // segments, 1)
    end = size * (segments - 1)
    for start in range(0, end, size):
        input = checkpoint(run(functions[start:start + size]), input, use_reentrant=use_reentrant, **kwargs)
    return run(functions[end:])(input)
