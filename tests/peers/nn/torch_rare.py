# SPDX-License-Identifier: Apache-2.0
"""Rarely used parts of nn against torch's: adaptive softmax, fractional pools,
orthogonal weights: torch_rare.py [-v] [NAME ...]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from nn_twin import case, main, raised  # noqa: E402


@case
def adaptive_softmax(t):
    nn, torch, found = t.nn, t.torch, []
    for options in (([5, 10, 15], 2.0, True), ([4],), ([2, 19], 2)):
        module = nn.AdaptiveLogSoftmaxWithLoss(8, 20, *options)
        for target in ([1, 7, 19, 12, 4], [0, 1, 1, 0, 1], [19, 19, 18, 19, 18]):
            for dtype in (torch.int64, torch.int32):
                found += t.run(module, t.x(5, 8), torch.tensor(target, dtype=dtype))
        found += list(module(t.x(8), torch.tensor(3)))
        x = t.x(6, 8) * 3
        found += [module.log_prob(x), module.predict(x), module.log_prob(x[:0]), module.predict(x[:0])]
        with torch.no_grad():
            module.head.weight.copy_(t.x(*module.head.weight.shape))
        found += [module.predict(x), module.log_prob(x).argmax(1)]
        found += [repr(module), module.cutoffs, module.head_size, module.n_clusters, module.shortlist_size,
                  [(k, list(v.shape)) for k, v in module.state_dict().items()],
                  type(module(x[0], torch.tensor(1))).__name__]
    return found


@case
def adaptive_errors(t):
    A, torch = t.nn.AdaptiveLogSoftmaxWithLoss, t.torch
    m, x, index = A(8, 20, (5, 12)), torch.zeros(3, 8), torch.tensor
    calls = [lambda cutoffs=cutoffs: A(8, 20, cutoffs) for cutoffs in ([], [5, 5], [20], [5.5], [0, 5], [10, 5], [-1])]
    calls += [lambda: m(x, index([1, 2])), lambda: m(x, index([1, 2, 20])), lambda: m(x, index([1, 2, -1])),
              lambda: m(x, index([[1], [2], [3]])), lambda: m(x[0], index([3])), lambda: m(x, index(3)),
              lambda: m(x[None], index([3])), lambda: m.predict(x[0]), lambda: m.log_prob(x[0])]
    return [raised(call) for call in calls]


@case
def fractional_pools(t):
    F, torch, found = t.F, t.torch, []
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        sums = dtype is not torch.bfloat16  # gradients of many uses are rounded after each of them there
        image, deep = t.x(2, 3, 11, 9, grad=sums).to(dtype), t.x(2, 2, 6, 7, 9, grad=sums).to(dtype)
        flat, solid = t.x(2, 3, 2, low=0.0, grad=False).to(dtype), t.x(2, 2, 3, low=0.0, grad=False).to(dtype)
        for kernel, sizes in ((2, (3, 10, (4, 5), 1, (10, 1))), ((3, 1), (4, (9, 9), (2, 5))), (1, (9, (11, 9)))):
            for size in sizes:
                if not isinstance(size, int) or size + (kernel if isinstance(kernel, int) else 1) <= 10:
                    found += F.fractional_max_pool2d(image, kernel, size, return_indices=True, _random_samples=flat)
        for kernel, size in ((2, (3, 4, 5)), (2, 4), ((2, 1, 3), (4, 6, 6)), (3, 1)):
            found += F.fractional_max_pool3d(deep, kernel, size, return_indices=True, _random_samples=solid)
        found.append(F.fractional_max_pool2d(image[0], 2, output_ratio=(0.5, 0.3), _random_samples=flat[:1]))
        found.append(F.fractional_max_pool3d(deep[1], 2, output_ratio=0.6, _random_samples=solid))
    for value in (float("nan"), float("-inf"), float("inf"), 2.0):
        found += F.fractional_max_pool2d(torch.full((1, 1, 5, 5), value), 2, 3, return_indices=True,
                                         _random_samples=torch.zeros(1, 1, 2))
    image = t.x(1, 1, 6, 6, grad=False)
    image[0, 0, 2, 3] = image[0, 0, 3, 3] = float("nan")
    found += F.fractional_max_pool2d(image, 3, 4, return_indices=True, _random_samples=torch.zeros(1, 1, 2))
    return t.backward(tuple(f.float() for f in found)) + [str(f.dtype).split(".")[1] for f in found]


@case
def fractional_modules(t):
    nn, found = t.nn, []
    for module, x, samples in ((nn.FractionalMaxPool2d, t.x(2, 3, 11, 9), t.x(2, 3, 2, low=0.0, grad=False)),
                               (nn.FractionalMaxPool3d, t.x(2, 2, 6, 7, 9), t.x(2, 2, 3, low=0.0, grad=False))):
        for options in ({"output_size": 4}, {"output_ratio": 0.4}):
            made = module(2, return_indices=True, _random_samples=samples, **options)
            found += [*t.backward(made(x)), repr(made), list(made.state_dict()), made.kernel_size, made.output_size,
                      made.output_ratio]
        found += [list(module(2, 3)(x).shape), list(module(2, 3).state_dict())]
    return found


@case
def fractional_errors(t):
    nn, F, torch = t.nn, t.F, t.torch
    image, deep, samples = torch.zeros(2, 3, 7, 6), torch.zeros(2, 3, 3, 7, 6), torch.zeros(2, 3, 2)
    calls = [call for P in (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d) for call in (
        lambda P=P: P(2), lambda P=P: P(2, 3, 0.5), lambda P=P: P(2, output_ratio=1.5),
        lambda P=P: P(2, output_ratio=0), lambda P=P: P(2, output_ratio=(0.5, 0.0, 0.5)))]
    pools = (F.fractional_max_pool2d, image), (F.fractional_max_pool3d, deep)
    calls += [lambda f=f, x=x, a=a: f(x, *a) for f, x in pools
              for a in ((2,), (8, 3), (2, 7), (2, 6), ((2, 2, 2, 2), 3), (2, (3, 3, 3, 3)))]
    calls += [lambda s=s: F.fractional_max_pool2d(image, 2, 3, _random_samples=s) for s in (
        samples[0], samples[:1], samples[:, :2], samples.double(), torch.zeros(2, 3, 3))]
    calls += [lambda: F.fractional_max_pool2d(image[:, :0], 2, 3), lambda: F.fractional_max_pool2d(image[0, 0], 2, 3)]
    return [raised(call) for call in calls] + [list(F.fractional_max_pool2d(image[:0], 2, 3).shape)]


MAPS = ("matrix_exp", "cayley", "householder")


@case
def orthogonal_values(t):
    """Columns that trivialization adds are free, and torch's are random: the weights that do not depend on them."""
    nn, torch, found = t.nn, t.torch, []
    orthogonal = nn.utils.parametrizations.orthogonal
    for sides in ((4, 4), (3, 5), (5, 3)):
        for name in (None, *MAPS):
            for kept in (True, False):
                layer = t.fill(nn.Linear(*sides)).double()
                orthogonal(layer, orthogonal_map=name, use_trivialization=kept)
                part = layer.parametrizations.weight
                found += [layer.weight.detach() if kept or name in (None, "householder") else None,
                          [(k, list(v.shape)) for k, v in layer.state_dict().items()], repr(layer),
                          part[0].orthogonal_map.name, part.original.detach().clone(), list(part[0].shape)]
                with torch.no_grad():
                    part.original.add_(torch.tensor(t.rng.randn(*part.original.shape).tolist()).tril(-1) * 0.3)
                    if sides == (4, 4) or not kept:
                        rows, weights = t.x(2, sides[0]).double(), t.x(2, sides[1]).double()
                        with torch.enable_grad():
                            (layer(rows) * weights).sum().backward()
                        found += [layer.weight.detach(), part.original.grad]
                if kept or name == "householder" or name is None and sides != (4, 4):
                    layer.weight = t.x(sides[1], sides[0], grad=False).double()
                    found.append(layer.weight.detach())
    conv = t.fill(nn.Conv1d(2, 3, 4)).double()
    found.append(orthogonal(conv, orthogonal_map="cayley").weight.detach())
    return found


