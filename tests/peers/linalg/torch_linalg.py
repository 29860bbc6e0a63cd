#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares mindtorch_v2.linalg with torch.linalg, in one process.

Both evaluate the same expressions of float32 and float64 (L is linalg, T the library; a, s, w, b, v, c are matrices):
values, types, shapes, strides, the gradient and the gradient's gradient, the class and words of errors, and what a
profile shows at the user's level. Vectors that are unique up to their signs are multiplied so that signs vanish.
--device npu runs ours on the accelerator. The last line: N passed, N failed, N skipped.
"""
import argparse
import os
import sys
import warnings

import numpy as np

# a, c: 3 x 3, s: symmetric and definite, w: 2 x 3 x 4, t: 2 x 4 x 3, b: 3 x 2, v: 3
VALUES = """
    L.inv(a) | L.inv_ex(a).inverse | L.det(a) | L.slogdet(a)[1] | T.logdet(s) | L.matrix_rank(a) | L.matrix_rank(w)
    L.matrix_rank(a, atol=0.5) | L.matrix_rank(a, atol=T.tensor(0.5, dtype=a.dtype, device=a.device))
    L.matrix_rank(s, hermitian=True) | L.matrix_rank(a, 0.5) | L.pinv(a) | L.pinv(w) | L.pinv(t, rcond=0.3)
    L.pinv(s, hermitian=True) | L.pinv(w, atol=0.4, rtol=0.1) | T.pinverse(a) | T.inverse(a) | T.det(a) | a.det()
    L.solve(a, b) | L.solve(a, v) | L.solve(a, b.mT, left=False) | L.solve_ex(a, b).result | L.tensorsolve(a, v)
    L.solve_triangular(a, b, upper=True) | L.solve_triangular(a, b, upper=False, unitriangular=True)
    L.solve_triangular(a, b.mT, upper=True, left=False) | T.triangular_solve(b, a, transpose=True).solution
    L.lstsq(a, b).solution | L.lstsq(t, T.cat([b.expand(2, 3, 2), b[:1].expand(2, 1, 2)], 1)).solution
    L.lstsq(w, b.expand(2, 3, 2), driver="gelsd").solution | L.lstsq(w, b.expand(2, 3, 2), driver="gelss").rank
    L.lstsq(t, T.cat([b.expand(2, 3, 2), b[:1].expand(2, 1, 2)], 1), driver="gels").residuals | L.cholesky(s)
    L.cholesky(s, upper=True) | L.cholesky_ex(s).L | T.cholesky(s) | T.cholesky_solve(b, L.cholesky(s))
    T.cholesky_inverse(L.cholesky(s)) | s.cholesky() | L.lu(a).L | L.lu(a).U | L.lu(w).U | L.lu(t).L
    L.lu_factor(a).LU | L.lu_factor(w).LU | L.lu_solve(*L.lu_factor(a), b) | T.lu_unpack(*L.lu_factor(t)).L
    L.lu_solve(*L.lu_factor(a), b, adjoint=True) | L.lu_solve(*L.lu_factor(a), b.mT, left=False) | T.lu(a)[0]
    L.qr(a).Q | L.qr(a).R | L.qr(w).R | L.qr(t).Q | L.qr(t, "complete").R.detach() | T.qr(t).R
    L.qr(t, mode="r").R.detach() | L.eigh(s)[0] | L.eigh(s)[1] ** 2 | L.eigvalsh(s) | L.eigh(s, UPLO="U")[1].abs()
    L.eigvals(s).real.sort()[0] | L.eigvals(s + 0.2 * a).abs().sum() | L.eig(s)[0].abs().sort()[0]
    L.eig(a)[0].abs().pow(3).sum() | L.eig(s + 0.1 * a)[1].abs().pow(3).sum()
    L.svdvals(w) | L.svd(a).S | L.svd(w, full_matrices=False).U ** 2 | L.svd(t, full_matrices=False).Vh ** 2
    T.svd(a).V ** 2 | T.svd(w).S | L.svd(t).S | L.householder_product(t * 0.3, w[:, 0, :3].abs() * 0.3 + 0.2)
    L.matrix_exp(a) | T.matrix_exp(w @ t) | L.matrix_power(a, 3) | L.matrix_power(a, -2) | L.matrix_power(a, 0)
    T.matrix_power(w @ t, 2) | L.multi_dot([v, a, b]) | L.tensorinv(a, ind=1) | L.cross(a, c) | T.cross(a, c)
    L.cross(b, b.flip(1), dim=0) | L.vecdot(a, c) | L.vecdot(v, v) | L.vander(v) | L.vander(a, N=5)
    L.diagonal(w, offset=1) | L.matmul(w, t) | T.chain_matmul(a, c, b) | L.norm(a) | L.norm(a, 2) | L.norm(a, "nuc")
    L.norm(w, dim=1) | L.norm(w, 1, dim=(0, 2), keepdim=True) | L.norm(v, 3) | L.norm(w, float("inf"), (1, 2))
    L.norm(a, "fro", dtype=T.float64) | L.vector_norm(w, 3, dim=(0, 1)) | L.matrix_norm(w) | L.matrix_norm(w, "nuc")
    L.matrix_norm(w, 2, dim=(0, 1)) | L.matrix_norm(w, -1) | L.matrix_norm(w, float("-inf"), keepdim=True)
    L.matrix_norm(w, "nuc", dim=(2, 0), keepdim=True) | T.norm(a, "nuc") | L.cond(a) | L.cond(w) | L.cond(a, -2)
    L.cond(a, 1).detach() | L.cond(a, "fro").detach() | L.cond(a, "nuc")
