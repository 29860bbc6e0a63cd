# SPDX-License-Identifier: Apache-2.0
"""torch.distributions: densities, samples, entropies and divergences; gradients pass where torch's do."""

import sys as _sys
import types as _types

from . import constraints, transforms
from ._combine import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    Independent,
    LogNormal,
    MixtureSameFamily,
    TransformedDistribution,
)
from ._continuous import Beta, Cauchy, Chi2, Exponential, Gamma, Laplace, Normal, StudentT, Uniform
from ._discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from ._families import (
    ContinuousBernoulli,
    FisherSnedecor,
    GeneralizedPareto,
    InverseGamma,
    Kumaraswamy,
    Pareto,
    VonMises,
    Weibull,
)
from ._multivariate import Dirichlet, LowRankMultivariateNormal, MultivariateNormal
from ._relaxed import (
    ExpRelaxedCategorical,
    LKJCholesky,
    LogisticNormal,
    LogitRelaxedBernoulli,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    Wishart,
)
from .constraint_registry import biject_to, transform_to
from .distribution import Distribution, ExponentialFamily
from .kl import kl_divergence, register_kl
from .transforms import *  # noqa: F403
from .transforms import __all__ as _transforms

_MODULES = {  # torch's modules, by what they hold
    "bernoulli": [Bernoulli],
    "beta": [Beta],
    "binomial": [Binomial],
    "categorical": [Categorical],
    "cauchy": [Cauchy],
    "chi2": [Chi2],
    "continuous_bernoulli": [ContinuousBernoulli],
    "dirichlet": [Dirichlet],
    "exp_family": [ExponentialFamily],
    "exponential": [Exponential],
    "fishersnedecor": [FisherSnedecor],
    "gamma": [Gamma],
    "generalized_pareto": [GeneralizedPareto],
    "geometric": [Geometric],
    "gumbel": [Gumbel],
    "half_cauchy": [HalfCauchy],
    "half_normal": [HalfNormal],
    "independent": [Independent],
    "inverse_gamma": [InverseGamma],
    "kumaraswamy": [Kumaraswamy],
    "laplace": [Laplace],
    "lkj_cholesky": [LKJCholesky],
    "log_normal": [LogNormal],
    "logistic_normal": [LogisticNormal],
    "lowrank_multivariate_normal": [LowRankMultivariateNormal],
    "mixture_same_family": [MixtureSameFamily],
    "multinomial": [Multinomial],
    "multivariate_normal": [MultivariateNormal],
    "negative_binomial": [NegativeBinomial],
    "normal": [Normal],
    "one_hot_categorical": [OneHotCategorical, OneHotCategoricalStraightThrough],
    "pareto": [Pareto],
    "poisson": [Poisson],
    "relaxed_bernoulli": [RelaxedBernoulli, LogitRelaxedBernoulli],
    "relaxed_categorical": [RelaxedOneHotCategorical, ExpRelaxedCategorical],
    "studentT": [StudentT],
    "transformed_distribution": [TransformedDistribution],
    "uniform": [Uniform],
    "von_mises": [VonMises],
    "weibull": [Weibull],
    "wishart": [Wishart],
}

__all__ = sorted(
    ["Distribution", "ExponentialFamily", "biject_to", "constraints", "transform_to"]
    + ["kl_divergence", "register_kl", "transforms", *_transforms]
    + [
        _cls.__name__
        for _classes in _MODULES.values()
        for _cls in _classes
        if _cls not in (ExpRelaxedCategorical, LogitRelaxedBernoulli)
    ]
)

for _name, _classes in _MODULES.items():
    _module = _types.ModuleType(f"{__name__}.{_name}", f"torch.distributions.{_name}: {_classes[0].__name__}.")
    for _cls in _classes:
        setattr(_module, _cls.__name__, _cls)
    _sys.modules[_module.__name__] = globals()[_name] = _module