@case
def orthogonal_errors(t):
    nn, orthogonal, zeros = t.nn, t.nn.utils.parametrizations.orthogonal, t.torch.zeros

    def assign(value, *sides, **options):
        layer = nn.Linear(*sides)
        orthogonal(layer, **options)
        layer.weight = value
    return [raised(call) for call in (
        lambda: orthogonal(nn.Linear(3, 3), "bias"), lambda: orthogonal(nn.Linear(3, 3), orthogonal_map="x"),
        lambda: orthogonal(nn.Linear(3, 3), "z"), lambda: orthogonal(nn.ReLU()), lambda: assign(zeros(3, 4), 3, 3),
        lambda: assign(zeros(3, 3), 3, 3, use_trivialization=False),
        lambda: assign(zeros(3, 4), 4, 3, orthogonal_map="cayley", use_trivialization=False))]


@case
def rows_of_rare(t):
    """Ops at the user's level of a profile."""
    F, found = t.F, []
    x, module, target = t.x(1, 2, 6, 6, grad=False), t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 12]), t.ids(20, 4)
    rows = t.x(4, 8)
    for call in (lambda: F.fractional_max_pool2d(x, 2, 3), lambda: F.fractional_max_pool3d(x, (1, 2, 2), (1, 3, 3)),
                 lambda: module(rows, target), lambda: module.log_prob(rows)):
        call()
        with t.torch.profiler.profile(activities=[t.torch.profiler.ProfilerActivity.CPU]) as prof:
            call()
        found.append([e.name for e in prof.events() if e.cpu_parent is None])
    return found


if __name__ == "__main__":
    sys.exit(main(__doc__.split("\n")[0]))
