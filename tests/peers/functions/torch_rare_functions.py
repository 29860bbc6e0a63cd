# SPDX-License-Identifier: Apache-2.0
"""Rarely used functions against torch's: windows of signals, projections: torch_rare_functions.py [-v] [NAME ...]"""
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


if __name__ == "__main__":
    sys.exit(main(__doc__.split("\n")[0]))
