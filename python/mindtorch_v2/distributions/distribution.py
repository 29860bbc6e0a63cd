# SPDX-License-Identifier: Apache-2.0
"""The base of all distributions: shapes, validation of arguments, sampling without gradients."""

import mindtorch_v2 as torch

from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A distribution over events of event_shape, one for each element of batch_shape."""

    has_rsample = False
    has_enumerate_support = False
    arg_constraints = {}
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether new distributions check their arguments."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape = torch.Size(batch_shape)
        self._event_shape = torch.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self):
        for name, constraint in self.arg_constraints.items():
            made_later = name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or made_later:
                continue
            self._check_parameter(name, constraint)

    def _check_parameter(self, name, constraint):
        value = getattr(self, name)
        if not constraint.check(value).all():
            raise ValueError(
                f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
            )

    @property
    def batch_shape(self):
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def support(self):
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The root of the variance."""
        return self.variance.sqrt()

    def expand(self, batch_shape, _instance=None):
        """The same distribution with another batch shape; parameters are expanded, not copied."""
        raise NotImplementedError

    def sample(self, sample_shape=torch.Size()):
        """Samples without a gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=torch.Size()):
        """Samples through which gradients of the parameters pass."""
        raise NotImplementedError

    def sample_n(self, n):
        """n samples."""
        return self.sample(torch.Size((n,)))

    def log_prob(self, value):
        """The logarithm of the density or probability of a value."""
        raise NotImplementedError

    def cdf(self, value):
        """The probability of values up to this one."""
        raise NotImplementedError

    def icdf(self, value):
        """The value of a cumulated probability."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution."""
        raise NotImplementedError

    def entropy(self):
        """The entropy."""
        raise NotImplementedError

    def perplexity(self):
        """e to the power of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=torch.Size()):
        return torch.Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value):
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event_dims = len(self._event_shape)
        if value.dim() < event_dims or tuple(value.shape[value.dim() - event_dims :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        actual, expected = value.size(), self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        support = self.support
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        """An object for expand() to fill; a class with an __init__ of its own must have its own expand()."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                                      "method must also define a custom .expand() method.")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _expanded(self, kind, _instance, batch_shape, **attributes):
        """A distribution of class `kind` with these attributes, which were checked before."""
        new = _instance if _instance is not None else type(self).__new__(type(self))
        for name, value in attributes.items():
            new.__dict__[name] = value
        event_shape = attributes.pop("_event_shape", self._event_shape)
        super(kind, new).__init__(batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def __repr__(self):
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = [(name, self.__dict__[name]) for name in names]
        parts = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in shown)
        return f"{self.__class__.__name__}({parts})"


class ExponentialFamily(Distribution):
    """Distributions of the exponential family; here a name for isinstance()."""
