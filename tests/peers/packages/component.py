# SPDX-License-Identifier: Apache-2.0
"""What the lists of components (models_*.py, ...) are written with.

A list imports torch, which is real torch in one process and mindtorch_v2 in the other. A component is a function
that returns (module, loss) or (module, loss, optimizer): loss(module) makes a number, and optimizer(parameters) is
SGD where it is not given. Input comes from NumPy, so that both libraries see the same.
"""
import numpy
import torch

COMPONENTS = {}  # by package, then by name


def component(package, name):
    """Registers a component."""
    def keep(make):
        COMPONENTS.setdefault(package, {})[name] = make
        return make
    return keep


def floats(*shape, seed=0):
    """Numbers of a normal distribution."""
    numbers = numpy.random.RandomState(seed + sum(shape)).standard_normal(shape)
    return torch.from_numpy(numbers.astype(numpy.float32))


def integers(high, *shape, seed=0):
    """Numbers from 0 to high - 1."""
    return torch.from_numpy(numpy.random.RandomState(seed + sum(shape)).randint(0, high, shape).astype(numpy.int64))


def classify(*inputs, classes=5):
    """A loss: what the module makes of the inputs, against fixed classes."""
    target = integers(classes, inputs[0].shape[0])
    return lambda module: torch.nn.functional.cross_entropy(module(*inputs), target)


def squares(*inputs):
    """A loss: the mean square of what the module makes of the inputs (its first result)."""
    def loss(module):
        result = module(*inputs)
        while isinstance(result, (tuple, list)):
            result = result[0]
        return (result.float() ** 2).mean()
    return loss


def sgd(parameters):
    """The optimizer of components that have no other."""
    return torch.optim.SGD(parameters, lr=0.05)
