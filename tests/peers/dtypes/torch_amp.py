#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Autocast against torch, op by op: torch_amp.py LIBRARY

Every row of the op table that takes float32 is called with its cases in both libraries while autocast casts to
bfloat16, once with float32 and once with bfloat16 tensors: the results have the same types. Then programs: gradients,
GradScaler, the ops of a profile. The last line: N passed, N failed, N skipped.
"""
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import torch_twin as twin  # noqa: E402 first: it finds tests/ops

import layouts  # noqa: E402
import mt  # noqa: E402
import opcases  # noqa: E402
import run_ops  # noqa: E402
import torch  # noqa: E402
import torch_ops  # noqa: E402

import mindtorch_v2  # noqa: E402

CASES = 4  # of a row and a type
# Rows whose results differ, and why.
DECISIONS = {
    "_standard_gamma": "half types are computed with; torch refuses them",
    "_standard_gamma_grad": "half types are computed with; torch refuses them",
    "binomial": "half types are computed with; torch refuses them",
    "mkldnn_rnn_layer": "our fused layer for all recurrent networks; torch's takes other arguments",
    "mkldnn_rnn_layer_backward": "our fused layer",
    "lstm": "torch casts inside, and not for empty batches",
    "lstm.data": "torch casts inside the other overload alone",
    **dict.fromkeys(("_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa",
                     "_upsample_bicubic2d_aa_backward"), "torch has no bfloat16 there"),
    **{f"special_{name}": "half types are computed with; torch refuses them" for name in (
        "bessel_j0 bessel_j1 bessel_y0 bessel_y1 erfcx log_ndtr modified_bessel_i0 modified_bessel_i1 "
        "modified_bessel_k0 modified_bessel_k1 ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
        "spherical_bessel_j0 zeta").split()},
    "ldexp": "the power of two is float32, and decides",
    "detach_": "torch refuses to detach a view in place",
    "native_dropout": "the mask of an empty tensor is bool too",
    "_scaled_dot_product_flash_attention_for_cpu": "called directly it has no rule here; the logarithm is float32",
}


def types_of(value, kind):
    return [str(t.dtype).replace("torch.", "") for t in layouts.collect(value, kind)]


def tried(function):
    try:
        return function(), None
    except Exception as error:  # noqa: BLE001 which one it is, is compared
        return None, type(error).__name__


class Counts:
    passed = failed = skipped = 0

    def take(self, where, ours, theirs, known=False):
        if ours == theirs:
            self.passed += 1
        elif known:
            self.skipped += 1
        else:
            self.failed += 1
            print(f"FAIL {where}: {ours}, torch {theirs}")


def one_case(op, case, library):
    args, kwargs = twin.pairs((case.args, case.kwargs), "contiguous")
    library.mt_autocast_set_enabled(0, True)
    mine, error = tried(lambda: mt.call(op.name, *twin.side(args, "ours"), **twin.side(kwargs, "ours")))
    library.mt_autocast_set_enabled(0, False)
    with torch.autocast("cpu"):
        its, its_error = tried(lambda: twin.call_theirs(op, twin.side(args, "theirs"), twin.side(kwargs, "theirs")))
    return (error or types_of(mine, mt.Tensor)), (its_error or types_of(its, torch.Tensor))


def rows(counts, library):
    cases = run_ops.Runner(torch_ops.argparse.Namespace(seed=1, device="cpu"))
    for name, op in mt.ops().items():
        registered, derived = run_ops.cases_of(name)
        if name in twin.ABSENT or "float32" not in registered.dtypes or "FACTORY" in op.flags:
            continue
        for dtype in ("float32", "bfloat16"):
            done = 0
            try:
                for item in cases.items(op, registered, dtype, derived):
                    if isinstance(item, opcases.Bad) or item.note == "made: large":
                        continue
                    ours, theirs = one_case(op, item, library)
                    counts.take(f"{name} {dtype} {torch_ops.signature(op, item)}", ours, theirs,
                                name in DECISIONS or theirs == "RuntimeError" and name.lstrip("_").startswith("fft_"))
                    done += 1
                    if done == CASES:
                        break
            except (TypeError, KeyError) as error:
                if "bfloat16" not in str(error):
                    raise


def trained(library):
    """Losses, types and the scale of a few steps; the same numbers begin in both."""
    torch.manual_seed(3)
    values = [torch.randn(8, 16), torch.randn(16, 16) / 4, torch.randn(16), torch.randn(8, 16)]
    x, w, b, y = (library.tensor(value.tolist()) for value in values)
    w.requires_grad_()
    b.requires_grad_()
    optimizer = library.optim.SGD([w, b], lr=0.1)
    scaler = library.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    told = []
    for number in range(6):
        optimizer.zero_grad()
        with library.autocast("cpu"):
            hidden = library.nn.functional.linear(x, w, b)
            out = library.nn.functional.gelu(hidden) @ w
            loss = library.nn.functional.mse_loss(out, y)
        told.append((str(hidden.dtype), str(out.dtype), str(loss.dtype), round(loss.item(), 2)))
        scaler.scale(loss * (float("inf") if number == 2 else 1)).backward()
        told.append((str(w.grad.dtype), scaler.get_scale()))
        scaler.step(optimizer)
        scaler.update()
    return [[str(item).replace("mindtorch_v2", "torch") for item in line] for line in told]


def shown(library):
    """The ops of a profile that both show."""
    x, w = library.ones(3, 4), library.ones(4, 4, requires_grad=True)
    with library.profiler.profile() as prof:
        with library.autocast("cpu"):
            x @ w, x @ w, library.nn.functional.linear(x, w), library.cat([x, w.detach().bfloat16()])
    quiet = {"aten::empty_strided", "aten::copy_", "aten::resolve_conj", "aten::transpose", "aten::as_strided",
             "aten::empty", "aten::narrow", "aten::slice"}
    return [event.name for event in prof.events() if event.name.startswith("aten::") and event.name not in quiet]


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    library = mt.open_library(sys.argv[1])
    run_ops.load(run_ops.FAMILIES)
    counts = Counts()
    rows(counts, library)
    for number, (ours, theirs) in enumerate(zip(trained(mindtorch_v2), trained(torch))):
        counts.take(f"training, {number}", ours, theirs)
    counts.take("profile", shown(mindtorch_v2), shown(torch))
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    return counts.failed != 0


if __name__ == "__main__":
    sys.exit(main())
