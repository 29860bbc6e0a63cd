# SPDX-License-Identifier: Apache-2.0
"""Modules for images and volumes against torch's: outputs, gradients, reprs, state dicts, errors, rows of a
profile: torch_images.py [-v] [NAME ...]
"""
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from nn_twin import CASES, case, main, raised  # noqa: E402

SHAPES = {1: (2, 3, 5), 2: (2, 3, 5, 4), 3: (2, 3, 4, 3, 5)}
MODES = {1: ("nearest", "nearest-exact", "linear", "area"),
         2: ("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
         3: ("nearest", "nearest-exact", "trilinear")}
SIZES = {1: (7,), 2: (7, 3), 3: (5, 2, 7)}


def resized(shape, **options):
    return lambda t: t.backward(t.F.interpolate(t.x(*shape), **options))


for dims, modes in MODES.items():
    for mode in modes:
        corners = (None, True, False) if "linear" in mode or mode == "bicubic" else (None,)
        for flag, how in itertools.product(corners, ({"size": SIZES[dims]}, {"scale_factor": 2}, {"scale_factor": 1.7},
                                                     {"scale_factor": 0.6},
                                                     {"scale_factor": 1.7, "recompute_scale_factor": True})):
            name = f"interpolate {dims}d {mode} {flag} {how}"
            CASES[name] = resized(SHAPES[dims], mode=mode, align_corners=flag, **how)
for mode, size in itertools.product(("bilinear", "bicubic"), ((3, 2), (9, 8), (2, 7))):
    CASES[f"antialias {mode} {size}"] = resized((1, 2, 7, 6), mode=mode, size=size, antialias=True)

TRANSPOSED = ({}, {"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 3, "bias": False},
              {"dilation": 2}, {"stride": 3, "padding": 2, "dilation": 2, "output_padding": 2})
for dims, options in itertools.product((1, 2, 3), TRANSPOSED):
    CASES[f"ConvTranspose{dims}d {options}"] = lambda t, dims=dims, options=options: t.run(
        getattr(t.nn, f"ConvTranspose{dims}d")(3, 6, 3, **options), t.x(*SHAPES[dims]))
for options in ({}, {"stride": 2}, {"padding": 1, "dilation": (1, 2, 1)}, {"groups": 3}, {"padding": "same"},
                {"kernel": (1, 2, 3)}):
    CASES[f"Conv3d {options}"] = lambda t, options=options: t.run(
        t.nn.Conv3d(3, 6, options.get("kernel", 3), **{k: v for k, v in options.items() if k != "kernel"}),
        t.x(1, 3, 5, 6, 5))


@case
def output_sizes(t):
    module = t.fill(t.nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1))
    x = t.x(2, 3, 5, 4)
    return [module(x, output_size=(9, 8)).detach(), module(x, output_size=(2, 4, 10, 7)).detach(),
            raised(lambda: module(x, output_size=(20, 8)))[0]]


@case
def printed_images(t):
    nn = t.nn
    made = [nn.Upsample(scale_factor=2), nn.Upsample(size=(2, 3), mode="bilinear", align_corners=True),
            nn.UpsamplingNearest2d(2), nn.UpsamplingBilinear2d(scale_factor=(2, 3)), nn.ConvTranspose2d(3, 4, 3),
            nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, 2, False, 2), nn.ConvTranspose3d(1, 2, 3),
            nn.Conv3d(1, 2, (1, 2, 3), padding=1)]
    return [[repr(m), [(k, list(v.shape)) for k, v in m.state_dict().items()], list(m.__constants__)] for m in made]


@case
def image_errors(t):
    F, x = t.F, t.torch.zeros(1, 1, 4, 4)
    calls = [
        lambda: F.interpolate(x, size=3, scale_factor=2), lambda: F.interpolate(x),
        lambda: F.interpolate(x, size=(1, 2, 3)), lambda: F.interpolate(x[0, 0], size=3),
        lambda: F.interpolate(x, scale_factor=(1, 2, 3)), lambda: F.interpolate(x, scale_factor=2, align_corners=True),
        lambda: F.interpolate(x, scale_factor=2, mode="linear"), lambda: F.interpolate(x, scale_factor=2, mode="foo"),
        lambda: F.interpolate(x, scale_factor=2, antialias=True),
        lambda: F.interpolate(x[0], scale_factor=2, mode="bilinear"),
        lambda: F.interpolate(x, size=0), lambda: F.interpolate(x, size=3, recompute_scale_factor=True),
    ]
    return [raised(call) for call in calls]


@case
def image_rows(t):
    """Ops at the user's level of a profile, forward and backward."""
    F, found = t.F, []
    x = t.x(1, 3, 4, 4)
    deep = t.x(1, 3, 4, 4, 4)
    transposed, volume = t.nn.ConvTranspose2d(3, 2, 3), t.nn.Conv3d(3, 2, 3)
    for call in (lambda: F.interpolate(x, scale_factor=2), lambda: F.interpolate(x, scale_factor=2, mode="bilinear"),
                 lambda: F.interpolate(x, size=6, mode="bicubic"), lambda: transposed(x), lambda: volume(deep)):
        call().sum().backward()
        with t.torch.profiler.profile(activities=[t.torch.profiler.ProfilerActivity.CPU]) as prof:
            call().sum().backward()
        found.append([e.name for e in prof.events() if e.cpu_parent is None])
    return found


if __name__ == "__main__":
    sys.exit(main(__doc__.split("\n")[0]))
