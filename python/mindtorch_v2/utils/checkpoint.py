# SPDX-License-Identifier: Apache-2.0
"""torch.utils.checkpoint: a part of the forward pass is computed again in the backward pass instead of kept."""

import contextlib

import mindtorch_v2 as torch

__all__ = ["checkpoint", "checkpoint_sequential", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop",
           "noop_context_fn"]


def noop_context_fn():
    """Two blocks that do nothing, around the first and the second computation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled):
    """Changes nothing: there is nothing to debug."""
    yield


@contextlib.contextmanager
def set_checkpoint_early_stop(enable):
    """Changes nothing: the part is computed again as a whole."""
    yield


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
    """function(*args): what it computes between its input and its result is not kept, but computed again."""
    if not torch.is_grad_enabled():
        return function(*args, **kwargs)
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
