# SPDX-License-Identifier: Apache-2.0
"""Flows, Gaussian processes, variational inference and stochastic equations: zuko, nflows, gpytorch, pyro, torchsde."""
import torch
from torch import nn

from component import component, floats, integers


# ---- flows ----

def _zuko(name, make_flow):
    @component("zuko", name)
    def make():
        import zuko
        points, context = floats(16, 3) * 0.3, floats(16, 2)
        return make_flow(zuko.flows), lambda module: -module(context).log_prob(points).mean()


_zuko("NSF", lambda flows: flows.NSF(3, 2, transforms=2, hidden_features=(16, 16)))
_zuko("MAF", lambda flows: flows.MAF(3, 2, transforms=2, hidden_features=(16, 16)))
_zuko("NICE", lambda flows: flows.NICE(3, 2, transforms=2, hidden_features=(16, 16)))


@component("nflows", "masked affine autoregressive flow")
def _nflows():
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
    from nflows.transforms.base import CompositeTransform
    from nflows.transforms.permutations import ReversePermutation
    steps = [part for _ in range(2) for part in (ReversePermutation(features=3),
                                                 MaskedAffineAutoregressiveTransform(features=3, hidden_features=8))]
    points = floats(16, 3)
    return Flow(CompositeTransform(steps), StandardNormal([3])), lambda module: -module.log_prob(points).mean()


@component("nflows", "rational quadratic spline coupling")
def _nflows_spline():
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.nn.nets import ResidualNet
    from nflows.transforms.coupling import PiecewiseRationalQuadraticCouplingTransform
    made = PiecewiseRationalQuadraticCouplingTransform(
        mask=[1, 0, 1, 0], num_bins=4, tails="linear", tail_bound=3.,
        transform_net_create_fn=lambda inputs, outputs: ResidualNet(inputs, outputs, hidden_features=8, num_blocks=1))
    points = floats(16, 4)
    return Flow(made, StandardNormal([4])), lambda module: -module.log_prob(points).mean()


# ---- Gaussian processes ----

def _gaussian_process(name, kernel):
    @component("gpytorch", name)
    def make():
        import gpytorch

        class Model(gpytorch.models.ExactGP):
            def __init__(self, points, values, likelihood):
                super().__init__(points, values, likelihood)
                self.mean_module = gpytorch.means.ConstantMean()
                self.covar_module = kernel(gpytorch.kernels)

            def forward(self, x):
                return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))
        points = floats(12, 2)
        values = (points ** 2).sum(-1)
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        model = Model(points, values, likelihood)
        measure = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        return model, lambda module: -measure(module(points), values)


_gaussian_process("ExactGP with an RBF kernel", lambda kernels: kernels.ScaleKernel(kernels.RBFKernel()))
_gaussian_process("ExactGP with a Matern kernel", lambda kernels: kernels.ScaleKernel(
    kernels.MaternKernel(nu=2.5, ard_num_dims=2)))


# ---- variational inference ----

@component("pyro-ppl", "SVI of a linear regression")
def _pyro():
    import pyro
    import pyro.distributions as dist
    points, values = floats(16, 3), floats(16)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.where = nn.Parameter(floats(3))
            self.scale = nn.Parameter(torch.zeros(3))

        def forward(self):
            def model():
                weights = pyro.sample("weights", dist.Normal(torch.zeros(3), torch.ones(3)).to_event(1))
                with pyro.plate("data", 16):
                    pyro.sample("seen", dist.Normal(points @ weights, 1.), obs=values)

            def guide():
                pyro.sample("weights", dist.Delta(self.where, event_dim=1))
            pyro.clear_param_store()
            return pyro.infer.Trace_ELBO().differentiable_loss(model, guide) + (self.scale ** 2).sum()
    return Model(), lambda module: module() / 16


# ---- differential equations ----

@component("torchsde", "sdeint with given noise")
def _sdeint():
    import torchsde

    class Equation(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self):
            super().__init__()
            self.drift, self.spread = nn.Linear(3, 3), nn.Linear(3, 3)

        def f(self, t, y):
            return self.drift(y)

        def g(self, t, y):
            return self.spread(y).sigmoid() * 0.1

    class Noise(torchsde.BaseBrownian):
        """The same path in both libraries, whose random numbers differ."""

        def __call__(self, ta, tb=None, return_U=False, return_A=False):
            made = floats(4, 3, seed=int(float(ta) * 100)) * float(tb - ta) ** 0.5
            return (made, made * 0.5) if return_U else made

        def __repr__(self):
            return "Noise()"
        dtype, device, shape, levy_area_approximation = torch.float32, torch.device("cpu"), (4, 3), "none"
    start, times = floats(4, 3), torch.tensor([0., 0.1, 0.2])

    def loss(module):
        return (torchsde.sdeint(module, start, times, bm=Noise(), method="euler", dt=0.05) ** 2).mean()
    return Equation(), loss


@component("torchcde", "cdeint along a spline")
def _cdeint():
    import torchcde

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = nn.Linear(4, 4 * 2)

        def forward(self, t, z):
            return self.inside(z).tanh().view(*z.shape[:-1], 4, 2)
    series = floats(3, 6, 2)

    def loss(module):
        path = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(series))
        return (torchcde.cdeint(X=path, func=module, z0=torch.ones(3, 4), t=path.interval, adjoint=False,
                                method="rk4") ** 2).mean()
    return Model(), loss


# ---- sequences of labels ----

@component("pytorch-crf", "CRF")
def _crf():
    from torchcrf import CRF

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside, self.crf = nn.Linear(8, 5), CRF(5, batch_first=True)

        def forward(self, x, tags):
            emissions = self.inside(x)
            return -self.crf(emissions, tags, reduction="token_mean") + sum(map(sum, self.crf.decode(emissions))) * 1e-3
    numbers, tags = floats(3, 6, 8), integers(5, 3, 6)
    return Model(), lambda module: module(numbers, tags)