"""

ERRORS = """
    L.inv(a * 0) | L.inv(w) | L.inv(v) | L.inv(a.half()) | L.inv(a.long()) | L.inv_ex(a * 0, check_errors=True)
    L.solve(a * 0, b) | L.solve(a, T.cat([b, b])) | L.solve(w, b) | L.solve(a, b.half()) | L.solve(a.half(), b.half())
    L.cholesky(-s) | L.cholesky(w) | L.cholesky(a.half()) | T.cholesky(-s) | L.det(w) | L.det(a.half()) | L.slogdet(v)
    T.logdet(w) | L.qr(v) | L.qr(a, "x") | L.qr(a.half()) | L.svd(v) | L.svd(a * float("nan")) | L.svd(a.half())
    L.eig(w) | L.eig(v) | L.eig(a.long()) | L.eig(a.half()) | L.eig(a * float("nan")) | L.eigvals(w) | L.eigvals(v)
    L.eigh(w) | L.eigh(s, "X") | L.eigh(a.half()) | L.lu(v) | L.lu(a, pivot=False) | L.lu_factor(a * 0)
    L.lu_solve(*L.lu_factor(a), T.cat([b, b])) | L.matrix_norm(v) | L.matrix_norm(a, 3) | L.matrix_norm(a, "x")
    L.norm(w, 2) | L.norm(w, 2, dim=(0, 1, 2)) | L.cond(v) | L.cond(w, 1) | L.cond(a, 3) | L.cond(a, "x")
    L.matrix_power(w, 2) | L.multi_dot([a]) | L.multi_dot([a, b, b]) | L.cross(b, b) | L.vander(v, N=1) | L.pinv(v)
    L.tensorinv(a, ind=0) | L.tensorinv(w, ind=1) | L.tensorsolve(w, v) | L.lstsq(a, T.cat([b, b])) | L.lstsq(v, b)
    L.householder_product(b.mT, v[:2]) | L.solve_triangular(a, v, upper=True) | T.cholesky_solve(T.cat([b, b]), s)
    L.matrix_exp(w) | L.matrix_exp(a.long()) | L.vecdot(a.long(), a.long()) | L.matrix_norm(a.half(), 2)
    L.matrix_rank(v) | T.cholesky_inverse(a * 0) | T.triangular_solve(T.cat([b, b]), a) | T.svd(v) | T.geqrf(v)
    L.lstsq(a, b, driver="x")
