# SPDX-License-Identifier: Apache-2.0
"""Rarely used functions against torch's: windows of signals, projections, spellings: torch_rare_functions.py [-v] [NAME ...]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from nn_twin import case, main, raised  # noqa: E402

WINDOWS = {
    "bartlett": ({},), "blackman": ({},), "cosine": ({},), "hamming": ({},), "hann": ({},), "nuttall": ({},),
    "exponential": ({}, {"tau": 3.0}, {"center": 1, "sym": False}, {"center": 2.5, "tau": 0.5, "sym": False}),
    "gaussian": ({}, {"std": 2.5}, {"std": 0.3}), "kaiser": ({}, {"beta": 0.0}, {"beta": 3}, {"beta": 700.0}),
    "general_hamming": ({}, {"alpha": 0.7}), "general_cosine": ({"a": [0.5, 0.3, 0.2]}, {"a": (1.0,)}, {"a": [1, 2]}),
}


@case
def windows(t):
    torch, found = t.torch, []
    for name, ways in WINDOWS.items():
        for options in ways:
            for size in (0, 1, 2, 3, 4, 7, 100):
                for sym in (True, False):
                    for dtype in (torch.float32, torch.float64):
                        made = getattr(torch.signal.windows, name)(size, **{"sym": sym, "dtype": dtype, **options})
                        found.append(made)
        made = getattr(torch.signal.windows, name)(5, requires_grad=True, **ways[0])
        found += [made.detach(), made.requires_grad]
    return found


@case
def window_errors(t):
    torch, W = t.torch, t.torch.signal.windows
    calls = []
    for name, ways in WINDOWS.items():
        window = getattr(W, name)
        for size, more in ((-1, {}), (5, {"dtype": torch.int64}), (5, {"dtype": torch.float16}),
                           (0, {"dtype": torch.complex64}), ("3", {})):
            calls.append(lambda window=window, size=size, more={**ways[0], **more}: window(size, **more))
    calls += [lambda: W.gaussian(5, std=0), lambda: W.gaussian(0, std=-1.0), lambda: W.exponential(5, tau=0),
              lambda: W.exponential(5, center=1), lambda: W.kaiser(0, beta=-1), lambda: W.general_cosine(5, a=[]),
              lambda: W.general_cosine(5, a=3), lambda: W.general_cosine(5), lambda: W.hann()]
    return [raised(call) for call in calls] + sorted(W.__all__)


def low_rank(t, *shape, rank=3):
    """A matrix of that rank, in float64."""
    left, right = (t.x(*shape[:-2], side, rank, grad=False).double() for side in shape[-2:])
    return (left @ right.mT).requires_grad_()


@case
def projections(t):
    """They are random: what does not depend on that, of matrices whose rank is at most q."""
    torch, found = t.torch, []
    for shape in ((9, 6), (6, 9), (7, 7), (2, 9, 6), (2, 1, 4, 8)):
        A = low_rank(t, *shape)
        middle = A.detach().mean(-2, keepdim=True)
        for function in (torch.svd_lowrank, torch.pca_lowrank):
            for options in ({}, {"q": 3}, {"q": 4, "niter": 0}, {"q": 4, "niter": 5}):
                made = function(A, **options)
                U, S, V = made
                whole = U @ torch.diag_embed(S) @ V.mT
                found += [type(made).__name__, list(U.shape), list(V.shape), S.detach(), whole.detach()]
                if options.get("q") == 3:
                    found.append(torch.autograd.grad((whole ** 2).sum() + (S ** 3).sum(), A)[0])
        U, S, V = torch.svd_lowrank(A, 4, M=middle)
        found += [S.detach(), (U @ torch.diag_embed(S) @ V.mT).detach()]
        found.append(torch.pca_lowrank(A, 4, center=False)[1].detach())
    A = t.x(7, 5)
    return found + [[list(each.shape) for each in torch.svd_lowrank(A, q)] for q in (0, 5, 6, 8, None)]


@case
def projection_errors(t):
    torch, A = t.torch, t.torch.zeros(7, 5)
    return [raised(call) for call in (
        lambda: torch.pca_lowrank(A, 9), lambda: torch.pca_lowrank(A, -1), lambda: torch.pca_lowrank(A, 3, niter=-1),
        lambda: torch.pca_lowrank(A[0]), lambda: torch.svd_lowrank(A[0]))]


@case
def complex_fills(t):
    torch, found = t.torch, []
    like = torch.zeros(2, 3, dtype=torch.complex64)
    for made in (torch.full((2,), 1 + 2j), torch.full((2, 1), 1 + 2j, dtype=torch.complex128), torch.full((), 1j),
                 torch.full((2,), 1 + 0j, dtype=torch.float32), torch.full_like(like, 3 - 1j), like.new_full((3,), 1j),
                 torch.full_like(torch.zeros(2), 2j, dtype=torch.complex64),
                 torch.full((2,), 1j, requires_grad=True), torch.full((1,), 2j, out=torch.zeros(1, dtype=like.dtype)),
                 torch.full(size=(2,), fill_value=1j, device="cpu", layout=torch.strided)):
        found += [torch.view_as_real(made.detach()) if made.is_complex() else made, made.requires_grad]
    return found + [raised(call) for call in (
        lambda: torch.full((2,), 1j, dtype=torch.float32), lambda: torch.full_like(torch.zeros(2), 1j),
        lambda: torch.zeros(2).new_full((2,), 1j))]


@case
def rare_spellings(t):
    torch, x, found = t.torch, t.x(5, 3), []
    found += [torch.rrelu(x), torch.rrelu(x, 0.3, 0.3, True), torch.rrelu(x, lower=0.1, upper=0.2),
              torch.rrelu_(x.detach().clone(), 0.2, 0.4), torch.rrelu_(x * 1, 0.2, 0.2, True),
              t.F.rrelu(x, 0.1, 0.1, True)]
    for parts in (torch.unsafe_split(x, 2), torch.unsafe_split_with_sizes(x, [1, 4]), torch.unsafe_chunk(x, 2, 1),
                  x.unsafe_split(2, 1), x.unsafe_chunk(3), x.unsafe_split_with_sizes([1, 2], 1)):
        found += [*parts, type(parts).__name__]
    values = [f for f in found if not isinstance(f, str)]
    found += t.backward(tuple(values))
    flags = torch.tensor([[0, 1, 0], [2, 0, 3]])
    for size in (0, 1, 3, 5):
        for each in (flags, flags > 9, flags[0].bool(), torch.tensor(1), torch.zeros(0, 3)):
            found += [torch.nonzero_static(each, size=size), each.nonzero_static(size=size, fill_value=7)]
    found.append(torch.nonzero_static(flags, size=2, out=torch.empty(0, dtype=torch.int64)))
    return found + [raised(call) for call in (
        lambda: torch.rrelu(x, 0.5, 0.1), lambda: torch.rrelu(x, 0.5, 0.1, True), lambda: torch.unsafe_split(x, [2, 3]),
        lambda: torch.unsafe_split(x, 0), lambda: torch.unsafe_split(x, -1), lambda: torch.unsafe_chunk(x, 0),
        lambda: torch.nonzero_static(flags, size=-1))]


@case
def dim_orders(t):
    torch, found = t.torch, []
    plain, last = torch.contiguous_format, torch.channels_last
    shapes = [t.rng.randint(2, 4, t.rng.randint(0, 6)).tolist() for _ in range(60)]
    made = [torch.zeros(shape).permute(t.rng.permutation(len(shape)).tolist()) for shape in shapes]
    made += [torch.zeros(2, 3, 4, 5).to(memory_format=last), torch.zeros(2, 1, 4, 5),
             torch.zeros(2, 3, 1, 1), torch.zeros(2, 3).expand(4, 2, 3), torch.zeros(3, 1, 2).expand(3, 4, 2),
             torch.zeros(2, 1, 3).permute(2, 1, 0), torch.zeros(1, 2), torch.zeros(2, 1), torch.zeros(1),
             torch.zeros(2).expand(3, 2), torch.zeros(2, 6)[:, ::2], torch.zeros(0, 3)]
    for each in made:
        found.append([tuple(each.shape), each.stride(), each.dim_order()])
        for check in (True, [plain], [last], [plain, last], []):
            found.append([tuple(each.shape), each.stride(), len(str(check)), raised(
                lambda each=each, check=check: each.dim_order(ambiguity_check=check))])
    return found + [raised(lambda: made[0].dim_order(ambiguity_check="x"))]


if __name__ == "__main__":
    sys.exit(main(__doc__.split("\n")[0]))
