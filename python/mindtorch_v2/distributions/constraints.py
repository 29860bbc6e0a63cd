# SPDX-License-Identifier: Apache-2.0
"""Constraints: what parameters and values of distributions must satisfy. check(value) says where they do."""

import mindtorch_v2 as torch

__all__ = """
    Constraint MixtureSameFamilyConstraint boolean cat corr_cholesky dependent dependent_property greater_than
    greater_than_eq half_open_interval independent integer_interval interval is_dependent less_than lower_cholesky
    lower_triangular multinomial nonnegative nonnegative_integer one_hot positive positive_definite positive_integer
    positive_semidefinite real real_vector simplex square stack symmetric unit_interval
""".split()


class Constraint:
    """A region; event_dim dimensions of a value are judged together."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Whether each event is inside, as a tensor of bools."""
        raise NotImplementedError

    def __repr__(self):
        return self.__class__.__name__[1:] + "()"


class _Dependent(Constraint):
    """A constraint that depends on other parameters: only an instance knows it."""

    def __init__(self, *, is_discrete=False, event_dim=0):
        self.is_discrete = is_discrete
        self.event_dim = event_dim

    def check(self, value):
        raise ValueError("Cannot determine validity of dependent constraint")

    def __call__(self, *, is_discrete=False, event_dim=0):
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)


class dependent_property(property):  # noqa: N801 torch's name
    """A property that is a constraint of an instance."""

    is_discrete = False
    event_dim = 0

    def __init__(self, fn=None, *, is_discrete=False, event_dim=0):
        super().__init__(fn)
        self.is_discrete = is_discrete
        self.event_dim = event_dim

    def __call__(self, fn):
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint):
    """Whether only an instance of a distribution knows the constraint."""
    return isinstance(constraint, (_Dependent, dependent_property))


class _IndependentConstraint(Constraint):
    """A constraint of each element, whose last dimensions are judged together."""

    def __init__(self, base, n):
        self.base_constraint = base
        self.reinterpreted_batch_ndims = n
        self.is_discrete = base.is_discrete
        self.event_dim = base.event_dim + n

    def check(self, value):
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        kept = result.shape[: result.dim() - self.reinterpreted_batch_ndims]
        return result.reshape((*kept, -1)).all(-1)

    def __repr__(self):
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Bounded(Constraint):
    """Constraints with bounds, which their repr shows."""

    names = ()

    def __init__(self, *bounds, **named):
        for name, bound in (*zip(self.names, bounds), *named.items()):
            if name not in self.names:
                raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument '{name}'")
            setattr(self, name, bound)
        super().__init__()

    def __repr__(self):
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self.names)
        return f"{self.__class__.__name__[1:]}({shown})"


class _IntegerInterval(_Bounded):
    is_discrete = True
    names = ("lower_bound", "upper_bound")

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Bounded):
    is_discrete = True
    names = ("lower_bound",)

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value):
        return value == value


class _GreaterThan(_Bounded):
    names = ("lower_bound",)

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_Bounded):
    names = ("lower_bound",)

    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Bounded):
    names = ("upper_bound",)

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Bounded):
    names = ("lower_bound", "upper_bound")

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    names = ("lower_bound", "upper_bound")

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value):
        positive = (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)
        return (value.tril() == value).all(-1).all(-1) & positive


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value):
        symmetric = ((value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs()).all(-1).all(-1)
        from ._matrix import cholesky

        with torch.no_grad():
            diagonal = cholesky(value).diagonal(dim1=-2, dim2=-1)
        return symmetric & (diagonal > 0).all(-1)


class _CorrCholesky(Constraint):
    """Factors of correlation matrices: lower triangular, with rows of length 1."""

    event_dim = 2

    def check(self, value):
        eps = torch.finfo(value.dtype).eps * value.size(-1) * 10
        unit = (value.norm(dim=-1) - 1).abs().le(eps).all(-1)
        return _LowerCholesky().check(value) & unit


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        return torch.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        square = super().check(value)
        if not square.all():
            return square
        return ((value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs()).all(-1).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return torch.linalg.eigvalsh(value).ge(0).all(-1)


class _Parts(Constraint):
    """Constraints of parts of a value along one of its dimensions."""

    def __init__(self, cseq, dim=0):
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(each.is_discrete for each in self.cseq)


class _Cat(_Parts):
    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.event_dim = max(each.event_dim for each in self.cseq)

    def check(self, value):
        parts = value.split(self.lengths, self.dim)
        return torch.cat([each.check(part) for each, part in zip(self.cseq, parts)], self.dim)


class _Stack(_Parts):
    def __init__(self, cseq, dim=0):
        super().__init__(cseq, dim)
        highest = max(each.event_dim for each in self.cseq)
        self.event_dim = highest + 1 if self.dim + highest < 0 else highest

    def check(self, value):
        parts = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        return torch.stack([each.check(part) for each, part in zip(self.cseq, parts)], self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """A constraint of all components of a mixture, of which values have no dimension."""

    def __init__(self, base):
        self.base_constraint = base
        self.is_discrete = base.is_discrete
        self.event_dim = base.event_dim

    def check(self, value):
        wide = value.unsqueeze(-1 - self.event_dim)
        return self.base_constraint.check(wide).all(-1)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_constraint!r})"


dependent = _Dependent()
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
positive_definite = _PositiveDefinite()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
cat = _Cat
stack = _Stack
