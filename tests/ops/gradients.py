# SPDX-License-Identifier: Apache-2.0
"""Gradients against central differences, in float64.

The results' random projection p = sum(w * result) is a number; its derivative by each element of
each input is compared with (p(x + h) - p(x - h)) / 2h. Double backward does the same with the
projection of the gradients.
"""
import mt
import numpy as np
from layouts import collect, map_arrays, place, strip

STEP = 1e-5
SAMPLE = 24  # elements of an input that are tried, at most
TOLERANCE = 2e-6


class Problem:
    """A call as a function of its floating-point arrays."""

    def __init__(self, call, args, kwargs, chosen, layout, device, rng):
        self.call = call  # (args, kwargs) with tensors -> results
        self.args, self.kwargs = args, kwargs
        self.layout, self.device, self.rng = layout, device, rng
        arrays = [strip(a) for a in self.arrays()]
        floating = [i for i, a in enumerate(arrays) if a.dtype == np.float64]
        self.places = [floating[i] for i in chosen] if chosen is not None else floating
        self.inputs = [np.array(arrays[i]) for i in self.places]

    def arrays(self):
        found = []
        map_arrays((self.args, self.kwargs), lambda a: found.append(a) or a)
        return found

    def run(self, inputs, layout="contiguous", grad=False):
        """Results (floating-point ones) and the tensors made of `inputs`."""
        leaves = []
        count = -1

        def make(array):
            nonlocal count
            count += 1
            if count not in self.places:
                return place(array, layout, self.device)
            value = inputs[self.places.index(count)]
            tensor = place(value, layout, self.device)
            tensor.requires_grad = grad
            leaves.append(tensor)
            return tensor

        args, kwargs = map_arrays((self.args, self.kwargs), make)
        results = [t for t in collect(self.call(args, kwargs), mt.Tensor) if t.dtype == "float64"]
        return results, leaves

    def weights(self, results):
        return [np.asarray(self.rng.normal(size=t.shape)) for t in results]


def run_backward(problem):
    """Forward and backward, without a look at the numbers."""
    results, leaves = problem.run(problem.inputs, problem.layout, grad=True)
    results = [t for t in results if t.requires_grad]
    if results and leaves:
        ones = [mt.call("ones_like", t) for t in results]
        mt.grad(results, leaves, ones, mt.ALLOW_UNUSED)


def _projection(tensors, weights):
    return sum(float(np.sum(t.numpy() * w)) for t, w in zip(tensors, weights) if t is not None)


def _differences(inputs, function, rng):
    """Yields (input, index, derivative) for elements of the inputs."""
    for number, array in enumerate(inputs):
        indices = list(np.ndindex(array.shape))
        if len(indices) > SAMPLE:
            indices = [indices[i] for i in sorted(rng.choice(len(indices), SAMPLE, False))]
        for index in indices:
            kept = array[index]
            array[index] = kept + STEP
            above = function()
            array[index] = kept - STEP
            below = function()
            array[index] = kept
            yield number, index, (above - below) / (2 * STEP)


def _compare(found, inputs, function, rng, what):
    for number, grad in enumerate(found):
        if grad is not None and grad.shape != inputs[number].shape:
            raise AssertionError(f"{what} of input {number} has shape {grad.shape}, "
                                 f"expected {inputs[number].shape}")
    values = [np.zeros(a.shape) if g is None else g.numpy() for g, a in zip(found, inputs)]
    for number, index, expected in _differences(inputs, function, rng):
        got = float(values[number][index])
        if not abs(got - expected) <= TOLERANCE * max(1.0, abs(expected)):
            raise AssertionError(f"{what} of input {number} at {index} is {got!r}, "
                                 f"differences say {expected!r}")


def check_gradient(problem):
    """Gradients of all results by all chosen inputs."""
    results, leaves = problem.run(problem.inputs, problem.layout, grad=True)
    tied = [t for t in results if t.requires_grad]
    if not leaves:
        raise AssertionError("no floating-point input to differentiate")
    if not tied:
        raise AssertionError("no result requires a gradient")
    keep = [i for i, t in enumerate(results) if t.requires_grad]
    weights = problem.weights(tied)
    found = mt.grad(tied, leaves, [mt.tensor(w, problem.device) for w in weights], mt.ALLOW_UNUSED)

    def projection():
        with mt.no_grad():
            again, _ = problem.run(problem.inputs)
        return _projection([again[i] for i in keep], weights)

    _compare(found, problem.inputs, projection, problem.rng, "gradient")


def check_double(problem):
    """Gradients of the gradients, by the inputs and by the gradients that came in."""
    results, _ = problem.run(problem.inputs, grad=True)
    keep = [i for i, t in enumerate(results) if t.requires_grad]
    weights = problem.weights([results[i] for i in keep])

    def first(flags):
        outputs, leaves = problem.run(problem.inputs, grad=True)
        incoming = [mt.tensor(w, problem.device) for w in weights]
        for tensor in incoming:
            tensor.requires_grad = True
        grads = mt.grad([outputs[i] for i in keep], leaves, incoming, flags | mt.ALLOW_UNUSED)
        return grads, leaves + incoming

    grads, variables = first(mt.CREATE_GRAPH)
    places = [i for i, g in enumerate(grads) if g is not None and g.requires_grad]
    if not places:
        raise AssertionError("no gradient has a graph of its own")
    seconds = [np.asarray(problem.rng.normal(size=g.shape)) if g is not None else None
               for g in grads]
    found = mt.grad([grads[i] for i in places], variables,
                    [mt.tensor(seconds[i], problem.device) for i in places], mt.ALLOW_UNUSED)

    def projection():
        again, _ = first(0)
        return _projection([again[i] for i in places], [seconds[i] for i in places])

    _compare(found, problem.inputs + weights, projection, problem.rng, "second gradient")