"""


def arrays(dtype):
    rng = np.random.default_rng(7)
    a, c = rng.normal(size=(3, 3)) + 2 * np.eye(3), rng.normal(size=(3, 3))
    s = rng.normal(size=(3, 3))
    s = s @ s.T + np.diag([1.0, 2.0, 4.0])
    made = {"a": a, "c": c, "s": s, "w": rng.normal(size=(2, 3, 4)), "t": rng.normal(size=(2, 4, 3)),
            "b": rng.normal(size=(3, 2)), "v": rng.normal(size=3)}
    return {name: value.astype(dtype) for name, value in made.items()}


def space(library, dtype, device):
    leaves = {name: library.tensor(value.tolist(), dtype=getattr(library, dtype), device=device)
              for name, value in arrays(dtype).items()}
    return {"L": library.linalg, "T": library, **leaves}, list(leaves.values())


def listed(text):
    return list(filter(None, (part.strip() for line in text.split("\n") for part in line.split("|"))))


def symmetric(library, names):
    """s as a function of what a gradient may change: torch's gradients are those of symmetric steps."""
    names["s"] = (names["s"] + names["s"].mT) / 2


def facts(library, text, dtype, device):
    names, leaves = space(library, dtype, device)
    for leaf in leaves:
        leaf.requires_grad_()
    symmetric(library, names)
    result = eval(text, names)
    out = {"value": result.detach().cpu().numpy(), "type": str(result.dtype).split(".")[-1],
           "stride": result.stride() if min(result.shape, default=1) > 1 and "expand" not in text else None,
           "gradients": [], "second": []}
    if not result.requires_grad:
        return out
    weights = library.linspace(0.5, 1.5, result.numel(), dtype=result.dtype, device=device).reshape(result.shape)
    grads = library.autograd.grad((result * weights).sum(), leaves, allow_unused=True, create_graph=True)
    out["gradients"] = [None if g is None else np.asarray((g.detach() + 0).tolist()) for g in grads]
    chosen = [g for g in grads if g is not None and g.requires_grad]
    if chosen and dtype == "float64":
        total = sum((g * g).sum() for g in chosen)
        out["second"] = [None if g is None else np.asarray((g + 0).tolist()) for g in
                         library.autograd.grad(total, leaves, allow_unused=True)]
    return out


def close(theirs, mine, dtype):
    tolerance = 2e-3 if dtype == "float32" else 1e-7
    for name in theirs:
        if name in ("type", "stride"):
            if theirs[name] != mine[name]:
                return f"{name}: torch {theirs[name]}, ours {mine[name]}"
            continue
        pairs = [(theirs[name], mine[name])] if name == "value" else list(zip(theirs[name], mine[name]))
        for one, other in pairs:
            one = np.zeros(()) if one is None else one
            other = np.zeros(()) if other is None else other
            if not np.allclose(one, other, rtol=tolerance, atol=tolerance * max(1.0, np.abs(one).max(initial=0.0))):
                return f"{name}: torch {one.tolist()}, ours {other.tolist()}"
    return None


def raised(library, text, device):
    try:
        eval(text, space(library, "float64", device)[0])
    except Exception as error:  # noqa: BLE001 which one it is, is compared
        return type(error).__name__, str(error)
    return "nothing", ""


def shown(library, text):
    """Ops of the outermost level."""
    from mindtorch_v2 import profiler as ours
    profiler = ours if library.__name__ == "mindtorch_v2" else library.profiler
    names = space(library, "float64", None)[0]
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
        eval(text, names)
    return [event.name for event in prof.events() if event.cpu_parent is None]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("torch is not installed")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    import mindtorch_v2 as ours

    warnings.simplefilter("ignore")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    torch.set_num_threads(1)
    results = []
    for text in listed(VALUES):
        for dtype in ("float64", "float32"):
            try:
                wrong = close(facts(torch, text, dtype, None), facts(ours, text, dtype, options.device), dtype)
            except Exception as error:  # noqa: BLE001 a failure of this expression
                wrong = f"{type(error).__name__}: {error}"
            results.append((f"{dtype} {text}", wrong))
        if options.device is None:
            theirs, mine = shown(torch, text), shown(ours, text)
            results.append((f"profile of {text}", None if theirs == mine else f"torch {theirs}, ours {mine}"))
    for text in listed(ERRORS):
        theirs, mine = raised(torch, text, None), raised(ours, text, options.device)
        right = theirs == mine and theirs[0] != "nothing"
        results.append((text, None if right else f"torch {theirs}, ours {mine}"))
    failed = [(name, wrong) for name, wrong in results if wrong]
    for name, wrong in failed:
        print(f"{name}: {wrong}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
